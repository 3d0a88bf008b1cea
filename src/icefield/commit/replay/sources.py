"""Which change is proposed again, on which base: of a branch, of one snapshot, or the opposite of one.

Raises ConcurrentChange, InvalidInput, NoSuchSnapshot.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from icefield.commit.replay.repeated import find_repeated, kept_key
from icefield.commit.validate.ancestry import (
    MERGED,
    MERGED_BRANCH,
    NOT_PARTED,
    PICKED,
    REVERTED,
    Parted,
    all_contained,
    check_known,
    check_not_among,
    contains,
    find_origins,
    find_parting,
    find_rewrites,
    merge_summary,
    summary_id,
)
from icefield.commit.validate.key_history import remember, take_over
from icefield.commit.validate.reverts import find_covered, find_restored, find_reverted, find_reverts
from icefield.errors import ConcurrentChange, InvalidInput, NoSuchSnapshot
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation, Snapshot
from icefield.model.updates import AssertRefSnapshotId, Requirement, Update


@dataclass(frozen=True)
class Request:
    """What to propose: what distinguishes `after` from `before`.

    ours: what the branch contains that `before` does not, newest first. theirs: what `after` contains that `before`
    does not. shared: changes that both contain and `before` does not, to be applied to it first. summary: more keys for
    the summary. updates, requirements: more of them. common: of a cherry-pick, the newest versions that both `before`
    and the branch contain: the branch has had the rows of these.
    """

    before: Snapshot | None
    after: Snapshot | None
    ours: tuple[Snapshot, ...]
    theirs: tuple[Snapshot, ...]
    summary: Mapping[str, str] = field(default_factory=dict)
    shared: "Sequence[ChangeSource]" = ()
    updates: Sequence[Update] = ()
    requirements: Sequence[Requirement] = ()
    common: tuple[Snapshot, ...] | None = None

    @property
    def only_moves_rows(self) -> bool:
        """The change consists of rewrites."""
        return len(find_rewrites(self.theirs)) == len(self.theirs)

    @property
    def may_share_keys(self) -> bool:
        """The branch may have a key that the change adds: its rewrites add none, but what `before` deleted it may have.

        Only the `before` of a cherry-pick has changes that the branch does not have.
        """
        return self.common is not None or len(find_rewrites(self.ours)) < len(self.ours)


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
        return replace(
            _since_parting(base, parted, theirs),
            summary={**merge_summary(theirs, parted), MERGED_BRANCH: self.branch},
            updates=take_over(base, ref, self.branch, theirs),
            requirements=[AssertRefSnapshotId(self.branch, theirs.snapshot_id)],
        )


@dataclass(frozen=True)
class OfVersion:
    """What a snapshot and its history changed since they left the branch: the change of a branch to rebase.

    The result contains the snapshot, as that of a publish does.
    """

    snapshot_id: int
    verb: str = "rebase"

    def resolve(self, base: TableMetadata, ref: str) -> Request | None:
        theirs, ours = base.snapshot_by_id(self.snapshot_id), base.ref_head(ref)
        if ours is None:
            raise NoSuchSnapshot(f"{ref!r} has no snapshots")
        parted = find_parting(base, ours, theirs)
        if not parted.theirs:
            return None
        return replace(_since_parting(base, parted, theirs), summary=merge_summary(theirs, parted))


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
        own = {self.snapshot_id, *find_origins(base, snapshot)}
        contained = list(all_contained(base, head))
        for known in contained:
            if not own.isdisjoint({known.snapshot_id, *find_origins(base, known)}):
                raise InvalidInput(
                    f"cannot {self.verb}: snapshot {known.snapshot_id} of {ref} is a cherry-pick of it already"
                )
        if (repeated := find_repeated(base, contained, [snapshot])) is not None:
            raise InvalidInput(
                f"cannot {self.verb}: snapshot {repeated.ours.snapshot_id} of {ref} is {repeated} already",
                hint="Nothing was changed; revert that snapshot first, if its rows are not the right ones",
            )
        if snapshot.operation == Operation.REPLACE:
            return None
        before = _parent(base, snapshot, self.verb)
        parted_before = NOT_PARTED if before is None or head is None else find_parting(base, head, before)
        since = contained if before is None else parted_before.ours
        check_not_among(base, since, find_covered(base, self.snapshot_id))
        self._check_restored(base, ref, head, parted_before)
        merged = base.snapshots.find(summary_id(snapshot, MERGED) or 0)
        # Of a publish, the branch may contain a part already.
        parted = find_parting(base, head, merged) if head is not None and merged is not None else NOT_PARTED
        shared = _shared(parted.bases, parted.picked)
        reverted = find_reverted(base, snapshot)
        kept = {} if reverted is None else {REVERTED: str(reverted)}
        key = kept_key(base, ref, snapshot)
        summary, updates = {PICKED: str(self.snapshot_id), **kept, **key}, remember(base, ref, key)
        request = Request(before, snapshot, parted_before.ours, (snapshot,), summary, shared, updates)
        return replace(request, common=parted_before.bases)

    def _check_restored(self, base: TableMetadata, ref: str, head: Snapshot | None, parted: Parted) -> None:
        """Refuse to restore rows that the branch has: because it did so, too, or because it has never removed them."""
        own = _found(base, find_covered(base, self.snapshot_id))
        brought = {each.snapshot_id for each in own}
        restored = {each for each in find_restored(base, own) if each not in brought}
        if not restored or head is None:
            return
        known = find_restored(base, all_contained(base, head))
        if both := restored & known.keys():
            raise InvalidInput(
                f"cannot {self.verb}: it restores rows that snapshot {known[min(both)]} of {ref} has restored already",
                hint=f"Nothing was changed; to restore them by this one, revert snapshot {known[min(both)]} first",
            )
        mine, other = (_covered_by(base, each) for each in (parted.ours, parted.theirs))
        if (restored & other) and not restored & mine:
            raise InvalidInput(
                f"cannot {self.verb}: it restores rows that snapshot {min(restored & other)} removed, and {ref} does "
                "not contain that",
                hint="Nothing was changed: the branch has these rows already",
            )


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
        self._check_not_undone(base, ref, list(all_contained(base, head)))
        if snapshot.operation == Operation.REPLACE:
            return None
        before = _parent(base, snapshot, self.verb)
        ours = find_parting(base, head, snapshot).ours
        check_not_among(base, ours, find_covered(base, self.snapshot_id))
        return Request(snapshot, before, ours, (), {REVERTED: str(self.snapshot_id)})

    def _check_not_undone(self, base: TableMetadata, ref: str, contained: Sequence[Snapshot]) -> None:
        """Refuse to revert what is reverted, whole or in a part that would be restored twice."""
        reverts = find_reverts(base, contained).values()
        known = {target: revert.snapshot_id for revert, target in reverts}
        restored, own = find_restored(base, contained), find_covered(base, self.snapshot_id)
        undone = known.get(self.snapshot_id) or next((restored[each] for each in sorted(own & restored.keys())), None)
        if undone is not None:
            part = "it" if self.snapshot_id in known else "a part of it"
            raise InvalidInput(
                f"cannot {self.verb}: snapshot {undone} of {ref} has reverted {part} already",
                hint=f"To take that back, revert snapshot {undone}",
            )


def _since_parting(base: TableMetadata, parted: Parted, theirs: Snapshot) -> Request:
    """Return what a version changed since it parted from another one.

    If there are several bases, the others are applied to that of the version's own line, as it did itself.
    """
    check_known(base, parted)
    ours_restored, theirs_restored = (find_restored(base, each) for each in (parted.ours, parted.theirs))
    if both := ours_restored.keys() & theirs_restored.keys():
        raise ConcurrentChange(
            f"cannot merge: both sides have reverted snapshot {min(both)}, and restored its rows",
            hint="Nothing was changed; revert one of the two reverts",
        )
    if (repeated := find_repeated(base, parted.ours, parted.theirs)) is not None:
        raise ConcurrentChange(
            f"cannot merge: both sides have made {repeated}, in snapshots {repeated.ours.snapshot_id} and "
            f"{repeated.theirs.snapshot_id}, and its rows would be there twice",
            hint="Nothing was changed; revert one of the two",
        )
    line = {snapshot.snapshot_id for snapshot in base.ancestors(theirs)}
    bases = sorted(parted.bases, key=lambda each: each.snapshot_id not in line)
    shared = _shared(bases[1:], parted.picked)
    return Request(bases[0] if bases else None, theirs, parted.ours, parted.theirs, shared=shared)


def _covered_by(base: TableMetadata, snapshots: Sequence[Snapshot]) -> set[int]:
    """Return some snapshots and those whose changes they have."""
    return {known for each in snapshots for known in find_covered(base, each.snapshot_id)}


def _found(base: TableMetadata, ids: Iterable[int]) -> list[Snapshot]:
    """Return the snapshots of some ids, as far as they are retained."""
    return [found for each in ids if (found := base.snapshots.find(each)) is not None]


def _shared(versions: Sequence[Snapshot], picked: Sequence[Snapshot]) -> list[ChangeSource]:
    """Return the changes of versions with their history, and those of single snapshots."""
    whole: list[ChangeSource] = [OfVersion(each.snapshot_id) for each in versions]
    return [*whole, *(OfSnapshot(each.snapshot_id) for each in picked)]


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
