"""The metadata tables of files and of manifest entries, of one version or of all snapshots.

Manifests are pruned by filters on partition, content, spec and status; only the requested columns are decoded, in
batches of the same size as in a scan.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.header import DATA_MANIFEST
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import ADDED, DELETED, EQUALITY_DELETES, EXISTING, KINDS, POSITION_DELETES
from icefield.expr.bind.bound import TRUE, Bound
from icefield.expr.prune.evaluate import might_match
from icefield.expr.prune.ordered import column_of
from icefield.expr.prune.statistics import FieldStatistics
from icefield.inspect.metrics import READABLE_METRICS, ReadableMetrics, readable_metrics
from icefield.inspect.source import Inspected, ManifestsOf, MetadataTable, Request
from icefield.model.partition import PartitionSpec
from icefield.plan.entries import LIVE, load_batches
from icefield.plan.manifest_list import find_spec, has_live_files
from icefield.plan.partition.struct import (
    PARTITION,
    PartitionStruct,
    partition_struct,
    prune_by_partition,
)
from icefield.types.arrays import Mask
from icefield.types.arrow import arrow_schema, struct_array
from icefield.types.arrow_nested import list_around, map_around, without_unused
from icefield.types.datatypes import IntegerType, ListType, MapType, NestedField, StructType
from icefield.types.schema import Schema, numbered
from icefield.types.text import parse_schema

EVERY_STATUS = (EXISTING, ADDED, DELETED)
DATA_FILE, SPEC_ID, STATUS, CONTENT = "data_file", "spec_id", "status", "content"
COUNTS = {EXISTING: "existing_files_count", ADDED: "added_files_count", DELETED: "deleted_files_count"}

_ENTRY = parse_schema("status int not null, snapshot_id long, sequence_number long, file_sequence_number long").fields
_BEFORE_PARTITION = parse_schema(
    "content int not null, file_path string not null, file_format string not null, spec_id int not null"
).fields
_AFTER_PARTITION = parse_schema(
    "record_count long not null, file_size_in_bytes long not null, column_sizes map<int, long>, "
    "value_counts map<int, long>, null_value_counts map<int, long>, nan_value_counts map<int, long>, "
    "lower_bounds map<int, binary>, upper_bounds map<int, binary>, key_metadata binary, split_offsets list<long>, "
    "equality_ids list<int>, sort_order_id int, first_row_id long, referenced_data_file string, content_offset long, "
    "content_size_in_bytes long"
).fields


def files_table(source: Inspected, manifests: ManifestsOf, content: int | None = None) -> MetadataTable:
    """Return the live files; only those of data manifests or of delete manifests, if `content` is given."""
    made = _Columns(partition_struct(source.metadata), readable_metrics(source.metadata.schema))
    schema = numbered((*made.file_fields, *made.metrics.column))

    def load(request: Request) -> Iterator[pa.Table]:
        for found in manifests(source):
            of_sort = found if content is None else found.filter(pc.equal(found[CONTENT], content))
            live = of_sort.choose(has_live_files(of_sort))
            yield from made.tables(source, prune(live, request.where, source, schema), request.columns, LIVE)

    return MetadataTable(schema, load)


def entries_table(source: Inspected, manifests: ManifestsOf) -> MetadataTable:
    """Return the entries of manifests, including those of deleted files."""
    made = _Columns(partition_struct(source.metadata), readable_metrics(source.metadata.schema))
    data_file = NestedField(0, DATA_FILE, StructType(made.file_fields), required=True)
    schema = numbered((*_ENTRY, data_file, *made.metrics.column))

    def load(request: Request) -> Iterator[pa.Table]:
        for found in manifests(source):
            kept = prune(found, request.where, source, schema, (DATA_FILE,))
            yield from made.tables(source, kept, request.columns, EVERY_STATUS)

    return MetadataTable(schema, load)


def prune(
    manifests: Manifests, where: Bound, source: Inspected, schema: Schema, inside: tuple[str, ...] = ()
) -> Manifests:
    """Return the manifests that may hold matching entries; `inside` is the path of the struct of file columns."""
    if where == TRUE or manifests.num_rows == 0:
        return manifests
    keep = prune_by_partition(manifests, where, source.metadata, schema, inside)
    ids = {path: field_id for field_id, path in schema.paths.items()}
    ranges = [
        (ids[*inside, CONTENT], *_content_range(manifests)),
        (ids[*inside, SPEC_ID], *[manifests.partition_spec_id.combine_chunks()] * 2),
    ]
    if (STATUS,) in ids:
        ranges.append((ids[STATUS,], *_status_range(manifests)))
    known = {field_id: _between(low, high) for field_id, low, high in ranges}
    return manifests.choose(keep & might_match(where, known.get, manifests.num_rows))


@dataclass(frozen=True)
class _Columns:
    """Builds columns of files and entries from decoded ones."""

    partition: PartitionStruct
    metrics: ReadableMetrics

    @property
    def file_fields(self) -> tuple[NestedField, ...]:
        return (*_BEFORE_PARTITION, *self.partition.column, *_AFTER_PARTITION)

    def tables(
        self, source: Inspected, manifests: Manifests, columns: Schema, statuses: tuple[int, ...]
    ) -> Iterator[pa.Table]:
        """Yield the entries of manifests with these columns."""
        want, target = self._wanted(columns.fields), arrow_schema(columns)
        for step, entries in load_batches(source.context, manifests, want, statuses):
            spec = find_spec(source.metadata, step.partition_spec_id[0].as_py())
            yield pa.Table.from_arrays([self._array(entries, spec, f) for f in columns.fields], schema=target)

    def _wanted(self, fields: Sequence[NestedField]) -> ManifestColumns:
        """Return the manifest columns to decode for these columns."""
        inner = {f.name: f.type.fields for f in fields if isinstance(f.type, StructType)}
        names = {f.name for f in (*fields, *inner.get(DATA_FILE, ()))}
        # Row ids depend on the row counts of preceding files, and inherited values depend on the status.
        stored = sorted((names & KINDS.keys()) | {"status", "record_count"})
        want = ManifestColumns(tuple(stored), partition=PARTITION in names)
        return self.metrics.wanted(inner.get(READABLE_METRICS, ()), want)

    def _array(self, entries: ManifestEntries, spec: PartitionSpec, field: NestedField) -> pa.Array:
        if isinstance(field.type, StructType):
            return self._struct(entries, spec, field.name, field.type.fields)
        if field.name == SPEC_ID:
            return pa.repeat(pa.scalar(spec.spec_id, pa.int32()), entries.num_rows)
        stored = entries[field.name].combine_chunks()
        if field.name == "file_format":
            return pc.utf8_upper(stored)  # writers differ in the case of the format name
        return _with_ids(stored, field)

    def _struct(
        self, entries: ManifestEntries, spec: PartitionSpec, name: str, fields: tuple[NestedField, ...]
    ) -> pa.StructArray:
        if name == PARTITION:
            return self.partition.array(entries, fields)
        if name == READABLE_METRICS:
            return self.metrics.array(entries, fields)
        return struct_array(fields, [self._array(entries, spec, f) for f in fields])


def _with_ids(array: pa.Array, field: NestedField) -> pa.Array:
    """Return the array in the type of the metadata table, whose lists and maps have field ids."""
    match field.type:
        case ListType():
            array = without_unused(array)
            return list_around(array, field.type, array.values)
        case MapType():
            array = without_unused(array)
            return map_around(array, field.type, array.keys, array.items)
        case _:
            return array


def _between(low: pa.Array, high: pa.Array) -> FieldStatistics:
    """Return the statistics of integers in a range."""
    never = np.zeros(len(low), np.bool_)
    lower, upper = (column_of(values, IntegerType()) for values in (low, high))
    return FieldStatistics(lower, upper, never, never, ~never, exact=True)


def _content_range(manifests: Manifests) -> tuple[pa.Array, pa.Array]:
    is_data = pc.equal(manifests[CONTENT].combine_chunks(), DATA_MANIFEST)
    return pc.if_else(is_data, 0, POSITION_DELETES), pc.if_else(is_data, 0, EQUALITY_DELETES)


def _status_range(manifests: Manifests) -> tuple[pa.Array, pa.Array]:
    """Return the statuses that entries may have: those with a count, or with an unknown count."""
    may: dict[int, Mask] = {}
    for status, name in COUNTS.items():
        may[status] = pc.fill_null(pc.not_equal(manifests[name], 0), fill_value=True).to_numpy()
    low = np.where(may[EXISTING], EXISTING, np.where(may[ADDED], ADDED, DELETED))
    high = np.where(may[DELETED], DELETED, np.where(may[ADDED], ADDED, EXISTING))
    return pa.array(low), pa.array(high)
