"""The types that Spark casts the operands of its operators to, in ANSI mode. (Spark: AnsiTypeCoercion)"""

from collections.abc import Iterable
from functools import reduce

from icefield.errors import NeedsSpark
from icefield.expr.values.casts import cast
from icefield.expr.values.constants import from_text
from icefield.expr.values.value import Constant, Value
from icefield.types.datatypes import (
    MAX_DECIMAL_PRECISION,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    Type,
    UnknownType,
    UUIDType,
)

INTEGERS = (IntegerType, LongType)
NUMBERS = (*INTEGERS, FloatType, DoubleType, DecimalType)
_RISING = (IntegerType, LongType, FloatType, DoubleType)
_FROM_STRINGS = (BooleanType, DateType, TimestampType, TimestamptzType, BinaryType, UUIDType)


def to_common_type(values: Iterable[Value]) -> tuple[Value, ...]:
    """Cast values to the type that Spark finds for them, as in a comparison, IN, CASE and coalesce."""
    given = tuple(values)
    unknown: Type = UnknownType()
    kind = reduce(wider_type, (value.type for value in given), unknown)
    return tuple(coerce(value, kind) for value in given)


def coerce(value: Value, kind: Type) -> Value:
    """Cast a value implicitly; a string must be a literal, because casting a column of strings is left to Spark."""
    if value.type == kind:
        return value
    if isinstance(value, Constant) and isinstance(value.value, str) and isinstance(kind, PrimitiveType):
        return Constant(kind, from_text(value.value, kind).value)
    return cast(value, kind)


def wider_type(left: Type, right: Type) -> Type:
    """Return the type of two operands. (Spark: findWiderTypeForTwo)"""
    if left == right or isinstance(right, UnknownType):
        return left
    if isinstance(left, UnknownType):
        return right
    if isinstance(left, StringType) or isinstance(right, StringType):
        return _wider_than_string(right if isinstance(left, StringType) else left)
    if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
        return wider_number(left, right)
    if {type(left), type(right)} == {DateType, TimestampType}:
        return TimestampType()
    if {type(left), type(right)} <= {FixedType, BinaryType}:
        return BinaryType()
    raise NeedsSpark(f"an expression of {left} and {right}")


def wider_number(left: Type, right: Type) -> Type:
    """Return the type of two numbers."""
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        if not isinstance(left, FloatType | DoubleType) and not isinstance(right, FloatType | DoubleType):
            return _wider_decimal(decimal_of(left), decimal_of(right))
        return DoubleType()
    if left == right:
        return left
    wide = max(_RISING.index(type(left)), _RISING.index(type(right)))
    # An integer and a float are doubles, because a float cannot hold every integer.
    return DoubleType() if _RISING[wide] is FloatType else _RISING[wide]()


def decimal_of(kind: Type) -> DecimalType:
    """Return the decimal type that holds all values of an integer type."""
    if isinstance(kind, DecimalType):
        return kind
    return DecimalType(10 if isinstance(kind, IntegerType) else 20, 0)


def _wider_decimal(left: DecimalType, right: DecimalType) -> DecimalType:
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    if precision > MAX_DECIMAL_PRECISION:
        raise NeedsSpark(f"an expression of {left} and {right}, which loses digits,")
    return DecimalType(precision, scale)


def _wider_than_string(other: Type) -> Type:
    """Return the type of a string and another operand: the string is cast."""
    if isinstance(other, INTEGERS):
        return LongType()
    if isinstance(other, NUMBERS):
        return DoubleType()
    if isinstance(other, _FROM_STRINGS):
        return other
    raise NeedsSpark(f"an expression of a string and {other}")
