"""Bound expressions as readable text, for explain and error messages."""

import uuid

from icefield.expr.bind.bound import Bound, Reference
from icefield.expr.parse.datetimes import nano_timestamp_text, time_text, timestamp_text
from icefield.expr.render.sql import Style, render
from icefield.types.calendar import date_text
from icefield.types.datatypes import (
    DateType,
    PrimitiveType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Value,
)


def describe(expression: Bound) -> str:
    """Render an expression as SQL for display; it need not be executable."""
    return render(expression, Style(_name, describe_value))


def describe_value(value: Value, kind: PrimitiveType) -> str:
    """Render a value as in `describe`."""
    match value:
        case bool():
            return str(value).upper()
        case int():
            return _moment(value, kind)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case uuid.UUID():
            return f"'{value}'"
        case _:
            return str(value)


def _name(reference: Reference) -> str:
    return ".".join(part if part.isidentifier() else f"`{part}`" for part in reference.path)


def _moment(number: int, kind: PrimitiveType) -> str:
    match kind:
        case DateType():
            return f"DATE '{date_text(number)}'"
        case TimeType():
            return f"TIME '{time_text(number)}'"
        case TimestampType():
            return f"TIMESTAMP '{timestamp_text(number)}'"
        case TimestamptzType():
            return f"TIMESTAMP '{timestamp_text(number)}+00:00'"
        case TimestampNsType():
            return f"TIMESTAMP '{nano_timestamp_text(number)}'"
        case TimestamptzNsType():
            return f"TIMESTAMP '{nano_timestamp_text(number)}+00:00'"
        case _:
            return str(number)
