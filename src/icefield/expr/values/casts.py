"""Casts that give the same values as Spark's in ANSI mode, which raises on overflow. All others raise NeedsSpark."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.values.value import Call, Constant, Kernel, Value
from icefield.types.arrow import arrow_type
from icefield.types.calendar import MICROS_PER_DAY, date_text
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
    StringType,
    TimestampType,
    Type,
    UnknownType,
)

WIDE_PRECISION = 76  # of Arrow's decimal256
# Spark casts some decimals to int through doubles, which are exact up to so many digits.
_DOUBLE_DIGITS = 15
_LONG_DIGITS = 19
# Up to this scale Arrow writes decimals without an exponent, as Spark does.
_PLAIN_SCALE = 6
_FIRST_DAY, _LAST_DAY = -719162, 2932896  # 0001-01-01 and 9999-12-31


def cast(value: Value, kind: Type) -> Value:
    """Return the value as another type."""
    if value.type == kind:
        return value
    if isinstance(value.type, UnknownType) or (isinstance(value, Constant) and value.value is None):
        return Constant(kind, None)
    if isinstance(kind, DoubleType) and _is_rounded(value):
        raise NeedsSpark(f"a cast of an integer to float and then to {kind}")
    make = _CASTS.get((type(value.type), type(kind)))
    if make is None:
        raise NeedsSpark(f"a cast from {value.type} to {kind}")
    kernel, checked = make(value.type, kind)
    return Call(kind, kernel, (value,), checked)


def _is_rounded(value: Value) -> bool:
    """Return whether a value is an integer cast to float: cast further, Spark leaves the first of the casts out."""
    return isinstance(value, Call) and isinstance(value.type, FloatType) and isinstance(value.children[0].type, _WHOLE)


Cast = Callable[[Type, Type], tuple[Kernel, bool]]


def fit_decimal(array: pa.Array, kind: DecimalType) -> pa.Array:
    """Round decimals half up to a scale; raises InvalidInput if one has too many digits."""
    precision = array.type.precision
    if array.type.scale > kind.scale:
        wide = array.cast(pa.decimal256(min(precision + 1, WIDE_PRECISION), array.type.scale))
        array = pc.round(wide, ndigits=kind.scale, round_mode="half_towards_infinity")
    return or_out_of_range(lambda: array.cast(arrow_type(kind)), kind)


def or_out_of_range(compute: Callable[[], pa.Array], kind: Type) -> pa.Array:
    """Compute an array; Arrow's error about a value that does not fit becomes InvalidInput."""
    try:
        return compute()
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"a value of the expression is out of range for {kind}") from error


def _unchecked(_source: Type, kind: Type) -> tuple[Kernel, bool]:
    return partial(_cast_unchecked, kind=arrow_type(kind)), False


def _cast_unchecked(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array.cast(kind, safe=False)


def _long_to_int(_source: Type, kind: Type) -> tuple[Kernel, bool]:
    return partial(_cast_checked, kind=kind), True


def _cast_checked(array: pa.Array, kind: Type) -> pa.Array:
    return or_out_of_range(lambda: array.cast(arrow_type(kind)), kind)


def _double_to_whole(_source: Type, kind: Type) -> tuple[Kernel, bool]:
    return partial(_truncate_doubles, kind=kind), True


def _truncate_doubles(array: pa.Array, kind: Type) -> pa.Array:
    """Truncate as Java does; the largest long is compared as a double, 2^63, which becomes that long."""
    valid = np.asarray(array.is_valid())
    numbers = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    limits = np.iinfo(np.int32 if isinstance(kind, IntegerType) else np.int64)
    with np.errstate(invalid="ignore"):
        fits = (np.floor(numbers) <= float(limits.max)) & (np.ceil(numbers) >= float(limits.min))
        if not fits.all():
            raise InvalidInput(f"a value of the expression is out of range for {kind}")
        whole = np.where(numbers >= float(1 << 63), limits.max, numbers.astype(np.int64))
    return pa.array(whole.astype(limits.dtype), mask=~valid)


def _whole_to_decimal(source: Type, kind: Type) -> tuple[Kernel, bool]:
    assert isinstance(kind, DecimalType)
    digits = 10 if isinstance(source, IntegerType) else _LONG_DIGITS
    return partial(_decimals_of_whole, kind=kind), kind.precision - kind.scale < digits


def _decimals_of_whole(array: pa.Array, kind: DecimalType) -> pa.Array:
    wide = array.cast(pa.int64()).cast(pa.decimal256(_LONG_DIGITS + kind.scale, kind.scale))
    return or_out_of_range(lambda: wide.cast(arrow_type(kind)), kind)


def _decimal_to_decimal(source: Type, kind: Type) -> tuple[Kernel, bool]:
    assert isinstance(source, DecimalType)
    assert isinstance(kind, DecimalType)
    digits = source.precision - source.scale + (kind.scale < source.scale)
    return partial(fit_decimal, kind=kind), kind.precision - kind.scale < digits


def _decimal_to_floating(_source: Type, kind: Type) -> tuple[Kernel, bool]:
    return partial(_parse_decimals, kind=arrow_type(kind)), False


def _parse_decimals(array: pa.Array, kind: pa.DataType) -> pa.Array:
    # Arrow's own cast rounds more than once; parsing the digits rounds once, as Java does.
    return array.cast(pa.string()).cast(kind)


def _decimal_to_whole(source: Type, kind: Type) -> tuple[Kernel, bool]:
    assert isinstance(source, DecimalType)
    if isinstance(kind, IntegerType) and source.precision > _DOUBLE_DIGITS:
        raise NeedsSpark(f"a cast from {source} to {kind}")
    return partial(_truncate_decimals, kind=kind), True


def _truncate_decimals(array: pa.Array, kind: Type) -> pa.Array:
    wide = array.cast(pa.decimal256(array.type.precision + 1, array.type.scale))
    whole = pc.round(wide, ndigits=0, round_mode="towards_zero")
    return or_out_of_range(lambda: whole.cast(arrow_type(kind)), kind)


def _decimal_to_text(source: Type, kind: Type) -> tuple[Kernel, bool]:
    assert isinstance(source, DecimalType)
    if source.scale > _PLAIN_SCALE:
        raise NeedsSpark(f"a cast from {source} to {kind}")
    return _unchecked(source, kind)


def _date_to_text(_source: Type, _kind: Type) -> tuple[Kernel, bool]:
    return _texts_of_dates, False


def _texts_of_dates(array: pa.Array) -> pa.Array:
    days = array.view(pa.int32())
    usual = pc.and_(pc.greater_equal(days, _FIRST_DAY), pc.less_equal(days, _LAST_DAY))
    written = pc.if_else(usual, array, pa.scalar(0, pa.int32()).cast(pa.date32())).cast(pa.string())
    if pc.all(usual).as_py() in (True, None):
        return written
    odd = pa.array(
        [None if d is None else date_text(d) for d in pc.if_else(usual, None, days).to_pylist()], pa.string()
    )
    return pc.if_else(usual, written, odd)


def _date_to_timestamp(_source: Type, _kind: Type) -> tuple[Kernel, bool]:
    return _midnights, True


def _midnights(array: pa.Array) -> pa.Array:
    days = array.view(pa.int32()).cast(pa.int64())
    product = or_out_of_range(lambda: pc.multiply_checked(days, MICROS_PER_DAY), TimestampType())
    return product.view(pa.timestamp("us"))


def _timestamp_to_date(_source: Type, _kind: Type) -> tuple[Kernel, bool]:
    return _days_of_timestamps, False


def _days_of_timestamps(array: pa.Array) -> pa.Array:
    micros = array.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    days = (micros // MICROS_PER_DAY).astype(np.int32)
    return pa.array(days, mask=np.asarray(array.is_null())).view(pa.date32())


_WHOLE, _FLOATING = (IntegerType, LongType), (FloatType, DoubleType)
_CASTS: dict[tuple[type[Type], type[Type]], Cast] = {
    (IntegerType, LongType): _unchecked,
    (LongType, IntegerType): _long_to_int,
    **{(source, kind): _unchecked for source in _WHOLE for kind in _FLOATING},
    (FloatType, DoubleType): _unchecked,
    (DoubleType, FloatType): _unchecked,
    **{(source, kind): _double_to_whole for source in _FLOATING for kind in _WHOLE},
    **{(source, DecimalType): _whole_to_decimal for source in _WHOLE},
    (DecimalType, DecimalType): _decimal_to_decimal,
    **{(DecimalType, kind): _decimal_to_floating for kind in _FLOATING},
    **{(DecimalType, kind): _decimal_to_whole for kind in _WHOLE},
    **{(source, StringType): _unchecked for source in (*_WHOLE, BooleanType)},
    **{(BooleanType, kind): _unchecked for kind in _WHOLE},
    (StringType, BinaryType): _unchecked,
    (FixedType, BinaryType): _unchecked,
    (DecimalType, StringType): _decimal_to_text,
    (DateType, StringType): _date_to_text,
    (DateType, TimestampType): _date_to_timestamp,
    (TimestampType, DateType): _timestamp_to_date,
}
