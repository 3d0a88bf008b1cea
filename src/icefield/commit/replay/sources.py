"""Which change is proposed again, on which base: of a branch, of one snapshot, or the opposite of one.

Raises ConcurrentChange, InvalidInput, NoSuchSnapshot.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from icefield.commit.validate.ancestry import (
    MERGED,
    PICKED,
    REVERTED,
    contains,
    find_parting,
    find_rewrites,
    summary_id,
)
from icefield.commit.validate.key_history import take_over
from icefield.errors import InvalidInput, NoSuchSnapshot
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation, Snapshot
from icefield.model.updates import AssertRefSnapshotId, Requirement, Update


@dataclass(frozen=True)
class Request:
    """What to propose: what distinguishes `after` from `before`.

    ours: what the branch contains that `before` does not, newest first. theirs: what `after` contains that `before`
    does not. summary: more keys for the summary. updates, requirements: more of them.
    """

    before: Snapshot | None
    after: Snapshot | None
    ours: tuple[Snapshot, ...]
    theirs: tuple[Snapshot, ...]
    summary: Mapping[str, str] = field(default_factory=dict)
    updates: Sequence[Update] = ()
    requirements: Sequence[Requirement] = ()

    @property
    def only_moves_rows(self) -> bool:
        """The change consists of rewrites."""
        return len(find_rewrites(self.theirs)) == len(self.theirs)


class ChangeSource(Protocol):
    """Where a change comes from."""

    @property
    def verb(self) -> str:
        """What is done with it, for errors."""
        ...

    def resolve(self, base: TableMetadata, ref: str) -> Request | None:
        """Return the change for a branch of a base; None if there is nothing to do."""
        ...


@dataclass(frozen=True)
class OfBranch:
    """What a branch changed since it left the other one, or since it was last published to it."""

    branch: str

    @property
    def verb(self) -> str:
        return f"publish {self.branch!r}"

    def resolve(self, base: TableMetadata, ref: str) -> Request | None:
        theirs, ours = base.ref_head(self.branch), base.ref_head(ref)
        if theirs is None or ours is None:
            raise NoSuchSnapshot(f"{self.branch if theirs is None else ref!r} has no snapshots")
        parted = find_parting(base, ours, theirs)
        if not parted.theirs:
            return None
        return Request(
            parted.base,
            theirs,
            parted.ours,
            parted.theirs,
            {MERGED: str(theirs.snapshot_id), "icefield.merged-branch": self.branch},
            take_over(base, ref, self.branch, theirs),
            [AssertRefSnapshotId(self.branch, theirs.snapshot_id)],
        )


@dataclass(frozen=True)
class OfSnapshots:
    """What a snapshot contains that another version did not, when they parted: the change of a branch to rebase."""

    onto_id: int
    head_id: int
    verb: str = "rebase"

    def resolve(self, base: TableMetadata, ref: str) -> Request | None:
        theirs, ours = base.snapshot_by_id(self.head_id), base.snapshot_by_id(self.onto_id)
        parted = find_parting(base, ours, theirs)
        if not parted.theirs:
            return None
        return Request(parted.base, theirs, parted.ours, parted.theirs, {PICKED: str(self.head_id)})


@dataclass(frozen=True)
class OfSnapshot:
    """What one snapshot changed."""

    snapshot_id: int

    @property
    def verb(self) -> str:
        return f"cherry-pick snapshot {self.snapshot_id}"

    def resolve(self, base: TableMetadata, ref: str) -> Request | None:
        snapshot, head = base.snapshot_by_id(self.snapshot_id), base.ref_head(ref)
        if contains(base, head, self.snapshot_id):
            raise InvalidInput(f"cannot {self.verb}: {ref} contains it already")
        for known in base.ancestors(head):
            if summary_id(known, PICKED) == self.snapshot_id:
                raise InvalidInput(
                    f"cannot {self.verb}: snapshot {known.snapshot_id} of {ref} is a cherry-pick of it already"
                )
        if snapshot.operation == Operation.REPLACE:
            return None
        before = _parent(base, snapshot, self.verb)
        ours = () if before is None or head is None else find_parting(base, head, before).ours
        return Request(before, snapshot, ours, (snapshot,), {PICKED: str(self.snapshot_id)})


@dataclass(frozen=True)
class OppositeOf:
    """The opposite of what one snapshot of the branch changed."""

    snapshot_id: int

    @property
    def verb(self) -> str:
        return f"revert snapshot {self.snapshot_id}"

    def resolve(self, base: TableMetadata, ref: str) -> Request | None:
        snapshot, head = base.snapshot_by_id(self.snapshot_id), base.ref_head(ref)
        if head is None or not contains(base, head, self.snapshot_id):
            raise InvalidInput(f"cannot {self.verb}: {ref} does not contain it")
        undone = {summary_id(each, REVERTED): each.snapshot_id for each in base.ancestors(head)}
        if self.snapshot_id in undone and undone[self.snapshot_id] not in undone:
            raise InvalidInput(
                f"cannot {self.verb}: snapshot {undone[self.snapshot_id]} of {ref} has reverted it already",
                hint=f"To take that back, revert snapshot {undone[self.snapshot_id]}",
            )
        if snapshot.operation == Operation.REPLACE:
            return None
        before = _parent(base, snapshot, self.verb)
        ours = find_parting(base, head, snapshot).ours
        return Request(snapshot, before, ours, (), {REVERTED: str(self.snapshot_id)})


def _parent(base: TableMetadata, snapshot: Snapshot, verb: str) -> Snapshot | None:
    if snapshot.parent_snapshot_id is None:
        return None
    found = base.snapshots.find(snapshot.parent_snapshot_id)
    if found is None:
        raise NoSuchSnapshot(
            f"cannot {verb}: its parent, snapshot {snapshot.parent_snapshot_id}, has expired, so what it changed is "
            "not known"
        )
    return found
