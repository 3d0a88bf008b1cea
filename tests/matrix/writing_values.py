"""Values at the edges of every type, and any between, as `python_values` gives them: dates and times as numbers."""

import math
import random
import struct
import uuid
from decimal import Decimal
from typing import Any

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

LOW_INT, HIGH_INT = -(1 << 31), (1 << 31) - 1
LOW_LONG, HIGH_LONG = -(1 << 63), (1 << 63) - 1
# Years 1 and 9999, 1582-10-15 and the day before, 1677 and 2262 (the ends of nanoseconds), 1969 and 1970.
DAYS = (-719162, 2932896, -141427, -141428, -106752, 106751, -1, 0, 1, 20_454)
DAY_MICROS = 86_400_000_000
# The gap of New York in 2026, and the hour that it has twice.
LOCAL = (1_772_935_200_000_000, 1_772_938_799_999_999, 1_793_491_200_000_000)
MOMENTS = tuple(day * DAY_MICROS + extra for day in DAYS for extra in (0, 1, DAY_MICROS - 1)) + LOCAL
STRINGS = ("", "a", "A", "null", "None", "é", "ß", "￿", "\U0001f600", "ab", "x" * 300, "/=%&", "\x00", "a\x00b", " a ")
FLOATS = (0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan)


def edges(kind: PrimitiveType) -> tuple[Any, ...]:
    """Return the values of a type that are most likely to be mistaken."""
    match kind:
        case DecimalType(precision, scale):
            return tuple(_decimal(n, scale) for n in (-(10**precision) + 1, -1001, -1, 0, 1, 10, 10**precision - 1))
        case FixedType(length):
            return tuple(bytes([byte]) * length for byte in (0, 0x7F, 0x80, 0xFF))
        case _:
            return _EDGES[type(kind)]


_MOMENTS = (*MOMENTS, -(1 << 56), 1 << 56)
_NANOS = (LOW_LONG + 1, -1001, -1, 0, 1, 999, HIGH_LONG, *(moment * 1000 for moment in LOCAL))
_EDGES: dict[type[PrimitiveType], tuple[Any, ...]] = {
    BooleanType: (True, False),
    IntegerType: (LOW_INT, LOW_INT + 1, -11, -10, -1, 0, 1, 9, 10, HIGH_INT),
    LongType: (LOW_LONG, LOW_LONG + 1, LOW_INT, -10, -1, 0, 10, 1 << 53, HIGH_LONG),
    FloatType: (*FLOATS, 2.0**-149, struct.unpack("<f", struct.pack("<f", 3.4e38))[0]),
    DoubleType: (*FLOATS, 5e-324, 1.7976931348623157e308),
    DateType: (*DAYS, -5_000_000, 5_000_000),
    TimeType: (0, 1, DAY_MICROS - 1, DAY_MICROS // 2),
    TimestampType: _MOMENTS,
    TimestamptzType: _MOMENTS,
    TimestampNsType: _NANOS,
    TimestamptzNsType: _NANOS,
    UUIDType: tuple(uuid.UUID(int=n) for n in (0, 1, (1 << 127) - 1, 1 << 127, (1 << 128) - 1)),
    BinaryType: (b"", b"\x00", b"\x7f", b"\x80", b"\xff" * 40, b"a\x00b"),
    StringType: STRINGS,
}


def any_value(kind: PrimitiveType, rng: random.Random) -> Any:
    """Return an edge, or a value near one, or any."""
    found = rng.choice(edges(kind))
    if rng.random() < 0.5:
        return found
    match kind:
        case IntegerType() | LongType() | TimestampType() | TimestamptzType() | TimestampNsType() | TimestamptzNsType():
            low, high = (LOW_INT, HIGH_INT) if isinstance(kind, IntegerType) else (LOW_LONG // 8, HIGH_LONG // 8)
            return min(max(low, found + rng.randrange(-1000, 1000)), high)
        case DateType():
            return found + rng.randrange(-400, 400)
        case DecimalType(precision, scale):
            return _decimal(rng.randrange(-(10 ** (precision - 1)), 10 ** (precision - 1)), scale)
        case StringType():
            return found + rng.choice(STRINGS)
        case UUIDType():
            return uuid.UUID(int=rng.getrandbits(128))
        case _:
            return found


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
