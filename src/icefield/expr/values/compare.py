"""Comparisons and tests. NaN equals itself and is greater than any other number, -0.0 equals 0.0, null gives null."""

from collections.abc import Sequence
from decimal import Decimal
from functools import partial, reduce

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.parse.like import LikePattern, parse_like
from icefield.expr.values.arithmetic import as_comparable_decimals
from icefield.expr.values.coerce import INTEGERS, NUMBERS, to_common_type
from icefield.expr.values.value import Call, Constant, Or, Value, if_else
from icefield.types.arrow import arrow_array, physical_array
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DoubleType,
    FixedType,
    FloatType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

BOOLEAN = BooleanType()
_ORDERED = (
    *(*NUMBERS, BooleanType, DateType, TimeType, TimestampType, TimestamptzType, TimestampNsType, TimestamptzNsType),
    *(StringType, BinaryType),
)
_EQUATABLE = (*_ORDERED, UUIDType, FixedType)
_FUNCTIONS = {"=": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
_FLIPPED = {">": "<", ">=": "<="}
_FLOATING = (FloatType, DoubleType)
# Spark turns longer lists into a hash set.
_LIST_OF_FLOATS = 10


def compare(operator: str, left: Value, right: Value) -> Value:
    """Return `left operator right`; `<=>` is equality that is never null."""
    _check_literal(left, right)
    _check_literal(right, left)
    left, right = to_common_type(as_comparable_decimals(left, right))
    if not isinstance(left.type, _EQUATABLE if operator in ("=", "!=", "<=>") else _ORDERED):
        raise NeedsSpark(f"{left.type} {operator} {right.type}")
    if operator == "<=>":
        return Call(BOOLEAN, null_safe_equal, (left, right), strict=False)
    return Call(BOOLEAN, partial(_compare, operator=operator), (left, right))


def is_in(value: Value, items: Sequence[Value]) -> Value:
    """Return `value IN (items)`."""
    if not items:
        raise NeedsSpark("IN with an empty list")
    value, *items = to_common_type((value, *items))
    if isinstance(value.type, _FLOATING) and len(items) > _LIST_OF_FLOATS:
        raise NeedsSpark(f"IN with a list of more than {_LIST_OF_FLOATS} floating-point numbers")
    constants = [item.value for item in items if isinstance(item, Constant)]
    if len(constants) < len(items) or isinstance(value.type, _FLOATING) or not isinstance(value.type, _ORDERED):
        tests = [compare("=", value, item) for item in items]
        return reduce(lambda left, right: Or(BOOLEAN, left, right), tests)
    wanted = arrow_array([constant for constant in constants if constant is not None], value.type)
    return Call(BOOLEAN, partial(_is_in, wanted=wanted, has_null=None in constants), (value,))


def is_null(value: Value) -> Value:
    """Return `value IS NULL`."""
    return Call(BOOLEAN, pa.Array.is_null, (value,), strict=False)


def is_nan(value: Value) -> Value:
    """Return `isnan(value)`: false for null."""
    if not isinstance(value.type, _FLOATING):
        raise NeedsSpark(f"isnan of a {value.type}")
    return Call(BOOLEAN, _is_nan, (value,), strict=False)


def like(value: Value, pattern: Value, escape: str = "\\") -> Value:
    """Return `value LIKE pattern`; the pattern is a literal."""
    if not isinstance(value.type, StringType) or not isinstance(pattern, Constant):
        raise NeedsSpark("LIKE with a pattern that is not a literal" if isinstance(value.type, StringType) else "LIKE")
    if pattern.value is None:
        return Constant(BOOLEAN, None)
    if not isinstance(pattern.type, StringType):
        raise NeedsSpark(f"LIKE with a pattern of type {pattern.type}")
    try:
        parsed = parse_like(str(pattern.value), escape)
    except ValueError as error:
        raise InvalidInput(f"invalid pattern of LIKE: {error}") from error
    return Call(BOOLEAN, partial(_like, pattern=parsed), (value,))


def extreme(values: Sequence[Value], *, greatest: bool) -> Value:
    """Return the greatest or least of the values that are not null."""
    if len(values) < 2:
        raise NeedsSpark("greatest or least of one value")
    parts = to_common_type(values)
    if not isinstance(parts[0].type, _ORDERED):
        raise NeedsSpark(f"greatest or least of {parts[0].type}")
    return Call(parts[0].type, partial(_extreme, operator=">" if greatest else "<"), parts, strict=False)


def _check_literal(literal: Value, other: Value) -> None:
    """Refuse a decimal literal beyond all longs beside an integer: Spark answers TRUE even for null."""
    if not isinstance(literal, Constant) or not isinstance(literal.value, Decimal):
        return
    if isinstance(other.type, INTEGERS) and abs(literal.value) >= 1 << 63:
        raise NeedsSpark(f"a comparison of {other.type} with {literal.value}")


def _compare(left: pa.Array, right: pa.Array, operator: str) -> pa.Array:
    left, right = _comparable(left), _comparable(right)
    if not pa.types.is_floating(left.type):
        return pc.call_function(_FUNCTIONS[operator], [left, right])
    if operator in _FLIPPED:
        left, right, operator = right, left, _FLIPPED[operator]
    return _compare_floats(left, right, operator)


def _comparable(array: pa.Array) -> pa.Array:
    # Arrow does not compare UUIDs by itself, and booleans only for equality.
    return array.cast(pa.int8()) if pa.types.is_boolean(array.type) else physical_array(array)


def _compare_floats(left: pa.Array, right: pa.Array, operator: str) -> pa.Array:
    test = pc.call_function(_FUNCTIONS["=" if operator == "!=" else operator], [left, right])
    right_nan = pc.is_nan(right)
    if operator == "<=":
        return pc.or_(test, pc.and_(right_nan, left.is_valid()))
    if operator == "<":
        return pc.or_(test, pc.and_not(right_nan, pc.is_nan(left)))
    equal = pc.or_(test, pc.and_(right_nan, pc.is_nan(left)))
    return pc.invert(equal) if operator == "!=" else equal


def null_safe_equal(left: pa.Array, right: pa.Array) -> pa.Array:
    """Compare for equality, where null equals null."""
    equal = pc.fill_null(_compare(left, right, "="), False)
    return pc.or_(equal, pc.and_(left.is_null(), right.is_null()))


def _is_in(array: pa.Array, wanted: pa.Array, *, has_null: bool) -> pa.Array:
    found = pc.is_in(array, value_set=wanted)
    unknown = array.is_null() if not has_null else pc.or_(array.is_null(), pc.invert(found))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def _is_nan(array: pa.Array) -> pa.Array:
    return pc.fill_null(pc.is_nan(array), False)


def _like(array: pa.Array, pattern: LikePattern) -> pa.Array:
    return pc.match_substring_regex(array, pattern=rf"(?s)\A(?:{pattern.regex})\z")


def _extreme(*arrays: pa.Array, operator: str) -> pa.Array:
    best = arrays[0]
    for array in arrays[1:]:
        better = pc.fill_null(_compare(array, best, operator), False)
        best = if_else(pc.or_(better, best.is_null()), array, best)
    return best
