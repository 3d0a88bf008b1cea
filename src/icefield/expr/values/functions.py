"""Functions of strings and dates."""

import unicodedata
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import NeedsSpark
from icefield.expr.values.casts import cast
from icefield.expr.values.value import Call, Constant, Value
from icefield.types.datatypes import BinaryType, BooleanType, DateType, IntegerType, StringType, Type, UnknownType

_TRIM = {"both": "utf8_trim", "left": "utf8_ltrim", "right": "utf8_rtrim"}
_MAX_INT = (1 << 31) - 1
# Letters whose case, or whose effect on the case of a sigma, differs between versions of Unicode.
_CASE_DIFFERS = frozenset("\u019b\u0264\u0295\ua7d3\ua7d5\U0001171e")


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


def change_case(case: str, value: Value) -> Value:
    """Return a string in upper or lower case."""
    return Call(StringType(), partial(_change_case, case=case), (_as(StringType(), value, case),), checked=True)


def find_text(function: str, value: Value, wanted: Value) -> Value:
    """Return whether a string starts with, ends with or contains another, which is a literal."""
    value = _as(StringType(), value, function)
    kernel = partial(_find_text, function=function, wanted=_literal_text(wanted))
    return Call(BooleanType(), kernel, (value,))


def replace_text(value: Value, wanted: Value, instead: Value) -> Value:
    """Return a string with every occurrence of a literal replaced by another; an empty one does not occur."""
    value = _as(StringType(), value, "replace")
    kernel = partial(_replace, wanted=_literal_text(wanted), instead=_literal_text(instead))
    return Call(StringType(), kernel, (value,))


def date_part(part: str, value: Value) -> Value:
    """Return the year, the month or the day of the month of a date."""
    return Call(IntegerType(), partial(_date_part, part=part), (_as(DateType(), value, part),))


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


def _literal_text(value: Value) -> str:
    if not isinstance(value, Constant) or not isinstance(value.value, str):
        raise NeedsSpark("a search for a string that is not a literal")
    return value.value


def _change_case(array: pa.Array, case: str) -> pa.Array:
    changed = pc.call_function(f"ascii_{case}", [array])
    is_odd = pc.invert(pc.string_is_ascii(array))
    if not pc.any(is_odd).as_py():
        return changed
    # Python's special cases are those of the Unicode standard, as Java's and ICU's are.
    odd = pc.if_else(is_odd, array, None).dictionary_encode()
    mapped = pa.array([_checked_case(text, case) for text in odd.dictionary.to_pylist()], pa.string())
    return pc.if_else(is_odd, mapped.take(odd.indices), changed)


def _checked_case(text: str, case: str) -> str:
    unknown = next((c for c in text if c in _CASE_DIFFERS or unicodedata.category(c) == "Cn"), None)
    if unknown is not None:
        raise NeedsSpark(f"{case} of the character U+{ord(unknown):04X}")
    return text.upper() if case == "upper" else text.lower()


def _find_text(array: pa.Array, function: str, wanted: str) -> pa.Array:
    return pc.call_function(function, [array], pc.MatchSubstringOptions(wanted))


def _replace(array: pa.Array, wanted: str, instead: str) -> pa.Array:
    return pc.replace_substring(array, wanted, instead) if wanted else array


def _date_part(array: pa.Array, part: str) -> pa.Array:
    days = array.view(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    if part == "day":
        found = (days - months).astype(np.int64) + 1
    elif part == "month":
        found = months.astype(np.int64) % 12 + 1
    else:
        found = days.astype("datetime64[Y]").astype(np.int64) + 1970
    return pa.array(found.astype(np.int32), mask=np.asarray(array.is_null()))


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
