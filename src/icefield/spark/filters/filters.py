"""Filters from Spark: convert a Column to text with the same meaning for `icefield.expr.parse.sql`.

Only its structure is used: names, values and functions, as the user combined them. Whatever is not allowed in a filter
(a function of a column, a comparison of two columns) is rejected. Raises InvalidFilter.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column

from icefield.errors import InvalidFilter
from icefield.expr.parse.sql import SUPPORTED
from icefield.expr.render.spark_sql import quoted_path, spark_literal
from icefield.spark.filters import connect as connect_filters
from icefield.spark.filters.shapes import function_text, is_plain, value_text
from icefield.types.datatypes import DateType, TimestamptzType


def filter_text(column: object) -> str:
    """Convert a Column to the text of a WHERE clause."""
    module = type(column).__module__
    try:
        if module == connect_filters.MODULE:
            return connect_filters.connect_filter_text(column)
        if isinstance(column, Column):
            classic: Any = column
            return _text(classic._jc.node())  # noqa: SLF001 - a Column has no other way to show its shape
    except RecursionError as error:
        raise InvalidFilter("the filter is nested too deeply") from error
    raise InvalidFilter(
        f"cannot read a filter from {module}.{type(column).__name__}",
        hint="Write it as text, with icefield.col(...) or as a Spark Column",
    )


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
    text = function_text(node.functionName(), [_text(child) for child in _children(node.arguments())])
    if text is None:
        raise _unsupported(node)
    return text


def _attribute(node: Any) -> str:
    return quoted_path(_children(node.nameParts()))


def _field_of_struct(node: Any) -> str:
    name = node.extraction()
    if name.getClass().getSimpleName() != "Literal" or not isinstance(name.value(), str):
        raise _unsupported(node)
    return f"{_text(node.child())}.{quoted_path([name.value()])}"


def _resolved(node: Any) -> str:
    """Convert a column that was taken from a DataFrame, such as `frame["id"]`."""
    expression = node.expression()
    if expression.getClass().getSimpleName() != "AttributeReference":
        raise _unsupported(node)
    return quoted_path([expression.name()])


def _cast(node: Any) -> str:
    return f"CAST({_text(node.child())} AS {node.dataType().sql()})"


def _literal(node: Any) -> str:
    kind, value = node.dataType(), node.value()
    if kind.isDefined() and not is_plain(kind.get().typeName()):
        raise _unsupported(node)
    return value_text(value) or _moment(node, value)


def _moment(node: Any, value: Any) -> str:
    match value.getClass().getName():
        case "java.sql.Date":
            return spark_literal(value.toLocalDate().toEpochDay(), DateType())
        case "java.sql.Timestamp":
            # Both numbers include the milliseconds.
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
