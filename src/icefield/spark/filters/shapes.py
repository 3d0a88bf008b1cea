"""What Columns of classic and Connect sessions share: functions and plain values, as filter text."""

import math
from collections.abc import Sequence
from decimal import Decimal

from icefield.expr.render.spark_sql import spark_literal
from icefield.types.datatypes import BinaryType, DoubleType, StringType

OPERATORS = {"=", "<", "<=", ">", ">=", "<=>", "and", "or", "like"}
# Values of other types may be encoded, such as the number of a date.
PLAIN_TYPES = {"string", "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "binary", "void"}


def function_text(name: str, arguments: Sequence[str]) -> str | None:
    """Convert a function call; None for one that is not allowed in a filter."""
    match name.lower(), arguments:
        case operator, [left, right] if operator in OPERATORS:
            return f"({left} {operator.upper()} {right})"
        case "!" | "not", [only]:
            return f"(NOT {only})"
        case "in", [tested, *values] if values:
            return f"({tested} IN ({', '.join(values)}))"
        case "isnull", [only]:
            return f"({only} IS NULL)"
        case "isnotnull", [only]:
            return f"({only} IS NOT NULL)"
        case "isnan", [only]:
            return f"isnan({only})"
        case "startswith", [text, prefix]:
            return f"startswith({text}, {prefix})"
        case "negative", [only]:
            return f"(-{only})"
        case _:
            return None


def is_plain(kind: str) -> bool:
    """Return whether values of a Spark type are the same in Python."""
    return kind.partition("(")[0] in PLAIN_TYPES


def value_text(value: object) -> str | None:
    """Convert a value of a plain type; None for other types."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case float():
            return "CAST('NaN' AS DOUBLE)" if math.isnan(value) else spark_literal(value, DoubleType())
        case Decimal():
            return f"{value:f}"
        case str():
            return spark_literal(value, StringType())
        case bytes() | bytearray():
            return spark_literal(bytes(value), BinaryType())
        case _:
            return None
