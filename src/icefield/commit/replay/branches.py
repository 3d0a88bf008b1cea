"""Publish a branch to another, and rebase one onto another: a fast-forward where possible, else new snapshots.

Raises ConcurrentChange with a list of the collisions, NoSuchSnapshot, InvalidInput.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from icefield.commit.action import NOTHING_TO_DO, ProposedChange, WriteContext
from icefield.commit.actions.refs import FastForward, check_is_checked, check_unprotected
from icefield.commit.replay.apply import ApplyChange
from icefield.commit.replay.sources import OfVersion
from icefield.commit.validate.ancestry import PICKED, REVERTED, contains, only_in
from icefield.commit.validate.key_history import take_over
from icefield.errors import ConcurrentChange, InvalidInput, NoSuchSnapshot
from icefield.model.apply import apply
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import AUTHOR, MAIN, MESSAGE, RefKind, Snapshot
from icefield.model.updates import AssertRefSnapshotId, AssertTableUUID, Requirement, SetSnapshotRef, Update

_KEPT = (AUTHOR, MESSAGE, PICKED, REVERTED)


@dataclass
class PublishBranch:
    """Moves a branch to the head of another, or applies what the other one changed.

    checked_id: the head of the other one that was checked; None if there are no checks. has_snapshots: the branch to
    publish to has had some.
    """

    branch: str
    change: ApplyChange
    checked_id: int | None = None
    has_snapshots: bool = False

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot of this action, if it needed one."""
        return self.change.snapshot_id

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        ref = self.change.target.ref
        source, target = base.ref_head(self.branch), base.ref_head(ref)
        if source is None:
            raise NoSuchSnapshot(f"{self.branch!r} has no snapshots to publish")
        check_is_checked(self.branch, source, self.checked_id)
        if target is None and self.has_snapshots:
            raise ConcurrentChange(
                f"cannot publish {self.branch!r}: the table was replaced concurrently", hint="Nothing was changed"
            )
        if target is not None and contains(base, target, source.snapshot_id):
            return NOTHING_TO_DO
        if target is None or contains(base, source, target.snapshot_id):
            return FastForward(ref, self.branch, is_merged=True).propose(base, context)
        return self.change.propose(base, context)

    def prepare(self, base: TableMetadata, context: WriteContext) -> None:
        """Write nothing in advance."""

    def reusable_files(self) -> Sequence[str]:
        return ()


@dataclass
class RebaseBranch:
    """Moves a branch to the head of another ref, with its own changes after it.

    A snapshot of the branch becomes one after that head, which contains it (`ancestry`), so that the change of the next
    one is found as for any two versions:

        main      A ── M1              A ── M1 ── B1' ── B2'      B1': icefield.merged-snapshot-id = B1
                   └── B1 ── B2

    squashes: all its changes become one snapshot.
    """

    onto: str
    change: ApplyChange
    squashes: bool = False
    _steps: dict[int, ApplyChange] = field(default_factory=dict)

    @property
    def snapshot_id(self) -> int | None:
        """The last snapshot of this action, if it needed one."""
        return next((step.snapshot_id for step in reversed(self._steps.values())), None)

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        branch = self.change.target.ref
        if branch == MAIN:
            raise InvalidInput(f"cannot rebase {MAIN}", hint="Open the branch to rebase, as table.at('staging')")
        onto, head, known = base.ref_head(self.onto), base.ref_head(branch), base.refs[branch]
        if known.kind is not RefKind.BRANCH:
            raise InvalidInput(f"cannot rebase {branch!r}: it is a tag")
        if onto is None or head is None:
            raise NoSuchSnapshot(f"{self.onto!r} has no snapshots")
        if contains(base, head, onto.snapshot_id):
            return NOTHING_TO_DO
        check_unprotected(base, branch, "rebase")
        moved = [
            SetSnapshotRef(branch, replace(known, snapshot_id=onto.snapshot_id)),
            *take_over(base, branch, self.onto, onto),
        ]
        started = apply(base, moved, context.ambient.now_ms())
        updates: list[Update] = list(moved)
        unused: list[str] = []
        for snapshot in self._line(base, head, onto):
            added = self._step(snapshot).propose(started, context)
            started = apply(started, added.updates, context.ambient.now_ms())
            updates += added.updates
            unused += added.unused
        required: list[Requirement] = [AssertTableUUID(base.table_uuid), AssertRefSnapshotId(branch, head.snapshot_id)]
        return ProposedChange(updates, required, unused)

    def _line(self, base: TableMetadata, head: Snapshot, onto: Snapshot) -> list[Snapshot]:
        """Return the snapshots to propose again, oldest first."""
        if self.squashes:
            return [head]
        own = {snapshot.snapshot_id for snapshot in only_in(base, head, onto)}
        return [snapshot for snapshot in base.ancestors(head) if snapshot.snapshot_id in own][::-1]

    def _step(self, snapshot: Snapshot) -> ApplyChange:
        """Return the change up to a snapshot; it keeps its own snapshot id when it is proposed on another base."""
        if snapshot.snapshot_id not in self._steps:
            kept = {} if self.squashes else {key: snapshot.summary[key] for key in _KEPT if key in snapshot.summary}
            self._steps[snapshot.snapshot_id] = replace(
                self.change, source=OfVersion(snapshot.snapshot_id), notes={**kept, **self.change.notes}
            )
        return self._steps[snapshot.snapshot_id]

    def prepare(self, base: TableMetadata, context: WriteContext) -> None:
        """Write nothing in advance."""

    def reusable_files(self) -> Sequence[str]:
        return ()
