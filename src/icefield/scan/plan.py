"""Plan a scan: which files must be read for a filter, and how the others were ruled out.

    manifest list   manifests whose partition summaries cannot match are not opened
    manifest        files whose partition values cannot match, then whose column statistics cannot match, are dropped
    file            row groups are left to the Parquet reader

A file that no pass can rule out is read; a file whose every row must match is marked, so that counts and overwrites
need not open it. Files stay columns: one Arrow table, one row per file; `tasks` makes the readers' values of them, one
at a time.

Raises MissingFile, CorruptFile, and Unsupported for files in formats other than Parquet.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest_columns import ManifestColumns
from icefield.codec.manifest_header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.errors import Unsupported
from icefield.expr.bound import Bound, columns_of
from icefield.expr.evaluate import might_match
from icefield.expr.project import project_inclusive
from icefield.expr.residual import FileFacts, Proven, prove
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import Snapshot
from icefield.parquet.file_task import FileTask
from icefield.scan.cache_store import cache_of
from icefield.scan.constants import (
    CONSTANTS,
    decode_constants,
    has_identity_columns,
    identity_constants,
    identity_sources,
)
from icefield.scan.deletes import DELETE_KEYS, NO_DELETES, DeleteIndex, added_deletes, load_delete_index, match_none
from icefield.scan.entries import ADDED_ONLY, LIVE, batches_of_one_spec, cold_bytes, open_entries
from icefield.scan.file_statistics import facts_of
from icefield.scan.manifests import Mask, choose, find_spec, has_live_files, load_manifests, prune_manifests
from icefield.scan.partitions import partition_texts
from icefield.scan.point import Point
from icefield.scan.small_plans import Question, SmallPlan
from icefield.storage.store import Store
from icefield.types.metadata_columns import is_metadata_column
from icefield.types.schema import Schema

MOST_THREADS = 4
SMALL_MANIFEST_BYTES = 64 * 1024
LOCAL_SCHEMES = ("file:", "memory:", "/")
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
        ("proven", pa.int64()),
        ("first_row_id", pa.int64()),
        ("constants", CONSTANTS),
        ("is_complete", pa.bool_()),
        ("delete_keys", DELETE_KEYS),
        ("deleted_rows", pa.int64()),
    ]
)
NO_FILES = PLANNED.empty_table()
COUNTED = ("record_count", "file_size_in_bytes")
TASKS_PER_STEP = 1_000


@dataclass(frozen=True)
class Funnel:
    """How many manifests, files, rows and bytes there were, and what ruled them out.

    Manifest lists do not say how large files are, so `bytes_listed` is without the files of pruned manifests.
    """

    manifests: int = 0
    manifests_pruned: int = 0
    files: int = 0
    files_in_pruned_manifests: int = 0
    files_pruned_by_partition: int = 0
    files_pruned_by_statistics: int = 0
    files_read: int = 0
    rows: int = 0
    rows_in_pruned_manifests: int = 0
    rows_pruned_by_partition: int = 0
    rows_pruned_by_statistics: int = 0
    rows_read: int = 0
    bytes_listed: int = 0
    bytes_pruned_by_partition: int = 0
    bytes_pruned_by_statistics: int = 0
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
                    proven=row["proven"],
                    deletes=self.deletes.deletes_of(keys, number) if self.deletes and keys else (),
                )


class Cluster(Protocol):
    """Where batches of manifests can be planned, other than in this process."""

    def pays(self, cold_bytes: int) -> bool:
        """Say whether it is faster there, for manifests of so many bytes that the cache does not have."""
        ...

    def run(self, work: "PlanBatch", batches: Sequence[pa.Table]) -> list[tuple[pa.Table, Funnel]] | None:
        """Do the work on each batch, and return the results in their order; None if it failed."""
        ...


PlanBatch = Callable[[pa.Table], tuple[pa.Table, Funnel]]


def plan_scan(
    store: Store, metadata: TableMetadata, point: Point, where: Bound, cluster: Cluster | None = None
) -> ScanPlan:
    """Find the files of a version that may hold matching rows; a cluster takes part where it pays."""
    manifests = load_manifests(store, point.snapshot)
    if manifests is None or point.snapshot is None:
        return ScanPlan(point, where, NO_FILES, Funnel())
    cache = cache_of(store)
    question = Question(point.snapshot.manifest_list, where, point.schema, metadata.specs)
    known = cache.plans.find(question, manifests) if cache else None
    if known is not None:
        return ScanPlan(point, where, known.files, known.funnel)
    planner = _Planner(store, metadata, point.schema, where, LIVE)
    files, funnel, deletes = planner.plan_snapshot(manifests, cluster)
    if cache is not None and deletes is None:
        cache.plans.keep(question, SmallPlan(manifests, files, funnel))
    return ScanPlan(point, where, files, funnel, deletes)


def plan_added_files(store: Store, metadata: TableMetadata, snapshot: Snapshot, like: ScanPlan) -> pa.Table:
    """Find the files that one snapshot added and that a plan would have had to read."""
    manifests = load_manifests(store, snapshot)
    if manifests is None:
        return NO_FILES
    own = _added_by(manifests, snapshot, DATA_MANIFEST)
    schema = like.point.schema
    keep = prune_manifests(own, like.where, metadata, schema)
    planner = _Planner(store, metadata, schema, like.where, ADDED_ONLY)
    return planner.plan(own.filter(pa.array(keep)))[0]


def plan_added_deletes(store: Store, metadata: TableMetadata, snapshot: Snapshot, like: ScanPlan) -> pa.Table:
    """Find the delete files that one snapshot added and that may apply to the files of a plan."""
    manifests = load_manifests(store, snapshot)
    if manifests is None:
        return NO_DELETES
    own = _added_by(manifests, snapshot, DELETE_MANIFEST)
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

    def plan_snapshot(
        self, manifests: pa.Table, cluster: Cluster | None
    ) -> tuple[pa.Table, Funnel, DeleteIndex | None]:
        """Plan all manifests of a snapshot: (the files, the funnel, the deletes that apply to them)."""
        live = choose(manifests, has_live_files(manifests))
        keep = prune_manifests(live, self.where, self.metadata, self.schema)
        is_data = _is_of(live, DATA_MANIFEST)
        # A delete file stands in the partition of the files that it applies to, so the same pruning holds for it.
        deletes = load_delete_index(self.store, self.metadata, choose(live, keep & _is_of(live, DELETE_MANIFEST)))
        opened, pruned = choose(live, keep & is_data), choose(live, ~keep & is_data)
        files, funnel = replace(self, deletes=deletes).plan(opened, cluster)
        return files, funnel + _funnel_of_pruned(pruned, opened.num_rows), deletes

    def plan(self, manifests: pa.Table, cluster: Cluster | None = None) -> tuple[pa.Table, Funnel]:
        cache = cache_of(self.store)
        batches = list(batches_of_one_spec(manifests, cache))
        parts = None
        if cluster is not None and cluster.pays(cold_bytes(manifests, cache)):
            parts = cluster.run(self._plan_batch, batches)
        if parts is None:  # a job that failed fails here again, with the error that it is
            parts = self._plan_here(batches)
        files = pa.concat_tables([files for files, _ in parts]) if parts else NO_FILES
        return files, sum((funnel for _, funnel in parts), Funnel())

    def _plan_here(self, batches: Sequence[pa.Table]) -> list[tuple[pa.Table, Funnel]]:
        if len(batches) > 1 and any(map(_gains_by_threads, batches)):
            with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1)) as pool:
                return list(pool.map(self._plan_batch, batches))
        return [self._plan_batch(batch) for batch in batches]

    def _plan_batch(self, manifests: pa.Table) -> tuple[pa.Table, Funnel]:
        """Plan manifests of one spec."""
        spec = find_spec(self.metadata, manifests.column("partition_spec_id")[0].as_py())
        judged = sorted(i for i in columns_of(self.where) if not is_metadata_column(i))
        sources = tuple(s.source_id for s in identity_sources(spec, self.schema))
        want = replace(COLUMNS.with_statistics(judged), sizes=sources)
        entries = open_entries(self.store, manifests, want, self.statuses)
        facts = facts_of(entries.table, spec, self.schema)
        by_partition, by_statistics = self._judge(facts)
        keep = by_partition & by_statistics
        files = NO_FILES
        if keep.any():
            files = self._kept(entries.without(want.judged_names()).complete(keep), facts.at(keep), spec)
        return files, _funnel_of_opened(entries.table, by_partition, files)

    def _kept(self, entries: pa.Table, facts: FileFacts, spec: PartitionSpec) -> pa.Table:
        """Describe the files that may match, without those of which the parts of the filter together say otherwise."""
        proven = prove(self.where, facts)
        files = self._planned(entries, spec, proven)
        return files.filter(pa.array(~proven.never)) if proven.never.any() else files

    def _judge(self, facts: FileFacts) -> tuple[Mask, Mask]:
        """Say which files may match by partition, and which by statistics."""
        by_partition = might_match(project_inclusive(self.where, facts.terms), facts.partition, facts.rows)
        return by_partition, might_match(self.where, facts.columns, facts.rows)

    def _planned(self, entries: pa.Table, spec: PartitionSpec, proven: Proven) -> pa.Table:
        _refuse_other_formats(entries)
        count = entries.num_rows
        columns = {
            "spec_id": pa.array(np.full(count, spec.spec_id, np.int32)),
            "partition": partition_texts(entries, spec, self.schema),
            "must_match": pa.array(proven.always),
            "proven": pa.array(proven.codes),
            "constants": identity_constants(entries, spec, self.schema),
            "is_complete": has_identity_columns(entries, spec, self.schema),
        }
        matched = match_none(count) if self.deletes is None else self.deletes.match(entries, spec)
        columns |= {"delete_keys": matched.keys, "deleted_rows": matched.deleted_rows}
        filled = [columns[name] if name in columns else entries.column(name) for name in NO_FILES.column_names]
        return pa.Table.from_arrays(filled, schema=PLANNED)


def _gains_by_threads(batch: pa.Table) -> bool:
    """Say whether a batch waits for a store, or runs long without the interpreter; others only wait for each other."""
    is_small = pc.mean(batch.column("manifest_length")).as_py() < SMALL_MANIFEST_BYTES
    return not (is_small and batch.column("manifest_path")[0].as_py().startswith(LOCAL_SCHEMES))


def _added_by(manifests: pa.Table, snapshot: Snapshot, content: int) -> pa.Table:
    is_own = manifests.column("added_snapshot_id").to_numpy() == snapshot.snapshot_id
    return choose(manifests, is_own & _is_of(manifests, content))


def _is_of(manifests: pa.Table, content: int) -> Mask:
    return manifests.column("content").to_numpy() == content  # type: ignore[no-any-return]


def _refuse_other_formats(entries: pa.Table) -> None:
    words = entries.column("file_format")
    for word in words.unique().to_pylist():
        # Writers differ in the case of the word.
        if word is not None and word.upper() != "PARQUET":
            path = entries.column("file_path")[pc.index(words, word).as_py()].as_py()
            raise Unsupported(f"{path} is a data file in {word}; icefield reads Parquet")


def _funnel_of_opened(entries: pa.Table, by_partition: Mask, files: pa.Table) -> Funnel:
    """Count what was in opened manifests; what partitions did not rule out and is not read, statistics ruled out."""
    counted = entries.select(COUNTED)
    files_in_all, rows, size = in_all = _totals(counted)
    files_left, rows_left, size_left = in_all if by_partition.all() else _totals(choose(counted, by_partition))
    read = _totals(files)
    return Funnel(
        files=files_in_all,
        files_pruned_by_partition=files_in_all - files_left,
        files_pruned_by_statistics=files_left - read[0],
        files_read=read[0],
        rows=rows,
        rows_pruned_by_partition=rows - rows_left,
        rows_pruned_by_statistics=rows_left - read[1],
        rows_read=read[1],
        bytes_listed=size,
        bytes_pruned_by_partition=size - size_left,
        bytes_pruned_by_statistics=size_left - read[2],
        bytes_read=read[2],
    )


def _totals(files: pa.Table) -> tuple[int, int, int]:
    """Return how many files there are, and their rows and bytes."""
    rows, size = (files.column(name).to_numpy() for name in COUNTED)
    return files.num_rows, int(rows.sum()), int(size.sum())


def _funnel_of_pruned(pruned: pa.Table, opened: int) -> Funnel:
    if pruned.num_rows == 0:
        return Funnel(manifests=opened)
    files = sum(pc.sum(pruned.column(name)).as_py() or 0 for name in ("added_files_count", "existing_files_count"))
    rows = sum(pc.sum(pruned.column(name)).as_py() or 0 for name in ("added_rows_count", "existing_rows_count"))
    return Funnel(
        manifests=pruned.num_rows + opened,
        manifests_pruned=pruned.num_rows,
        files=files,
        files_in_pruned_manifests=files,
        rows=rows,
        rows_in_pruned_manifests=rows,
    )
