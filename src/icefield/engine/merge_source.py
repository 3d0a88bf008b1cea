"""Arrow data as the source of a MERGE: its rows, held once, and what its keys tell about the rows that they can match.

A filter for files is made of the keys: few keys by their values, many by their range. Source rows with a null in a key
match no row, and do not count.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.commit.validate.read_set import KeyRows
from icefield.engine.change import KeyPair, Merge, MergeSource, SourceKeys
from icefield.engine.key_join import has_no_null
from icefield.engine.keys import MAX_LISTED_KEYS, duplicate_key, null_in_key
from icefield.engine.rows import arrow_batches
from icefield.expr.bind.bound import FALSE, TRUE, Bound, Compare, IsNaN, Reference, all_of, any_of, one_of
from icefield.expr.parse.ast import Operator
from icefield.parquet.write.conform import conform_column
from icefield.parquet.write.string_check import check_text
from icefield.types.arrow import physical_array, python_values, schema_from_arrow
from icefield.types.arrow_keys import KeyIndex
from icefield.types.datatypes import DoubleType, FloatType, PrimitiveType
from icefield.types.schema import Schema

MAX_OFFSET = (1 << 31) - 1
LARGE_TYPES = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def open_arrow_source(rows: object) -> MergeSource:
    """Read Arrow data into memory. Raises SchemaMismatch for text that is not UTF-8."""
    columns, batches = arrow_batches(rows)
    incoming = schema_from_arrow(columns)
    held = [_plain(check_text(batch), incoming) for batch in batches]
    if held:
        return MergeSource(pa.Table.from_batches(held), incoming)
    return MergeSource(pa.Table.from_batches([], columns), incoming)


def arrow_source_keys(source: MergeSource, merge: Merge, schema: Schema) -> SourceKeys:
    """Find what the keys of the source rows tell. schema: of the table."""
    rows: pa.Table = source.rows
    if not merge.keys:
        return SourceKeys(TRUE, None, rows.num_rows)
    keys = key_columns(rows, merge.keys, schema)
    has_key = pa.array(has_no_null(keys, rows.num_rows))
    kept = [column.filter(has_key) for column in keys]
    names = [pair.target for pair in merge.keys]
    index = KeyIndex(kept, len(kept[0]))
    if merge.has_unique_keys:
        _check_unique(dict(zip(names, keys, strict=True)), index)
    where = all_of(*(_column_filter(name, column, schema) for name, column in zip(names, kept, strict=True)))
    if any(pa.types.is_floating(column.type) for column in kept):
        # An index distinguishes -0.0 from 0.0, which `=` does not.
        return SourceKeys(where, None, rows.num_rows, rows)
    return SourceKeys(where, KeyRows(names, index), rows.num_rows, rows)


def _check_unique(keys: Mapping[str, pa.Array], index: KeyIndex) -> None:
    """Refuse nulls in keys, and two rows with one key."""
    for name, column in keys.items():
        if column.null_count:
            raise null_in_key(name)
    counts = np.bincount(index.codes)
    if len(counts) < len(index.codes):
        at = int(np.argmax(index.codes == np.argmax(counts)))
        raise duplicate_key({name: column[at].as_py() for name, column in keys.items()})


def key_columns(rows: pa.Table, keys: Sequence[KeyPair], schema: Schema) -> list[pa.Array]:
    """Return the keys of source rows as columns of the table."""
    fields = {f.name: f for f in schema.fields}
    found = []
    for pair in keys:
        whole = whole_column(rows.column(pair.source))
        found.append(conform_column(whole, fields[pair.target], whole))
    return found


def whole_column(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; strings of more than 2 GB together get a large type."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.type in LARGE_TYPES and column.nbytes > MAX_OFFSET:
        column = column.cast(LARGE_TYPES[column.type])
    # Arrow builds no empty array of UUIDs inside other types, except of nulls.
    return pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """Return a table as one batch."""
    return pa.RecordBatch.from_arrays([whole_column(column) for column in rows.columns], names=rows.column_names)


def _column_filter(name: str, column: pa.Array, schema: Schema) -> Bound:
    """Return a filter for the values of a column."""
    field = next(f for f in schema.fields if f.name == name)
    assert isinstance(field.type, PrimitiveType)
    reference = Reference(field.field_id, field.type, (name,))
    if len(column) == 0:
        return FALSE
    if isinstance(field.type, FloatType | DoubleType):
        return _float_filter(reference, column)
    distinct = _distinct(column)
    if len(distinct) <= MAX_LISTED_KEYS:
        return one_of(reference, [value for value in python_values(distinct, field.type) if value is not None])
    return _range(reference, *python_values(_extremes(distinct), field.type))


def _float_filter(reference: Reference, column: pa.Array) -> Bound:
    is_nan = pc.is_nan(column)
    numbers = column.filter(pc.invert(is_nan))
    parts: list[Bound] = [IsNaN(reference)] if len(numbers) < len(column) else []
    if len(numbers):
        ends = pc.min_max(numbers)
        parts.append(_range(reference, ends["min"].as_py(), ends["max"].as_py()))
    return any_of(*parts)


def _range(reference: Reference, low: object, high: object) -> Bound:
    ends = ((Operator.GE, low), (Operator.LE, high))
    return all_of(*(Compare(reference, operator, end) for operator, end in ends))  # type: ignore[arg-type]


def _extremes(column: pa.Array) -> pa.Array:
    """Return the least and the greatest value, in their in-memory form."""
    plain = physical_array(column)
    ends = pc.min_max(plain)
    return pa.array([ends["min"].as_py(), ends["max"].as_py()], plain.type)


def _distinct(column: pa.Array) -> pa.Array:
    if isinstance(column.type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(column.type, column.storage.unique())
    return column.unique()


def _plain(batch: pa.RecordBatch, incoming: Schema) -> pa.RecordBatch:
    """Return a batch without dictionaries and views, whose rows Arrow cannot select."""
    if all(_is_plain(column.type) for column in batch.columns):
        return batch
    columns = [
        column if _is_plain(column.type) else conform_column(column, field, batch)
        for column, field in zip(batch.columns, incoming.fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_dictionary(kind) or types.is_string_view(kind) or types.is_binary_view(kind):
        return False
    if isinstance(kind, pa.BaseExtensionType):
        return _is_plain(kind.storage_type)
    return all(_is_plain(kind.field(at).type) for at in range(kind.num_fields))
