"""Encode Arrow arrays as Avro rows: the inverse of `avro.decode` and `avro.arrow`.

Arrays and maps are encoded first, on their own; then each row copies its part. A few rows are encoded value by value
in Python: a program with its slots takes a millisecond to build for a manifest, whatever the number of rows. Raises
InvalidInput for values that the schema does not allow: a null in a required field, or a different type.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.avro import engine as avro_engine
from icefield.codec.avro.arrow import DECIMAL_BYTES, arrow_type
from icefield.codec.avro.container import encode_long
from icefield.codec.avro.kernel import BOOL, BYTES, FIXED, VARINT, WIDTH, Slots, Source
from icefield.codec.avro.program import Path
from icefield.codec.avro.schema import ROOT_ID, Array, Field, Record, Value
from icefield.errors import InvalidInput
from icefield.types.arrays import Longs

_MAX_VARINT_BYTES = 10
# Up to here, values are encoded one by one; a program is faster from about 10 rows, and from about 100 elements.
_FEW_ROWS, _FEW_ELEMENTS = 4, 64
_NO_KEYS = np.zeros(0, np.int64)

Columns = Mapping[Path, pa.Array]


def encode_rows(schema: Record, columns: Columns, rows: int) -> tuple[bytes, Longs]:
    """Encode rows one after the other: (bytes, end of each row). A composite field with a column is copied from it."""
    if rows <= _FEW_ROWS:
        parts = _joined(_field_values(each, column, rows) for each, column in _leaves(schema, ROOT_ID, columns))
        return b"".join(parts), np.cumsum([len(part) for part in parts], dtype=np.int64)
    store = _Store(rows)
    for each, column in _leaves(schema, ROOT_ID, columns):
        store.add(each, column)
    return avro_engine.current_engine().encode(store.source(), store.slots(), store.capacity, rows)


@dataclass
class _Store:
    """A program built field by field, with the slots that it reads and the byte pool that spans point into."""

    rows: int
    code: list[int] = field(default_factory=list)
    longs: list[Any] = field(default_factory=list)
    valid: list[Any] = field(default_factory=list)
    begins: list[Any] = field(default_factory=list)
    ends: list[Any] = field(default_factory=list)
    # Position 0 means "null".
    pool: list[Any] = field(default_factory=lambda: [b"\0"])
    pool_size: int = 1
    capacity: int = 1

    def add(self, each: Field, column: pa.Array | None) -> None:
        """Add one field with its column; without a column it is null."""
        nulls = _count_nulls(each, column, self.rows)
        if column is None or nulls == self.rows > 0:
            self._add_nulls(each)
        elif isinstance(each.node, Array):
            self._add_arrays(each, each.node, column)
        elif isinstance(each.node, Value):
            self._add_values(each, each.node, _cast(column, arrow_type(each.node), each))
        else:
            self._add_bytes(each, _cast(column, pa.binary(), each), FIXED)

    def source(self) -> Source:
        return Source(b"".join(self.pool), np.array(self.code, np.int64), _NO_KEYS)

    def slots(self) -> Slots:
        return Slots(
            self._stacked(self.longs, np.int64),
            self._stacked(self.valid, np.uint8),
            self._stacked(self.begins, np.int32),
            self._stacked(self.ends, np.int32),
        )

    def _stacked(self, slots: list[Any], kind: type[np.generic]) -> Any:
        # np.stack takes four times as long for a few rows.
        shape = (len(slots), self.rows)
        return np.concatenate(slots).reshape(shape) if slots else np.zeros(shape, kind)

    def _add_values(self, each: Field, value: Value, column: pa.Array) -> None:
        if value.kind in ("bytes", "string") and value.logical != "decimal":
            self._add_bytes(each, column, BYTES)
        elif value.logical == "decimal":
            self._add_decimals(each, value, column)
        elif value.kind in ("fixed", "float", "double"):
            width = column.type.bit_width // 8
            self._add_fixed(each, column, _fixed_bytes(column, width), width)
        else:
            self._add_longs(each, column)

    def _add_nulls(self, each: Field) -> None:
        """Add a field that is null in every row, whatever its type."""
        self.longs.append(np.zeros(self.rows, np.int64))
        self.valid.append(np.zeros(self.rows, np.uint8))
        self._emit(VARINT, each, len(self.longs) - 1)

    def _add_longs(self, each: Field, column: pa.Array) -> None:
        is_bool = pa.types.is_boolean(column.type)
        if is_bool:
            column = column.cast(pa.int32())
        width = column.type.bit_width // 8
        # The values of null slots do not matter: they are not written.
        values = np.frombuffer(_fixed_bytes(column, width), f"<i{width}")
        self.longs.append(values.astype(np.int64, copy=False))
        self.valid.append(_present(column).astype(np.uint8))
        self._emit(BOOL if is_bool else VARINT, each, len(self.longs) - 1)

    def _add_bytes(self, each: Field, column: pa.Array, op: int) -> None:
        _, offset_buffer, data = column.buffers()
        offsets = np.zeros(1, np.int32)
        if offset_buffer is not None and len(column):
            offsets = np.frombuffer(offset_buffer, np.int32)[column.offset : column.offset + len(column) + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        base = self._add_pool(memoryview(data)[first:last] if data is not None else b"") - first
        self._add_spans(each, offsets[:-1] + base, offsets[1:] + base, _present(column), op)

    def _add_fixed(self, each: Field, column: pa.Array, data: Any, width: int) -> None:
        begins = self._add_pool(data) + width * np.arange(len(column), dtype=np.int64)
        self._add_spans(each, begins, begins + width, _present(column), FIXED)

    def _add_decimals(self, each: Field, value: Value, column: pa.Array) -> None:
        """Convert decimals from 16 bytes of little-endian two's complement to big-endian of the schema's size."""
        size = value.size or DECIMAL_BYTES
        little = np.frombuffer(_fixed_bytes(column, DECIMAL_BYTES), np.uint8).reshape(-1, DECIMAL_BYTES)
        big = np.zeros((len(column), size), np.uint8)
        big[:, max(0, size - DECIMAL_BYTES) :] = little[:, min(size, DECIMAL_BYTES) - 1 :: -1]
        if size > DECIMAL_BYTES:
            big[:, : size - DECIMAL_BYTES] = np.where(little[:, -1:] >= 0x80, 0xFF, 0)
        begins = self._add_pool(big.tobytes()) + size * np.arange(len(column), dtype=np.int64)
        self._add_spans(each, begins, begins + size, _present(column), FIXED if value.kind == "fixed" else BYTES)

    def _add_arrays(self, each: Field, node: Array, column: pa.Array) -> None:
        data, ends = _encode_arrays(node.items, *_listed(column))
        base = self._add_pool(data)
        begins = np.concatenate((np.zeros(1, np.int64), ends[:-1])) if len(ends) else ends
        self._add_spans(each, begins + base, ends + base, _present(column), FIXED)

    def _add_spans(self, each: Field, begins: Any, ends: Any, present: Any, op: int) -> None:
        self.begins.append(np.where(present, begins, 0).astype(np.int32))
        self.ends.append(np.where(present, ends, 0).astype(np.int32))
        self._emit(op, each, len(self.begins) - 1)

    def _add_pool(self, data: Any) -> int:
        begin = self.pool_size
        self.pool.append(data)
        self.pool_size += len(data)
        self.capacity += len(data)
        if self.pool_size > np.iinfo(np.int32).max:
            raise InvalidInput("cannot write more than 2 GiB of values to one file")
        return begin

    def _emit(self, op: int, each: Field, slot: int) -> None:
        self.code += (op, each.null_branch, slot, *(0,) * (WIDTH - 3))
        self.capacity += self.rows * (1 + _MAX_VARINT_BYTES)


def _encode_arrays(items: Field, lists: pa.Array, offsets: Longs) -> tuple[bytes, Longs]:
    rows = slice(int(offsets[0]), int(offsets[-1]))
    store = _Store(rows.stop - rows.start)
    for each, column in _parts(items, lists, rows):
        store.add(each, column)
    capacity = store.capacity + len(offsets) * (1 + _MAX_VARINT_BYTES)
    engine = avro_engine.current_engine()
    return engine.encode_arrays(store.source(), store.slots(), capacity, offsets - rows.start)


def _field_values(each: Field, column: pa.Array | None, rows: int) -> list[bytes]:
    """Encode each value of a field; without a column it is null."""
    nulls = _count_nulls(each, column, rows)
    null = encode_long(each.null_branch) if each.null_branch >= 0 else b""
    if column is None or nulls == rows:
        return [null] * rows
    if isinstance(each.node, Array):
        values = _array_values(each.node, column)
    elif isinstance(each.node, Value):
        values = _single_values(each.node, _cast(column, arrow_type(each.node), each))
    else:
        values = _cast(column, pa.binary(), each).to_pylist()
    if each.null_branch < 0:
        return values
    some = encode_long(1 - each.null_branch)
    if not nulls:
        return [some + value for value in values]
    present = column.is_valid().to_pylist()
    return [some + value if there else null for value, there in zip(values, present, strict=True)]


def _array_values(node: Array, column: pa.Array) -> list[bytes]:
    lists, offsets = _listed(column)
    bounds: list[int] = offsets.tolist()
    if bounds[-1] - bounds[0] > _FEW_ELEMENTS:
        data, ends = _encode_arrays(node.items, lists, offsets)
        return [data[begin:end] for begin, end in pairwise((0, *ends.tolist()))]
    rows = slice(bounds[0], bounds[-1])
    parts = _parts(node.items, lists, rows)
    elements = _joined(_field_values(each, part, rows.stop - rows.start) for each, part in parts)
    return [
        (encode_long(end - begin) if end > begin else b"")
        + b"".join(elements[begin - rows.start : end - rows.start])
        + b"\0"
        for begin, end in pairwise(bounds)
    ]


def _single_values(value: Value, column: pa.Array) -> list[bytes]:
    """Encode values of the Arrow type of a schema's type; what stands for a null does not matter."""
    if value.logical == "decimal":
        size = value.size or DECIMAL_BYTES
        numbers = [
            int.from_bytes(each or b"", "little", signed=True) for each in column.view(pa.binary(16)).to_pylist()
        ]
        plain = [number.to_bytes(size, "big", signed=True) for number in numbers]
        return plain if value.kind == "fixed" else [encode_long(size) + each for each in plain]
    if value.kind in ("bytes", "string"):
        return [encode_long(len(each)) + each for each in _or(b"", column.view(pa.binary()))]
    if value.kind == "fixed":
        return _or(b"", column)
    if value.kind == "boolean":
        return [b"\1" if each else b"\0" for each in column.to_pylist()]
    width = column.type.bit_width // 8
    integers = _or(0, column.view(pa.int32() if width == 4 else pa.int64()))
    if value.kind in ("float", "double"):
        return [each.to_bytes(width, "little", signed=True) for each in integers]
    return [encode_long(each) for each in integers]


def _or(otherwise: Any, column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return [otherwise if each is None else each for each in values] if column.null_count else values


def _joined(fields: Iterable[list[bytes]]) -> list[bytes]:
    """Join the encoded fields of each row."""
    return [b"".join(row) for row in zip(*fields, strict=True)]


def _leaves(record: Record, record_id: int, columns: Columns) -> Iterator[tuple[Field, pa.Array | None]]:
    """Yield the fields of a record with their columns; records without a column are replaced by their fields."""
    for each in record.fields:
        path = (record_id, -1 if each.field_id is None else each.field_id)
        if not isinstance(each.node, Record) or path in columns:
            yield each, columns.get(path)
        elif each.null_branch >= 0:
            raise InvalidInput(f"cannot write the field {each.name!r}: a record that may be null")
        else:
            yield from _leaves(each.node, path[1], columns)


def _listed(column: pa.Array) -> tuple[pa.Array, Longs]:
    """Return lists without elements of null lists, and their offsets."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    if column.null_count and np.diff(offsets)[~_present(column)].any():
        # A null list may still have elements in its buffer; `take` copies the lists without them.
        column = column.take(pa.array(np.arange(len(column))))
        offsets = column.offsets.to_numpy().astype(np.int64)
    return column, offsets


def _parts(items: Field, lists: pa.Array, rows: slice) -> Iterator[tuple[Field, pa.Array]]:
    """Yield what the elements of lists consist of, with the column of each part."""
    if isinstance(items.node, Record) and pa.types.is_map(lists.type):
        key, value = items.node.fields
        yield key, lists.keys[rows]
        yield value, lists.items[rows]
    elif isinstance(items.node, Record):
        elements = lists.values[rows]
        for each in items.node.fields:
            yield each, pc.struct_field(elements, each.name)
    else:
        yield items, lists.values[rows]


def _count_nulls(each: Field, column: pa.Array | None, rows: int) -> int:
    """Count the nulls of a field; refuse them if it is required."""
    nulls = rows if column is None else int(column.null_count)
    if nulls and each.null_branch < 0:
        raise InvalidInput(f"cannot write the required field {each.name!r}: it is null in a row")
    return nulls


def _cast(column: pa.Array, kind: pa.DataType, each: Field) -> pa.Array:
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(f"cannot write the field {each.name!r} as {kind}: {error}") from error


def _present(column: pa.Array) -> Any:
    if column.null_count == 0:
        return np.ones(len(column), np.bool_)
    return column.is_valid().to_numpy(zero_copy_only=False)


def _fixed_bytes(column: pa.Array, width: int) -> Any:
    data = column.buffers()[1]
    if data is None:
        return b"\0" * (len(column) * width)
    return memoryview(data)[column.offset * width : (column.offset + len(column)) * width]
