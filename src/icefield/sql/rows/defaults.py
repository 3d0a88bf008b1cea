"""The word DEFAULT in the rows of an INSERT that Spark reads: it becomes the default of its column.

INSERT INTO t VALUES (1, DEFAULT), (rand(), 2)       INSERT INTO t SELECT id, DEFAULT FROM s
"""

from collections.abc import Iterator, Sequence

from icefield.errors import Unsupported
from icefield.expr.render.spark_sql import spark_literal
from icefield.sql.query.rewrite import Edit, rewrite
from icefield.sql.rows.values import is_default, parse_values
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place
from icefield.types.datatypes import EmptyStruct, NestedField, PrimitiveType

_ENDS = ("from", "where", "group", "having", "order", "limit", "union", "except", "intersect", "lateral", "|>")


def with_defaults(cursor: Cursor, query: Place, fields: Sequence[NestedField]) -> Place:
    """Return a query in which DEFAULT is a literal. fields: the columns of the table, in the order of the query."""
    edits = [
        Edit(place.start, place.end, _default(fields[at], place))
        for at, place in _values(cursor, query)
        if is_default(place) and at < len(fields)
    ]
    if not edits:
        return query
    text = rewrite(query, edits).text
    return Place(query.source[: query.start] + text, query.start, query.start + len(text))


def _values(cursor: Cursor, query: Place) -> Iterator[tuple[int, Place]]:
    """Yield the values of VALUES, or of the list of a SELECT, each with its number."""
    values = parse_values(cursor, query)
    if values is not None:
        for row in values.rows:
            yield from enumerate(row)
        return
    inside = cursor.inside(query)
    if not inside.accept("select"):
        return
    at = 0
    while not inside.is_at_end and inside.peek() not in _ENDS:
        yield at, inside.until(",", *_ENDS)
        at += 1
        if not inside.accept(","):
            return


def _default(field: NestedField, place: Place) -> str:
    """Write the default of a column as a literal."""
    default = field.write_default
    if default is None:
        return "NULL"
    if not isinstance(field.type, PrimitiveType) or isinstance(default, EmptyStruct):
        message = f"cannot write the default of {field.name!r}, a {field.type}, here"
        raise place.error(message, hint="Leave the column out of the list of columns", kind=Unsupported)
    return spark_literal(default, field.type)
