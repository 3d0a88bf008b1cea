"""Single values as JSON: the defaults of columns. (spec: Appendix D, JSON single-value serialization)

Values in memory are those of `icefield.types.values.binary`. The only value of a struct besides null is EMPTY_STRUCT,
the only default that it may have. (spec: Default values) Values of lists and maps, and of types whose default must be
null, are refused when encoding and decoding.
Raises ValueError for invalid values, in both directions.
"""

from __future__ import annotations

import math
import re
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from icefield.deferred import deferred_imports
from icefield.types.calendar import (
    MICROS_PER_DAY,
    NANOS_PER_DAY,
    NANOS_PER_MICRO,
    clock_micros,
    date_text,
    days_from_date,
)
from icefield.types.datatypes import (
    EMPTY_STRUCT,
    OPAQUE_TYPES,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    Default,
    DoubleType,
    EmptyStruct,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)

with deferred_imports(__name__):
    import numpy as np

    from icefield.types.values.binary import scaled, unscaled

_FLOAT = struct.Struct("<f")
_DATE = r"(?P<year>[+-]?\d{4,9})-(?P<month>\d\d)-(?P<day>\d\d)"
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
_DATE_TEXT = re.compile(_DATE, re.ASCII)
_TIME_TEXT = re.compile(_CLOCK, re.ASCII)
_TIMESTAMP_TEXT = re.compile(f"{_DATE}T{_CLOCK}", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UTC = "+00:00"


def encode_json_value(value: Default, kind: Type) -> Any:
    """Encode a value, not null, for a JSON encoder."""
    encode, _ = _codec(kind)
    encoded = encode(value, kind)
    # The decoder's rules apply: a value that could not be read back is not written.
    decode_json_value(encoded, kind)
    return encoded


def decode_json_value(value: Any, kind: Type) -> Default:
    """Decode a value, not null, from parsed JSON."""
    _, decode = _codec(kind)
    try:
        return decode(value, kind)
    except ValueError as error:
        raise ValueError(f"{repr(value)[:60]} is not a valid {kind}: {error}") from error


def _codec(kind: Type) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Default]]:
    if isinstance(kind, OPAQUE_TYPES):
        raise ValueError(f"the only default of a column of type {kind} is null")
    found = _CODECS.get(type(kind))
    if found is None:
        raise ValueError(f"defaults of type {kind} are not supported")
    return found


def _same(value: Any, _kind: Type) -> Any:
    return value


def _boolean(value: Any, _kind: Type) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _integer(value: Any, kind: Type) -> int:
    if type(value) is not int:
        raise ValueError("expected an integer")
    return _fitting(value, 32 if isinstance(kind, IntegerType) else 64)


def _fitting(number: int, bits: int) -> int:
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"it does not fit {bits} bits")
    return number


def _floating(value: Any, kind: Type) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    try:
        number = _FLOAT.unpack(_FLOAT.pack(value))[0] if isinstance(kind, FloatType) else float(value)
    except OverflowError as error:
        raise ValueError("the number is too large") from error
    if not math.isfinite(number):
        raise ValueError("JSON has no such number (NaN or infinity)")
    return float(number)


def _encode_float(value: Any, kind: Type) -> float:
    """Return the number whose shortest decimal is that of the 32-bit float: 0.1, not 0.10000000149011612."""
    return float(str(np.float32(_floating(value, kind))))


def _encode_decimal(value: Any, kind: DecimalType) -> str:
    if not isinstance(value, Decimal):
        raise ValueError(f"{value!r} is not a decimal")
    return f"{scaled(unscaled(value, kind.scale), kind.scale):f}"


def _decode_decimal(value: Any, kind: DecimalType) -> Decimal:
    places = rf"\.\d{{{kind.scale}}}" if kind.scale else ""
    if not re.fullmatch(rf"-?\d+{places}", _text(value), re.ASCII):
        raise ValueError(f"expected a string of digits with {kind.scale} decimal places")
    # Counted in the string: parsing an integer of a million digits takes half a minute.
    if len(value.replace(".", "").lstrip("-0")) > kind.precision:
        raise ValueError(f"it has more than {kind.precision} digits")
    return Decimal(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return value


def _decode_text(value: Any, _kind: Type) -> str:
    # A lone surrogate cannot be encoded as UTF-8; that error is a ValueError too.
    return _text(value).encode().decode()


def _encode_uuid(value: Any, _kind: Type) -> str:
    return str(value)


def _decode_uuid(value: Any, _kind: Type) -> uuid.UUID:
    if not _UUID.fullmatch(_text(value)):
        raise ValueError("expected a string such as f79c3e09-677c-4bbd-a479-3f349cb785e7")
    return uuid.UUID(value)


def _encode_bytes(value: Any, _kind: Type) -> str:
    if not isinstance(value, bytes):
        raise ValueError(f"{value!r} is not bytes")
    return value.hex()


def _decode_bytes(value: Any, kind: Type) -> bytes:
    if not _HEX.fullmatch(_text(value)):
        raise ValueError("expected a string of hexadecimal digits")
    data = bytes.fromhex(value)
    if isinstance(kind, FixedType) and len(data) != kind.length:
        raise ValueError(f"expected {kind.length} bytes")
    return data


def _encode_date(value: Any, _kind: Type) -> str:
    return date_text(_whole(value))


def _decode_date(value: Any, _kind: Type) -> int:
    return _fitting(_days(_match(_DATE_TEXT, value, "2017-11-16")), 32)


def _encode_time(value: Any, _kind: Type) -> str:
    micros = _whole(value)
    if not 0 <= micros < MICROS_PER_DAY:
        raise ValueError(f"{micros} is not a time of day in microseconds")
    return _clock_text(micros, digits=6)


def _decode_time(value: Any, _kind: Type) -> int:
    return _micros(_clock_nanos(_match(_TIME_TEXT, value, "22:31:08.123456")))


def _encode_timestamp(value: Any, kind: Type) -> str:
    nano = isinstance(kind, TimestampNsType | TimestamptzNsType)
    days, clock = divmod(_whole(value), NANOS_PER_DAY if nano else MICROS_PER_DAY)
    zone = _UTC if isinstance(kind, TimestamptzType | TimestamptzNsType) else ""
    return f"{date_text(days)}T{_clock_text(clock, digits=9 if nano else 6)}{zone}"


def _decode_timestamp(value: Any, kind: Type) -> int:
    text = _text(value)
    if isinstance(kind, TimestamptzType | TimestamptzNsType):
        if not text.endswith(_UTC):
            raise ValueError(f"it must end with {_UTC}")
        text = text.removesuffix(_UTC)
    found = _match(_TIMESTAMP_TEXT, text, "2017-11-16T22:31:08.123456")
    nanos = _days(found) * NANOS_PER_DAY + _clock_nanos(found)
    return _fitting(nanos if isinstance(kind, TimestampNsType | TimestamptzNsType) else _micros(nanos), 64)


def _match(pattern: re.Pattern[str], value: Any, example: str) -> re.Match[str]:
    found = pattern.fullmatch(_text(value))
    if found is None:
        raise ValueError(f"expected a string such as {example}")
    return found


def _days(found: re.Match[str]) -> int:
    return days_from_date(int(found["year"]), int(found["month"]), int(found["day"]))


def _clock_nanos(found: re.Match[str]) -> int:
    whole = clock_micros(int(found["hour"]), int(found["minute"]), int(found["second"] or 0))
    return whole * NANOS_PER_MICRO + int((found["fraction"] or "").ljust(9, "0"))


def _micros(nanos: int) -> int:
    micros, rest = divmod(nanos, NANOS_PER_MICRO)
    if rest:
        raise ValueError("it has more than microsecond precision")
    return micros


def _clock_text(clock: int, digits: int) -> str:
    seconds, fraction = divmod(clock, 10**digits)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:0{digits}d}"


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a number of days, microseconds or nanoseconds")
    return value


def _encode_struct(value: Any, _kind: Type) -> dict[str, Any]:
    if not isinstance(value, EmptyStruct):
        raise ValueError(f"{value!r} is not an empty struct")
    return {}


def _decode_struct(value: Any, _kind: Type) -> EmptyStruct:
    if value != {} or not isinstance(value, dict):
        raise ValueError("a struct's default is null or {}: its fields have their own")
    return EMPTY_STRUCT


_CODECS: dict[type, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Default]]] = {
    BooleanType: (_boolean, _boolean),
    IntegerType: (_integer, _integer),
    LongType: (_integer, _integer),
    FloatType: (_encode_float, _floating),
    DoubleType: (_floating, _floating),
    DecimalType: (_encode_decimal, _decode_decimal),
    DateType: (_encode_date, _decode_date),
    TimeType: (_encode_time, _decode_time),
    **dict.fromkeys(
        (TimestampType, TimestamptzType, TimestampNsType, TimestamptzNsType), (_encode_timestamp, _decode_timestamp)
    ),
    StringType: (_same, _decode_text),
    UUIDType: (_encode_uuid, _decode_uuid),
    FixedType: (_encode_bytes, _decode_bytes),
    BinaryType: (_encode_bytes, _decode_bytes),
    StructType: (_encode_struct, _decode_struct),
}
