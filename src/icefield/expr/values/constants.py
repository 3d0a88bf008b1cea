"""Literals of Spark SQL and of Python as typed constants.

What depends on the time zone of a session, or is read otherwise by some version of Spark, raises NeedsSpark.
"""

import datetime
import re
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.bind.literals import checked_text
from icefield.expr.parse.ast import Date, Lit, Time, Timestamp
from icefield.expr.parse.datetimes import from_python, parse_date, parse_timestamp
from icefield.expr.values.syntax import Constant
from icefield.types.datatypes import (
    MAX_DECIMAL_PRECISION,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
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
    UnknownType,
    UUIDType,
    Value,
)

INT_BITS, LONG_BITS = 32, 64
NULL = Constant(UnknownType(), None)

_ESCAPE = re.compile(r"\\(u(?![dD][89a-fA-F])[0-9A-Fa-f]{4}|.)", re.DOTALL)
# Escapes that every version of Spark reads alike; before % and _ the backslash stays, for LIKE.
_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t", "%": "\\%", "_": "\\_"}
_NUMBER = re.compile(r"(?P<digits>[\d.]+)(?P<exponent>[eE][+-]?\d+)?(?P<suffix>[A-Za-z]*)")


def from_number(text: str, *, negative: bool = False) -> Constant:
    """Read a number: an int, a long or a decimal by its size, a double if it has an exponent, or as its suffix says."""
    found = _NUMBER.fullmatch(text)
    assert found is not None
    suffix, sign = found["suffix"].upper(), "-" if negative else ""
    written = f"{sign}{found['digits']}{found['exponent'] or ''}"
    if suffix == "D" or (not suffix and found["exponent"]):
        return _double(written)
    if suffix == "F":
        return _float(written)
    if suffix == "BD":
        return _decimal(Decimal(written), text)
    if suffix == "L":
        return Constant(LongType(), _whole(written, LONG_BITS, text))
    if suffix:
        raise NeedsSpark(f"the literal {text}")
    return _decimal(Decimal(written), text) if "." in written else _integer(int(written), text)


def from_string(token: str) -> Constant:
    """Read a string between single quotes."""
    return _text(_ESCAPE.sub(_unescaped, token[1:-1]))


def _unescaped(found: re.Match[str]) -> str:
    if len(found[1]) > 1:
        return chr(int(found[1][1:], 16))
    if found[1] not in _ESCAPES:
        raise NeedsSpark(f"the escape {found[0]} in a string")
    return _ESCAPES[found[1]]


def from_hex(token: str) -> Constant:
    """Read X'00ff'."""
    digits = token[2:-1]
    return Constant(BinaryType(), bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}"))


def typed(word: str, text: str) -> Constant:
    """Read DATE '…', TIMESTAMP_NTZ '…', or TIMESTAMP '…' with a zone."""
    kind = _TYPED.get(word)
    if kind is None:
        raise NeedsSpark(f"the literal {word.upper()} {text!r}")
    return from_text(text, kind)


def from_text(text: str, kind: PrimitiveType) -> Constant:
    """Convert a string literal to another type, as Spark casts it in ANSI mode."""
    if isinstance(kind, StringType):
        return _text(text)
    try:
        value = _FROM_TEXT[type(kind)](text)
    except (KeyError, ValueError, ArithmeticError) as error:
        hint = "Write TIMESTAMP_NTZ '…', or give the zone" if isinstance(kind, TimestamptzType) else None
        raise NeedsSpark(f"the string {text!r} as a {kind}", hint=hint) from error
    return Constant(kind, value)


def from_value(value: object) -> Constant:
    """Convert a Python value; its type is the one that Spark gives the same literal."""
    plain: Any = value.value if isinstance(value, Lit) else value
    if isinstance(plain, np.generic):
        plain = plain.item()
    for kinds, convert in _FROM_PYTHON:
        if isinstance(plain, kinds):
            return convert(plain)
    raise InvalidInput(
        f"cannot use a {type(plain).__name__} as a value",
        hint="Values are SQL text, lit(...), numbers, True, False, None, bytes, dates, times and UUIDs",
    )


def decimal_of_integer(constant: Constant) -> DecimalType:
    """Return the decimal type of an integer literal: as many digits as it has."""
    return DecimalType(len(str(abs(int(constant.value or 0)))), 0)


def _integer(value: int, text: str) -> Constant:
    if -(1 << INT_BITS - 1) <= value < 1 << INT_BITS - 1:
        return Constant(IntegerType(), value)
    if -(1 << LONG_BITS - 1) <= value < 1 << LONG_BITS - 1:
        return Constant(LongType(), value)
    return _decimal(Decimal(value), text)


def _whole(written: str, bits: int, text: str) -> int:
    try:
        value = int(written)
    except ValueError as error:
        raise InvalidInput(f"invalid number {text}") from error
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise InvalidInput(f"the number {text} is out of range")
    return value


def _double(written: str) -> Constant:
    value = float(written)
    if np.isinf(value):
        raise InvalidInput(f"the number {written} is out of range for a double")
    return Constant(DoubleType(), value)


def _float(written: str) -> Constant:
    double = float(written)
    with np.errstate(over="ignore"):
        value = np.float32(double)
    # Through a double the number is rounded twice: not the same as once, if the double is halfway between two floats.
    if not np.isfinite(value) or (Decimal(double) != Decimal(written) and _is_halfway(double)):
        raise NeedsSpark(f"the literal {written}F")
    return Constant(FloatType(), float(value))


def _is_halfway(double: float) -> bool:
    return int(np.float64(double).view(np.int64)) & ((1 << 29) - 1) == 1 << 28


def _decimal(value: Decimal, text: str) -> Constant:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidInput(f"cannot use {text} as a number")
    if exponent > 0:
        raise NeedsSpark(f"the literal {text}")
    # Leading zeros do not count, but all digits of the fraction do.
    precision = max(len(digits) if any(digits) else 1, -exponent)
    if precision > MAX_DECIMAL_PRECISION:
        raise InvalidInput(f"the number {text} has more than {MAX_DECIMAL_PRECISION} digits")
    return Constant(DecimalType(precision, -exponent), value)


def _text(text: str) -> Constant:
    try:
        return Constant(StringType(), checked_text(text))
    except ValueError as error:
        raise InvalidInput(f"cannot use the string {text!r}: {error}") from error


def _exactly(text: str) -> str:
    # Which blanks Spark removes depends on the type.
    if text != text.strip() or not text.isascii():
        raise ValueError
    return text


def _long_of_text(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,18}", _exactly(text), re.ASCII):
        raise ValueError
    return int(text)


def _double_of_text(text: str) -> float:
    if text in ("NaN", "Infinity", "-Infinity"):
        return float(text)
    if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", _exactly(text), re.ASCII):
        raise ValueError
    return float(text)


def _boolean_of_text(text: str) -> bool:
    return {"true": True, "false": False}[text]


def _uuid_of_text(text: str) -> uuid.UUID:
    # To Spark a UUID is a string in this form.
    if str(uuid.UUID(text)) != text:
        raise ValueError
    return uuid.UUID(text)


def _date_of_text(text: str) -> int:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError
    return parse_date(text).days


def _timestamp_of_text(text: str) -> int:
    moment = _moment(text)
    if moment.zoned:
        raise ValueError
    return moment.micros


def _timestamptz_of_text(text: str) -> int:
    moment = _moment(text)
    if not moment.zoned:
        raise ValueError
    return moment.micros


def _moment(text: str) -> Timestamp:
    moment = parse_timestamp(_exactly(text))
    # A region's clock has gaps, which Java and Python fill in different ways; Spark has no nanoseconds.
    if moment.nanos or "/" in text or not re.match(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d|$)", text, re.ASCII):
        raise ValueError
    return moment


def _from_moment(moment: Timestamp) -> Constant:
    if moment.nanos:
        return Constant(TimestamptzNsType() if moment.zoned else TimestampNsType(), moment.total_nanos)
    return Constant(TimestamptzType() if moment.zoned else TimestampType(), moment.micros)


def _from_python_date(value: datetime.date | datetime.time) -> Constant:
    return from_value(from_python(value))


_TYPED: dict[str, PrimitiveType] = {
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ltz": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
}
_FROM_TEXT: dict[type[PrimitiveType], Callable[[str], Value]] = {
    LongType: _long_of_text,
    DoubleType: _double_of_text,
    BooleanType: _boolean_of_text,
    DateType: _date_of_text,
    TimestampType: _timestamp_of_text,
    TimestamptzType: _timestamptz_of_text,
    BinaryType: str.encode,
    UUIDType: _uuid_of_text,
}
_FROM_PYTHON: tuple[tuple[Any, Callable[[Any], Constant]], ...] = (
    (type(None), lambda _value: NULL),
    (bool, lambda value: Constant(BooleanType(), value)),
    (int, lambda value: _integer(value, str(value))),
    (float, lambda value: Constant(DoubleType(), value)),
    (Decimal, lambda value: _decimal(value, str(value))),
    (str, _text),
    ((bytes, bytearray, memoryview), lambda value: Constant(BinaryType(), bytes(value))),
    (uuid.UUID, lambda value: Constant(UUIDType(), value)),
    ((datetime.date, datetime.time), _from_python_date),
    (Date, lambda value: Constant(DateType(), value.days)),
    (Time, lambda value: Constant(TimeType(), value.micros)),
    (Timestamp, _from_moment),
)
