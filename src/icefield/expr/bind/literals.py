"""Compare a column with a literal: convert the value to the column's type, with SQL semantics.

The rules are those of Spark's ANSI mode, its default: numbers are compared as numbers, in double precision as soon as
one side is a float or double (so 0.1 equals no value of a float column, because no float is 0.1); a string is parsed as
the column's type. A timestamp without a zone is UTC. A comparison whose meaning in Spark depends on the session's
settings, or on a cast of the column, is refused.
Raises InvalidFilter.
"""

import datetime
import math
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal

import numpy as np

from icefield.errors import InvalidFilter
from icefield.expr.bind.bound import FALSE, Bound, Compare, IsNaN, NotNaN, NotNull, Reference, all_of
from icefield.expr.bind.discrete import Domain, Place, compare_at, domain_of, place_by, place_exactly
from icefield.expr.parse.ast import Date, Literal, Operator, Time, Timestamp
from icefield.expr.parse.datetimes import from_python, parse_date, parse_time, parse_timestamp
from icefield.expr.parse.numbers import double_of, whole_number
from icefield.types.calendar import NANOS_PER_DAY, NANOS_PER_MICRO
from icefield.types.datatypes import (
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
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icefield.types.values.binary import scaled

_MOST_DIGITS = 1000
_BOOLEANS = dict.fromkeys(("true", "t", "yes", "y", "1"), True) | dict.fromkeys(("false", "f", "no", "n", "0"), False)


def compare(reference: Reference, operator: Operator, value: Literal) -> Bound:
    """Return the test `column operator value`; the value is not null."""
    try:
        plain = from_python(value) if isinstance(value, datetime.date | datetime.time) else value
        return _COMPARE[type(reference.type)](reference, operator, plain)
    except ValueError as error:
        column = f"column {'.'.join(reference.path)!r} of type {reference.type}"
        raise InvalidFilter(f"cannot compare {column} with {_shown(value)}: {error}") from error


def in_common_type(kind: PrimitiveType, values: tuple[Literal, ...]) -> tuple[Literal, ...]:
    """Convert the values of an IN list to the type that Spark compares: doubles, if one of them is a double."""
    doubles = any(isinstance(v, float) or (isinstance(kind, DecimalType) and isinstance(v, str)) for v in values)
    if not doubles or not isinstance(kind, IntegerType | LongType | DecimalType):
        return values
    return tuple(float(v) if isinstance(v, int | Decimal) and not isinstance(v, bool) else v for v in values)


def checked_text(text: str) -> str:
    """Return the string; raises ValueError if it cannot be encoded as UTF-8."""
    if not isinstance(text, str):
        raise ValueError("expected a quoted string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("the string contains a lone surrogate") from error
    return text


def _shown(value: Literal) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _compare_number(reference: Reference, operator: Operator, value: Literal) -> Bound:
    """Integers and decimals."""
    domain = domain_of(reference.type)
    assert domain is not None
    scale = reference.type.scale if isinstance(reference.type, DecimalType) else 0
    place = _place_number(_number_for(reference.type, value), domain, scale)
    return compare_at(reference, operator, place, domain)


def _number_for(kind: PrimitiveType, value: Literal) -> int | Decimal | float:
    if isinstance(value, str):
        # As in Spark: a string is parsed as an integer for an integer column, as a double for a decimal column.
        return double_of(value) if isinstance(kind, DecimalType) else whole_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("expected a number")
    if isinstance(value, Decimal) and not value.is_finite():
        return float(value)
    if isinstance(value, Decimal) and abs(value.adjusted()) > _MOST_DIGITS:
        raise ValueError("the number has too many digits")
    return value


def _place_number(value: int | Decimal | float, domain: Domain, scale: int) -> Place:
    if isinstance(value, float):
        return _place_double(value, domain, scale)
    numerator, denominator = value.as_integer_ratio()
    return place_exactly(numerator * 10**scale, denominator)


def _place_double(value: float, domain: Domain, scale: int) -> Place:
    """Compare with a double: Spark casts the column to double, which is not exact but preserves the order."""
    if math.isnan(value):
        return Place(domain.highest + 1, domain.highest + 1)

    def as_double(number: int) -> float:
        return float(scaled(number, scale)) if scale else float(number)

    return place_by(domain, lambda n: as_double(n) >= value, lambda n: as_double(n) > value)


def _compare_double(reference: Reference, operator: Operator, value: Literal) -> Bound:
    double = double_of(value)
    if math.isnan(double):
        return _compare_nan(reference, operator)
    return Compare(reference, operator, double)


def _compare_float(reference: Reference, operator: Operator, value: Literal) -> Bound:
    double = double_of(value)
    if math.isnan(double):
        return _compare_nan(reference, operator)
    nearest = _nearest_float(double)
    if nearest == double:
        return Compare(reference, operator, nearest)
    if operator in (Operator.EQ, Operator.NE):
        return FALSE if operator is Operator.EQ else NotNull(reference)
    if operator in (Operator.LT, Operator.LE):
        down = nearest if nearest < double else _next_float(nearest, -math.inf)
        return Compare(reference, Operator.LE, down)
    up = nearest if nearest > double else _next_float(nearest, math.inf)
    return Compare(reference, Operator.GE, up)


def _compare_nan(reference: Reference, operator: Operator) -> Bound:
    """NaN equals itself and is greater than every other number."""
    match operator:
        case Operator.EQ | Operator.GE:
            return IsNaN(reference)
        case Operator.NE | Operator.LT:
            return all_of(NotNull(reference), NotNaN(reference))
        case Operator.LE:
            return NotNull(reference)
        case _:
            return FALSE


def _compare_boolean(reference: Reference, operator: Operator, value: Literal) -> Bound:
    truth = _BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(truth, bool):
        raise ValueError("expected TRUE or FALSE")
    domain = domain_of(reference.type)
    assert domain is not None
    return compare_at(reference, operator, place_exactly(int(truth)), domain)


def _compare_moment(reference: Reference, operator: Operator, value: Literal) -> Bound:
    """Dates, times and timestamps."""
    domain = domain_of(reference.type)
    assert domain is not None
    if isinstance(reference.type, DateType | TimeType):
        place = _place_date(value) if isinstance(reference.type, DateType) else _place_time(value)
    else:
        place = _place_timestamp(value, reference.type)
    return compare_at(reference, operator, place, domain)


def _place_date(value: Literal) -> Place:
    match value:
        case str():
            return place_exactly(parse_date(value).days)
        case Date(days):
            return place_exactly(days)
        case Timestamp():
            return place_exactly(value.total_nanos, NANOS_PER_DAY)
        case _:
            raise ValueError("expected a date such as DATE '2026-01-31'")


def _place_time(value: Literal) -> Place:
    moment = parse_time(value) if isinstance(value, str) else value
    if not isinstance(moment, Time):
        raise ValueError("expected a time such as '10:30:00'")
    return place_exactly(moment.micros)


def _place_timestamp(value: Literal, kind: PrimitiveType) -> Place:
    moment = parse_timestamp(value) if isinstance(value, str) else value
    step = 1 if isinstance(kind, TimestampNsType | TimestamptzNsType) else NANOS_PER_MICRO
    if isinstance(moment, Date):
        return place_exactly(moment.days * NANOS_PER_DAY, step)
    if not isinstance(moment, Timestamp):
        raise ValueError("expected a timestamp such as TIMESTAMP '2026-01-31 10:30:00+00:00'")
    if moment.zoned and isinstance(kind, TimestampType | TimestampNsType):
        raise ValueError("the column has no time zone, so the value must not have one")
    return place_exactly(moment.total_nanos, step)


def _compare_text(reference: Reference, operator: Operator, value: Literal) -> Bound:
    if not isinstance(value, str):
        raise ValueError("expected a quoted string")
    return Compare(reference, operator, checked_text(value))


def _compare_binary(reference: Reference, operator: Operator, value: Literal) -> Bound:
    if isinstance(value, str):
        value = checked_text(value).encode()
    if isinstance(value, uuid.UUID) or not isinstance(value, bytes | bytearray | memoryview):
        raise ValueError("expected bytes such as X'00ff'")
    return Compare(reference, operator, bytes(value))


def _compare_uuid(reference: Reference, operator: Operator, value: Literal) -> Bound:
    if isinstance(value, str):
        value = uuid.UUID(value.strip())
    if isinstance(value, bytes):
        value = uuid.UUID(bytes=value)
    if not isinstance(value, uuid.UUID):
        raise ValueError("expected a quoted UUID")
    return Compare(reference, operator, value)


def _nearest_float(double: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", double))[0])
    except OverflowError:
        return math.copysign(math.inf, double)


def _next_float(value: float, towards: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.nextafter(np.float32(value), np.float32(towards)))


_COMPARE: dict[type[PrimitiveType], Callable[[Reference, Operator, Literal], Bound]] = {
    BooleanType: _compare_boolean,
    IntegerType: _compare_number,
    LongType: _compare_number,
    DecimalType: _compare_number,
    FloatType: _compare_float,
    DoubleType: _compare_double,
    DateType: _compare_moment,
    TimeType: _compare_moment,
    TimestampType: _compare_moment,
    TimestamptzType: _compare_moment,
    TimestampNsType: _compare_moment,
    TimestamptzNsType: _compare_moment,
    StringType: _compare_text,
    UUIDType: _compare_uuid,
    FixedType: _compare_binary,
    BinaryType: _compare_binary,
}
