"""Values of any type as binary keys: two values are equal if their keys are, in any order of the entries of maps.

    {"a": [1, null], "b": {"x": 2}}   ->   lengths and bytes of the parts, one after another

Keys of columns with primitive values are those of `arrow_keys`.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.types.arrow_keys import encode_keys

_NOTHING = pa.scalar(None, pa.binary())


def encode_rows(columns: Sequence[pa.Array], rows: int) -> pa.Array:
    """Return the values of each row, which may be nested, as one binary key."""
    return encode_keys([_flat(column) for column in columns], rows)


def _flat(column: pa.Array) -> pa.Array:
    """Return a column of primitive values as it is, any other as binary keys; nulls stay nulls."""
    if isinstance(column, pa.ExtensionArray):
        return _flat(column.storage)
    kind, types = column.type, pa.types
    if types.is_struct(kind):
        keys = encode_rows(column.flatten(), len(column))
    elif types.is_map(kind):
        keys = _of_map(column)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        values = column.flatten()  # without those of null lists
        keys = _joined(encode_rows([values], len(values)), _lengths(column))
    else:
        return column
    return pc.if_else(column.is_valid(), keys, _NOTHING)


def _of_map(column: pa.MapArray) -> pa.Array:
    """Return the keys of maps: entries in the order of their own keys."""
    lengths = _lengths(column)
    entries = _entries(column)
    keys = encode_rows(entries.flatten(), len(entries))
    rows = np.repeat(np.arange(len(lengths)), lengths)
    order = pc.sort_indices(
        pa.table({"row": rows, "key": keys}), sort_keys=[("row", "ascending"), ("key", "ascending")]
    )
    return _joined(keys.take(order), lengths)


def _entries(column: pa.MapArray) -> pa.StructArray:
    """Return the entries of the maps that are not null, as structs."""
    kind = column.type
    pairs = pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)])
    return column.cast(pa.list_(pairs)).flatten()


def _lengths(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return how many values each list or map has; 0 for a null."""
    lengths: np.ndarray[tuple[int], np.dtype[np.int64]] = (
        pc.fill_null(_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return lengths


def _length(column: pa.Array) -> pa.Array:
    if not pa.types.is_map(column.type):
        return pc.list_value_length(column)
    kind = column.type
    pairs = pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)])
    return pc.list_value_length(column.cast(pa.list_(pairs)))


def _joined(parts: pa.Array, lengths: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    """Put keys together: so many for each value. Each has its length in front, so that the whole is not ambiguous."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), parts), b"")
