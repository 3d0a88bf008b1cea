"""Decode a whole column of lower or upper bounds at once. (spec: Appendix D, Binary single-value serialization)

Invalid bounds are treated as unknown: bytes that do not fit the type, NaN, and pairs with the lower bound above the
upper one. They make pruning weaker, never wrong.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.expr.prune.ordered import Bools, Bytes, Numbers, OrderedColumn, Wide
from icefield.types.datatypes import (
    OPAQUE_TYPES,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icefield.types.sort_keys import BYTES
from icefield.types.transforms import units_per_day

_WIDE_BYTES = 16


def decode_bounds(lower: pa.Array, upper: pa.Array, kind: PrimitiveType) -> tuple[OrderedColumn, OrderedColumn]:
    """Decode a column of lower and one of upper bounds; those that cannot be trusted become unknown."""
    low, high = _decode(lower, kind), _decode(upper, kind)
    if isinstance(kind, UUIDType):
        low, high = _loosen_uuids(low, 0x00), _loosen_uuids(high, 0xFF)
    sound = ~low.above(high)
    if isinstance(kind, FloatType | DoubleType):
        # If a writer stored NaN in one bound, the other cannot be trusted either.
        sound &= (low.known | _is_null(lower)) & (high.known | _is_null(upper))
    return low.known_where(sound), high.known_where(sound)


def _decode(data: pa.Array, kind: PrimitiveType) -> OrderedColumn:
    binary = data.cast(pa.binary())
    if isinstance(kind, BYTES):
        known = ~_is_null(binary)
        if isinstance(kind, UUIDType):
            known &= _Ranges(binary).lengths == _WIDE_BYTES
        return OrderedColumn(Bytes(), binary, known)
    ranges = _Ranges(binary)
    if isinstance(kind, DecimalType):
        return _decode_decimals(ranges, kind)
    if isinstance(kind, OPAQUE_TYPES):
        nothing = np.zeros(len(binary), np.int64)
        return OrderedColumn(Numbers(), nothing, nothing.astype(np.bool_))
    if isinstance(kind, TimestampType | TimestampNsType):
        values, known = _promoted_timestamps(ranges, units_per_day(kind))
    else:
        values, known = _DECODE[type(kind)](ranges)
    return OrderedColumn(Numbers(), values, known & ~ranges.is_null if binary.null_count else known)


class _Ranges:
    """The byte range of each value in one buffer, padded so that 8 bytes can be read at any position."""

    def __init__(self, binary: pa.Array) -> None:
        _, offset_buffer, data_buffer = binary.buffers()
        offsets = np.frombuffer(offset_buffer, np.int32)[binary.offset : binary.offset + len(binary) + 1]
        data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
        self.bytes = np.concatenate([data, np.zeros(8, np.uint8)])
        self.starts = offsets[:-1].astype(np.int64)
        self.lengths = np.diff(offsets)
        self.is_null = _is_null(binary)

    def gather(self, dtype: str) -> tuple[npt.NDArray[Any], Bools]:
        """Read one number per value; the second result is a mask of the values with the right length."""
        width = np.dtype(dtype).itemsize
        # A strided view at every byte offset, not only at multiples of the width, needs no copy and no loop.
        view = np.ndarray((len(self.bytes) - width + 1,), dtype, self.bytes, 0, (1,))
        fits = self.lengths == width
        return view[np.where(fits, self.starts, 0)], fits


def _is_null(array: pa.Array) -> Bools:
    if array.null_count == 0:
        return np.zeros(len(array), np.bool_)
    return array.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _ints(ranges: _Ranges) -> tuple[npt.NDArray[Any], Bools]:
    values, fits = ranges.gather("<i4")
    return values.astype(np.int64), fits


def _longs(ranges: _Ranges) -> tuple[npt.NDArray[Any], Bools]:
    return ranges.gather("<i8")


def _promoted_longs(ranges: _Ranges) -> tuple[npt.NDArray[Any], Bools]:
    """Decode longs, including bounds that were written when the column was an int. (spec: Schema Evolution)"""
    longs, are_longs = ranges.gather("<i8")
    if are_longs.all():
        return longs, are_longs
    ints, are_ints = ranges.gather("<i4")
    return np.where(are_longs, longs, ints.astype(np.int64)), are_longs | are_ints


def _promoted_timestamps(ranges: _Ranges, per_day: int) -> tuple[npt.NDArray[Any], Bools]:
    """Decode timestamps, including bounds that were written when the column was a date. (spec: Schema Evolution)"""
    moments, are_moments = ranges.gather("<i8")
    if are_moments.all():
        return moments, are_moments
    days, are_days = ranges.gather("<i4")
    in_range = np.abs(days.astype(np.int64)) <= (1 << 63) // per_day - 1
    converted = np.where(in_range, days.astype(np.int64), 0) * per_day
    return np.where(are_moments, moments, converted), are_moments | (are_days & in_range)


def _floats(ranges: _Ranges) -> tuple[npt.NDArray[Any], Bools]:
    values, fits = ranges.gather("<f4")
    return values.astype(np.float64), fits & ~np.isnan(values)


def _promoted_doubles(ranges: _Ranges) -> tuple[npt.NDArray[Any], Bools]:
    doubles, are_doubles = ranges.gather("<f8")
    floats, are_floats = _floats(ranges)
    return np.where(are_doubles, doubles, floats), (are_doubles & ~np.isnan(doubles)) | are_floats


def _booleans(ranges: _Ranges) -> tuple[npt.NDArray[Any], Bools]:
    values, fits = ranges.gather("u1")
    return (values != 0).astype(np.int64), fits


def _decode_decimals(ranges: _Ranges, kind: DecimalType) -> OrderedColumn:
    """Decode big-endian two's complement of up to 16 bytes, as two little-endian halves."""
    lengths = ranges.lengths
    known = (lengths > 0) & (lengths <= _WIDE_BYTES) & ~ranges.is_null
    lengths, starts = np.where(known, lengths, 1), np.where(known, ranges.starts, 0)
    sign = np.where(ranges.bytes[starts] & 0x80, np.uint8(0xFF), np.uint8(0))
    wide = np.empty((len(starts), _WIDE_BYTES), np.uint8)
    for place in range(_WIDE_BYTES):
        inside = place < lengths
        wide[:, place] = np.where(inside, ranges.bytes[starts + np.where(inside, lengths - 1 - place, 0)], sign)
    halves = wide.view("<u8")
    return OrderedColumn(Wide(kind.scale), (halves[:, 1].view(np.int64), halves[:, 0]), known)


def _loosen_uuids(column: OrderedColumn, filler: int) -> OrderedColumn:
    """Trust only the first half of a UUID bound.

    Iceberg Java orders UUIDs by two signed halves. Where the first halves differ in sign its bounds come out crossed
    and are dropped; where they are equal, the order of the second halves is unknown.
    """
    binary = column.values
    ranges = _Ranges(binary)
    starts = np.where(column.known, ranges.starts, 0)
    padded = np.concatenate([ranges.bytes, np.zeros(_WIDE_BYTES, np.uint8)])
    table = np.full((len(starts), _WIDE_BYTES), filler, np.uint8)
    for place in range(_WIDE_BYTES // 2):
        table[:, place] = padded[starts + place]
    size = pa.binary(_WIDE_BYTES)
    loose = pa.FixedSizeBinaryArray.from_buffers(size, len(table), [None, pa.py_buffer(table.tobytes())])
    return replace(column, values=loose.cast(pa.binary()))


_DECODE: dict[type[PrimitiveType], Callable[[_Ranges], tuple[npt.NDArray[Any], Bools]]] = {
    BooleanType: _booleans,
    IntegerType: _ints,
    DateType: _ints,
    LongType: _promoted_longs,
    TimeType: _longs,
    TimestamptzType: _longs,
    TimestamptzNsType: _longs,
    FloatType: _floats,
    DoubleType: _promoted_doubles,
}
