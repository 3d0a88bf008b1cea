"""Remove snapshots from a table's metadata. Their files are kept; removing unreferenced files is a separate task.

The snapshots to expire are determined again on every base, from its refs: a tag that was created concurrently keeps its
snapshot, and one that is created before the swap makes it fail. (spec: Snapshot Retention Policy)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icefield.commit.action import NOTHING_TO_DO, ProposedChange, WriteContext
from icefield.commit.actions.refs import is_protected
from icefield.commit.validate.key_history import forget_branches
from icefield.errors import InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN, RefKind, Snapshot, SnapshotRef
from icefield.model.updates import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRef,
    RemoveSnapshots,
    Requirement,
    Update,
)
from icefield.properties.table import (
    GC_ENABLED,
    MAX_REF_AGE_MS,
    MAX_SNAPSHOT_AGE_MS,
    MAX_SNAPSHOTS,
    MIN_SNAPSHOTS_TO_KEEP,
)


@dataclass(frozen=True)
class RemoveTheseSnapshots:
    """Removes snapshots by id. Raises InvalidInput if a branch or tag still needs one, NoSuchSnapshot."""

    snapshot_ids: frozenset[int]

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        _check_gc(base)
        for snapshot_id in self.snapshot_ids:
            base.snapshot_by_id(snapshot_id)
        for name, ref in base.refs.items():
            if ref.snapshot_id in self.snapshot_ids:
                raise InvalidInput(
                    f"cannot remove snapshot {ref.snapshot_id}: the {ref.kind} {name!r} points at it",
                    hint="Drop the branch or tag first, or keep the snapshot",
                )
        return _removing(base, self.snapshot_ids, [])

    def reusable_files(self) -> Sequence[str]:
        return ()


def _check_gc(base: TableMetadata) -> None:
    if not GC_ENABLED.read(base.properties):
        raise InvalidInput(
            f"cannot remove snapshots: the table's property {GC_ENABLED.key} is false: other tables may "
            "share its files",
            hint=f"Set {GC_ENABLED.key} to true if none does",
        )


@dataclass(frozen=True)
class ExpireSnapshots:
    """Removes snapshots that are older than a time and that no retention rule keeps.

    older_than_ms: None uses the table's property. keep_last: how many snapshots of each branch to keep, whatever their
    age.
    """

    older_than_ms: int | None = None
    keep_last: int | None = None

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        expired = self.find(base, context.ambient.now_ms())
        if not expired.snapshot_ids and not expired.refs:
            return NOTHING_TO_DO
        return _removing(base, expired.snapshot_ids, expired.refs)

    def reusable_files(self) -> Sequence[str]:
        return ()

    def find(self, base: TableMetadata, now_ms: int) -> "Expired":
        """Find what would expire. Raises InvalidInput if the table does not allow it."""
        _check_gc(base)
        old = tuple(name for name, ref in base.refs.items() if self._is_old(name, ref, base, now_ms))
        refs = [ref for name, ref in base.refs.items() if name not in old]
        kept = {snapshot_id for ref in refs for snapshot_id in self._kept_by(ref, base, now_ms)}
        held = {s.snapshot_id for ref in refs for s in base.ancestors(base.snapshot_by_id(ref.snapshot_id))}
        limit = self._limit(None, base, now_ms)
        # Ancestors of a ref follow the ref's rules; other snapshots expire by age alone.
        ids = frozenset(
            s.snapshot_id
            for s in base.snapshots
            if s.snapshot_id not in kept and (s.snapshot_id in held or s.timestamp_ms < limit)
        )
        return Expired(ids, old)

    def _kept_by(self, ref: SnapshotRef, base: TableMetadata, now_ms: int) -> Iterator[int]:
        head = base.snapshot_by_id(ref.snapshot_id)
        yield head.snapshot_id
        if ref.kind is not RefKind.BRANCH:
            return
        least = max(self.keep_last or 0, ref.min_snapshots_to_keep or MIN_SNAPSHOTS_TO_KEEP.read(base.properties))
        limit = self._limit(ref, base, now_ms)
        for place, snapshot in enumerate(base.ancestors(head)):
            if place >= least and snapshot.timestamp_ms < limit:
                return
            yield snapshot.snapshot_id

    def _limit(self, ref: SnapshotRef | None, base: TableMetadata, now_ms: int) -> int:
        """Return the time before which snapshots expire."""
        if ref is not None and ref.max_snapshot_age_ms is not None:
            return now_ms - ref.max_snapshot_age_ms
        if self.older_than_ms is not None:
            return self.older_than_ms
        return now_ms - MAX_SNAPSHOT_AGE_MS.read(base.properties)

    def _is_old(self, name: str, ref: SnapshotRef, base: TableMetadata, now_ms: int) -> bool:
        if name == MAIN or is_protected(base, name):
            return False
        age = MAX_REF_AGE_MS.read(base.properties) if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        return base.snapshot_by_id(ref.snapshot_id).timestamp_ms < now_ms - age


@dataclass(frozen=True)
class TrimHistory:
    """Removes the oldest snapshots of branches that have more than the table's property allows, if it is set.

    Part of every commit that adds a snapshot, so that the metadata file does not grow with the number of commits. What
    a branch or tag says of its own retention takes precedence. Snapshots that no ref leads to are left to expiry.
    """

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        most = MAX_SNAPSHOTS.read(base.properties)
        if most is None or len(base.snapshots) <= most or not GC_ENABLED.read(base.properties):
            return NOTHING_TO_DO
        now_ms = context.ambient.now_ms()
        heads = {ref.snapshot_id: base.snapshot_by_id(ref.snapshot_id) for ref in base.refs.values()}
        kept, held = set(heads), set(heads)
        for ref in base.refs.values():
            ancestors = list(base.ancestors(heads[ref.snapshot_id]))
            held.update(s.snapshot_id for s in ancestors)
            if ref.kind is RefKind.BRANCH:
                kept.update(_newest(ref, ancestors, most, now_ms))
        gone = frozenset(s.snapshot_id for s in base.snapshots if s.snapshot_id in held - kept)
        return _removing(base, gone, []) if gone else NOTHING_TO_DO

    def reusable_files(self) -> Sequence[str]:
        return ()


def _newest(ref: SnapshotRef, ancestors: Sequence[Snapshot], most: int, now_ms: int) -> Iterator[int]:
    """Yield the snapshots of a branch that it keeps."""
    least = max(most, ref.min_snapshots_to_keep or 0)
    since = now_ms if ref.max_snapshot_age_ms is None else now_ms - ref.max_snapshot_age_ms
    for place, snapshot in enumerate(ancestors):
        if place < least or snapshot.timestamp_ms > since:
            yield snapshot.snapshot_id


@dataclass(frozen=True)
class Expired:
    """What expires: snapshots, and branches and tags past their maximum age."""

    snapshot_ids: frozenset[int]
    refs: Sequence[str]


def _removing(base: TableMetadata, snapshot_ids: frozenset[int], refs: Sequence[str]) -> ProposedChange:
    """Remove snapshots and refs; require that every other ref is unchanged."""
    updates: list[Update] = [RemoveSnapshotRef(name) for name in refs]
    updates += forget_branches(base, refs)
    if snapshot_ids:
        updates.append(RemoveSnapshots(snapshot_ids))
    required: list[Requirement] = [AssertTableUUID(base.table_uuid)]
    required += [AssertRefSnapshotId(name, ref.snapshot_id) for name, ref in base.refs.items()]
    return ProposedChange(updates, required)
