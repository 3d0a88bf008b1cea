"""The columns that an INSERT writes: a list of names, all columns by position, or the query's own names.

Raises InvalidInput, SchemaMismatch; both name the columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from icefield.errors import InvalidInput, SchemaMismatch
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.types.datatypes import NestedField
from icefield.types.schema import Schema

_BEGIN_QUERIES = ("select", "with", "values", "from", "table", "(")


@dataclass(frozen=True)
class InsertColumns:
    """The columns of an INSERT as written. names: a list, None without one. by_name: the query has the names."""

    names: tuple[Name, ...] | None = None
    by_name: Place | None = None

    def expected(self, schema: Schema, fixed: Sequence[NestedField]) -> list[NestedField]:
        """Return the columns of the table that get the columns of the query, in order. fixed: those of PARTITION."""
        if self.names is None:
            return [f for f in schema.fields if f not in fixed]
        found: list[NestedField] = []
        for name in self.names:
            with pointing_at(name.place):
                field = find_column(str(name), schema)
                if field in found or field in fixed:
                    raise InvalidInput(f"column {field.name!r} gets a value twice")
                found.append(field)
        return found

    def placed(
        self, columns: Sequence[str], schema: Schema, fixed: Sequence[NestedField], *, merges_schema: bool
    ) -> list[str]:
        """Return the column of the table for each column of a query; a new one keeps its name, if there may be any."""
        if self.by_name is None:
            wanted = [f.name for f in self.expected(schema, fixed)]
            if len(columns) > len(wanted) and merges_schema and self.names is None:
                return [*wanted, *columns[len(wanted) :]]
            if len(columns) != len(wanted):
                raise SchemaMismatch(wrong_width(len(columns), wanted), hint=_hint(len(columns), wanted))
            return wanted
        found: list[str] = []
        with pointing_at(self.by_name):
            for column in columns:
                known = next((f for f in schema.fields if f.name == column), None) or next(
                    (f for f in schema.fields if f.name.lower() == column.lower()), None
                )
                if known is None and not merges_schema:
                    find_column(column, schema)
                name = column if known is None else known.name
                if name in found or known in fixed:
                    raise InvalidInput(f"column {name!r} gets a value twice")
                found.append(name)
        return found


def check_required(given: Sequence[str], schema: Schema, place: Place) -> None:
    """Refuse rows without a value for a required column that has no default."""
    missing = [f.name for f in schema.fields if f.required and f.write_default is None and f.name not in given]
    if missing:
        names = ", ".join(repr(name) for name in missing)
        message = f"the new rows have no value for {names}, which must not be null and has no default"
        raise place.error(message, hint="Insert a value for it", kind=SchemaMismatch)


def find_column(name: str, schema: Schema) -> NestedField:
    """Find a column of the table."""
    exact = [f for f in schema.fields if f.name == name]
    found = exact or [f for f in schema.fields if f.name.lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    known = [f.name for f in schema.fields]
    near = get_close_matches(name.lower(), [each.lower() for each in known], n=1)
    hint = next((f"Did you mean {each!r}?" for each in known if [each.lower()] == near), None)
    raise SchemaMismatch(f"the table has no column {name!r} (columns: {', '.join(known)})", hint=hint)


def wrong_width(found: int | str, wanted: Sequence[str]) -> str:
    """Return the message for rows with too many or too few columns."""
    return f"the new rows have {found} columns, but {len(wanted)} are expected: {', '.join(wanted)}"


def _hint(found: int, wanted: Sequence[str]) -> str | None:
    if found > len(wanted):
        return None
    return f"Name the columns: INSERT INTO ... ({', '.join(wanted[:found])}); the others get their default"


def parse_insert_columns(cursor: Cursor) -> InsertColumns:
    """Read `(a, b)` or BY NAME, if either follows; a query in parentheses is neither."""
    place = cursor.place
    if cursor.accept("by", "name"):
        return InsertColumns(by_name=cursor.since(place.start))
    is_list = cursor.peek(1) not in _BEGIN_QUERIES or cursor.peek(2) in (",", ")")
    if not cursor.is_at("(") or not is_list:
        return InsertColumns()
    return InsertColumns(cursor.names("a column"))
