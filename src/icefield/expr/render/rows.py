"""Evaluate a bound expression on one row: the definition of its meaning, simple and slow.

All fast evaluations (statistics, projections, Arrow, Spark) are tested against this one.
"""

import math
from collections.abc import Mapping
from typing import Any

from icefield.expr.bind.bound import (
    AllOf,
    AnyOf,
    Bound,
    Compare,
    Constant,
    InSet,
    IsNaN,
    IsNull,
    Leaf,
    Like,
    NotInSet,
    NotLike,
    NotNaN,
    NotNull,
    NotStartsWith,
    StartsWith,
)
from icefield.expr.parse.ast import Operator
from icefield.types.datatypes import Value
from icefield.types.schema import Schema


def matches(expression: Bound, row: Mapping[int, Value | None]) -> bool:
    """Return whether a row, given as values by field id, matches; a missing column is null."""
    match expression:
        case Constant(value):
            return value
        case AllOf(parts):
            return all(matches(part, row) for part in parts)
        case AnyOf(parts):
            return any(matches(part, row) for part in parts)
        case Leaf():
            return _leaf_matches(expression, row.get(expression.reference.field_id))


def values_by_id(schema: Schema, row: Mapping[str, Any]) -> dict[int, Value | None]:
    """Flatten a row of nested dicts to values by field id, without those inside lists and maps."""
    return {leaf.field.field_id: _inside(row, leaf.path) for leaf in schema.leaves if not leaf.repeated}


def _inside(row: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = row
    for name in path:
        if value is None:
            return None
        value = value.get(name)
    return value


def _leaf_matches(leaf: Leaf, value: Value | None) -> bool:
    if value is None:
        return isinstance(leaf, IsNull | NotNaN)
    match leaf:
        case IsNull():
            return False
        case NotNull():
            return True
        case IsNaN():
            return _is_nan(value)
        case NotNaN():
            return not _is_nan(value)
        case Compare(_, operator, wanted):
            return _compare(value, operator, wanted)
        case InSet(_, values):
            return value in values
        case NotInSet(_, values):
            return value not in values
        case _:
            return _text_matches(leaf, str(value))


def _text_matches(leaf: Leaf, text: str) -> bool:
    match leaf:
        case StartsWith(_, prefix):
            return text.startswith(prefix)
        case NotStartsWith(_, prefix):
            return not text.startswith(prefix)
        case Like(_, pattern):
            return pattern.matches(text)
        case NotLike(_, pattern):
            return not pattern.matches(text)
        case _:
            raise AssertionError(leaf)


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _compare(value: Any, operator: Operator, wanted: Any) -> bool:
    if _is_nan(value):
        # Greater than every number; `wanted` is never NaN.
        return operator in (Operator.GT, Operator.GE, Operator.NE)
    match operator:
        case Operator.EQ:
            return bool(value == wanted)
        case Operator.NE:
            return bool(value != wanted)
        case Operator.LT:
            return bool(value < wanted)
        case Operator.LE:
            return bool(value <= wanted)
        case Operator.GT:
            return bool(value > wanted)
        case Operator.GE:
            return bool(value >= wanted)
