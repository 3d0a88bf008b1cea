"""Predicates in the JSON form that Iceberg Java parses."""

import datetime as dt
import json
import uuid
from decimal import Decimal
from typing import Any

from tests.peers.predicates import Predicate

WORDS = {
    "=": "eq",
    "!=": "not-eq",
    "<": "lt",
    "<=": "lt-eq",
    ">": "gt",
    ">=": "gt-eq",
    "in": "in",
    "not in": "not-in",
    "is null": "is-null",
    "is not null": "not-null",
    "starts with": "starts-with",
}


def expression_json(ask: Predicate) -> str:
    """Write a predicate for `ExpressionParser.fromJson`."""
    said: dict[str, Any] = {"type": WORDS[ask.operator], "term": ask.column}
    values = [_json_value(value) for value in ask.values]
    if ask.operator in ("in", "not in"):
        said["values"] = values
    elif values:
        (said["value"],) = values
    return json.dumps(said)


def _json_value(value: Any) -> Any:
    match value:
        case bytes():
            return value.hex().upper()
        case Decimal():
            return f"{value:f}"
        case uuid.UUID():
            return str(value)
        case dt.datetime():
            return value.isoformat(timespec="microseconds")
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return value
