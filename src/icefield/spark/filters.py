"""Filters from Spark: a Column as the text that means the same to `icefield.expr.sql`.

Only its shape is looked at: names, values and functions, as the user put them together. What has no place in a filter
(a function of a column, a comparison of two columns) is refused whole. Raises InvalidFilter.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pyspark.sql.classic.column import Column as ClassicColumn

from icefield.errors import InvalidFilter
from icefield.expr.spark_sql import quoted_path, spark_literal
from icefield.expr.sql import SUPPORTED
from icefield.types.datatypes import BinaryType, DateType, DoubleType, StringType, TimestamptzType

OPERATORS = {"=", "<", "<=", ">", ">=", "<=>", "and", "or", "like"}
# Values of these types are the same in Python; others may stand for what they are not, such as a date for its number.
PLAIN_TYPES = {"string", "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "binary"}


def filter_text(column: object) -> str:
    """Write a Column as the text of a WHERE clause."""
    if not isinstance(column, ClassicColumn):
        raise InvalidFilter(
            f"cannot read a filter from {type(column).__module__}.{type(column).__name__}",
            hint="Write it as text or with icefield.col(...); columns of Spark Connect cannot be looked into",
        )
    try:
        return _text(column._jc.node())  # noqa: SLF001 - a Column has no other way to show its shape
    except RecursionError as error:
        raise InvalidFilter("the filter is nested too deeply") from error


def _text(node: Any) -> str:
    kind = node.getClass().getSimpleName()
    write = _WRITE.get(kind)
    if write is None:
        raise _unsupported(node)
    return write(node)


def _unsupported(node: Any) -> InvalidFilter:
    return InvalidFilter(f"cannot use the Column {node.sql()} in a filter", hint=SUPPORTED)


def _children(sequence: Any) -> list[Any]:
    return [sequence.apply(at) for at in range(sequence.size())]


def _function(node: Any) -> str:
    name = node.functionName().lower()
    arguments = [_text(child) for child in _children(node.arguments())]
    match name, arguments:
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
            raise _unsupported(node)


def _attribute(node: Any) -> str:
    return quoted_path(_children(node.nameParts()))


def _field_of_struct(node: Any) -> str:
    name = node.extraction()
    if name.getClass().getSimpleName() != "Literal" or not isinstance(name.value(), str):
        raise _unsupported(node)
    return f"{_text(node.child())}.{quoted_path([name.value()])}"


def _resolved(node: Any) -> str:
    """Write a column that was taken from a DataFrame, as `frame["id"]` is."""
    expression = node.expression()
    if expression.getClass().getSimpleName() != "AttributeReference":
        raise _unsupported(node)
    return quoted_path([expression.name()])


def _cast(node: Any) -> str:
    return f"CAST({_text(node.child())} AS {node.dataType().sql()})"


def _literal(node: Any) -> str:
    kind = node.dataType()
    if kind.isDefined() and kind.get().typeName().partition("(")[0] not in PLAIN_TYPES:
        raise _unsupported(node)
    value = node.value()
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
            return _moment(node, value)


def _moment(node: Any, value: Any) -> str:
    match value.getClass().getName():
        case "java.sql.Date":
            return spark_literal(value.toLocalDate().toEpochDay(), DateType())
        case "java.sql.Timestamp":
            # The milliseconds are in both numbers.
            micros = value.getTime() // 1000 * 1_000_000 + value.getNanos() // 1000
            return spark_literal(micros, TimestamptzType())
        case _:
            raise _unsupported(node)


_WRITE: dict[str, Callable[[Any], str]] = {
    "UnresolvedFunction": _function,
    "UnresolvedAttribute": _attribute,
    "UnresolvedExtractValue": _field_of_struct,
    "ExpressionColumnNode": _resolved,
    "Cast": _cast,
    "Literal": _literal,
    "Alias": lambda node: _text(node.child()),
    "SqlExpression": lambda node: f"({node.expression()})",
}
