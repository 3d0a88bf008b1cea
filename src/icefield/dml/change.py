"""The common part of row-level changes: the settings, the commit, and the result.

filter, or source rows -> plan -> engine: `Changed` -> one snapshot, or none -> ChangeResult
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.actions.row_delta import RowDelta
from icefield.commit.snapshot.manifests import AddedFiles
from icefield.commit.validate.idempotency_key import IdempotencyKey
from icefield.commit.validate.read_set import ReadSet
from icefield.dml.moment import find_moment
from icefield.dml.result import ChangeResult
from icefield.dml.verbs import ChangeVerb
from icefield.dml.write import TableWrite
from icefield.engine.change import Changed, ChangeSettings, Clause, Effect
from icefield.engine.choose import EngineName
from icefield.engine.file_works import CountRows, delete_destination
from icefield.engine.local import local_name
from icefield.errors import InvalidInput, Unsupported
from icefield.expr.render.describe import describe
from icefield.model.snapshot import Snapshot
from icefield.parquet.write.delete_files import delete_locations
from icefield.parquet.write.plan import WritePlan
from icefield.plan.counts import count_rows
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles
from icefield.properties.table import (
    AUTO_MODE,
    COPY_ON_WRITE,
    MERGE_ON_READ,
)

MODES = (COPY_ON_WRITE, MERGE_ON_READ, AUTO_MODE)


@dataclass(frozen=True)
class ChangeOptions:
    """What callers choose for any row-level change. can_reread: the source can be read again if Spark loses it."""

    is_dry_run: bool = False
    mode: str | None = None
    retry_conflicts: int = 0
    idempotency_key: IdempotencyKey | None = None
    engine: EngineName | None = None
    can_reread: bool = False


@dataclass(frozen=True)
class RowChange:
    """One row-level change in progress. asked: the mode that the caller chose."""

    write: TableWrite
    verb: ChangeVerb
    asked: str | None = None
    is_dry_run: bool = False
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Measure a phase."""
        start = self.write.ambient.monotonic()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + self.write.ambient.monotonic() - start

    @property
    def mode(self) -> str:
        """How the old versions of changed rows are deleted."""
        if self.asked is not None and self.asked not in MODES:
            raise InvalidInput(f"unknown mode {self.asked!r}", hint=f"Choose one of {', '.join(MODES)}")
        properties = self.write.base.properties
        mode = self.asked or self.verb.own_mode.read(properties) or self.verb.mode.read(properties)
        if mode == MERGE_ON_READ and self.write.base.format_version == 1:
            raise Unsupported(
                "format version 1 does not support row-level deletes",
                hint="Upgrade the table, or change rows by copy-on-write",
            )
        return mode

    def settings(self, clauses: Sequence[Clause]) -> ChangeSettings:
        """Return the settings for the engine."""
        write = self.write
        deletes = write.delete_plan(is_dry_run=self.is_dry_run) if write.base.format_version > 1 else None
        mode, rows = self._data_files(clauses, deletes)
        if self.verb.distribution is not None:
            rows = replace(rows, distribution=self.verb.distribution.read(write.base.properties))
        moment = find_moment(write.ambient, write.head.sessions)
        has_order = not write.base.sort_order.is_unsorted
        return ChangeSettings(mode, rows, deletes, write.base.has_row_ids, self.is_dry_run, moment, has_order)

    def _data_files(self, clauses: Sequence[Clause], deletes: WritePlan | None) -> tuple[str, WritePlan]:
        """Return the mode for the engine, and the settings of new data files."""
        try:
            return self.mode, self.write.write_plan(moves_rows=True, is_dry_run=self.is_dry_run)
        except Unsupported as error:
            if deletes is None or any(clause.effect is not Effect.DELETE for clause in clauses):
                raise
            # Rows that cannot be written can be deleted, as long as no file is rewritten without them.
            if self.mode == COPY_ON_WRITE:
                raise Unsupported(
                    error.message, hint="Rows can be deleted with mode='merge-on-read' or 'auto'"
                ) from error
            return MERGE_ON_READ, deletes

    def finish(
        self,
        scan: ScanPlan,
        done: Changed,
        read_set: ReadSet,
        whole: PlannedFiles | None = None,
        *,
        may_insert: bool = False,
    ) -> ChangeResult:
        """Commit a change, unless nothing changed or it is a dry run.

        whole: files to drop without reading them. may_insert: it would add rows for those that it did not find.
        """
        nothing = scan.files.slice(0, 0)
        whole = nothing if whole is None else whole
        copied, emptied = scan.files.at(done.rewritten), scan.files.at(done.dropped)
        removed = PlannedFiles.concat([copied, emptied, whole])
        # A row that was deleted concurrently would reappear with its new values, or in a copy; or a merge that deletes
        # it would have inserted one instead.
        carried = PlannedFiles.concat([copied, emptied]) if done.counts.updated or may_insert else copied
        files = DataFiles.concat([self.write.no_files, *done.files])
        read_set = replace(read_set, plan=scan, reads_whole_table=done.reads_whole_table)
        deleted = self._count(scan, whole)
        snapshot = None
        if not self.is_dry_run and not (done.changes_nothing and whole.num_rows == 0):
            with self.timed("commit"):
                snapshot = self._commit(done, files, removed, carried, read_set)
        read = scan.files.num_rows - whole.num_rows
        return ChangeResult(
            verb=self.verb.name,
            snapshot=snapshot,
            is_dry_run=self.is_dry_run,
            mode=self.mode,
            engine=str(self.write.uses[-1]) if self.write.uses else "none (metadata alone)",
            filter=describe(scan.where),
            scan=scan.metrics,
            rows_matched=done.counts.matched + deleted,
            rows_updated=done.counts.updated,
            rows_deleted=done.counts.deleted + deleted,
            rows_inserted=done.counts.inserted,
            rows_copied=done.counts.copied,
            files_read=read,
            bytes_read=scan.files.total_bytes - whole.total_bytes,
            files_rewritten=copied.num_rows,
            files_dropped=removed.num_rows - copied.num_rows,
            bytes_removed=removed.total_bytes,
            files_added=files.num_rows,
            bytes_added=sum(files.file_size_in_bytes.to_pylist()),
            delete_files_added=done.delete_files,
            seconds=self.seconds,
        )

    def _count(self, scan: ScanPlan, whole: PlannedFiles) -> int:
        """Count the live rows of files to drop, from metadata where that is possible."""
        plan = replace(scan, files=whole)

        def count(files: PlannedFiles) -> Iterator[int]:
            engine = self.write.engine(files.total_bytes)
            work = CountRows(scan.version.schema, scan.where)
            return engine.run(work, engine.group(plan.tasks(files)))

        return int(count_rows(plan, count).sum()) if whole.num_rows else 0

    def _commit(
        self, done: Changed, files: DataFiles, removed: PlannedFiles, carried: PlannedFiles, read_set: ReadSet
    ) -> Snapshot | None:
        write = self.write
        if not done.deletes:
            return write.replace_files(files, replace(read_set, plan=replace(read_set.plan, files=removed)), carried)

        def make() -> RowDelta:
            return RowDelta(
                files=AddedFiles(files, write.shape),
                read_set=read_set,
                target=write.target,
                deletes=done.deletes,
                has_vectors=write.base.has_row_ids,
                removed=removed,
                carried=carried,
                place=delete_destination(write.delete_plan(), local_name()),
            )

        return write.commit(make, files, delete_locations(done.deletes))
