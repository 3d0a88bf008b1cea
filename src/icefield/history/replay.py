"""Publish and rebase branches, cherry-pick and revert snapshots: each is one commit, or a report of what collides.

Raises ConcurrentChange with a list of the collisions, InvalidInput, NoSuchSnapshot.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from icefield.codec.manifest.rows import DataFiles
from icefield.codec.manifest.schema import PARQUET
from icefield.commit.action import Action, CommitTarget, WriteContext
from icefield.commit.actions.refs import FastForward
from icefield.commit.attempt import DraftStore
from icefield.commit.replay.apply import ApplyChange, CopiedRows
from icefield.commit.replay.branches import PublishBranch, RebaseBranch
from icefield.commit.replay.difference import find_difference, load_deleted
from icefield.commit.replay.rows import find_removed_rows
from icefield.commit.replay.sources import ChangeSource, OfBranch, OfSnapshot, OppositeOf, Request
from icefield.dml.head import TableHead
from icefield.dml.write import SnapshotAction, TableWrite
from icefield.engine.file_works import delete_destination, write_batches
from icefield.engine.local import local_name
from icefield.model.apply import apply
from icefield.model.snapshot import Snapshot
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.read_ahead import read_ahead
from icefield.parquet.read.task import FileTask

MESSAGE = "icefield.message"  # in the summary of a snapshot
RestoredRows = Sequence[tuple[FileTask, Positions]]


@dataclass(frozen=True)
class Replay:
    """Changes a branch by what another version changed. notes: more keys for the summary."""

    head: TableHead
    ref: str
    is_dry_run: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)

    def publish(self, branch: str, checked_id: int | None = None) -> Snapshot | None:
        """Publish a branch to this one. checked_id: the head of the branch that was checked."""
        return self._commit(lambda write: PublishBranch(branch, self._change(write, OfBranch(branch)), checked_id))

    def fast_forward(self, branch: str) -> Snapshot | None:
        """Move this branch to the head of another one, which must descend from its own head."""
        action = FastForward(self.ref, branch)
        return self._preview(action) if self.is_dry_run else self.head.commit([action]).ref_head(self.ref)

    def rebase(self, onto: str) -> Snapshot | None:
        """Rebase this branch onto another ref."""
        return self._commit(lambda write: RebaseBranch(onto, self._change(write, OfBranch(onto))))

    def cherry_pick(self, snapshot_id: int) -> Snapshot | None:
        """Apply what one snapshot changed."""
        return self._commit(lambda write: self._change(write, OfSnapshot(snapshot_id)))

    def revert(self, snapshot_id: int) -> Snapshot | None:
        """Apply the opposite of what one snapshot changed."""
        write, source = self._begin(), OppositeOf(snapshot_id)
        request = source.resolve(write.base, self.ref)
        if request is None:
            return None
        rows = _find_restored(write, request)
        if self.is_dry_run:
            copies = CopiedRows(_counted(write, rows), rows)
            return self._preview(self._change(write, source, copies))
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
        return ApplyChange(source=source, target=write.target, place=place, copies=copies, notes=self.notes)


def _find_restored(write: TableWrite, request: Request) -> RestoredRows:
    """Return files with rows that the earlier version had, each with the positions that are not restored."""
    difference = find_difference(write.reading, write.base, request.before, request.after)
    change = find_removed_rows(difference, write.base, write.reading)
    added = list(difference.after.tasks(difference.added))
    whole = [(task, deleted) for task, deleted in zip(added, load_deleted(added, write.base, write.store), strict=True)]
    some = [(task, np.setdiff1d(np.arange(task.record_count), back)) for task, back in change.restored]
    return [(replace(task, deletes=()), left_out) for task, left_out in (*whole, *some)]


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
