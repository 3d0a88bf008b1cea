"""Convert decoded Avro values to Arrow arrays, and map Avro types to Arrow types. (spec: Appendix A, Avro)

Raises ValueError for a column that cannot be converted to the requested type; the caller adds the file's location.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.codec.avro.decode import Decoded, decode_elements
from icefield.codec.avro.program import Column
from icefield.codec.avro.schema import Value
from icefield.types.arrays import Longs, Mask

DECIMAL_BYTES = 16
_MAX_PRECISION = 38
_PLAIN_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_TIMESTAMP_UNITS = {"timestamp-millis": "ms", "timestamp-micros": "us", "timestamp-nanos": "ns"}


@lru_cache(maxsize=256)
def arrow_type(value: Value) -> pa.DataType:
    """Return the Arrow type of an Avro type with its logical type; unknown logical types are ignored."""
    match value.kind, value.logical:
        case "int", "date":
            return pa.date32()
        case "long", "time-micros":
            return pa.time64("us")
        case "long", logical if logical.removeprefix("local-") in _TIMESTAMP_UNITS:
            unit = _TIMESTAMP_UNITS[logical.removeprefix("local-")]
            return pa.timestamp(unit, "UTC" if value.adjust_to_utc else None)
        case "fixed" | "bytes", "decimal":
            if not 1 <= value.precision <= _MAX_PRECISION or value.scale > value.precision:
                raise ValueError(f"the schema holds a decimal({value.precision}, {value.scale})")
            return pa.decimal128(value.precision, value.scale)
        case "fixed", _:
            return pa.binary(value.size)
        case kind, _:
            return _PLAIN_TYPES[kind]


def value_array(decoded: Decoded, column: Column, kind: pa.DataType) -> pa.Array:
    """Build a column of single values of an Arrow type."""
    held = column.node.kind if isinstance(column.node, Value) else "parts"
    build = _builder(held, kind)
    if build is None:
        raise ValueError(f"the field {column.name!r} holds {held}, expected {kind}")
    return build(decoded, column, kind)


def list_array(decoded: Decoded, column: Column, kind: pa.DataType) -> pa.Array:
    """Build a column of lists of single values."""
    elements, lengths = _elements(decoded, column, 1)
    (element,) = _columns(column)
    values = value_array(elements, element, kind.value_type)
    return _nested(decoded, column, kind, lengths, values)


def map_array(decoded: Decoded, column: Column, kind: pa.DataType) -> pa.Array:
    """Build a column of maps from an array of pairs: the first field is the key, the second the value."""
    elements, lengths = _elements(decoded, column, 2)
    key, value = _columns(column)
    keys, values = value_array(elements, key, kind.key_type), value_array(elements, value, kind.item_type)
    if keys.null_count:
        raise ValueError(f"the map {column.name!r} holds a null key")
    pairs = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
    return _nested(decoded, column, kind, lengths, pairs)


def records_array(decoded: Decoded, column: Column, kind: pa.DataType, ids: dict[str, int]) -> pa.Array:
    """Build a column of lists of records. Fields are matched by id; fields missing from the file are null."""
    if column.elements is None:
        raise ValueError(f"the field {column.name!r} is not an array")
    elements, lengths = decode_elements(decoded, column)
    by_id = {each.path[1]: each for each in column.elements.columns}
    fields = [kind.value_type.field(i) for i in range(kind.value_type.num_fields)]
    arrays = [
        value_array(elements, by_id[ids[f.name]], f.type) if ids[f.name] in by_id else pa.nulls(elements.count, f.type)
        for f in fields
    ]
    return _nested(decoded, column, kind, lengths, pa.StructArray.from_arrays(arrays, fields=fields))


def _columns(column: Column) -> tuple[Column, ...]:
    return () if column.elements is None else column.elements.columns


def _elements(decoded: Decoded, column: Column, parts: int) -> tuple[Decoded, Longs]:
    if len(_columns(column)) != parts:
        raise ValueError(f"the field {column.name!r} is not {'a list' if parts == 1 else 'a map'} of single values")
    return decode_elements(decoded, column)


def _nested(decoded: Decoded, column: Column, kind: pa.DataType, lengths: Longs, values: pa.Array) -> pa.Array:
    _, _, present = decoded.spans(column)
    offsets = np.zeros(decoded.count + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [_validity(present), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, decoded.count, buffers, children=[values])


def _integers(decoded: Decoded, column: Column, kind: pa.DataType) -> pa.Array:
    values, present = decoded.longs(column)
    buffer: Any = values
    if kind.bit_width == 32:
        buffer = values.astype(np.int32)
        if not np.array_equal(buffer, values):
            raise ValueError(f"the field {column.name!r} holds an integer of more than 32 bits")
    array = pa.Array.from_buffers(kind, decoded.count, [_validity(present), pa.py_buffer(buffer)])
    return _checked(array, column, "a time beyond the day") if pa.types.is_time(kind) else array


def _booleans(decoded: Decoded, column: Column, kind: pa.DataType) -> pa.Array:
    values, present = decoded.longs(column)
    return pa.Array.from_buffers(kind, decoded.count, [_validity(present), _bits(values != 0)])


def _floats(decoded: Decoded, column: Column, kind: pa.DataType) -> pa.Array:
    begins, _, present = decoded.spans(column)
    width, code = kind.bit_width // 8, "<f4" if kind.bit_width == 32 else "<f8"
    data = decoded.raw.data
    everywhere: Any = np.ndarray((len(data) - width + 1,), code, data, 0, (1,))
    values = np.where(present, everywhere[begins], 0).astype(code)
    return pa.Array.from_buffers(kind, decoded.count, [_validity(present), pa.py_buffer(values)])


def _bytes(decoded: Decoded, column: Column, kind: pa.DataType) -> pa.Array:
    """Let Arrow copy the spans: build an array of the spans and the gaps between them, then take only the spans."""
    begins, ends, present = decoded.spans(column)
    if not present.all():
        # A missing span becomes an empty one at the end of its predecessor, so that the offsets stay ascending.
        ends = np.maximum.accumulate(ends)
        begins = np.where(present, begins, ends)
    offsets = np.zeros(2 * decoded.count + 1, np.int32)
    offsets[0:-1:2], offsets[1::2], offsets[-1] = begins, ends, ends.max(initial=0)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(decoded.raw.data)]
    spans = pa.Array.from_buffers(kind, 2 * decoded.count, buffers)
    chosen = pa.py_buffer(np.arange(0, 2 * decoded.count, 2, dtype=np.int32))
    array = spans.take(pa.Array.from_buffers(pa.int32(), decoded.count, [_validity(present), chosen]))
    return _checked(array, column, "text that is not UTF-8") if pa.types.is_string(kind) else array


def _fixed(decoded: Decoded, column: Column, kind: pa.DataType) -> pa.Array:
    try:
        return _bytes(decoded, column, pa.binary()).cast(kind)
    except pa.ArrowInvalid as error:
        raise ValueError(f"the field {column.name!r} is not of {kind.byte_width} bytes") from error


def _decimals(decoded: Decoded, column: Column, kind: pa.DataType) -> pa.Array:
    """Convert decimals: Avro has big-endian two's complement of any length, Arrow 16 bytes of little-endian."""
    begins, ends, present = decoded.spans(column)
    lengths = ends - begins
    if (lengths > DECIMAL_BYTES).any() or (lengths[present] == 0).any():
        raise ValueError(f"the field {column.name!r} holds a decimal with no bytes or too many")
    data = np.frombuffer(decoded.raw.data, np.uint8)
    sign = np.where(present & (data[begins] >= 0x80), 0xFF, 0).astype(np.uint8)
    out = np.empty((decoded.count, DECIMAL_BYTES), np.uint8)
    for index in range(DECIMAL_BYTES):
        inside = index < lengths
        out[:, index] = np.where(inside, data[np.where(inside, ends - 1 - index, 0)], sign)
    array = pa.Array.from_buffers(kind, decoded.count, [_validity(present), pa.py_buffer(out)])
    return _checked(array, column, "a decimal with too many digits")


def _checked(array: pa.Array, column: Column, what: str) -> pa.Array:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"the field {column.name!r} holds {what}") from error
    return array


def _validity(present: Mask) -> Any:
    return None if present.all() else _bits(present)


def _bits(mask: Mask) -> Any:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


_Builder = Callable[[Decoded, Column, pa.DataType], pa.Array]


@lru_cache(maxsize=256)
def _builder(held: str, kind: pa.DataType) -> _Builder | None:
    """Return the function that builds an Arrow type from an Avro type, or None if there is none."""
    for words, fits, build in _BUILDERS:
        if held in words and fits(kind):
            return build
    return None


def _is_integer(kind: pa.DataType) -> bool:
    types = pa.types
    fits = (types.is_int32, types.is_int64, types.is_date32, types.is_time64, types.is_timestamp)
    return any(each(kind) for each in fits)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_string(kind))


_BUILDERS: tuple[tuple[tuple[str, ...], Callable[[pa.DataType], bool], _Builder], ...] = (
    (("int", "long"), _is_integer, _integers),
    (("boolean",), pa.types.is_boolean, _booleans),
    (("float",), pa.types.is_float32, _floats),
    (("double",), pa.types.is_float64, _floats),
    (("bytes", "string", "fixed"), _is_bytes, _bytes),
    (("fixed",), pa.types.is_fixed_size_binary, _fixed),
    (("bytes", "fixed"), pa.types.is_decimal128, _decimals),
)
