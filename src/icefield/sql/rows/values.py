"""INSERT ... VALUES of literals, without Spark: rows as Arrow data, with the types of the table's columns.

    VALUES (1, 'ann', DATE '2026-01-01'), (2, DEFAULT, NULL)

Spark gives each column of VALUES one type, and then assigns it to the column of the table. So all values of a column
must have one type here, or be exact numbers for a column of numbers. Anything else is left to Spark, where the word
DEFAULT becomes the default of its column before: INSERT INTO t SELECT id, DEFAULT FROM s.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from icefield.engine.choose import LOCAL
from icefield.errors import NeedsSpark, SchemaMismatch, Unsupported
from icefield.expr.query.lexer import Lexeme, LexemeKind
from icefield.expr.render.spark_sql import spark_literal
from icefield.expr.values.assign import bind_assignment
from icefield.expr.values.bind import parse_value
from icefield.expr.values.scope import Moment, Scope
from icefield.sql.rows.expressions import Wording, tokens_of
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place, pointing_at
from icefield.sql.text.constants import TYPED, session_zone
from icefield.sql.text.rewrite import Edit, rewrite
from icefield.types.arrow import arrow_field, arrow_type
from icefield.types.datatypes import (
    DecimalType,
    DoubleType,
    EmptyStruct,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    Type,
    UnknownType,
)

_LITERALS = frozenset({LexemeKind.STRING, LexemeKind.RAW, LexemeKind.NUMBER, LexemeKind.BINARY})
_WORDS = frozenset({"true", "false", "null", "default"})
_EXACT = (IntegerType, LongType, DecimalType)
_NUMBERS = (*_EXACT, FloatType, DoubleType)


@dataclass(frozen=True)
class ValueRows:
    """The rows of VALUES: the place of each value."""

    rows: tuple[tuple[Place, ...], ...]
    places: tuple[Place, ...]


def parse_values(cursor: Cursor, place: Place) -> ValueRows | None:
    """Read `VALUES (...), ...`; None for any other query, such as VALUES with an alias."""
    inside = cursor.inside(place)
    if not inside.accept("values"):
        return None
    rows, places = list[tuple[Place, ...]](), list[Place]()
    while True:
        start = inside.position
        if inside.is_at("("):
            rows.append(tuple(_items(inside, inside.parenthesized())))
        elif inside.is_at_end:
            return None
        else:
            rows.append((inside.until(","),))
        places.append(inside.since(start))
        if inside.is_at_end:
            return ValueRows(tuple(rows), tuple(places))
        if not inside.accept(","):
            return None


def _items(cursor: Cursor, place: Place) -> Iterator[Place]:
    inside = cursor.inside(place)
    while not inside.is_at_end:
        yield inside.until(",", what="a value")
        if inside.accept(",") and inside.is_at_end:
            raise inside.expected("a value")


def is_default(place: Place) -> bool:
    """Return whether a value is the word DEFAULT."""
    return [token.word for token in tokens_of(place)] == ["default"]


@dataclass(frozen=True)
class LiteralColumns:
    """Turns values into columns of a table."""

    run: Run
    cursor: Cursor

    def table(self, values: ValueRows, fields: Sequence[NestedField]) -> pa.Table:
        """Return rows with these columns of the table. Raises NeedsSpark for what only Spark can evaluate."""
        columns = [self._column([row[at] for row in values.rows], field) for at, field in enumerate(fields)]
        return pa.Table.from_arrays(
            columns, schema=pa.schema([arrow_field(replace(f, required=False)) for f in fields])
        )

    def constant(self, text: str, field: NestedField, rows: int) -> pa.Array:
        """Return a column of one value, which is a literal."""
        value = bind_assignment(text, field, self._scope, field.name).evaluate({}, 1)
        return pa.concat_arrays([value] * rows) if rows else pa.array([], arrow_type(field.type))

    def _column(self, places: Sequence[Place], field: NestedField) -> pa.Array:
        self._check_types(places, field)
        cells = [self._cell(place, field) for place in places]
        return pa.concat_arrays(cells) if cells else pa.array([], arrow_type(field.type))

    def _cell(self, place: Place, field: NestedField) -> pa.Array:
        inside = self.cursor.inside(place)
        if inside.is_at_parameter:
            value = inside.parameter()
            if inside.is_at_end and isinstance(value, list | dict | tuple):
                return _nested(value, field, place)
        with pointing_at(place):
            bound = bind_assignment(self._text(place), field, self._scope, field.name)
            return bound.evaluate({}, 1)

    def _check_types(self, places: Sequence[Place], field: NestedField) -> None:
        """Refuse values whose common type only Spark knows, and anything but literals if Spark may be asked."""
        kinds: list[Type] = []
        for place in places:
            tokens = tokens_of(place)
            is_marker = self.cursor.inside(place).is_at_parameter
            if self.run.engine != LOCAL and not is_marker and not _is_literal(tokens):
                raise NeedsSpark(f"the expression {place.text}")
            if is_default(place) or (is_marker and not isinstance(field.type, PrimitiveType)):
                continue
            with pointing_at(place):
                kinds.append(parse_value(self._text(place), self._scope).type)
        known = {kind for kind in kinds if not isinstance(kind, UnknownType)}
        are_exact = all(isinstance(kind, _EXACT) for kind in known) and isinstance(field.type, _NUMBERS)
        if len(known) > 1 and not are_exact:
            shown = ", ".join(sorted(str(kind) for kind in known))
            raise places[0].error(f"the common type of {shown}", kind=NeedsSpark)

    def _text(self, place: Place) -> str:
        return Wording((), zone=session_zone(self.run)).text(self.cursor, place)

    @property
    def _scope(self) -> Scope:
        now = self.run.lake.ambient.now_ms()
        return Scope((), moment=Moment(now * 1000, None))


def _nested(value: object, field: NestedField, place: Place) -> pa.Array:
    try:
        return pa.array([value], arrow_type(field.type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        message = f"the parameter is not a value of column {field.name!r} of type {field.type}: {error}"
        raise place.error(message, kind=SchemaMismatch) from error


def _is_literal(tokens: Sequence[Lexeme]) -> bool:
    words = [token.word for token in tokens]
    match len(tokens):
        case 1:
            return tokens[0].kind in _LITERALS or words[0] in _WORDS
        case 2:
            is_signed = tokens[0].text in ("-", "+") and tokens[1].kind is LexemeKind.NUMBER
            return is_signed or (words[0] in TYPED and tokens[1].kind is LexemeKind.STRING)
        case _:
            return False


def check_width(values: ValueRows, width: int, message: str) -> None:
    """Refuse rows that do not have as many values as there are columns."""
    for row, place in zip(values.rows, values.places, strict=True):
        if len(row) != width:
            raise place.error(message.format(found=len(row)), kind=SchemaMismatch)


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


def find_items(cursor: Cursor, query: Place) -> list[Place]:
    """Return the places of the columns of a query, if its text has them one by one."""
    items = dict(_values(cursor, query))
    return list(items.values()) if all(tokens_of(each)[-1].text != "*" for each in items.values()) else []


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
