"""Values in SQL text: numbers, strings, DATE '…', X'ff', CAST('…' AS type). Raises InvalidFilter."""

import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from sqlglot import exp

from icefield.errors import InvalidFilter
from icefield.expr.parse.ast import Date, Literal, Time, Timestamp
from icefield.expr.parse.datetimes import parse_date, parse_time, parse_timestamp
from icefield.expr.parse.numbers import double_of, whole_number

DType = exp.DataType.Type

_WHOLE_BITS = {DType.TINYINT: 8, DType.SMALLINT: 16, DType.INT: 32, DType.BIGINT: 64}
_EXACT = Context(prec=200)


def literal_value(node: exp.Expression) -> Literal:
    """Return the value of a constant node."""
    read = _READ.get(type(node))
    if read is None:
        raise _unsupported(node)
    return read(node)


def sql_text(node: exp.Expression) -> str:
    """Render a node as SQL, truncated to a readable length."""
    text = node.sql(dialect="spark").replace("TRY_CAST(", "CAST(")
    return f"`{text}`" if len(text) <= 80 else f"`{text[:77]}...`"


def _unsupported(node: exp.Expression) -> InvalidFilter:
    return InvalidFilter(
        f"cannot use {sql_text(node)} as a value in a filter",
        hint="Values are numbers, 'strings', TRUE, FALSE, NULL, DATE '…', TIMESTAMP '…', X'…' and CAST(value AS type)",
    )


def _read_literal(node: exp.Expression) -> Literal:
    text: str = node.this
    if node.args.get("is_string"):
        return text
    try:
        if "e" in text.lower():
            return float(text)
        return Decimal(text) if "." in text else int(text)
    except (ValueError, ArithmeticError) as error:
        raise _unsupported(node) from error


def _read_negative(node: exp.Expression) -> Literal:
    if isinstance(node.this, exp.Cast):
        # -9223372036854775808L is a valid long, although it is out of range without its sign.
        return _cast(_negative(literal_value(node.this.this), node), node.this)
    return _negative(literal_value(node.this), node)


def _negative(value: Literal, node: exp.Expression) -> Literal:
    if isinstance(value, Decimal):
        # Unary minus would round to the context's 28 digits.
        return value.copy_negate()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unsupported(node)
    return -value


def _read_hex(node: exp.Expression) -> Literal:
    text: str = node.this
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else f"0{text}")
    except ValueError as error:
        raise _unsupported(node) from error


def _read_joined(node: exp.Expression) -> Literal:
    """Adjacent string literals are one string in Spark."""
    parts = [literal_value(part) for part in node.expressions]
    if not all(isinstance(part, str) for part in parts):
        raise _unsupported(node)
    return "".join(str(part) for part in parts)


def _read_cast(node: exp.Expression) -> Literal:
    return _cast(literal_value(node.this), node)


def _cast(value: Literal, node: exp.Expression) -> Literal:
    kind: exp.DataType = node.args["to"]
    cast = _CAST.get(kind.this)
    if cast is None or any(v for k, v in node.args.items() if k not in ("this", "to", "safe")):
        raise _unsupported(node)
    if value is None:
        return None
    try:
        return cast(value, kind)
    except (ValueError, TypeError, ArithmeticError, struct.error) as error:
        raise InvalidFilter(f"cannot use {sql_text(node)} in a filter: the value does not fit the type") from error


def _cast_whole(value: Literal, kind: exp.DataType) -> Literal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise TypeError
    number, bits = whole_number(value) if isinstance(value, str) else int(value), _WHOLE_BITS[kind.this]
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise OverflowError
    return number


def _cast_double(value: Literal, _kind: exp.DataType) -> Literal:
    return double_of(value)


def _cast_float(value: Literal, _kind: exp.DataType) -> Literal:
    return float(struct.unpack("<f", struct.pack("<f", double_of(value)))[0])


def _cast_decimal(value: Literal, kind: exp.DataType) -> Literal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise TypeError
    if isinstance(value, str):
        double_of(value)  # Decimal() takes more spellings than SQL does.
    precision, scale = ([int(p.this.this) for p in kind.expressions] + [10, 0][len(kind.expressions) :])[:2]
    rounded = Decimal(value).quantize(Decimal((0, (1,), -scale)), ROUND_HALF_UP, _EXACT)
    if abs(rounded.as_integer_ratio()[0]) > 10**precision or len(rounded.as_tuple().digits) > precision:
        raise OverflowError
    return rounded


def _cast_text(value: Literal, _kind: exp.DataType) -> Literal:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError
    return value


def _cast_binary(value: Literal, _kind: exp.DataType) -> Literal:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, bytes):
        raise TypeError
    return value


def _cast_boolean(value: Literal, _kind: exp.DataType) -> Literal:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise TypeError
    return value


def _cast_date(value: Literal, _kind: exp.DataType) -> Literal:
    if isinstance(value, Date):
        return value
    if not isinstance(value, str):
        raise TypeError
    return parse_date(value)


def _cast_time(value: Literal, _kind: exp.DataType) -> Literal:
    if isinstance(value, Time):
        return value
    if not isinstance(value, str):
        raise TypeError
    return parse_time(value)


def _cast_timestamp(value: Literal, kind: exp.DataType) -> Literal:
    moment = parse_timestamp(value) if isinstance(value, str) else value
    if not isinstance(moment, Timestamp):
        raise TypeError
    if moment.zoned and kind.this is DType.TIMESTAMPNTZ:
        raise ValueError
    return moment


_READ: dict[type[exp.Expression], Callable[[exp.Expression], Literal]] = {
    exp.Literal: _read_literal,
    exp.RawString: lambda node: str(node.this),
    exp.Boolean: lambda node: bool(node.this),
    exp.Null: lambda _node: None,
    exp.Neg: _read_negative,
    exp.HexString: _read_hex,
    exp.Concat: _read_joined,
    exp.Cast: _read_cast,
    exp.TryCast: _read_cast,
    exp.Paren: lambda node: literal_value(node.this),
}
_CAST: dict[Any, Callable[[Literal, exp.DataType], Literal]] = {
    **dict.fromkeys(_WHOLE_BITS, _cast_whole),
    DType.DOUBLE: _cast_double,
    DType.FLOAT: _cast_float,
    DType.DECIMAL: _cast_decimal,
    DType.TEXT: _cast_text,
    DType.VARCHAR: _cast_text,
    DType.BINARY: _cast_binary,
    DType.BOOLEAN: _cast_boolean,
    DType.DATE: _cast_date,
    DType.TIME: _cast_time,
    **dict.fromkeys((DType.TIMESTAMP, DType.TIMESTAMPTZ, DType.TIMESTAMPLTZ, DType.TIMESTAMPNTZ), _cast_timestamp),
}
