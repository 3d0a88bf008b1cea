"""Publish a branch to another, and rebase one onto another: a fast-forward where possible, else one new snapshot.

Raises ConcurrentChange with a list of the collisions, NoSuchSnapshot, InvalidInput.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from icefield.commit.action import NOTHING_TO_DO, ProposedChange, WriteContext
from icefield.commit.actions.refs import FastForward, check_unprotected
from icefield.commit.replay.apply import ApplyChange
from icefield.commit.replay.sources import OfSnapshots
from icefield.commit.validate.ancestry import contains
from icefield.commit.validate.key_history import take_over
from icefield.errors import ConcurrentChange, InvalidInput, NoSuchSnapshot
from icefield.model.apply import apply
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN, RefKind
from icefield.model.updates import AssertRefSnapshotId, AssertTableUUID, Requirement, SetSnapshotRef


@dataclass
class PublishBranch:
    """Moves a branch to the head of another, or applies what the other one changed.

    checked_id: the head of the other one that was checked; None if there are no checks.
    """

    branch: str
    change: ApplyChange
    checked_id: int | None = None

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot of this action, if it needed one."""
        return self.change.snapshot_id

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        ref = self.change.target.ref
        source, target = base.ref_head(self.branch), base.ref_head(ref)
        if source is None:
            raise NoSuchSnapshot(f"{self.branch!r} has no snapshots to publish")
        if self.checked_id is not None and source.snapshot_id != self.checked_id:
            raise ConcurrentChange(
                f"cannot publish {self.branch!r}: it has moved since its rows were checked",
                hint="Nothing was changed; run it again",
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
    """Moves a branch to the head of another ref, with its own change as one snapshot after it."""

    onto: str
    change: ApplyChange

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot of this action, if it needed one."""
        return self.change.snapshot_id

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
        self.change.source = OfSnapshots(onto.snapshot_id, head.snapshot_id)
        added = self.change.propose(started, context)
        required: list[Requirement] = [AssertTableUUID(base.table_uuid), AssertRefSnapshotId(branch, head.snapshot_id)]
        return ProposedChange([*moved, *added.updates], required, added.unused)

    def prepare(self, base: TableMetadata, context: WriteContext) -> None:
        """Write nothing in advance."""

    def reusable_files(self) -> Sequence[str]:
        return ()
