"""Publish and rebase branches, cherry-pick and revert snapshots: each is one commit, or a report of what collides.

Raises ConcurrentChange with a list of the collisions, InvalidInput, NoSuchSnapshot.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from icefield.codec.manifest.rows import DataFiles
from icefield.codec.manifest.schema import PARQUET
from icefield.commit.action import Action, CommitTarget, WriteContext
from icefield.commit.actions.refs import FastForward
from icefield.commit.attempt import DraftStore
from icefield.commit.replay.apply import ApplyChange, CopiedRows
from icefield.commit.replay.branches import PublishBranch, RebaseBranch
from icefield.commit.replay.decisions import NOT_DECIDED, Decision
from icefield.commit.replay.sources import ChangeSource, OfBranch, OfSnapshot, OppositeOf
from icefield.dml.head import TableHead
from icefield.dml.write import SnapshotAction, TableWrite
from icefield.engine.file_works import delete_destination, write_batches
from icefield.engine.local import local_name
from icefield.errors import MOST_MOVES, RowsMoved
from icefield.model.apply import apply
from icefield.model.snapshot import Snapshot
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.read_ahead import read_ahead
from icefield.parquet.read.task import FileTask

RestoredRows = Sequence[tuple[FileTask, Positions]]


@dataclass(frozen=True)
class Replay:
    """Changes a branch by what another version changed.

    notes: more keys for the summary. decision: about rows that both changed.
    """

    head: TableHead
    ref: str
    is_dry_run: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)
    decision: Decision = NOT_DECIDED

    def publish(self, branch: str, checked_id: int | None = None) -> Snapshot | None:
        """Publish a branch to this one. checked_id: the head of the branch that was checked."""

        def make(write: TableWrite) -> PublishBranch:
            has_snapshots = write.base.ref_head(self.ref) is not None
            return PublishBranch(branch, self._change(write, OfBranch(branch)), checked_id, has_snapshots)

        return self._commit(make)

    def fast_forward(self, branch: str, checked_id: int | None = None) -> Snapshot | None:
        """Move this branch to the head of another one, which must descend from its own head."""
        action = FastForward(self.ref, branch, checked_id=checked_id)
        return self._preview(action) if self.is_dry_run else self.head.commit([action]).ref_head(self.ref)

    def rebase(self, onto: str, *, squashes: bool = False) -> Snapshot | None:
        """Rebase this branch onto another ref; squashes: its changes become one snapshot."""
        return self._commit(lambda write: RebaseBranch(onto, self._change(write, OfBranch(onto)), squashes))

    def cherry_pick(self, snapshot_id: int) -> Snapshot | None:
        """Apply what one snapshot changed."""
        return self._commit(lambda write: self._change(write, OfSnapshot(snapshot_id)))

    def revert(self, snapshot_id: int) -> Snapshot | None:
        """Apply the opposite of what one snapshot changed; again if rows that it restores change concurrently."""
        for left in reversed(range(MOST_MOVES + 1)):
            try:
                return self._revert(OppositeOf(snapshot_id))
            except RowsMoved:
                if left == 0:
                    raise
        raise AssertionError

    def _revert(self, source: OppositeOf) -> Snapshot | None:
        write = self._begin()
        context = WriteContext.of(write.head.backend, DraftStore(write.store))
        rows = self._change(write, source).find_copies(write.base, context)
        if self.is_dry_run:
            return self._preview(self._change(write, source, CopiedRows(_counted(write, rows), rows)))
        files = _copy(write, rows)
        return self._finish(write, self._change(write, source, CopiedRows(files, rows)), files)

    def _commit(self, make: Callable[[TableWrite], SnapshotAction]) -> Snapshot | None:
        write = self._begin()
        action = make(write)
        return self._preview(action) if self.is_dry_run else self._finish(write, action, write.no_files)

    def _finish(self, write: TableWrite, action: SnapshotAction, files: DataFiles) -> Snapshot | None:
        before = write.base.ref_head(self.ref)
        made = write.commit(lambda: action, files)
        return made if action.snapshot_id is not None or made != before else None

    def _preview(self, action: Action) -> Snapshot | None:
        """Return the head that the branch would have; None if nothing would change. Nothing is written."""
        base, backend = self.head.load().metadata, self.head.backend
        change = action.propose(base, WriteContext.of(backend, DraftStore(backend.store)))
        if not change.updates:
            return None
        return apply(base, change.updates, backend.ambient.now_ms()).ref_head(self.ref)

    def _begin(self) -> TableWrite:
        return TableWrite.begin(self.head, CommitTarget(self.ref))

    def _change(self, write: TableWrite, source: ChangeSource, copies: CopiedRows | None = None) -> ApplyChange:
        place = delete_destination(write.delete_plan(is_dry_run=self.is_dry_run), local_name())
        return ApplyChange(
            source=source, target=write.target, place=place, copies=copies, notes=self.notes, decision=self.decision
        )


def _copy(write: TableWrite, rows: RestoredRows) -> DataFiles:
    """Write rows to new files; in format version 3 they keep their ids."""
    if not rows:
        return write.no_files
    plan = write.write_plan(moves_rows=True)
    left_out = {task.location: positions for task, positions in rows}
    batches = (
        batch
        for reader, task in read_ahead(write.store, write.base, [task for task, _ in rows])
        for batch in reader.read_without(task, plan.schema, left_out[task.location])
    )
    return write_batches(plan, batches, write.store, local_name())


def _counted(write: TableWrite, rows: RestoredRows) -> DataFiles:
    """Return a file that stands for the rows to write, in a dry run."""
    count = sum(task.record_count - len(left_out) for task, left_out in rows)
    row = {"content": 0, "file_path": "", "file_format": PARQUET, "record_count": count, "file_size_in_bytes": 0}
    return DataFiles(pa.Table.from_pylist([row] if count else [], schema=write.no_files.table.schema))
