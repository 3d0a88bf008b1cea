"""Convert a Column of Spark Connect to filter text. The counterpart of `filters`, which reads the JVM's.

Such a Column is a tree of Python objects as the user combined them, without anything that a server resolved. The
objects are identified by the names of their classes, because the package of Spark Connect need not be installed.
"""
# ruff: noqa: SLF001 - a Column has no other way to show its shape

import re
from collections.abc import Callable
from typing import Any

from pyspark.sql import types as spark

from icefield.errors import InvalidFilter
from icefield.expr.parse.sql import SUPPORTED
from icefield.expr.render.spark_sql import quoted_path, spark_literal
from icefield.spark.filters.shapes import function_text, is_plain, value_text
from icefield.types.datatypes import DateType, TimestamptzType

MODULE = "pyspark.sql.connect.column"
# A column by its name: parts separated by dots, with backticks around parts that contain dots.
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def connect_filter_text(column: Any) -> str:
    """Convert a Column of Spark Connect to the text of a WHERE clause."""
    return _text(column._expr)


def _text(node: Any) -> str:
    write = _WRITE.get(type(node).__name__)
    if write is None:
        raise _unsupported(node)
    return write(node)


def _unsupported(node: Any) -> InvalidFilter:
    return InvalidFilter(f"cannot use the Column {node} in a filter", hint=SUPPORTED)


def _function(node: Any) -> str:
    # The JVM's "=" is "==" here.
    name = {"==": "="}.get(node._name, node._name)
    text = function_text(name, [_text(argument) for argument in node._args])
    if text is None:
        raise _unsupported(node)
    return text


def _attribute(node: Any) -> str:
    parts = _PART.findall(node._unparsed_identifier)
    return quoted_path([quoted.replace("``", "`") or plain for quoted, plain in parts])


def _field_of_struct(node: Any) -> str:
    name = getattr(node._extraction, "_value", None)
    if not isinstance(name, str):
        raise _unsupported(node)
    return f"{_text(node._child)}.{quoted_path([name])}"


def _cast(node: Any) -> str:
    kind = node._data_type
    return f"CAST({_text(node._expr)} AS {kind if isinstance(kind, str) else kind.simpleString()})"


def _literal(node: Any) -> str:
    match node._value, node._dataType:
        case int() as days, spark.DateType():
            return spark_literal(days, DateType())
        case int() as micros, spark.TimestampType():
            return spark_literal(micros, TimestamptzType())
        case value, kind:
            text = value_text(value) if is_plain(kind.typeName()) else None
            if text is None:
                raise _unsupported(node)
            return text


_WRITE: dict[str, Callable[[Any], str]] = {
    "UnresolvedFunction": _function,
    "ColumnReference": _attribute,
    "UnresolvedExtractValue": _field_of_struct,
    "CastExpression": _cast,
    "LiteralExpression": _literal,
    "ColumnAlias": lambda node: _text(node._child),
    "SQLExpression": lambda node: f"({node._expr})",
}
