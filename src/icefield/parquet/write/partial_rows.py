"""Rows with only some of a table's columns, which take the rest from the rows that they replace.

    table (id, s struct<x, y>, c)      row to upsert (id=1, s={x: 5})
    old row (1, {x: 1, y: 2}, 'c')  -> (1, {x: 5, y: 2}, 'c')
    no such row                     -> (1, {x: 5, y: default}, default)

A field that is missing from a struct keeps the value of the old struct; if the old struct is null, the field gets its
default. Lists and maps are replaced as a whole, because their elements cannot be matched with the old ones.
Raises SchemaMismatch for a new row without a value in a required column.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.errors import SchemaMismatch
from icefield.parquet.write.conform import check_nulls, conform_column, struct_of
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import NestedField, StructType, Type
from icefield.types.schema import Schema

RowNumbers = npt.NDArray[np.int64]
NO_ROW = -1  # for a row that replaces none


def find_unnamed(incoming: Schema, schema: Schema) -> list[NestedField]:
    """Return the columns of a table that are missing from rows, or lack some fields of their structs."""
    given = {f.name: f.type for f in incoming.fields}
    return [f for f in schema.fields if not _is_whole(given.get(f.name), f.type)]


def conform_partial(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Return the batch with all columns of the table; `keep_unnamed` checks nulls in required ones."""
    given = {name: at for at, name in enumerate(batch.schema.names)}
    arrays = [conform_column(batch.column(given[f.name]) if f.name in given else None, f, batch) for f in schema.fields]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))


def keep_unnamed(rows: pa.Table, incoming: Schema, schema: Schema, old: pa.Table, replaced: RowNumbers) -> pa.Table:
    """Return the rows with the missing values taken from old rows.

    rows: the result of `conform_partial`. old: the columns of `find_unnamed`. replaced: the old row that each row
    replaces.
    """
    given = {f.name: f.type for f in incoming.fields}
    kept = dict(zip(old.column_names, old.columns, strict=True))
    columns: list[pa.Array] = []
    for chunked, field in zip(rows.columns, schema.fields, strict=True):
        column = _whole(chunked)
        if field.name in kept:
            _check_inserted(field, given.get(field.name), replaced)
            if old.num_rows:
                column = _keep(column, _whole(kept[field.name]), replaced, given.get(field.name), field)
        check_nulls(column, field)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _is_whole(given: Type | None, wanted: Type) -> bool:
    if not isinstance(given, StructType) or not isinstance(wanted, StructType):
        return given is not None
    named = {f.name: f.type for f in given.fields}
    return all(_is_whole(named.get(f.name), f.type) for f in wanted.fields)


def _keep(new: pa.Array, old: pa.Array, replaced: RowNumbers, given: Type | None, field: NestedField) -> pa.Array:
    """Return a column with the old values where it is missing from the rows."""
    if _is_whole(given, field.type):
        return new
    if given is None:
        both = pa.concat_arrays([old, new])
        return both.take(pa.array(np.where(replaced == NO_ROW, len(old) + np.arange(len(new)), replaced)))
    assert isinstance(given, StructType)
    assert isinstance(field.type, StructType)
    named = {f.name: f.type for f in given.fields}
    has_old = np.append(old.is_valid().to_numpy(zero_copy_only=False), False)
    inside = np.where(has_old[replaced], replaced, NO_ROW)
    pairs = zip(new.flatten(), old.flatten(), field.type.fields, strict=True)
    columns = [_keep(a, b, inside, named.get(f.name), f) for a, b, f in pairs]
    return struct_of(new, field.type.fields, columns)


def _check_inserted(field: NestedField, given: Type | None, replaced: RowNumbers) -> None:
    inserted = int((replaced == NO_ROW).sum())
    if given is None and field.required and field.write_default is None and inserted:
        raise SchemaMismatch(
            f"{inserted} of the rows to upsert {'is' if inserted == 1 else 'are'} new, but the rows do not name the "
            f"required column {field.name!r}, which has no default",
            hint="Include all required columns; only existing rows keep their values",
        )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
