"""Bound expressions as Spark SQL that does not depend on the session's time zone, ANSI mode and parser settings.

Columns whose type Spark does not have are compared as Spark reads them from Parquet: uuid and fixed as BINARY, time as
BIGINT microseconds, nanosecond timestamps as BIGINT nanoseconds.

A comparison that is true for NaN is written as `(x > 1D OR isnan(x))`. It is equivalent, but Spark does not push it
down to Parquet, where it would skip row groups with NaN, which minimum and maximum do not include.
"""

import math
import re
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal

from icefield.expr.bind.bound import AllOf, AnyOf, Bound, IsNaN, Leaf, Reference, all_of, any_of, passes_nan
from icefield.expr.parse.datetimes import timestamp_text
from icefield.expr.render.sql import Style, render
from icefield.types.calendar import date_text
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
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UUIDType,
    Value,
)

# A string with other characters is written as bytes: quotes and backslashes depend on parser settings, and Spark
# substitutes ${name} anywhere in a statement.
_PLAIN_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f'\\$]*")

_IDENTIFIER = re.compile(r"[A-Za-z0-9_]+")


def spark_sql(expression: Bound, name_of: Callable[[Reference], Sequence[str]] | None = None) -> str:
    """Render an expression as the condition of a WHERE clause; `name_of` returns a column's path if it differs."""

    def name(reference: Reference) -> str:
        return quoted_path(name_of(reference) if name_of else reference.path)

    return render(_guarded(expression), Style(name, spark_literal))


def spark_literal(value: Value, kind: PrimitiveType) -> str:
    """Render a value as a Spark SQL literal."""
    return _LITERALS[type(kind)](value, kind)


def quoted_path(path: Sequence[str]) -> str:
    """Render a path with each part in backticks."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def is_plain_name(name: str) -> bool:
    """Return whether a name may be used in SQL text: Spark substitutes ${name} there, in quotes too."""
    return "$" not in name


def is_identifier(name: str) -> bool:
    """Return whether a name means itself in SQL text under all settings: others may be patterns there, in backticks."""
    return _IDENTIFIER.fullmatch(name) is not None


def _guarded(expression: Bound) -> Bound:
    match expression:
        case AllOf(parts):
            return all_of(*(_guarded(part) for part in parts))
        case AnyOf(parts):
            return any_of(*(_guarded(part) for part in parts))
        case Leaf(reference) if passes_nan(expression):
            return any_of(expression, IsNaN(reference))
        case _:
            return expression


def _boolean(value: Value, _kind: PrimitiveType) -> str:
    return "TRUE" if value else "FALSE"


def _integer(value: Value, _kind: PrimitiveType) -> str:
    return str(value)


def _long(value: Value, _kind: PrimitiveType) -> str:
    assert isinstance(value, int)
    return f"{value}L"


def _decimal(value: Value, kind: PrimitiveType) -> str:
    assert isinstance(kind, DecimalType)
    assert isinstance(value, Decimal)
    return f"CAST('{value:f}' AS DECIMAL({kind.precision},{kind.scale}))"


def _floating(value: Value, kind: PrimitiveType) -> str:
    assert isinstance(value, float)
    word, suffix = ("FLOAT", "F") if isinstance(kind, FloatType) else ("DOUBLE", "D")
    if math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS {word})"
    return f"{value!r}{suffix}"


def _text(value: Value, _kind: PrimitiveType) -> str:
    assert isinstance(value, str)
    if _PLAIN_TEXT.fullmatch(value):
        return f"'{value}'"
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


def _binary(value: Value, _kind: PrimitiveType) -> str:
    data = value.bytes if isinstance(value, uuid.UUID) else value
    assert isinstance(data, bytes)
    return f"X'{data.hex()}'"


def _date(value: Value, _kind: PrimitiveType) -> str:
    assert isinstance(value, int)
    return f"DATE '{date_text(value)}'"


def _timestamp(value: Value, _kind: PrimitiveType) -> str:
    assert isinstance(value, int)
    return f"TIMESTAMP_NTZ '{timestamp_text(value)}'"


def _timestamptz(value: Value, _kind: PrimitiveType) -> str:
    assert isinstance(value, int)
    return f"TIMESTAMP_LTZ '{timestamp_text(value)}+00:00'"


_LITERALS: dict[type[PrimitiveType], Callable[[Value, PrimitiveType], str]] = {
    BooleanType: _boolean,
    IntegerType: _integer,
    LongType: _long,
    DecimalType: _decimal,
    FloatType: _floating,
    DoubleType: _floating,
    DateType: _date,
    TimeType: _long,
    TimestampType: _timestamp,
    TimestamptzType: _timestamptz,
    TimestampNsType: _long,
    TimestamptzNsType: _long,
    StringType: _text,
    UUIDType: _binary,
    FixedType: _binary,
    BinaryType: _binary,
}
