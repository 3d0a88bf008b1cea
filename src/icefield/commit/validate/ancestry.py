"""Which snapshots a version contains: its ancestors, and those of branches that were published to it.

A publish of a branch that has diverged adds one snapshot, with the changes of the branch. Its only parent is the head
of the branch it was published to; its summary names the head of the other one:

    main      A ── M1 ── P        P: icefield.merged-snapshot-id = B2
               └── B1 ── B2       P contains A, M1, B1 and B2

Raises ConcurrentChange for versions that have no snapshot in common.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from icefield.arguments import whole_number
from icefield.errors import ConcurrentChange
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation, Snapshot

MERGED = "icefield.merged-snapshot-id"
MERGED_BRANCH = "icefield.merged-branch"
PICKED = "source-snapshot-id"  # Iceberg's key for a cherry-pick
REVERTED = "icefield.reverted-snapshot-id"
_OURS, _THEIRS = 1, 2
_BOTH = _OURS | _THEIRS
_INSIDE = 4  # contained by a snapshot that both sides contain


@dataclass(frozen=True)
class Parted:
    """Where two versions parted.

    bases: the newest snapshots that both contain; none if both began with an empty table. There are several if each
    side contains something that the other one contains, too, on top of changes of its own:

        main   A ── M1 ── P          P contains B1, Q contains M1: bases of P and Q are M1 and B1
                └── B1 ── Q

    ours, theirs: what only one of them contains, newest first. picked: snapshots whose changes both contain, because
    one has a cherry-pick of it, and the other one contains it or has another cherry-pick of it; oldest first.
    """

    bases: tuple[Snapshot, ...]
    ours: tuple[Snapshot, ...]
    theirs: tuple[Snapshot, ...]
    picked: tuple[Snapshot, ...] = ()


NOT_PARTED = Parted((), (), ())


def find_parting(metadata: TableMetadata, ours: Snapshot, theirs: Snapshot) -> Parted:
    """Find the newest snapshots that two versions contain, and what came after them on each side."""
    bases: list[Snapshot] = []
    only: dict[int, list[Snapshot]] = {_OURS: [], _THEIRS: []}
    for snapshot, sides in _walk(metadata, ours, theirs):
        if sides == _BOTH:
            bases.append(snapshot)
        elif sides & _INSIDE == 0:
            only[sides].append(snapshot)
    began_empty = all(any(s.parent_snapshot_id is None for s in side) for side in only.values())
    if not bases and not began_empty:
        raise ConcurrentChange(
            f"snapshots {ours.snapshot_id} and {theirs.snapshot_id} have no snapshot in common: it has expired, or "
            "there never was one",
            hint="Nothing was changed; apply the changes again on a new branch",
        )
    mine, other = tuple(only[_OURS]), tuple(only[_THEIRS])
    return Parted(tuple(bases), mine, other, _find_picked(metadata, mine, other))


def _find_picked(
    metadata: TableMetadata, ours: tuple[Snapshot, ...], theirs: tuple[Snapshot, ...]
) -> tuple[Snapshot, ...]:
    """Return the snapshots that one side has picked and the other one contains or has picked, too, oldest first."""
    picks = [{each for s in side for each in find_origins(metadata, s)} for side in (ours, theirs)]
    known = [{s.snapshot_id for s in side} for side in (ours, theirs)]
    both = (picks[0] & (known[1] | picks[1])) | (picks[1] & known[0])
    found = (metadata.snapshots.find(each) for each in both)
    return tuple(newest_first(metadata, (s for s in found if s is not None))[::-1])


def newest_first(metadata: TableMetadata, snapshots: Iterable[Snapshot]) -> list[Snapshot]:
    """Return snapshots in an order in which children come before their parents."""
    return sorted(snapshots, key=_Order(metadata).of)


def find_origins(metadata: TableMetadata, snapshot: Snapshot) -> Iterator[int]:
    """Yield the snapshot that this one is a cherry-pick of, that which that one is a cherry-pick of, and so on."""
    known: Snapshot | None = snapshot
    seen = {snapshot.snapshot_id}
    while known is not None and (origin := summary_id(known, PICKED)) is not None and origin not in seen:
        yield origin
        seen.add(origin)
        known = metadata.snapshots.find(origin)


def all_contained(metadata: TableMetadata, version: Snapshot | None) -> Iterator[Snapshot]:
    """Yield every snapshot that a version contains, as far as its history is retained; in no order."""
    left, seen = [version], set[int]()
    while left:
        snapshot = left.pop()
        if snapshot is None or snapshot.snapshot_id in seen:
            continue
        seen.add(snapshot.snapshot_id)
        yield snapshot
        parents = snapshot.parent_snapshot_id, summary_id(snapshot, MERGED)
        left += [metadata.snapshots.find(each) for each in parents if each is not None]


def only_in(metadata: TableMetadata, version: Snapshot, other: Snapshot | None) -> tuple[Snapshot, ...]:
    """Return what a version contains that another does not, newest first."""
    if other is None:
        return tuple(metadata.ancestors(version))
    return tuple(snapshot for snapshot, sides in _walk(metadata, version, other) if sides == _OURS)


def contains(metadata: TableMetadata, version: Snapshot | None, snapshot_id: int) -> bool:
    """Return whether a version contains a snapshot, as far as its history is retained."""
    found = metadata.snapshots.find(snapshot_id)
    if version is None or found is None:
        return False
    return any(s.snapshot_id == snapshot_id and sides & _BOTH == _BOTH for s, sides in _walk(metadata, version, found))


def find_rewrites(snapshots: tuple[Snapshot, ...]) -> list[Snapshot]:
    """Return the snapshots that only moved rows, newest first."""
    return [snapshot for snapshot in snapshots if snapshot.operation == Operation.REPLACE]


def summary_id(snapshot: Snapshot, key: str) -> int | None:
    """Return a snapshot id from a summary."""
    return whole_number(snapshot.summary.get(key))


def _walk(metadata: TableMetadata, ours: Snapshot, theirs: Snapshot) -> Iterator[tuple[Snapshot, int]]:
    """Yield snapshots with the sides that contain them, newest first, until all that are left are inside the bases."""
    sides = {ours.snapshot_id: _OURS}
    sides[theirs.snapshot_id] = sides.get(theirs.snapshot_id, 0) | _THEIRS
    known = {s.snapshot_id: s for s in (ours, theirs)}
    order = _Order(metadata)
    heap = [order.of(s) for s in known.values()]
    heapq.heapify(heap)
    while heap:
        *_, snapshot_id = heapq.heappop(heap)
        snapshot, own = known[snapshot_id], sides[snapshot_id]
        yield snapshot, own
        if own == _BOTH:
            own |= _INSIDE
        if own & _INSIDE and all(sides[each] & _INSIDE for *_, each in heap):
            return
        for parent_id in (snapshot.parent_snapshot_id, summary_id(snapshot, MERGED)):
            if parent_id is None:
                continue
            if parent_id not in known:
                parent = metadata.snapshots.find(parent_id)
                if parent is None:  # expired
                    continue
                known[parent_id] = parent
                heapq.heappush(heap, order.of(parent))
            sides[parent_id] = sides.get(parent_id, 0) | own


@dataclass(frozen=True)
class _Order:
    metadata: TableMetadata

    def of(self, snapshot: Snapshot) -> tuple[int, int, int]:
        """Return a key by which children come before their parents."""
        number = snapshot.sequence_number
        return -number, 0 if number else -self._places[snapshot.snapshot_id], snapshot.snapshot_id

    @cached_property
    def _places(self) -> dict[int, int]:
        """The places of snapshots in the list, in which parents precede their children; version 1 has no numbers."""
        return {snapshot.snapshot_id: at for at, snapshot in enumerate(self.metadata.snapshots)}
