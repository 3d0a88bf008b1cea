"""Plan a scan: which files must be read for a filter, and how the others were pruned.

    manifest list   manifests whose partition summaries cannot match are not opened
    manifest        files whose partition values cannot match, then whose column statistics cannot match, are dropped
    file            row groups are left to the Parquet reader

A file that no step can prune is read. A file in which every row matches is marked, so that counts and overwrites need
not open it. Files stay columnar: one Arrow table, one row per file; `tasks` turns them into values for readers, one
at a time.

Raises MissingFile, CorruptFile, and Unsupported for files in formats other than Parquet.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.plans import MOST_ROWS, Choice, Question, SmallPlan, lists_few_files
from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.rows import FEW
from icefield.expr.bind.bound import TRUE, Bound, columns_of
from icefield.expr.prune.evaluate import might_match
from icefield.expr.prune.project import project_inclusive
from icefield.expr.prune.residual import find_residuals
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import Snapshot
from icefield.parquet.read.task import FileTask
from icefield.plan.delete_index import COLUMNS as DELETE_COLUMNS
from icefield.plan.delete_index import NO_DELETES, DeleteIndex, added_deletes, load_delete_index
from icefield.plan.entries import (
    ADDED_ONLY,
    LIVE,
    batches_of_one_spec,
    cold_bytes,
    open_entries,
    wanted_manifests,
)
from icefield.plan.file_statistics import statistics_of_files, with_partition
from icefield.plan.manifest_list import (
    ManifestList,
    find_spec,
    is_of,
    load_manifest_list,
    load_manifests,
    load_many_manifests,
    prune_manifests,
)
from icefield.plan.metrics import ScanMetrics
from icefield.plan.partition.constants import decode_constants, identity_sources
from icefield.plan.planned_files import NO_FILES, PlannedFiles
from icefield.plan.unpruned_files import UnprunedFiles, describe_files
from icefield.plan.versions import ResolvedVersion
from icefield.storage.read_ahead import Wanted
from icefield.types.arrays import Longs, Mask
from icefield.types.metadata_columns import is_metadata_column
from icefield.types.schema import Schema

MOST_THREADS = 4
SMALL_MANIFEST_BYTES = 64 * 1024
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
TASKS_PER_STEP = 1_000


@dataclass(frozen=True)
class ScanPlan:
    """The files to read, and the metrics of the scan."""

    version: ResolvedVersion
    where: Bound
    files: PlannedFiles
    metrics: ScanMetrics
    deletes: DeleteIndex | None = None

    @property
    def whole_files(self) -> PlannedFiles:
        """The files in which every row matches."""
        return self.files.filter(self.files.must_match)

    @property
    def partial_files(self) -> PlannedFiles:
        """The files in which only some rows may match."""
        return self.files.filter(pc.invert(self.files.must_match))

    def tasks(self, files: PlannedFiles) -> Iterator[FileTask]:
        """Yield what a reader needs to know about some files of this plan."""
        for start in range(0, files.num_rows, TASKS_PER_STEP):
            for row in files.slice(start, TASKS_PER_STEP).to_pylist():
                keys, number = row["delete_keys"], row["sequence_number"]
                yield FileTask(
                    location=row["file_path"],
                    record_count=row["record_count"],
                    sequence_number=number,
                    spec_id=row["spec_id"],
                    first_row_id=row["first_row_id"],
                    constants=decode_constants(row["constants"], self.version.schema),
                    residual_code=row["residual_code"],
                    file_size_bytes=row["file_size_in_bytes"],
                    partition_key=row["partition_key"],
                    deletes=self.deletes.deletes_of(keys, number) if self.deletes and keys else (),
                )


class PlanningExecutor(Protocol):
    """Where batches of manifests can be planned, other than in this process."""

    def is_worthwhile(self, cold_bytes: int) -> bool:
        """Return whether it is faster there, for this many bytes of uncached manifests."""
        ...

    def run(self, work: "PlanBatch", batches: Sequence[Manifests]) -> "list[PlannedBatch] | None":
        """Process each batch, and return the results in order, or None if that failed."""
        ...


PlannedBatch = tuple[PlannedFiles, ScanMetrics]
PlanBatch = Callable[[Manifests], PlannedBatch]


def plan_scan(
    context: ReadContext,
    metadata: TableMetadata,
    version: ResolvedVersion,
    where: Bound,
    planning_executor: PlanningExecutor | None = None,
) -> ScanPlan:
    """Find the files of a version that may hold matching rows; on the planning executor if that is faster."""
    listed = load_manifest_list(context, version.snapshot)
    if listed is None or version.snapshot is None:
        return ScanPlan(version, where, NO_FILES, ScanMetrics())
    cache = context.cache
    question = Question(version.snapshot.manifest_list, where, version.schema, metadata.specs)
    known = cache.plans.find(question, listed) if cache else None
    if known is not None:
        return ScanPlan(version, where, known.files, known.metrics)
    planner = _Planner(context, metadata, version.schema, where, LIVE)
    files, metrics, deletes = planner.plan_snapshot(listed, version.snapshot.manifest_list, planning_executor)
    is_small = deletes is None and max(listed.manifests.num_rows, files.num_rows) <= MOST_ROWS
    # Version 1 may list manifests in the snapshot, without a manifest list as cache key.
    if cache is not None and is_small and question.manifest_list and cache.plans.note(question):
        cache.plans.keep(question, listed, SmallPlan(files, metrics))
    return ScanPlan(version, where, files, metrics, deletes)


def plan_manifests(
    context: ReadContext, metadata: TableMetadata, version: ResolvedVersion, manifests: Manifests
) -> ScanPlan:
    """Plan a read of all files in some manifests of a version."""
    planner = _Planner(context, metadata, version.schema, TRUE, LIVE)
    return ScanPlan(version, TRUE, *planner.plan_snapshot(ManifestList(manifests), "", None))


def plan_added_files(
    context: ReadContext, metadata: TableMetadata, snapshots: Iterable[Snapshot], like: ScanPlan
) -> PlannedFiles:
    """Find the files that snapshots added and that a plan would have read, each with the snapshot that added it."""
    lists = load_many_manifests(context, snapshots)
    found = [_added_by(manifests, snapshot, DATA_MANIFEST) for snapshot, manifests in lists]
    if not found:
        return NO_FILES
    own = Manifests.concat(found)
    schema = like.version.schema
    keep = prune_manifests(own, like.where, metadata, schema)
    planner = _Planner(context, metadata, schema, like.where, ADDED_ONLY)
    own = own.choose(keep)
    with context.read_ahead(planner.wanted(own)) as near:
        return replace(planner, context=near).plan(own)[0]


def plan_listed_files(
    context: ReadContext, metadata: TableMetadata, manifests: Manifests, where: Bound, statuses: tuple[int, ...]
) -> PlannedFiles:
    """Find the entries of data manifests that may hold matching rows; without deletes. statuses: which entries."""
    data = manifests.choose(is_of(manifests, DATA_MANIFEST))
    opened = data.choose(prune_manifests(data, where, metadata, metadata.schema))
    return _Planner(context, metadata, metadata.schema, where, statuses).plan(opened)[0]


def plan_added_deletes(
    context: ReadContext, metadata: TableMetadata, snapshot: Snapshot, like: ScanPlan
) -> ManifestEntries:
    """Find the delete files that one snapshot added and that may apply to the files of a plan."""
    manifests = load_manifests(context, snapshot)
    if manifests is None:
        return NO_DELETES
    own = _added_by(manifests, snapshot, DELETE_MANIFEST)
    own = own.choose(prune_manifests(own, like.where, metadata, like.version.schema))
    return added_deletes(context, metadata, own, like.files)


@dataclass(frozen=True)
class _Planner:
    """Plans batches of manifests, in any thread."""

    context: ReadContext
    metadata: TableMetadata
    schema: Schema
    where: Bound
    statuses: tuple[int, ...]
    deletes: DeleteIndex | None = None

    def plan_snapshot(
        self, listed: ManifestList, manifest_list: str, planning_executor: PlanningExecutor | None
    ) -> tuple[PlannedFiles, ScanMetrics, DeleteIndex | None]:
        """Plan all manifests of a snapshot: (the files, the metrics, the deletes that apply to them)."""
        # A delete file is in the partition of the files that it applies to, so the same pruning is valid for it.
        deleting = listed.live_deletes.choose(self._prune(listed.live_deletes))
        keep = self._prune(listed.live_data)
        opened = listed.live_data.choose(keep)
        wanted = chain(wanted_manifests(self.context, deleting, DELETE_COLUMNS), self.wanted(opened))
        with self.context.read_ahead(wanted) as near:
            deletes = load_delete_index(near, self.metadata, deleting)
            planner, known = replace(self, context=near, deletes=deletes), None
            if deletes is None and manifest_list and len(keep) <= MOST_ROWS:
                choice = Choice(manifest_list, keep.tobytes(), self._filter_columns, self.schema, self.metadata.specs)
                known = planner.known_candidates(choice, listed, opened)
            if known is not None:
                files, metrics = _together([planner.plan_candidates(candidates) for candidates in known])
            else:
                files, metrics = planner.plan(opened, planning_executor)
        if opened.num_rows < len(keep):
            metrics += _metrics_of_pruned(listed.live_data.choose(~keep))
        return files, metrics, deletes

    def wanted(self, manifests: Manifests) -> Iterator[Wanted]:
        """Yield the data manifests to read."""
        for batch in batches_of_one_spec(manifests):
            spec = find_spec(self.metadata, batch.partition_spec_id[0].as_py())
            yield from wanted_manifests(self.context, batch, self._columns(spec))

    def plan(self, manifests: Manifests, planning_executor: PlanningExecutor | None = None) -> PlannedBatch:
        cache = self.context.cache
        batches = list(batches_of_one_spec(manifests, cache))
        parts = None
        if planning_executor is not None and planning_executor.is_worthwhile(cold_bytes(manifests, cache)):
            parts = planning_executor.run(self._plan_batch, batches)
        if parts is None:  # a failed job is repeated here, to raise its own error
            parts = self._plan_here(batches)
        return _together(parts)

    @cached_property
    def _filter_columns(self) -> tuple[int, ...]:
        """The columns whose statistics are needed."""
        return tuple(sorted(i for i in columns_of(self.where) if not is_metadata_column(i)))

    def _columns(self, spec: PartitionSpec) -> ManifestColumns:
        """Return the columns needed from manifests of a spec."""
        sources = tuple(s.source_id for s in identity_sources(spec, self.schema))
        return replace(COLUMNS.with_statistics(self._filter_columns), sizes=sources)

    def _prune(self, manifests: Manifests) -> Mask:
        return prune_manifests(manifests, self.where, self.metadata, self.schema)

    def known_candidates(
        self, choice: Choice, listed: ManifestList, opened: Manifests
    ) -> Sequence[UnprunedFiles] | None:
        """Return the cached files of a small table; load and cache them first if necessary."""
        cache = self.context.cache
        if cache is None:
            return None
        known = cache.candidates.find(choice, listed)
        if known is None and cache.candidates.note(choice) and lists_few_files(opened):
            known = [self._open(batch).described() for batch in batches_of_one_spec(opened, cache)]
            if (
                sum(candidates.statistics.rows for candidates in known) <= MOST_ROWS
            ):  # counts in manifest lists may be wrong
                cache.candidates.keep(choice, listed, known)
        return known

    def _plan_here(self, batches: Sequence[Manifests]) -> list[PlannedBatch]:
        if len(batches) > 1 and any(map(_gains_by_threads, batches)):
            with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1)) as pool:
                return list(pool.map(self._plan_batch, batches))
        return [self._plan_batch(batch) for batch in batches]

    def _plan_batch(self, manifests: Manifests) -> PlannedBatch:
        """Plan manifests of one spec."""
        return self.plan_candidates(self._open(manifests))

    def _open(self, manifests: Manifests) -> UnprunedFiles:
        """Load the files of manifests of one spec."""
        spec = find_spec(self.metadata, manifests.partition_spec_id[0].as_py())
        want = self._columns(spec)
        entries = open_entries(self.context, manifests, want, self.statuses)
        unjudged = entries.without(want.judged_names())
        return UnprunedFiles(
            statistics=statistics_of_files(entries.columns, spec, self.schema),
            record_counts=entries.columns.record_count.to_numpy(),
            sizes=entries.columns.file_size_in_bytes.to_numpy(),
            manifests=manifests.num_rows,
            describe=lambda keep: describe_files(unjudged.complete(keep), spec, self.schema, self.deletes),
        )

    def plan_candidates(self, candidates: UnprunedFiles) -> PlannedBatch:
        """Select the files that may match, each with its residual code."""
        statistics = with_partition(candidates.statistics, self.where, self.metadata)
        by_partition = might_match(
            project_inclusive(self.where, statistics.terms), statistics.partition, statistics.rows
        )
        keep = by_partition & might_match(self.where, statistics.columns, statistics.rows)
        if not keep.any():
            return NO_FILES, _metrics_of_opened(candidates, by_partition, keep)
        # For few files, evaluating all costs less than selecting the statistics of those to keep.
        residuals = (
            find_residuals(self.where, statistics).at(keep)
            if statistics.rows <= FEW
            else find_residuals(self.where, statistics.at(keep))
        )
        described = candidates.describe(keep)
        columns = {"must_match": pa.array(residuals.always), "residual_code": pa.array(residuals.codes)}
        files = PlannedFiles(described.extended(columns).table)
        if residuals.never.any():  # pruned by the conditions together, not by a single one
            files = files.choose(~residuals.never)
            keep[keep] = ~residuals.never
        return files, _metrics_of_opened(candidates, by_partition, keep)


def _together(parts: Sequence[PlannedBatch]) -> PlannedBatch:
    if len(parts) == 1:
        return parts[0]
    files = PlannedFiles.concat(files for files, _ in parts) if parts else NO_FILES
    return files, sum((metrics for _, metrics in parts), ScanMetrics())


def _gains_by_threads(batch: Manifests) -> bool:
    """Return whether decoding a batch mostly runs without the interpreter lock; else threads would wait for it."""
    return bool(pc.mean(batch.manifest_length).as_py() >= SMALL_MANIFEST_BYTES)


def _added_by(manifests: Manifests, snapshot: Snapshot, content: int) -> Manifests:
    is_own = manifests.added_snapshot_id.to_numpy() == snapshot.snapshot_id
    return manifests.choose(is_own & is_of(manifests, content))


def _metrics_of_opened(candidates: UnprunedFiles, by_partition: Mask, read: Mask) -> ScanMetrics:
    """Count the files in opened manifests; unread files that partitions did not prune were pruned by statistics."""
    files, rows, size = in_all = _totals(candidates.record_counts, candidates.sizes)
    files_left, rows_left, size_left = in_all if by_partition.all() else _totals_at(candidates, by_partition)
    files_read, rows_read, size_read = _totals_at(candidates, read)
    return ScanMetrics(
        manifests=candidates.manifests,
        files=files,
        files_pruned_by_partition=files - files_left,
        files_pruned_by_statistics=files_left - files_read,
        files_read=files_read,
        rows=rows,
        rows_pruned_by_partition=rows - rows_left,
        rows_pruned_by_statistics=rows_left - rows_read,
        rows_read=rows_read,
        bytes_listed=size,
        bytes_pruned_by_partition=size - size_left,
        bytes_pruned_by_statistics=size_left - size_read,
        bytes_read=size_read,
    )


def _totals_at(candidates: UnprunedFiles, chosen: Mask) -> tuple[int, int, int]:
    return _totals(candidates.record_counts[chosen], candidates.sizes[chosen])


def _totals(record_counts: Longs, sizes: Longs) -> tuple[int, int, int]:
    """Return how many files there are, and their rows and bytes."""
    return len(sizes), int(record_counts.sum()), int(sizes.sum())


def _metrics_of_pruned(pruned: Manifests) -> ScanMetrics:
    files = sum(pc.sum(pruned[name]).as_py() or 0 for name in ("added_files_count", "existing_files_count"))
    rows = sum(pc.sum(pruned[name]).as_py() or 0 for name in ("added_rows_count", "existing_rows_count"))
    return ScanMetrics(
        manifests=pruned.num_rows,
        manifests_pruned=pruned.num_rows,
        files=files,
        files_in_pruned_manifests=files,
        rows=rows,
        rows_in_pruned_manifests=rows,
    )
