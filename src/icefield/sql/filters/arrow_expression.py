"""Read a filter of Arrow as a condition, from the bytes that Arrow writes of it in the form of Substrait.

    (id >= 5) and (v == "b")   ->   Call("and", (Call(">=", (id, 5)), Call("=", (v, "b"))))

Arrow has no other way to look into an expression; its text is not precise. Only what the filters of other engines
contain is read: columns, constants, comparisons, IN, nulls, AND, OR and NOT. Floats are not, because engines differ in
where NaN is. All else is unknown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidFilter
from icefield.expr.bind.bind import find_reference
from icefield.expr.parse import ast
from icefield.expr.parse.ast import Date, Literal, Timestamp
from icefield.sql.filters.expression import UNKNOWN, Call, Column, Constant, Expression
from icefield.types.schema import Schema

_CALLS = {
    "and": "and",
    "or": "or",
    "not": "not",
    "equal": "=",
    "not_equal": "!=",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
    "is_null": "isnull",
    "is_not_null": "isnotnull",
}
# The numbers of fields in Substrait's messages.
_EXTENSIONS, _EXPRESSIONS = 2, 3
_LITERAL, _SELECTION, _CALL, _IN = 1, 2, 3, 8
_SIGN_BIT = 63

Message = Sequence[tuple[int, int | bytes]]


def read_expression(filter_: pc.Expression, columns: pa.Schema, schema: Schema) -> Expression:
    """Read a filter on columns that have the names of the schema."""
    try:
        message = _read(bytes(filter_.to_substrait(columns, allow_arrow_extensions=True)))
        functions = dict(map(_function, _all(message, _EXTENSIONS)))
        (referred,) = _all(message, _EXPRESSIONS)
        return _Reader(functions, columns, schema).expression(_only(referred, 1))
    except (pa.ArrowException, ValueError, KeyError, IndexError, RecursionError):
        return UNKNOWN


class _Reader:
    """Reads expressions. functions: their names by number."""

    def __init__(self, functions: Mapping[int, str], columns: pa.Schema, schema: Schema) -> None:
        self._functions = functions
        self._columns = columns
        self._schema = schema

    def expression(self, message: bytes) -> Expression:
        """Read an expression; a part that is not understood is unknown."""
        ((kind, value),) = _read(message)
        try:
            return self._read_as[kind](self, _bytes(value))
        except (KeyError, ValueError, IndexError, InvalidFilter):
            return UNKNOWN

    def _call(self, message: bytes) -> Expression:
        fields = _read(message)
        function = next((value for number, value in fields if number == 1), 0)
        arguments = tuple(self.expression(_only(each, 3)) for each in _all(fields, 4))
        return Call(_CALLS[self._functions[_integer(function)]], arguments)

    def _in(self, message: bytes) -> Expression:
        """Read a test for one of several values, which is false for null, not unknown as in SQL."""
        fields = _read(message)
        (value,) = (self.expression(each) for each in _all(fields, 1))
        items = [self.expression(each) for each in _all(fields, 2)]
        if UNKNOWN in (value, *items):
            return UNKNOWN
        return Call("and", (Call("isnotnull", (value,)), Call("in", (value, *items))))

    def _column(self, message: bytes) -> Expression:
        path, field, segment = list[str](), None, _only(message, 1)
        fields: Sequence[pa.Field] = list(self._columns)
        while segment:
            inner = _read(_only(segment, 2))
            field = fields[_integer(next((value for number, value in inner if number == 1), 0))]
            path.append(field.name)
            fields = list(field.type) if pa.types.is_struct(field.type) else []
            segment = next(iter(_all(inner, 2)), b"")
        return Column(find_reference(ast.Column(tuple(path)), self._schema))

    def _literal(self, message: bytes) -> Expression:
        ((kind, value),) = _read(message)
        return Constant(_LITERALS[kind](value))

    _read_as: Mapping[int, Callable[["_Reader", bytes], Expression]] = {
        _LITERAL: _literal,
        _SELECTION: _column,
        _CALL: _call,
        _IN: _in,
    }


def _decimal(value: int | bytes) -> Literal:
    fields = dict(_read(_bytes(value)))
    unscaled = int.from_bytes(_bytes(fields[1]), "little", signed=True)
    return Decimal(unscaled).scaleb(-_integer(fields.get(3, 0)))


def _signed(value: int | bytes) -> int:
    number = _integer(value)
    return number - (1 << _SIGN_BIT + 1) if number >> _SIGN_BIT else number


def _function(message: bytes) -> tuple[int, str]:
    fields = dict(_read(_only(message, 3)))
    return _integer(fields.get(2, 0)), _bytes(fields[3]).decode()


def _only(message: bytes, number: int) -> bytes:
    """Return the field of a message that must be there once."""
    (found,) = _all(_read(message), number)
    return found


def _all(message: Message, number: int) -> list[bytes]:
    return [_bytes(value) for each, value in message if each == number]


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a message is expected")
    return value


def _integer(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("a message where a number is expected")
    return value


def _read(data: bytes) -> Message:
    """Read the fields of a message: numbers, and the bytes of all else."""
    return list(_fields(data))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        else:
            length = {1: 8, 5: 4}[kind]
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


_LITERALS: Mapping[int, Callable[[int | bytes], Literal]] = {
    1: lambda value: bool(_integer(value)),
    **dict.fromkeys((2, 3, 5, 7), _signed),
    12: lambda value: _bytes(value).decode(),
    13: _bytes,
    14: lambda value: Timestamp(_signed(value), zoned=False),
    16: lambda value: Date(_signed(value)),
    24: _decimal,
    27: lambda value: Timestamp(_signed(value), zoned=True),
}
