"""One plain form per value, whatever reader it comes from, so that rows compare with ==.

`normal_rows(table, like)` takes what a reader gave as Arrow and the Arrow schema that the table was made from. The
schema decides what a column means: uuids may come as text or as bytes, decimals with more places, strings in larger
types. Dates and times become integers, which no calendar limits; floats become text, which tells -0.0 from 0.0 and
makes NaN equal to itself. Rows are sorted, because readers give them in any order.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]


def normal_rows(table: pa.Table, like: pa.Schema) -> list[Row]:
    """Return the rows with the columns of `like`, normalised and sorted."""
    columns = [normal_values(_one_array(table.column(field.name)), field.type) for field in like]
    return sorted_rows(zip(*columns, strict=True))


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """Sort rows of any values; nulls sort too."""
    return sorted(rows, key=repr)


def normal_values(array: pa.Array, like: pa.DataType) -> list[Any]:
    """Normalise one column."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_struct(like):
        return _structs(array, like)
    if pa.types.is_map(like):
        keys, items = normal_values(array.keys, like.key_type), normal_values(array.items, like.item_type)
        return _grouped(array, list(zip(keys, items, strict=True)), lambda pairs: tuple(sorted(pairs, key=repr)))
    if pa.types.is_list(like):
        return _grouped(array, normal_values(array.values, like.value_type), tuple)
    return _leaves(array, like)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def _structs(array: pa.Array, like: pa.StructType) -> list[Any]:
    fields = [like.field(i) for i in range(like.num_fields)]
    inner = [normal_values(array.field(f.name), f.type) for f in fields]
    rows = zip(*inner, strict=True)
    return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]


def _grouped(array: pa.Array, items: Sequence[Any], group: Callable[[Sequence[Any]], Any]) -> list[Any]:
    """Cut the items of lists or maps apart again."""
    offsets = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [group(items[offsets[i] : offsets[i + 1]]) if valid[i] else None for i in range(len(array))]


def _leaves(array: pa.Array, like: pa.DataType) -> list[Any]:
    if like == pa.uuid():
        return [None if v is None else _uuid(v) for v in array.to_pylist()]
    if pa.types.is_timestamp(like):
        # Spark shows nanoseconds as plain integers.
        zoned = pa.types.is_timestamp(array.type) and array.type.tz is not None
        assert pa.types.is_integer(array.type) or zoned == (like.tz is not None), f"{array.type} is not {like}"
        return _integers(array.cast(like), pa.int64())
    if pa.types.is_time64(like):
        return _integers(array.cast(like), pa.int64())
    if pa.types.is_date(like):
        return _integers(array.cast(like), pa.int32())
    if pa.types.is_floating(like):
        return [None if v is None else repr(v) for v in array.to_pylist()]
    if pa.types.is_decimal(like):
        return [None if v is None else Decimal(v) for v in array.to_pylist()]
    return array.to_pylist()  # type: ignore[no-any-return]


def _integers(array: pa.Array, kind: pa.DataType) -> list[Any]:
    return array.cast(kind).to_pylist()  # type: ignore[no-any-return]


def _uuid(value: object) -> uuid.UUID:
    match value:
        case uuid.UUID():
            return value
        case bytes():
            return uuid.UUID(bytes=value)
        case _:
            return uuid.UUID(str(value))
