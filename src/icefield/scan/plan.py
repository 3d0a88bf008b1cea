"""Plan a scan: which files must be read for a filter, and how the others were ruled out.

    manifest list   manifests whose partition summaries cannot match are not opened
    manifest        files whose partition values cannot match, then whose column statistics cannot match, are dropped
    file            row groups are left to the Parquet reader

A file that no pass can rule out is read; a file whose every row must match is marked, so that counts and overwrites
need not open it. Files stay columns: one Arrow table, one row per file; `tasks` makes the readers' values of them, one
at a time.

Raises MissingFile, CorruptFile, and Unsupported for files in formats other than Parquet.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest_columns import ManifestColumns
from icefield.codec.manifest_header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest_schema import partition_column
from icefield.errors import Unsupported
from icefield.expr.bound import Bound, columns_of
from icefield.expr.evaluate import might_match, must_match
from icefield.expr.project import project_inclusive, project_strict
from icefield.expr.statistics import Counts, FieldStatistics, from_counts_and_bounds, from_partition_values
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import Snapshot
from icefield.parquet.file_task import FileTask
from icefield.scan.constants import (
    CONSTANTS,
    decode_constants,
    has_identity_columns,
    identity_constants,
    identity_sources,
)
from icefield.scan.deletes import DELETE_KEYS, NO_DELETES, DeleteIndex, added_deletes, load_delete_index, match_none
from icefield.scan.entries import ADDED_ONLY, LIVE, batches_of_one_spec, load_entries
from icefield.scan.manifests import (
    Mask,
    find_spec,
    has_live_files,
    load_manifests,
    prune_manifests,
    spec_sources,
)
from icefield.scan.partitions import partition_texts
from icefield.scan.point import Point
from icefield.storage.store import Store
from icefield.types.datatypes import PrimitiveType
from icefield.types.metadata_columns import is_metadata_column
from icefield.types.schema import Schema

THREADS = 4
COLUMNS = ManifestColumns(
    (
        "status",
        "snapshot_id",
        "sequence_number",
        "file_path",
        "file_format",
        "record_count",
        "file_size_in_bytes",
        "first_row_id",
    )
)
PLANNED = pa.schema(
    [
        ("file_path", pa.string()),
        ("record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("sequence_number", pa.int64()),
        ("spec_id", pa.int32()),
        ("partition", pa.string()),
        ("manifest_path", pa.string()),
        ("must_match", pa.bool_()),
        ("first_row_id", pa.int64()),
        ("constants", CONSTANTS),
        ("is_complete", pa.bool_()),
        ("delete_keys", DELETE_KEYS),
        ("deleted_rows", pa.int64()),
    ]
)
TASKS_PER_STEP = 1_000
Statistics = Callable[[int], FieldStatistics | None]


@dataclass(frozen=True)
class Funnel:
    """How many manifests, files and rows there were, and what ruled them out."""

    manifests: int = 0
    manifests_pruned: int = 0
    files: int = 0
    files_in_pruned_manifests: int = 0
    files_pruned_by_partition: int = 0
    files_pruned_by_statistics: int = 0
    files_read: int = 0
    rows: int = 0
    rows_read: int = 0
    bytes_read: int = 0

    def __add__(self, other: "Funnel") -> "Funnel":
        return Funnel(*(getattr(self, name) + getattr(other, name) for name in Funnel.__dataclass_fields__))


@dataclass(frozen=True)
class ScanPlan:
    """The files to read, and why only those."""

    point: Point
    where: Bound
    files: pa.Table
    funnel: Funnel
    deletes: DeleteIndex | None = None

    @property
    def whole_files(self) -> pa.Table:
        """The files whose every row matches."""
        return self.files.filter(self.files.column("must_match"))

    @property
    def partial_files(self) -> pa.Table:
        """The files that must be opened to tell."""
        return self.files.filter(pc.invert(self.files.column("must_match")))

    @property
    def settled_files(self) -> pa.Table:
        """The files of which metadata tells how many rows match."""
        return self.files.filter(pc.and_(self.files.column("must_match"), self.files.column("deleted_rows").is_valid()))

    @property
    def unsettled_files(self) -> pa.Table:
        """The files of which only reading tells how many rows match."""
        settled = pc.and_(self.files.column("must_match"), self.files.column("deleted_rows").is_valid())
        return self.files.filter(pc.invert(settled))

    def tasks(self, files: pa.Table) -> Iterator[FileTask]:
        """Yield what a reader must know of each of some files of this plan."""
        for start in range(0, files.num_rows, TASKS_PER_STEP):
            for row in files.slice(start, TASKS_PER_STEP).to_pylist():
                keys, number = row["delete_keys"], row["sequence_number"]
                yield FileTask(
                    location=row["file_path"],
                    record_count=row["record_count"],
                    sequence_number=number,
                    spec_id=row["spec_id"],
                    first_row_id=row["first_row_id"],
                    constants=decode_constants(row["constants"], self.point.schema),
                    deletes=self.deletes.deletes_of(keys, number) if self.deletes and keys else (),
                )


def plan_scan(store: Store, metadata: TableMetadata, point: Point, where: Bound) -> ScanPlan:
    """Find the files of a version that may hold matching rows."""
    manifests = load_manifests(store, point.snapshot)
    if manifests is None:
        return ScanPlan(point, where, PLANNED.empty_table(), Funnel())
    live = manifests.filter(pa.array(has_live_files(manifests)))
    keep = pa.array(prune_manifests(live, where, metadata, point.schema))
    # A delete file stands in the partition of the files that it applies to, so the same pruning holds for it.
    deletes = load_delete_index(store, metadata, _of_content(live.filter(keep), DELETE_MANIFEST))
    opened = _of_content(live.filter(keep), DATA_MANIFEST)
    files, funnel = _Planner(store, metadata, point.schema, where, LIVE, deletes).plan(opened)
    pruned = _of_content(live.filter(pc.invert(keep)), DATA_MANIFEST)
    return ScanPlan(point, where, files, funnel + _funnel_of_pruned(pruned, opened.num_rows), deletes)


def plan_added_files(store: Store, metadata: TableMetadata, snapshot: Snapshot, like: ScanPlan) -> pa.Table:
    """Find the files that one snapshot added and that a plan would have had to read."""
    manifests = load_manifests(store, snapshot)
    if manifests is None:
        return PLANNED.empty_table()
    own = manifests.filter(pc.equal(manifests.column("added_snapshot_id"), snapshot.snapshot_id))
    own = _of_content(own, DATA_MANIFEST)
    schema = like.point.schema
    keep = prune_manifests(own, like.where, metadata, schema)
    planner = _Planner(store, metadata, schema, like.where, ADDED_ONLY)
    return planner.plan(own.filter(pa.array(keep)))[0]


def plan_added_deletes(store: Store, metadata: TableMetadata, snapshot: Snapshot, like: ScanPlan) -> pa.Table:
    """Find the delete files that one snapshot added and that may apply to the files of a plan."""
    manifests = load_manifests(store, snapshot)
    if manifests is None:
        return NO_DELETES
    own = manifests.filter(pc.equal(manifests.column("added_snapshot_id"), snapshot.snapshot_id))
    own = _of_content(own, DELETE_MANIFEST)
    own = own.filter(pa.array(prune_manifests(own, like.where, metadata, like.point.schema)))
    return added_deletes(store, own, like.files.column("file_path"))


@dataclass(frozen=True)
class _Planner:
    """Plans batches of manifests, in any thread."""

    store: Store
    metadata: TableMetadata
    schema: Schema
    where: Bound
    statuses: tuple[int, ...]
    deletes: DeleteIndex | None = None

    def plan(self, manifests: pa.Table) -> tuple[pa.Table, Funnel]:
        batches = list(batches_of_one_spec(manifests))
        if len(batches) > 1:
            with ThreadPoolExecutor(THREADS) as pool:
                parts = list(pool.map(self._plan_batch, batches))
        else:
            parts = [self._plan_batch(batch) for batch in batches]  # threads would cost more than they bring
        files = pa.concat_tables([PLANNED.empty_table(), *(files for files, _ in parts)])
        return files, sum((funnel for _, funnel in parts), Funnel())

    def _plan_batch(self, manifests: pa.Table) -> tuple[pa.Table, Funnel]:
        """Plan manifests of one spec."""
        spec = find_spec(self.metadata, manifests.column("partition_spec_id")[0].as_py())
        judged = sorted(i for i in columns_of(self.where) if not is_metadata_column(i))
        sources = tuple(s.source_id for s in identity_sources(spec, self.schema))
        want = replace(COLUMNS.with_statistics(judged), sizes=sources)
        entries = load_entries(self.store, manifests, want, self.statuses)
        by_partition, by_statistics, must = self._judge(entries, spec)
        keep = pa.array(by_partition & by_statistics)
        files = self._planned(entries.filter(keep), spec, must[by_partition & by_statistics])
        funnel = Funnel(
            files=entries.num_rows,
            files_pruned_by_partition=int((~by_partition).sum()),
            files_pruned_by_statistics=int((by_partition & ~by_statistics).sum()),
            files_read=files.num_rows,
            rows=pc.sum(entries.column("record_count")).as_py() or 0,
            rows_read=pc.sum(files.column("record_count")).as_py() or 0,
            bytes_read=pc.sum(files.column("file_size_in_bytes")).as_py() or 0,
        )
        return files, funnel

    def _judge(self, entries: pa.Table, spec: PartitionSpec) -> tuple[Mask, Mask, Mask]:
        """Say which files may match by partition, may match by statistics, and must match whole."""
        count = entries.num_rows
        sources = spec_sources(spec, self.schema)
        partition = _partition_statistics(entries, spec, self.schema)
        columns = _column_statistics(entries, self.schema)
        by_partition = might_match(project_inclusive(self.where, sources), partition, count)
        by_statistics = might_match(self.where, columns, count)
        must = must_match(project_strict(self.where, sources), partition, count)
        return by_partition, by_statistics, must | must_match(self.where, columns, count)

    def _planned(self, entries: pa.Table, spec: PartitionSpec, must: Mask) -> pa.Table:
        _refuse_other_formats(entries)
        count = entries.num_rows
        columns = {
            "spec_id": pa.array(np.full(count, spec.spec_id, np.int32)),
            "partition": partition_texts(entries, spec, self.schema),
            "must_match": pa.array(must),
            "constants": identity_constants(entries, spec, self.schema),
            "is_complete": has_identity_columns(entries, spec, self.schema),
        }
        matched = match_none(count) if self.deletes is None else self.deletes.match(entries, spec)
        columns |= {"delete_keys": matched.keys, "deleted_rows": matched.deleted_rows}
        arrays = [columns.get(f.name) for f in PLANNED]
        filled = [entries.column(f.name) if a is None else a for f, a in zip(PLANNED, arrays, strict=True)]
        return pa.Table.from_arrays(filled, schema=PLANNED)


def _of_content(manifests: pa.Table, content: int) -> pa.Table:
    return manifests.filter(pc.equal(manifests.column("content"), content))


def _refuse_other_formats(entries: pa.Table) -> None:
    # Writers differ in the case of the word.
    others = entries.filter(pc.not_equal(pc.utf8_upper(entries.column("file_format")), "PARQUET"))
    if others.num_rows:
        path, word = (others.column(name)[0].as_py() for name in ("file_path", "file_format"))
        raise Unsupported(f"{path} is a data file in {word}; icefield reads Parquet")


def _column_statistics(entries: pa.Table, schema: Schema) -> Statistics:
    def whole(name: str) -> pa.Array:
        return entries.column(name).combine_chunks()

    def statistics(field_id: int) -> FieldStatistics | None:
        known = schema.by_id.get(field_id)  # metadata columns are in no schema, and in no statistics
        kind = known.type if known else None
        if f"lower.{field_id}" not in entries.column_names or not isinstance(kind, PrimitiveType):
            return None
        counts = Counts(
            values=whole(f"value_count.{field_id}"),
            nulls=whole(f"null_count.{field_id}"),
            nans=whole(f"nan_count.{field_id}"),
            records=whole("record_count"),
        )
        return from_counts_and_bounds(whole(f"lower.{field_id}"), whole(f"upper.{field_id}"), counts, kind)

    return statistics


def _partition_statistics(entries: pa.Table, spec: PartitionSpec, schema: Schema) -> Statistics:
    kinds = {s.field_id: s.transform.result_type(s.source_type) for s in spec_sources(spec, schema)}

    def statistics(field_id: int) -> FieldStatistics | None:
        name = partition_column(field_id)
        if name not in entries.column_names:
            return None
        return from_partition_values(entries.column(name).combine_chunks(), kinds[field_id])

    return statistics


def _funnel_of_pruned(pruned: pa.Table, opened: int) -> Funnel:
    files = sum(pc.sum(pruned.column(name)).as_py() or 0 for name in ("added_files_count", "existing_files_count"))
    rows = sum(pc.sum(pruned.column(name)).as_py() or 0 for name in ("added_rows_count", "existing_rows_count"))
    return Funnel(
        manifests=pruned.num_rows + opened,
        manifests_pruned=pruned.num_rows,
        files=files,
        files_in_pruned_manifests=files,
        rows=rows,
    )
