"""Functions of strings and dates."""

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import NeedsSpark
from icefield.expr.values.casts import cast
from icefield.expr.values.value import Call, Constant, Value
from icefield.types.datatypes import BinaryType, DateType, IntegerType, StringType, Type, UnknownType

_TRIM = {"both": "utf8_trim", "left": "utf8_ltrim", "right": "utf8_rtrim"}
_MAX_INT = (1 << 31) - 1


def concat(*parts: Value) -> Value:
    """Return strings joined; null if one of them is."""
    return Call(StringType(), _concat, tuple(_as(StringType(), part, "concat") for part in parts), strict=False)


def trim(where: str, value: Value) -> Value:
    """Return a string without blanks at its ends; other white space stays."""
    value = _as(StringType(), value, "trim")
    return Call(StringType(), partial(_trim, where=where), (value,))


def length(value: Value) -> Value:
    """Return the number of characters of a string, or of bytes of a binary."""
    if isinstance(value.type, BinaryType):
        return Call(IntegerType(), pc.binary_length, (value,))
    value = _as(StringType(), value, "length")
    return Call(IntegerType(), pc.utf8_length, (value,))


def substring(value: Value, start: Value, count: Value | None = None) -> Value:
    """Return a part of a string; positions count from 1, or from the end if they are negative."""
    value = _as(StringType(), value, "substring")
    kernel = partial(_substring, start=_literal(start), count=_MAX_INT if count is None else _literal(count))
    return Call(StringType(), kernel, (value,))


def add_days(start: Value, days: Value) -> Value:
    """Return a date some days later; like Java's integers it wraps around."""
    return _shifted(start, days, "add")


def subtract_days(start: Value, days: Value) -> Value:
    """Return a date some days earlier."""
    return _shifted(start, days, "subtract")


def days_between(end: Value, start: Value) -> Value:
    """Return the number of days from a date to another."""
    dates = tuple(_as(DateType(), value, "datediff") for value in (end, start))
    return Call(IntegerType(), _days_between, dates)


def _shifted(start: Value, days: Value, function: str) -> Value:
    operands = (_as(DateType(), start, "date_add"), _as(IntegerType(), days, "date_add"))
    return Call(DateType(), partial(_shift, function=function), operands)


def _as(kind: Type, value: Value, name: str) -> Value:
    """Return the argument of a function, which must have its type or be null."""
    if value.type != kind and not isinstance(value.type, UnknownType):
        raise NeedsSpark(f"{name} of a {value.type}")
    return cast(value, kind)


def _literal(value: Value) -> int:
    if not isinstance(value, Constant) or not isinstance(value.type, IntegerType):
        raise NeedsSpark("substring with a position that is not a literal")
    return int(value.value)  # type: ignore[arg-type]


def _concat(*arrays: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*arrays, "", null_handling="emit_null")


def _trim(array: pa.Array, where: str) -> pa.Array:
    return pc.call_function(_TRIM[where], [array], pc.TrimOptions(" "))


def _substring(array: pa.Array, start: int, count: int) -> pa.Array:
    first = start - 1 if start > 0 else start
    last: int | None = first + count
    if first < 0 and last is not None and last >= 0:
        last = None
    elif count <= 0:
        last = first
    return pc.utf8_slice_codeunits(array, first, last)


def _shift(start: pa.Array, days: pa.Array, function: str) -> pa.Array:
    return pc.call_function(function, [start.view(pa.int32()), days]).view(pa.date32())


def _days_between(end: pa.Array, start: pa.Array) -> pa.Array:
    return pc.subtract(end.view(pa.int32()), start.view(pa.int32()))
