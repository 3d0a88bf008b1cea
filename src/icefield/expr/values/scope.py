"""The columns that an expression may name: of one table, or of a target and a source.

Spark's order of lookup: `side.column` first, then a column (or a field of a struct) that only one side has. Names match
as they do in filters. Raises InvalidInput for a name that is unknown or ambiguous.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput, NeedsSpark
from icefield.types.metadata_columns import SELECTABLE

with deferred_imports(__name__):
    from icefield.expr.bind.bind import find_field
    from icefield.expr.parse.ast import Column
    from icefield.types.datatypes import NestedField
    from icefield.types.schema import Schema

TARGET, SOURCE = "target", "source"


def own_name(schema: Schema) -> str:
    """Return the name of a table in a change without a source: not that of a column, so that columns come first."""
    taken = {f.name.lower() for f in schema.fields}
    return next(name for name in (TARGET, *(f"{TARGET}_{n}" for n in range(len(taken)))) if name not in taken)


# Words that Spark reads as functions without parentheses if no column has the name.
_FUNCTIONS = {
    *("current_catalog", "current_database", "current_date", "current_path", "current_schema", "current_time"),
    *("current_timestamp", "current_user", "localtime", "localtimestamp", "session_user", "user"),
}
_METADATA_COLUMNS = {f.name for f in SELECTABLE}


@dataclass(frozen=True)
class Side:
    """A table whose columns are in scope, with the name that qualifies them."""

    name: str
    schema: Schema


@dataclass(frozen=True)
class Place:
    """A column of a side: the field, and its path of names."""

    side: str
    field: NestedField
    path: tuple[str, ...]


@dataclass(frozen=True)
class Moment:
    """The time of a statement: microseconds since the epoch, and the date in the session's zone, if that is known."""

    micros: int
    days: int | None


@dataclass(frozen=True)
class Scope:
    """The sides in scope, and the time of the statement for current_timestamp() and current_date().

    `hidden` names the sides that the statement has, but that this expression may not use.
    """

    sides: tuple[Side, ...]
    hidden: tuple[str, ...] = ()
    moment: Moment | None = None

    def find(self, parts: tuple[str, ...]) -> Place:
        """Find the column of a name."""
        for side in self.sides:
            if len(parts) > 1 and parts[0].lower() == side.name.lower():
                found = _find(parts[1:], side)
                if found is not None:
                    return found
        found_in = [place for side in self.sides if (place := _find(parts, side)) is not None]
        if len(found_in) > 1:
            names = ", ".join(".".join((place.side, *place.path)) for place in found_in)
            raise InvalidInput(f"column {'.'.join(parts)!r} is ambiguous: {names}", hint="Name the side")
        return found_in[0] if found_in else self._unknown(parts)

    def is_function(self, parts: tuple[str, ...]) -> bool:
        """Return whether a name is a function that Spark calls without parentheses, and not a column."""
        is_word = len(parts) == 1 and parts[0].lower() in _FUNCTIONS
        return is_word and all(_find(parts, side) is None for side in self.sides)

    def side(self, name: str) -> Side:
        """Return the side of a name."""
        return next(side for side in self.sides if side.name == name)

    def _unknown(self, parts: tuple[str, ...]) -> Place:
        name = ".".join(parts)
        if len(parts) > 1 and parts[0].lower() in (hidden.lower() for hidden in self.hidden):
            usable = " and ".join(f"{side.name!r}" for side in self.sides)
            raise InvalidInput(f"column {name!r} cannot be used here: there is only a row of {usable}")
        leaves = [(side.name, leaf.dotted) for side in self.sides for leaf in side.schema.leaves if not leaf.repeated]
        names = [dotted for _, dotted in leaves] + [f"{side}.{dotted}" for side, dotted in leaves]
        near = difflib.get_close_matches(name, names, n=1)
        shown = "; ".join(
            f"{side.name}: {', '.join(f.name for f in side.schema.fields)}" for side in self.sides if side.schema.fields
        )
        hint = f"Did you mean {near[0]!r}?" if near else None
        if parts[-1].lower() in _METADATA_COLUMNS:
            hint = "Expressions do not have metadata columns; scans, and filters of delete and update, have them"
        raise InvalidInput(f"no column {name!r} ({shown})", hint=hint)


def _find(parts: tuple[str, ...], side: Side) -> Place | None:
    # A name that is ambiguous inside one side is an error of its own, not a reason to look further.
    lower = ".".join(parts).lower()
    if not any(".".join(path).lower() == lower for path in side.schema.paths.values()):
        return None
    field = find_field(Column(parts), side.schema)
    if field.field_id in side.schema.repeated_ids:
        raise NeedsSpark(f"column {'.'.join(parts)!r}, which is inside a list or map,")
    return Place(side.name, field, side.schema.paths[field.field_id])
