"""Check that strings in incoming rows are UTF-8. (spec: Primitive Types: strings are UTF-8)

Arrow does not validate strings from other libraries, and most readers cannot read a file with invalid ones. Rows that
are only moved from one data file to another are not checked, so that a table with such strings can still be changed.
Raises SchemaMismatch, which names the column.
"""

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa

from icefield.errors import SchemaMismatch
from icefield.types.arrow_nested import without_unused


def check_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch; refuse it if a string in it, at any depth, is not UTF-8."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if _holds_text(column.type):
            _check(column, name)
    return batch


@lru_cache(1024)
def _holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _holds_text(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _holds_text(kind.storage_type)
    return _is_text(kind) or any(_holds_text(kind.field(at).type) for at in range(kind.num_fields))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _check(array: pa.Array, path: str) -> None:
    if _is_text(array.type):
        try:
            # Arrow validates when it casts from binary, which takes half the time of validate(full=True).
            array.cast(pa.large_binary() if pa.types.is_large_string(array.type) else pa.binary()).cast(
                pa.large_string()
            )
        except pa.ArrowInvalid as error:
            raise SchemaMismatch(
                f"column {path!r} holds text that is not UTF-8",
                hint="Decode it with its actual encoding, or store it in a binary column",
            ) from error
        return
    for inner, name in _inside(array):
        if _holds_text(inner.type):
            _check(inner, f"{path}.{name}" if name else path)


def _inside(array: pa.Array) -> Iterator[tuple[pa.Array, str]]:
    """Yield the arrays nested in an array, without values under nulls or outside slices, and their names in paths."""
    if isinstance(array.type, pa.BaseExtensionType):
        yield array.storage, ""
    elif pa.types.is_dictionary(array.type):
        yield array.dictionary, ""
    elif pa.types.is_struct(array.type):
        yield from zip(array.flatten(), (f.name for f in array.type), strict=True)
    elif pa.types.is_map(array.type):
        array = without_unused(array)
        yield array.keys, "key"
        yield array.items, "value"
    else:
        yield array.flatten(), "element"
