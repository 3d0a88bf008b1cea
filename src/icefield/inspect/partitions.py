"""The metadata table of partitions: how many files and rows each has, and when it was last updated.

Delete files are counted but not applied. Files are summed manifest by manifest, so that memory is bounded by the
number of partitions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import DATA, EQUALITY_DELETES, POSITION_DELETES, partition_column
from icefield.inspect.source import MICROS_PER_MILLI, Inspected, MetadataTable, Request, manifests_of_version
from icefield.plan.entries import LIVE, load_batches
from icefield.plan.manifest_list import has_live_files
from icefield.plan.partition.struct import PARTITION, partition_struct, partition_values, prune_by_partition
from icefield.types.arrow import arrow_schema, arrow_type, struct_array
from icefield.types.arrow_keys import KeyIndex
from icefield.types.datatypes import NestedField, StructType
from icefield.types.schema import numbered
from icefield.types.text import parse_schema

COLUMNS = ManifestColumns(("status", "snapshot_id", "content", "record_count", "file_size_in_bytes"))
# The sums: which files they cover, and what is summed.
SUMS = {
    "record_count": (DATA, "record_count"),
    "file_count": (DATA, None),
    "total_data_file_size_in_bytes": (DATA, "file_size_in_bytes"),
    "position_delete_record_count": (POSITION_DELETES, "record_count"),
    "position_delete_file_count": (POSITION_DELETES, None),
    "equality_delete_record_count": (EQUALITY_DELETES, "record_count"),
    "equality_delete_file_count": (EQUALITY_DELETES, None),
}
UPDATED_AT, UPDATED_BY, POSITION = "last_updated_at", "last_updated_snapshot_id", "position"
LATEST = ("spec_id", UPDATED_AT, UPDATED_BY, POSITION)
_SPEC_ID = parse_schema("spec_id int not null").fields
_TOTALS = parse_schema(
    "record_count long not null, file_count int not null, total_data_file_size_in_bytes long not null, "
    "position_delete_record_count long not null, position_delete_file_count int not null, "
    "equality_delete_record_count long not null, equality_delete_file_count int not null, "
    "last_updated_at timestamptz, last_updated_snapshot_id long"
).fields
NOT_KNOWN = -1


def partitions_table(source: Inspected) -> MetadataTable:
    """Return the partitions of the version; one row for a table that was never partitioned."""
    struct = partition_struct(source.metadata)
    schema = numbered((*struct.column, *(_SPEC_ID if struct.fields else ()), *_TOTALS))

    def load(request: Request) -> Iterator[pa.Table]:
        sums = _Sums.of(source)
        for found in manifests_of_version(source):
            keep = has_live_files(found) & prune_by_partition(found, request.where, source.metadata, schema)
            for step, entries in load_batches(source.context, found.choose(keep), COLUMNS, LIVE):
                sums = sums.with_step(step, entries)
        if sums.table is not None:
            arrays = [sums.array(f) for f in request.columns.fields]
            yield pa.Table.from_arrays(arrays, schema=arrow_schema(request.columns))

    return MetadataTable(schema, load)


@dataclass(frozen=True)
class _Sums:
    """The sums so far: one row per partition, its fields as columns."""

    source: Inspected
    fields: tuple[NestedField, ...]
    ids: pa.Array
    times: pa.Array
    table: pa.Table | None = None

    @classmethod
    def of(cls, source: Inspected) -> "_Sums":
        snapshots = list(source.metadata.snapshots)
        ids = pa.array([s.snapshot_id for s in snapshots], pa.int64())
        times = pa.array([s.timestamp_ms * MICROS_PER_MILLI for s in snapshots], pa.int64())
        return cls(source, partition_struct(source.metadata).fields, ids, times)

    def with_step(self, manifests: Manifests, entries: ManifestEntries) -> "_Sums":
        """Add the files of some manifests of one spec."""
        if entries.num_rows == 0:
            return self
        columns = {partition_column(f.field_id): partition_values(entries, f) for f in self.fields}
        spec_id = manifests.partition_spec_id[0].as_py()
        columns |= {"spec_id": pa.repeat(pa.scalar(spec_id, pa.int32()), entries.num_rows)}
        columns |= {name: _counted(entries, content, what) for name, (content, what) in SUMS.items()}
        found = self._added_up(pa.table(columns | self._updates(entries)))
        both = found if self.table is None else self._added_up(pa.concat_tables([self.table, found]).combine_chunks())
        return replace(self, table=both)

    def array(self, field: NestedField) -> pa.Array:
        """Return a column of the metadata table."""
        assert self.table is not None
        if field.name == PARTITION:
            assert isinstance(field.type, StructType)
            ids = {f.name: f.field_id for f in self.fields}
            names = [partition_column(ids[f.name]) for f in field.type.fields]
            return struct_array(field.type.fields, [self.table[name].combine_chunks() for name in names])
        return self.table.column(field.name).combine_chunks().cast(arrow_type(field.type))

    def _updates(self, entries: ManifestEntries) -> dict[str, pa.Array]:
        """Return when each file was added, and by which snapshot; null if that snapshot has expired."""
        at = pc.index_in(entries.snapshot_id.combine_chunks(), value_set=self.ids)
        return {
            UPDATED_AT: self.times.take(at),
            UPDATED_BY: self.ids.take(at),
            POSITION: pc.fill_null(at, NOT_KNOWN),
        }

    def _added_up(self, rows: pa.Table) -> pa.Table:
        """Merge the rows of the same partition."""
        names = [partition_column(f.field_id) for f in self.fields]
        codes = KeyIndex([rows[name].combine_chunks() for name in names], rows.num_rows).codes
        summed = rows.select(list(SUMS)).append_column("code", pa.array(codes)).group_by("code")
        sums = summed.aggregate([(name, "sum") for name in SUMS]).sort_by("code")
        # Of several snapshots in one millisecond, the later one counts.
        moments = pc.fill_null(rows.column(UPDATED_AT), NOT_KNOWN).to_numpy()
        order = np.lexsort((rows.column(POSITION).to_numpy(), moments, codes))
        lasts = order[np.flatnonzero(np.diff(codes[order], append=NOT_KNOWN))]
        kept = rows.select([*names, *LATEST]).take(pa.array(lasts))
        for name in SUMS:
            kept = kept.append_column(name, sums[f"{name}_sum"])
        return kept


def _counted(entries: ManifestEntries, content: int, what: str | None) -> pa.Array:
    is_of = pc.equal(entries.content.combine_chunks(), content)
    amount = 1 if what is None else entries[what].combine_chunks()
    return pc.if_else(is_of, amount, 0).cast(pa.int64())
