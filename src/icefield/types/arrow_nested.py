"""Replace the children of nested Arrow arrays, with the offsets and nulls of the old array."""

from collections.abc import Sequence

import pyarrow as pa

from icefield.types.arrow import arrow_field, arrow_type
from icefield.types.datatypes import ListType, MapType, NestedField


def without_unused(array: pa.Array) -> pa.Array:
    """Return a list or map array whose children have only its own values.

    A slice shares the children of the whole array, including values of rows outside the slice.
    """
    # An empty array may lack the first offset.
    return array if len(array) > 0 and _holds_only_its_own(array) else pa.concat_arrays([array])


def struct_around(array: pa.StructArray, fields: Sequence[NestedField], columns: Sequence[pa.Array]) -> pa.StructArray:
    """Return a struct array of these columns that is null where `array` is."""
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(columns, fields=[arrow_field(f) for f in fields], mask=mask)


def list_around(array: pa.ListArray, kind: ListType, values: pa.Array) -> pa.ListArray:
    """Return a list array over these values (of the whole child array) with the offsets of `array`."""
    return pa.ListArray.from_buffers(
        arrow_type(kind), len(array), array.buffers()[:2], array.null_count, array.offset, [values]
    )


def map_around(array: pa.MapArray, kind: MapType, keys: pa.Array, items: pa.Array) -> pa.MapArray:
    """Return a map array over these keys and items (of the whole child arrays) with the offsets of `array`."""
    target = arrow_type(kind)
    entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    return pa.MapArray.from_buffers(target, len(array), array.buffers()[:2], array.null_count, array.offset, [entries])


def _holds_only_its_own(array: pa.Array) -> bool:
    offsets = array.offsets
    return array.offset == 0 and offsets[0].as_py() == 0 and bool(offsets[-1].as_py() == len(array.values))
