"""What is wrong with a value of a file, in words: its row, its column, the type, and what to do."""

import re
from collections.abc import Callable
from typing import NamedTuple

from icefield.cli.files.row_format import CSV, POINT, RowFormat
from icefield.types.datatypes import BooleanType, DateType, MapType, NestedField, TimestampType, TimestamptzType

MOST_SHOWN = 60
_NUMBERS = ("int", "long", "float", "double", "decimal")
_WITH_COMMA = re.compile(r"[-+]?[\d.]*,\d+")
_NANOSECONDS = re.compile(r".*:\d\d\.\d{7,}.*")
_GROUPED = re.compile(r"[-+]?\d{1,3}([.,' ]\d{3})+([.,]\d+)?")
_ADVICE: dict[type, str] = {
    BooleanType: "Booleans are true or false",
    DateType: "Dates are written as 2026-01-31",
    TimestampType: "Times of a timestamp are written as 2026-01-31T10:00:00, without an offset",
    MapType: 'Maps are written as lists of entries: [{"key": "a", "value": 1}]',
    TimestamptzType: "Times of a timestamptz need an offset, as in 2026-01-31T10:00:00Z",
}


def has_decimal_comma(text: str) -> bool:
    """Return whether a text looks like a number with a decimal comma."""
    return _WITH_COMMA.fullmatch(text) is not None


NO_UTF_8 = "Give the encoding of the file, such as --encoding latin1"


class Fault(NamedTuple):
    """Why a file cannot be read, and what to do."""

    reason: str
    hint: str | None


class FaultFound(ValueError):
    """A fault of a file that its reader has found itself."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


def value_fault(row: int, field: NestedField, text: str, kind: str, form: RowFormat) -> Fault:
    """Describe a value that is not one of the type of its column. row counts the rows of the file from 1."""
    shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return Fault(
        f"row {row:,}, column {field.name}: {shown!r} is not a valid {field.type}", _hint(field, text, kind, form)
    )


def _hint(field: NestedField, text: str, kind: str, form: RowFormat) -> str:
    if str(field.type).startswith(_NUMBERS) and kind == CSV:
        if form.decimal == POINT and has_decimal_comma(text):
            return "For numbers with decimal commas, give --decimal ,"
        if _GROUPED.fullmatch(text):
            return "Numbers are read without separators of thousands: remove them from the file"
    if isinstance(field.type, TimestampType | TimestamptzType) and _NANOSECONDS.fullmatch(text):
        return f"Times have microseconds; {field.type}_ns, a type of format version 3, has nanoseconds"
    if (advice := _ADVICE.get(type(field.type))) is not None:
        return advice
    more = f"; if the cell means null, give --null {text}" if _may_be_null(text, kind) else ""
    return f"Correct it in the file{more}"


def _may_be_null(text: str, kind: str) -> bool:
    return kind == CSV and bool(re.fullmatch(r"[A-Za-z/#.?-]{1,8}", text))


def first_that_fails(count: int, is_readable: Callable[[int, int], bool]) -> int:
    """Return the least index i such that items [0, i] cannot be read together, of `count` items that cannot."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if is_readable(low, middle + 1):
            low = middle + 1
        else:
            high = middle
    return low
