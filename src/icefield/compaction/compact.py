"""Compact a table: rewrite files that are not good, as planned, without changing rows.

    plan -> groups -> batches of groups: engine -> one commit each

Every commit is complete in itself. After a crash the next run plans again, and what was committed is good. A group
whose files another writer changed first is left out, and planned again on the new version; compaction does not fail for
it, and others do not fail for compaction (`commit.snapshot.carried_over`).

The files of a group are read and written in order, so that the new position of every row is known. To sort or cluster,
the rows of a partition are rewritten together, in another order. Memory is bounded by the batches in flight.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.actions.rewrite import RewriteFiles, RewrittenGroup
from icefield.commit.snapshot.manifests import AddedFiles
from icefield.commit.snapshot.moved_rows import MovedRows
from icefield.commit.validate.references import remove_unreferenced
from icefield.compaction.options import BIN_PACK, NO_LIMIT, CompactionLimit, CompactionRequest
from icefield.compaction.order import check_order, find_order, split_by_partition
from icefield.compaction.plan import CompactionPlan, FileGroup, Reason, plan_compaction, plan_newest
from icefield.compaction.result import CompactionResult
from icefield.dml.verbs import Verb
from icefield.dml.write import TableWrite
from icefield.engine.engine import RowEngine
from icefield.engine.file_works import MergedFiles, MergeFiles, delete_destination
from icefield.engine.local import local_name
from icefield.errors import ConcurrentChange, InvalidInput
from icefield.model.snapshot import Snapshot
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles
from icefield.properties.compaction import COMPACTION_COMMIT_BYTES
from icefield.types.arrays import Longs

COMPACT = Verb("compact", None)


@dataclass(frozen=True)
class CompactionProgress:
    """How far a compaction is: groups that were rewritten, of all, and the bytes that were read for them."""

    groups: int
    of_groups: int
    bytes: int
    of_bytes: int


OnProgress = Callable[[CompactionProgress], object]


@dataclass
class Compaction:
    """A compaction in progress. begin: starts a change on the newest version. only: rewrite these data files."""

    begin: Callable[[], TableWrite]
    request: CompactionRequest
    on_progress: OnProgress
    limit: CompactionLimit = NO_LIMIT
    only: frozenset[str] | None = None
    _seconds: dict[str, float] = field(default_factory=dict)
    _snapshots: list[Snapshot] = field(default_factory=list)
    _done: list[RewrittenGroup] = field(default_factory=list)
    _groups_done: int = 0
    _bytes_begun: int = 0
    _over_limit: int = 0
    _engine: str | None = None

    def dry_run(self) -> CompactionResult:
        """Return what would be done."""
        _, plan = self._plan(self._begin())
        return CompactionResult(plan, is_dry_run=True, strategy=self.request.strategy, seconds=self._seconds)

    def run(self) -> CompactionResult:
        """Rewrite what is worth it, and return what was done."""
        first: CompactionPlan | None = None
        left_out = 0
        for _ in range(self.limit.rounds):
            write = self._begin()
            try:
                scan, plan = self._plan(write)
            except InvalidInput:
                if first is None:
                    raise
                break  # another writer replaced the table by one that the request does not fit
            first = first or plan
            left_out = self._rewrite(write, scan, plan)
            if not left_out or self._over_limit:
                break
        assert first is not None
        return CompactionResult(
            first,
            strategy=self.request.strategy,
            engine=self._engine,
            snapshots=tuple(self._snapshots),
            groups_done=self._groups_done,
            groups_left_out=left_out,
            groups_over_limit=self._over_limit,
            files_removed=sum(group.replaced.num_rows for group in self._done),
            bytes_removed=sum(group.replaced.total_bytes for group in self._done),
            files_added=sum(group.files.num_rows for group in self._done),
            bytes_added=sum(group.files.total_bytes for group in self._done),
            seconds=self._seconds,
        )

    def _begin(self) -> TableWrite:
        return replace(self.begin(), options=self.request.write_options)

    def _plan(self, write: TableWrite) -> tuple[ScanPlan, CompactionPlan]:
        with self._timed(write, "plan"):
            scan = write.plan(self.request.where)
            thresholds = self.request.thresholds(write.base)
            if self.request.strategy != BIN_PACK:
                check_order(self.request, write.base)
            if self.only is not None:
                scan = replace(scan, files=scan.files.at(self.only))
            every = Reason.ASKED if self.only is not None else self.request.rewrites_every
            files, spec_id = scan.files, write.base.spec.spec_id
            if self.limit.newest_only and self.limit.most_bytes is not None:
                return scan, plan_newest(files, thresholds, spec_id, self.limit.most_bytes)
            most_bytes = self.limit.most_bytes
            return scan, plan_compaction(
                files, delete_rows(scan), thresholds, spec_id, every=every, most_bytes=most_bytes
            )

    def _rewrite(self, write: TableWrite, scan: ScanPlan, plan: CompactionPlan) -> int:
        """Rewrite the groups of a plan in batches; return how many were left out."""
        left_out, done = 0, 0
        groups = self._within_limit(plan.groups)
        of_bytes = sum(group.total_bytes for group in groups)
        commit_bytes = COMPACTION_COMMIT_BYTES.read(self.request.properties(write.base))
        for batch in _batches(groups, min(commit_bytes, self.limit.commit_bytes or commit_bytes)):
            if self.limit.is_over():
                self._over_limit += len(groups) - done
                break
            before = groups[:done]
            done += len(batch)
            progress = CompactionProgress(len(before), len(groups), sum(g.total_bytes for g in before), of_bytes)
            self._bytes_begun += sum(group.total_bytes for group in batch)
            # A batch has a lease of its own, if one is needed, which ends with its commit; that of the round goes on.
            part = replace(write, opened=[])
            rewritten = self._rewrite_batch(part, scan, batch, progress)
            landed = self._commit(part, scan, rewritten)
            self._done += landed
            # Rows in order of several specs are rewritten as one group.
            count = len(landed) * len(batch) // len(rewritten)
            self._groups_done += count
            left_out += len(batch) - count
        for held in write.opened:
            held.close()
        return left_out

    def _within_limit(self, groups: Sequence[FileGroup]) -> Sequence[FileGroup]:
        """Return the groups that the limit of bytes allows: those with the smallest files first."""
        if self.limit.most_bytes is None:
            return groups
        left, chosen = self.limit.most_bytes - self._bytes_begun, list[FileGroup]()
        for group in sorted(groups, key=lambda group: group.total_bytes / group.files.num_rows):
            if group.total_bytes <= left:
                left -= group.total_bytes
                chosen.append(group)
        self._over_limit = len(groups) - len(chosen)
        return chosen

    def _rewrite_batch(
        self, write: TableWrite, scan: ScanPlan, batch: Sequence[FileGroup], progress: CompactionProgress
    ) -> list[RewrittenGroup]:
        engine = write.engine(sum(group.total_bytes for group in batch))
        self._engine = str(write.uses[-1])
        with self._timed(write, "rows"):
            if self.request.strategy == BIN_PACK:
                return self._pack(write, scan, batch, engine, progress)
            chosen = replace(scan, files=PlannedFiles.concat(group.files for group in batch))
            order = find_order(chosen, self.request, write.base, engine)
            files = engine.write_in_order(chosen, write.write_plan(moves_rows=True), order)
            self.on_progress(
                replace(
                    progress,
                    groups=progress.groups + len(batch),
                    bytes=progress.bytes + sum(group.total_bytes for group in batch),
                )
            )
            return split_by_partition([group.files for group in batch], AddedFiles(files, write.shape))

    def _pack(
        self,
        write: TableWrite,
        scan: ScanPlan,
        batch: Sequence[FileGroup],
        engine: RowEngine,
        progress: CompactionProgress,
    ) -> list[RewrittenGroup]:
        """Rewrite groups in order, one task each."""
        seen = iter(batch)

        def advance(_: MergedFiles) -> None:
            nonlocal progress
            progress = replace(progress, groups=progress.groups + 1, bytes=progress.bytes + next(seen).total_bytes)
            self.on_progress(progress)

        work = MergeFiles(write.write_plan(moves_rows=True))
        merged = write.run(engine, work, [scan.tasks(group.files) for group in batch], advance)
        return [
            RewrittenGroup(group.files, each.files, _moved_rows(write, group, each))
            for group, each in zip(batch, merged, strict=True)
        ]

    def _commit(self, write: TableWrite, scan: ScanPlan, groups: Sequence[RewrittenGroup]) -> Sequence[RewrittenGroup]:
        """Commit the groups that others left unchanged, and return them."""
        files = DataFiles.concat([write.no_files, *(group.files for group in groups)])
        chosen = PlannedFiles.concat(group.replaced for group in groups)
        planned = scan.version.snapshot
        age = planned.sequence_number if planned is not None and write.base.format_version > 1 else None
        action = RewriteFiles(
            files=AddedFiles(files, write.shape, age),
            read_set=write.read_set(replace(scan, files=chosen), COMPACT),
            target=write.target,
            groups=groups,
            place=delete_destination(write.write_plan(moves_rows=False), local_name()),
        )
        with self._timed(write, "commit"):
            try:
                made = write.commit(lambda: action, files, is_optional=True)
            except ConcurrentChange:  # the version that was read is gone, or the schema was replaced
                return ()
        if made is None or made.snapshot_id != action.snapshot_id:
            now = write.head.load().metadata
            remove_unreferenced(write.reading, [*files.paths, *action.reusable_files()], now, write.base)
            return ()
        self._snapshots.append(made)
        return action.committed

    @contextmanager
    def _timed(self, write: TableWrite, phase: str) -> Iterator[None]:
        start = write.ambient.monotonic()
        try:
            yield
        finally:
            self._seconds[phase] = self._seconds.get(phase, 0.0) + write.ambient.monotonic() - start


def delete_rows(scan: ScanPlan) -> Longs:
    """Return how many rows the deletes of each file have; an upper bound where only reading could tell."""
    files = scan.files
    counts = np.zeros(files.num_rows, np.int64)
    having = np.flatnonzero(files.delete_keys.is_valid().to_numpy())
    for at, task in zip(having.tolist(), scan.tasks(files.take(having)), strict=True):
        counts[at] = sum(delete.record_count for delete in task.deletes)
    return counts


def _batches(groups: Sequence[FileGroup], most_bytes: int) -> Iterator[Sequence[FileGroup]]:
    """Yield groups that are committed together."""
    batch: list[FileGroup] = []
    held = 0
    for group in groups:
        if batch and held + group.total_bytes > most_bytes:
            yield batch
            batch, held = [], 0
        batch.append(group)
        held += group.total_bytes
    if batch:
        yield batch


def _moved_rows(write: TableWrite, group: FileGroup, merged: MergedFiles) -> MovedRows | None:
    """Return the new positions of a group's rows, or None if they cannot be derived."""
    if group.spec_id != write.base.spec.spec_id or len(AddedFiles(merged.files, write.shape).partitions) > 1:
        return None  # the rows of another spec were split by partition
    if merged.starts is None:
        return None
    ends = np.cumsum(merged.files.record_count.to_numpy())
    return MovedRows(merged.starts, merged.left_out, merged.locations, ends)
