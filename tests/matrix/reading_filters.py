"""Filters on a model's rows: drawn at random, evaluated by SQL's three-valued logic, and written for each engine.

The evaluator knows nothing of the code under test. As in Spark, NaN equals itself and is greater than any number, and
-0.0 equals 0.0; strings are ordered by their bytes.
"""

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.histories.model import Row
from tests.matrix.reading_values import draw_primitive

from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

EPOCH = dt.datetime(1970, 1, 1)
NANOS = TimestampNsType | TimestamptzNsType


@dataclass(frozen=True)
class Place:
    """A column that can be filtered on: its fields from the top, and the type of its values."""

    fields: tuple[NestedField, ...]

    @property
    def kind(self) -> PrimitiveType:
        kind = self.fields[-1].type
        assert isinstance(kind, PrimitiveType)
        return kind

    @property
    def quoted(self) -> str:
        return ".".join("`" + f.name.replace("`", "``") + "`" for f in self.fields)

    def value(self, row: Row) -> Any:
        found: Any = row
        for field in self.fields:
            found = None if found is None else found[field.field_id]
        return found


@dataclass(frozen=True)
class Test:
    """A column compared with values; `word` is the operator."""

    __test__ = False
    place: Place
    word: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Not:
    part: "Filter"


@dataclass(frozen=True)
class Both:
    word: str  # AND, OR
    left: "Filter"
    right: "Filter"


Filter = Test | Not | Both


def places(fields: Sequence[NestedField], above: tuple[NestedField, ...] = ()) -> Iterator[Place]:
    """Yield the columns that can be filtered on, in structs too."""
    for field in fields:
        if isinstance(field.type, StructType):
            yield from places(field.type.fields, (*above, field))
        elif isinstance(field.type, PrimitiveType):
            yield Place((*above, field))


def draw_filter(random: Random, columns: Sequence[Place], rows: Sequence[Row]) -> Filter:
    """Draw a filter; most are one comparison, because a second one may hide what the first loses."""
    drawn: Filter = _draw_test(random, random.choice(columns), rows)
    if random.random() < 0.12:
        drawn = Not(drawn)
    if random.random() < 0.2:
        other = _draw_test(random, random.choice(columns), rows)
        drawn = Both(random.choice(["AND", "OR"]), drawn, other)
    return drawn


def truth(condition: Filter, row: Row) -> bool | None:
    """Return what a filter is for a row: true, false or null."""
    match condition:
        case Not(part):
            found = truth(part, row)
            return None if found is None else not found
        case Both(word, left, right):
            sides = (truth(left, row), truth(right, row))
            decisive = word == "OR"
            if decisive in sides:
                return decisive
            return None if None in sides else not decisive
        case _:
            return _truth_of_test(condition, condition.place.value(row))


def where_text(condition: Filter) -> str:
    """Write a filter for our own `where=`."""
    match condition:
        case Not(part):
            return f"NOT ({where_text(part)})"
        case Both(word, left, right):
            return f"({where_text(left)}) {word} ({where_text(right)})"
        case Test(place, word, values):
            return _sql(word, place.quoted, [_literal(v, place.kind, ours=True) for v in values])


def where_column(condition: Filter) -> Column:
    """Write a filter as Spark's users do, over the columns as they see them."""
    match condition:
        case Not(part):
            return ~where_column(part)
        case Both(word, left, right):
            one, other = where_column(left), where_column(right)
            return one & other if word == "AND" else one | other
        case Test(place, word, values):
            column = F.col(place.quoted)
            return _column(word, column, [F.expr(_literal(v, place.kind, ours=False)) for v in values])


def _draw_test(random: Random, place: Place, rows: Sequence[Row]) -> Test:
    if isinstance(place.kind, UnknownType) or random.random() < 0.2:
        return Test(place, random.choice(["IS NULL", "IS NOT NULL"]))
    if isinstance(place.kind, FloatType | DoubleType) and random.random() < 0.1:
        return Test(place, "ISNAN")
    there = [v for row in rows if (v := place.value(row)) is not None]

    def draw() -> Any:
        return random.choice(there) if there and random.random() < 0.7 else draw_primitive(random, place.kind)

    if isinstance(place.kind, StringType) and random.random() < 0.25:
        return Test(place, "STARTSWITH", (draw()[: random.randrange(1, 4)],))
    if random.random() < 0.25:
        values = tuple(draw() for _ in range(random.choice((1, 2, 3, 12))))
        return Test(place, random.choice(["IN", "IN", "NOT IN"]), values)
    words = ["=", "<>", "<=>"] if isinstance(place.kind, BooleanType) else ["=", "=", "<>", "<", "<=", ">", ">=", "<=>"]
    return Test(place, random.choice(words), (draw(),))


def _truth_of_test(test: Test, value: Any) -> bool | None:
    match test.word:
        case "IS NULL":
            return value is None
        case "IS NOT NULL":
            return value is not None
        case "ISNAN":
            return value is not None and math.isnan(value)
        case "<=>":
            return value is not None and _key(value) == _key(test.values[0])
    if value is None:
        return None
    found, wanted = _key(value), [_key(v) for v in test.values]
    answers: dict[str, bool] = {
        "IN": found in wanted,
        "NOT IN": found not in wanted,
        "=": found == wanted[0],
        "<>": found != wanted[0],
        "<": found < wanted[0],
        "<=": found <= wanted[0],
        ">": found > wanted[0],
        ">=": found >= wanted[0],
    }
    return value.startswith(test.values[0]) if test.word == "STARTSWITH" else answers[test.word]


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def _sql(word: str, name: str, values: Sequence[str]) -> str:
    match word:
        case "IS NULL" | "IS NOT NULL":
            return f"{name} {word}"
        case "ISNAN":
            return f"isnan({name})"
        case "STARTSWITH":
            return f"startswith({name}, {values[0]})"
        case "IN" | "NOT IN":
            return f"{name} {word} ({', '.join(values)})"
        case _:
            return f"{name} {word} {values[0]}"


def _column(word: str, column: Column, values: Sequence[Column]) -> Column:
    match word:
        case "IS NULL":
            return column.isNull()
        case "IS NOT NULL":
            return column.isNotNull()
        case "ISNAN":
            return F.isnan(column)
        case "STARTSWITH":
            return F.startswith(column, values[0])
        case "IN":
            return column.isin(*values)
        case "NOT IN":
            return ~column.isin(*values)
        case "<=>":
            return column.eqNullSafe(values[0])
    made: Column = {
        "=": column == values[0],
        "<>": column != values[0],
        "<": column < values[0],
        "<=": column <= values[0],
        ">": column > values[0],
        ">=": column >= values[0],
    }[word]
    return made


def _literal(value: Any, kind: PrimitiveType, *, ours: bool) -> str:
    """Write a value of the column's own type; Spark has numbers for types that it lacks."""
    match kind:
        case BooleanType():
            return str(value).upper()
        case IntegerType():
            return str(value)
        case LongType():
            return f"{value}L"
        case FloatType() | DoubleType():
            word = "FLOAT" if isinstance(kind, FloatType) else "DOUBLE"
            return f"CAST('{float_text(value)}' AS {word})"
        case DecimalType(precision, scale):
            return f"CAST('{value:f}' AS DECIMAL({precision},{scale}))"
        case StringType():
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        case UUIDType():
            return f"'{value}'"
        case BinaryType() | FixedType():
            return f"X'{value.hex()}'"
        case DateType():
            return f"DATE '{(EPOCH + dt.timedelta(days=value)).date().isoformat()}'"
    return _moment(value, kind, ours=ours)


def _moment(value: int, kind: PrimitiveType, *, ours: bool) -> str:
    if isinstance(kind, TimeType | NANOS) and not ours:
        return f"{value}L"
    if isinstance(kind, TimeType):
        return f"TIME '{(EPOCH + dt.timedelta(microseconds=value)).time().isoformat()}'"
    micros, nanos = divmod(value, 1000) if isinstance(kind, NANOS) else (value, 0)
    text = (EPOCH + dt.timedelta(microseconds=micros)).isoformat(" ", "microseconds")
    text += f"{nanos:03d}" if isinstance(kind, NANOS) else ""
    zoned = isinstance(kind, TimestamptzType | TimestamptzNsType)
    assert zoned or isinstance(kind, TimestampType | TimestampNsType)
    return f"TIMESTAMP_LTZ '{text}+00:00'" if zoned else f"TIMESTAMP_NTZ '{text}'"


def float_text(value: float) -> str:
    """Write a number as SQL's casts read it."""
    if math.isinf(value):
        return "-Infinity" if value < 0 else "Infinity"
    return "NaN" if math.isnan(value) else repr(value)
