"""Numbers: + - * / %, minus, abs. Integers overflow with an error, and so does a division by zero, as in ANSI mode."""

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.values import syntax
from icefield.expr.values.casts import WIDE_PRECISION, cast, fit_decimal, or_out_of_range
from icefield.expr.values.coerce import INTEGERS, NUMBERS, coerce, decimal_of, wider_type
from icefield.expr.values.constants import decimal_of_integer
from icefield.expr.values.value import Call, Constant, Kernel, Value
from icefield.types.arrow import arrow_type
from icefield.types.datatypes import (
    MAX_DECIMAL_PRECISION,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    Type,
    UnknownType,
)

# Spark keeps so many digits of the fraction when a decimal has more than 38 digits.
_MIN_ADJUSTED_SCALE = 6
# When Spark negates a decimal, it rounds to so many digits.
_NEGATED_DIGITS = 34


def arithmetic(operator: str, left: Value, right: Value) -> Value:
    """Return `left operator right`."""
    left, right = _numbers(operator, left, right)
    kind: Type = left.type
    kernel: Kernel
    if isinstance(left.type, DecimalType) and isinstance(right.type, DecimalType):
        kind = _decimal_type(operator, left.type, right.type)
        kernel = partial(_divide_decimals if operator == "/" else _compute_decimals, operator=operator, kind=kind)
    elif operator == "/":
        left, right, kind = cast(left, DoubleType()), cast(right, DoubleType()), DoubleType()
        kernel = _divide
    else:
        kernel = partial(_remainder if operator == "%" else _compute, operator=operator, kind=kind)
    checked = operator in ("/", "%") or not _holds_every_result(kind)
    return Call(kind, kernel, (left, right), checked, last_first=operator in ("/", "%"))


def negative(value: Value) -> Value:
    """Return `-value`."""
    return _signed(value, "negate_checked", "-")


def absolute(value: Value) -> Value:
    """Return `abs(value)`."""
    return _signed(value, "abs_checked", "abs")


def as_comparable_decimals(left: Value, right: Value) -> tuple[Value, Value]:
    """Give an integer literal beside a decimal the type of its digits. (Spark: literal.pickMinimumPrecision)"""
    if isinstance(left.type, DecimalType):
        return left, _literal_as_decimal(right)
    if isinstance(right.type, DecimalType):
        return _literal_as_decimal(left), right
    return left, right


def _signed(value: Value, function: str, name: str) -> Value:
    is_long = isinstance(value.type, DecimalType) and value.type.precision > _NEGATED_DIGITS
    if not isinstance(value.type, NUMBERS) or is_long:
        raise NeedsSpark(f"{name} of a {value.type}")
    return Call(value.type, partial(_apply_sign, function=function, kind=value.type), (value,), _is_whole(value.type))


def _apply_sign(array: pa.Array, function: str, kind: Type) -> pa.Array:
    return or_out_of_range(lambda: pc.call_function(function, [array]), kind)


def _is_whole(kind: Type) -> bool:
    return isinstance(kind, INTEGERS)


def _numbers(operator: str, left: Value, right: Value) -> tuple[Value, Value]:
    """Cast both operands as Spark does: to one type, but decimals keep their own."""
    kinds = [value.type for value in (left, right)]
    if all(isinstance(kind, UnknownType | StringType) for kind in kinds):
        raise NeedsSpark(f"{kinds[0]} {operator} {kinds[1]}")
    left, right = as_comparable_decimals(left, right)
    common = wider_type(left.type, right.type) if not _has_decimal_only(left, right) else None
    if common is not None and not isinstance(common, NUMBERS):
        raise NeedsSpark(f"{kinds[0]} {operator} {kinds[1]}")
    if common is None or isinstance(common, DecimalType):
        return _as_decimal(left, common), _as_decimal(right, common)
    return coerce(left, common), coerce(right, common)


def _has_decimal_only(left: Value, right: Value) -> bool:
    exact = (*INTEGERS, DecimalType)
    has = any(isinstance(value.type, DecimalType) for value in (left, right))
    return has and all(isinstance(value.type, exact) for value in (left, right))


def _as_decimal(value: Value, other: Type | None) -> Value:
    if isinstance(value.type, UnknownType) and other is not None:
        return cast(value, other)
    return cast(value, decimal_of(value.type)) if isinstance(value.type, INTEGERS) else value


def _literal_as_decimal(value: Value) -> Value:
    if isinstance(value, Constant) and isinstance(value.type, IntegerType | LongType):
        return cast(value, decimal_of_integer(syntax.Constant(value.type, value.value)))
    return value


def _decimal_type(operator: str, left: DecimalType, right: DecimalType) -> DecimalType:
    """Return Spark's result type; raises NeedsSpark where the digits between do not fit into 256 bits."""
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if operator in ("+", "-"):
        scale = max(left.scale, right.scale)
        precision = whole + scale + 1
    elif operator == "*":
        scale, precision = left.scale + right.scale, left.precision + right.precision + 1
    elif operator == "/" and sum(_division_sizes(left, right)) <= WIDE_PRECISION:
        scale = max(_MIN_ADJUSTED_SCALE, left.scale + right.precision + 1)
        precision = left.precision - left.scale + right.scale + scale
    else:
        raise NeedsSpark(f"{left} {operator} {right}")
    if precision > WIDE_PRECISION:
        raise NeedsSpark(f"{left} {operator} {right}")
    if precision <= MAX_DECIMAL_PRECISION:
        return DecimalType(precision, scale)
    return DecimalType(
        MAX_DECIMAL_PRECISION, max(MAX_DECIMAL_PRECISION - (precision - scale), min(scale, _MIN_ADJUSTED_SCALE))
    )


def _compute_decimals(left: pa.Array, right: pa.Array, operator: str, kind: DecimalType) -> pa.Array:
    if _holds_every_result(kind):
        # Arrow's result has the same type, and no result is out of range.
        return _CHECKED[operator](left, right)
    wide = [each.cast(pa.decimal256(each.type.precision, each.type.scale)) for each in (left, right)]
    found = or_out_of_range(lambda: _CHECKED[operator](*wide), kind)
    return fit_decimal(found, kind)


def _holds_every_result(kind: Type) -> bool:
    if isinstance(kind, DecimalType):
        return kind.precision < MAX_DECIMAL_PRECISION
    return isinstance(kind, FloatType | DoubleType)


def _division_sizes(left: DecimalType, right: DecimalType) -> tuple[int, int]:
    """Return the integral digits and the scale of Arrow's quotient, with a digit more than Spark's has.

    Arrow gives it the scale s1 + p2 - s2 + 1 and drops the other digits, as Spark does before it rounds.
    """
    scale = max(left.scale + right.precision + 2, _MIN_ADJUSTED_SCALE + 1)
    return left.precision - left.scale + right.scale, scale


def _divide_decimals(left: pa.Array, right: pa.Array, operator: str, kind: DecimalType) -> pa.Array:
    assert operator == "/"
    _check_divisor(left, right)
    ours, theirs = (DecimalType(each.type.precision, each.type.scale) for each in (left, right))
    raised = _division_sizes(ours, theirs)[1] - theirs.precision + theirs.scale - 1 - ours.scale
    dividend = left.cast(pa.decimal256(ours.precision + raised, ours.scale + raised))
    # Where the dividend is null the divisor may be 0.
    divisor = pc.if_else(pc.equal(right, pa.scalar(Decimal(0), right.type)), None, right)
    return fit_decimal(pc.divide(dividend, divisor.cast(pa.decimal256(theirs.precision, theirs.scale))), kind)


def _compute(left: pa.Array, right: pa.Array, operator: str, kind: Type) -> pa.Array:
    return or_out_of_range(lambda: _CHECKED[operator](left, right), kind)


def _divide(left: pa.Array, right: pa.Array) -> pa.Array:
    _check_divisor(left, right)
    return pc.divide(left, right)


def _remainder(left: pa.Array, right: pa.Array, operator: str, kind: Type) -> pa.Array:
    """Return the remainder with the sign of the dividend, as Java's % does."""
    assert operator == "%"
    _check_divisor(left, right)
    null = np.asarray(pc.or_(left.is_null(), right.is_null()))
    dividend = left.fill_null(0).to_numpy(zero_copy_only=False)
    # A divisor of 0 is left only where the dividend is null.
    divisor = np.where(null, np.ones(1, dividend.dtype), right.fill_null(1).to_numpy(zero_copy_only=False))
    if _is_whole(kind):
        # The smallest integer by -1 overflows in C.
        divisor = np.where(divisor == -1, np.ones(1, divisor.dtype), divisor)
    with np.errstate(invalid="ignore"):
        found = np.fmod(dividend, divisor)
    return pa.array(found, arrow_type(kind), mask=null)


def _check_divisor(left: pa.Array, right: pa.Array) -> None:
    zero = pc.and_(
        pc.equal(right, pa.scalar(Decimal(0) if pa.types.is_decimal(right.type) else 0, right.type)), left.is_valid()
    )
    if pc.any(zero).as_py():
        raise InvalidInput("division by zero", hint="Guard it with nullif(divisor, 0) or CASE WHEN divisor <> 0")


_CHECKED: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
