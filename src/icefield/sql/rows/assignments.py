"""Assignments: SET column = expression, ... Raises InvalidInput for a column that is not there or assigned twice."""

from collections.abc import Sequence
from dataclasses import dataclass

from icefield.errors import InvalidInput
from icefield.sql.rows.expressions import Label
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.types.schema import Schema


@dataclass(frozen=True)
class Assigned:
    """A column, or a field inside a struct, and the expression that is assigned to it."""

    column: Name
    value: Place


def parse_assignments(cursor: Cursor, *ends: str) -> tuple[Assigned, ...]:
    """Read assignments up to a word that ends them."""
    found: list[Assigned] = []
    while True:
        column = cursor.name("a column to set")
        if cursor.accept_any("=", "==") is None:
            raise cursor.expected("=")
        found.append(Assigned(column, cursor.until(",", *ends)))
        if not cursor.accept(","):
            return tuple(found)


def assigned_columns(columns: Sequence[Name], schema: Schema, label: Label) -> list[str]:
    """Return the exact dotted name of each assigned column; each is named once, and none together with its parts."""
    names: list[str] = []
    for column in columns:
        with pointing_at(column.place):
            name = _find(column, schema, label)
            for other in names:
                if f"{name}.".startswith(f"{other}.") or f"{other}.".startswith(f"{name}."):
                    raise InvalidInput(f"column {other!r} is assigned twice" if name == other else _both(name, other))
            names.append(name)
    return names


def _both(name: str, other: str) -> str:
    return f"{name!r} and {other!r} assign the same column"


def _find(column: Name, schema: Schema, label: Label) -> str:
    """Find a column by a name that may begin with that of its table, which comes first, as in Spark."""
    lower = tuple(part.lower() for part in column.parts)
    known = {".".join(path).lower() for path in schema.paths.values()}
    for qualifier in (*label.qualifiers, (label.name,)):
        width = len(qualifier)
        rest = column.parts[width:]
        if lower[:width] == tuple(part.lower() for part in qualifier) and ".".join(rest).lower() in known:
            return _exact(rest, schema)
    return _exact(column.parts, schema)


def _exact(parts: tuple[str, ...], schema: Schema) -> str:
    return ".".join(schema.paths[schema.find_field(".".join(parts)).field_id])
