"""A plain Python model of what a writer computes: transforms and the order of rows, one value at a time.

Nothing here is shared with the engine. Values are as `python_values` gives them: dates and times are whole numbers.
(spec: Partition Transforms, Appendix B, Sorting)
"""

import math
import struct
from decimal import Decimal
from typing import Any

from icefield.model.sort_order import Direction, NullOrder, SortField
from icefield.types.datatypes import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestamptzNsType,
    UUIDType,
)
from icefield.types.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Void, Year

DAY_MICROS = 86_400_000_000
_NANOS = (TimestampNsType, TimestamptzNsType)


def transformed(value: Any, kind: PrimitiveType, transform: Transform) -> Any:
    """Transform one value."""
    if value is None or isinstance(transform, Void):
        return None
    match transform:
        case Identity():
            return value
        case Bucket(count):
            return (_murmur3(_hashed_bytes(value, kind)) & 0x7FFFFFFF) % count
        case Truncate(width):
            return _truncated(value, kind, width)
        case Hour():
            return value // (DAY_MICROS // 24 * (1000 if isinstance(kind, _NANOS) else 1))
    days = _days(value, kind)
    if isinstance(transform, Day):
        return days
    year, month = _date_of(days)
    if isinstance(transform, Year):
        return year - 1970
    assert isinstance(transform, Month)
    return (year - 1970) * 12 + month - 1


def precedes(left: Any, right: Any, kind: PrimitiveType, field: SortField) -> bool | None:
    """Return whether one transformed value comes before another; None if neither must."""
    if left is None or right is None:
        if left is None and right is None:
            return None
        return (left is None) == (field.null_order is NullOrder.FIRST)
    a, b = _ordinal(left, kind), _ordinal(right, kind)
    if a == b:
        return None
    return bool((a < b) == (field.direction is Direction.ASC))


def _ordinal(value: Any, kind: PrimitiveType) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return (1, 0.0, 0)
        return (0, value, math.copysign(1, value) if value == 0 else 0)
    if isinstance(value, str):
        return value.encode()
    return value.bytes if isinstance(kind, UUIDType) else value


def _truncated(value: Any, kind: PrimitiveType, width: int) -> Any:
    match kind:
        case IntegerType() | LongType():
            bits = 32 if isinstance(kind, IntegerType) else 64
            cut = value - value % width
            return (cut + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        case DecimalType(_, scale):
            unscaled = _unscaled(value, scale)
            return _scaled(unscaled - unscaled % width, scale)
        case _:
            return value[:width]


def _unscaled(value: Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    number: int = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -number if sign else number


def _scaled(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _days(value: int, kind: PrimitiveType) -> int:
    if isinstance(kind, DateType):
        return value
    return value // (DAY_MICROS * (1000 if isinstance(kind, _NANOS) else 1))


def _date_of(days: int) -> tuple[int, int]:
    """Return year and month of the proleptic Gregorian calendar, by its cycle of 400 years."""
    days += 719_468
    era, of_era = divmod(days, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (1 if month <= 2 else 0), month


def _hashed_bytes(value: Any, kind: PrimitiveType) -> bytes:
    match kind:
        case StringType():
            return bytes(value.encode())
        case UUIDType():
            return bytes(value.bytes)
        case DecimalType(_, scale):
            unscaled = _unscaled(value, scale)
            length = ((unscaled if unscaled >= 0 else ~unscaled).bit_length()) // 8 + 1
            return unscaled.to_bytes(length, "big", signed=True)
        case _ if isinstance(value, int):
            return struct.pack("<q", value // 1000 if isinstance(kind, _NANOS) else value)
        case _:
            return bytes(value)


def _murmur3(data: bytes) -> int:
    mask, h = 0xFFFFFFFF, 0
    for at in range(0, len(data) // 4 * 4, 4):
        h ^= _scramble(int.from_bytes(data[at : at + 4], "little"))
        h = (h << 13 | h >> 19) & mask
        h = (h * 5 + 0xE6546B64) & mask
    h ^= _scramble(int.from_bytes(data[len(data) // 4 * 4 :], "little"))
    h ^= len(data)
    h = ((h ^ h >> 16) * 0x85EBCA6B) & mask
    h = ((h ^ h >> 13) * 0xC2B2AE35) & mask
    return h ^ h >> 16


def _scramble(k: int) -> int:
    k = (k * 0xCC9E2D51) & 0xFFFFFFFF
    k = (k << 15 | k >> 17) & 0xFFFFFFFF
    return (k * 0x1B873593) & 0xFFFFFFFF
