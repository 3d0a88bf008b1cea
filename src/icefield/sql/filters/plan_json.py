"""Conditions of Spark's optimised plans, which Spark writes to JSON, with typed literals and resolved columns.

A condition is a list of nodes in the order of a walk from its root; each tells how many children it has:

    [And 2] [GreaterThan 2] [AttributeReference id] [Literal 3 long] [IsNotNull 1] [AttributeReference day]
      ->  id > 3 AND day IS NOT NULL

Literals of type timestamp are in the time zone of the session. What is not known here, or has another form than in the
versions of Spark that are known, becomes UNKNOWN.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from icefield.engine.queries.probe import ExpressionJson
from icefield.errors import InvalidFilter
from icefield.expr.bind.bind import find_reference
from icefield.expr.parse import ast
from icefield.expr.parse.ast import Timestamp
from icefield.expr.parse.datetimes import parse_date, parse_timestamp
from icefield.sql.filters.expression import UNKNOWN, Call, Cast, Column, Constant, Expression, Local, Value
from icefield.types.schema import Schema

_CALLS = {
    "And": "and",
    "Or": "or",
    "Not": "not",
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "IsNull": "isnull",
    "IsNotNull": "isnotnull",
    "In": "in",
    "StartsWith": "startswith",
    "TruncTimestamp": "date_trunc",
    "TruncDate": "trunc",
    "Year": "year",
    "Month": "month",
}
_TYPES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def read_condition(nodes: ExpressionJson, schema: Schema) -> Expression:
    """Read a condition on the columns of a table."""
    walk = iter(nodes)
    try:
        read = _read(walk, schema)
    except (StopIteration, KeyError, TypeError, RecursionError):
        return UNKNOWN
    return read if next(walk, None) is None and not isinstance(read, _Struct) else UNKNOWN


def short_class(node: dict[str, Any]) -> str:
    """Return the name of a node's class."""
    return str(node["class"]).rpartition(".")[2]


@dataclass(frozen=True)
class _Struct:
    """A column that is a struct, or a struct in it. fields: those that Spark reads of it."""

    path: tuple[str, ...]
    fields: list[dict[str, Any]]


def _read(walk: Iterator[dict[str, Any]], schema: Schema) -> Expression | _Struct:
    node = next(walk)
    # All children are read in any case, to come to what follows them.
    children = [_read(walk, schema) for _ in range(node["num-children"])]
    try:
        match short_class(node), children:
            case "AttributeReference", []:
                return _column((node["name"],), node["dataType"], schema)
            case "GetStructField", [_Struct(path, fields)]:
                chosen = fields[node["ordinal"]]
                return _column((*path, chosen["name"]), chosen["type"], schema)
        plain = tuple(UNKNOWN if isinstance(child, _Struct) else child for child in children)
        return _expression(node, plain)
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError, InvalidFilter):
        return UNKNOWN


def _expression(node: dict[str, Any], children: tuple[Expression, ...]) -> Expression:
    match short_class(node), children:
        case "Literal", ():
            return Constant(_literal(node["dataType"], node["value"]))
        case "InSet", (value,):
            return Call("in", (value, *(Constant(_literal(node["type"], text)) for text in node["hset"])))
        case "Cast", (value,):
            return Cast(value, _TYPES.get(node["dataType"], node["dataType"]))
        case "Like", (value, pattern):
            return Call("like", (value, pattern, Constant(node["escapeChar"])))
        case name, _ if name in _CALLS:
            return Call(_CALLS[name], children)
    return UNKNOWN


def _column(path: tuple[str, ...], kind: object, schema: Schema) -> Expression | _Struct:
    # Names are as the query writes them; two that differ only by case are ambiguous, and give an error.
    if isinstance(kind, dict):
        return _Struct(path, kind["fields"])
    return Column(find_reference(ast.Column(path), schema))


def _literal(kind: object, text: str | None) -> Value:
    if text is None:
        return None
    if not isinstance(kind, str):
        raise TypeError("an array, a map or a struct")
    return _LITERALS[kind.partition("(")[0]](text)


def _local(text: str) -> Value:
    parsed = parse_timestamp(text)
    if parsed.zoned:
        raise ValueError(text)
    return Local(parsed.micros)


def _float(text: str) -> Value:
    return float(struct.unpack("<f", struct.pack("<f", float(text)))[0])


_LITERALS: dict[str, Callable[[str], Value]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    "boolean": lambda text: text == "true",
    "float": _float,
    "double": float,
    "decimal": Decimal,
    "string": str,
    "binary": bytes.fromhex,
    "date": parse_date,
    "timestamp": _local,
    "timestamp_ntz": lambda text: Timestamp(int(text), zoned=False),
}
