"""Single values as bytes: column bounds and partition summaries. (spec: Appendix D, Binary single-value serialization)

A value in memory is a plain Python value: bool, int, float, str, bytes, Decimal, UUID; dates are days, times and
timestamps are microseconds (nanoseconds for the `_ns` types) since the epoch, as int. Geometries and geographies are
bytes: WKB as values, a point's coordinates as bounds; they are not parsed here. `unknown` and `variant` have no single
values.
Decoding raises ValueError; the caller, which has the file's location, turns it into CorruptFile.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from decimal import Decimal

from icefield.types.calendar import MICROS_PER_DAY, NANOS_PER_DAY
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
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
    Value,
)

INT, LONG, FLOAT, DOUBLE = struct.Struct("<i"), struct.Struct("<q"), struct.Struct("<f"), struct.Struct("<d")
LAST_CODE_POINT = 0x10FFFF
SURROGATES = range(0xD800, 0xE000)


def encode_value(value: Value, kind: PrimitiveType) -> bytes:
    """Encode a value as the bytes of a bound."""
    if isinstance(kind, DecimalType):
        return encode_unscaled(unscaled(value, kind.scale))  # type: ignore[arg-type]
    encode = _ENCODE.get(type(kind))
    if encode is None:
        raise ValueError(f"values of type {kind} have no single-value serialization")
    return encode(value)


def decode_value(data: bytes, kind: PrimitiveType) -> Value:
    """Decode the bytes of a bound, also those written before the type was promoted. Raises ValueError."""
    if isinstance(kind, DecimalType):
        return scaled(int.from_bytes(data, "big", signed=True), kind.scale)
    decode = _DECODE.get(type(kind))
    if decode is None:
        raise ValueError(f"values of type {kind} have no single-value serialization")
    try:
        return decode(data)
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"{len(data)} bytes are not a valid {kind}: {error}") from error


def unscaled(value: Decimal, scale: int) -> int:
    """Return the unscaled integer of a decimal with this scale; the value must fit exactly."""
    if not value.is_finite():
        raise ValueError(f"{value} is not a finite decimal")
    numerator, denominator = value.as_integer_ratio()
    shift: int = 10**scale
    number, rest = divmod(numerator * shift, denominator)
    if rest:
        raise ValueError(f"{value} has more than {scale} decimal places")
    return number


def scaled(number: int, scale: int) -> Decimal:
    """Return the decimal of an unscaled integer; the inverse of `unscaled`."""
    # Built from a string: Decimal's operators (scaleb, unary minus) round to 28 digits, its constructor does not.
    return Decimal(f"{number}E{-scale}")


def encode_unscaled(number: int) -> bytes:
    """Encode as two's complement, big-endian, in the fewest bytes."""
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def truncate_lower(value: str | bytes, length: int) -> str | bytes:
    """Return a lower bound of at most `length` code points or bytes."""
    return value[:length]


def truncate_upper(value: str | bytes, length: int) -> str | bytes | None:
    """Return an upper bound of at most `length` code points or bytes, or None if there is none."""
    if len(value) <= length:
        return value
    return _raise_last_character(value[:length]) if isinstance(value, str) else _raise_last_byte(value[:length])


def _raise_last_character(text: str) -> str | None:
    for at in range(len(text) - 1, -1, -1):
        point = ord(text[at]) + 1
        if point in SURROGATES:
            point = SURROGATES.stop
        if point <= LAST_CODE_POINT:
            return text[:at] + chr(point)
    return None


def _raise_last_byte(data: bytes) -> bytes | None:
    for at in range(len(data) - 1, -1, -1):
        if data[at] < 0xFF:
            return data[:at] + bytes((data[at] + 1,))
    return None


def _decode_long(data: bytes) -> int:
    # An int column that was promoted to long keeps its 4-byte bounds. (spec: Schema Evolution)
    return int(INT.unpack(data)[0] if len(data) == INT.size else LONG.unpack(data)[0])


def _decode_double(data: bytes) -> float:
    return float(FLOAT.unpack(data)[0] if len(data) == FLOAT.size else DOUBLE.unpack(data)[0])


def _decode_moment(data: bytes, units_per_day: int) -> int:
    """Decode a timestamp, or a date that was written before the column was promoted. (spec: Schema Evolution)"""
    if len(data) != INT.size:
        return int(LONG.unpack(data)[0])
    moment = int(INT.unpack(data)[0]) * units_per_day
    if not -(1 << 63) <= moment < 1 << 63:
        raise ValueError(f"the day {moment // units_per_day} is out of range for the wider type")
    return moment


def _decode_uuid(data: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=bytes(data))


_ENCODE: dict[type[PrimitiveType], Callable[..., bytes]] = {
    BooleanType: lambda v: b"\x01" if v else b"\x00",
    IntegerType: INT.pack,
    LongType: LONG.pack,
    FloatType: FLOAT.pack,
    DoubleType: DOUBLE.pack,
    DateType: INT.pack,
    TimeType: LONG.pack,
    TimestampType: LONG.pack,
    TimestamptzType: LONG.pack,
    TimestampNsType: LONG.pack,
    TimestamptzNsType: LONG.pack,
    StringType: str.encode,
    UUIDType: lambda v: v.bytes,
    FixedType: bytes,
    BinaryType: bytes,
    GeometryType: bytes,
    GeographyType: bytes,
}
_DECODE: dict[type[PrimitiveType], Callable[[bytes], Value]] = {
    BooleanType: lambda data: data != b"\x00",
    IntegerType: lambda data: int(INT.unpack(data)[0]),
    LongType: _decode_long,
    FloatType: lambda data: float(FLOAT.unpack(data)[0]),
    DoubleType: _decode_double,
    DateType: lambda data: int(INT.unpack(data)[0]),
    TimeType: lambda data: int(LONG.unpack(data)[0]),
    TimestampType: lambda data: _decode_moment(data, MICROS_PER_DAY),
    TimestamptzType: lambda data: int(LONG.unpack(data)[0]),
    TimestampNsType: lambda data: _decode_moment(data, NANOS_PER_DAY),
    TimestamptzNsType: lambda data: int(LONG.unpack(data)[0]),
    StringType: lambda data: bytes(data).decode(),
    UUIDType: _decode_uuid,
    FixedType: bytes,
    BinaryType: bytes,
    GeometryType: bytes,
    GeographyType: bytes,
}
