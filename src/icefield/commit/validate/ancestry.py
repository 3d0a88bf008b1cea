"""Which snapshots a version contains: its ancestors, and those of branches that were published to it.

A publish of a branch that has diverged adds one snapshot, with the changes of the branch. Its only parent is the head
of the branch it was published to; its summary names the head of the other one:

    main      A ── M1 ── P        P: icefield.merged-snapshot-id = B2
               └── B1 ── B2       P contains A, M1, B1 and B2

Raises ConcurrentChange for versions that have no snapshot in common.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from icefield.arguments import whole_number
from icefield.errors import ConcurrentChange
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation, Snapshot

MERGED = "icefield.merged-snapshot-id"
PICKED = "source-snapshot-id"  # Iceberg's key for a cherry-pick
REVERTED = "icefield.reverted-snapshot-id"
_OURS, _THEIRS = 1, 2
_BOTH = _OURS | _THEIRS


@dataclass(frozen=True)
class Parted:
    """Where two versions parted.

    base: the newest snapshot that both contain. ours, theirs: what only one of them contains, newest first.
    """

    base: Snapshot
    ours: tuple[Snapshot, ...]
    theirs: tuple[Snapshot, ...]


def find_parting(metadata: TableMetadata, ours: Snapshot, theirs: Snapshot) -> Parted:
    """Find the newest snapshot that two versions contain, and what came after it on each side."""
    base: Snapshot | None = None
    only: dict[int, list[Snapshot]] = {_OURS: [], _THEIRS: []}
    for snapshot, sides in _walk(metadata, ours, theirs):
        if sides == _BOTH:
            base = base or snapshot
        else:
            only[sides].append(snapshot)
    if base is None:
        raise ConcurrentChange(
            f"snapshots {ours.snapshot_id} and {theirs.snapshot_id} have no snapshot in common: it has expired, or "
            "there never was one",
            hint="Nothing was changed; apply the changes again on a new branch",
        )
    return Parted(base, tuple(only[_OURS]), tuple(only[_THEIRS]))


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
    return any(s.snapshot_id == snapshot_id and sides == _BOTH for s, sides in _walk(metadata, version, found))


def find_rewrites(snapshots: tuple[Snapshot, ...]) -> list[Snapshot]:
    """Return the snapshots that only moved rows, newest first."""
    return [snapshot for snapshot in snapshots if snapshot.operation == Operation.REPLACE]


def summary_id(snapshot: Snapshot, key: str) -> int | None:
    """Return a snapshot id from a summary."""
    return whole_number(snapshot.summary.get(key))


def _walk(metadata: TableMetadata, ours: Snapshot, theirs: Snapshot) -> Iterator[tuple[Snapshot, int]]:
    """Yield snapshots with the sides that contain them, newest first, until all that are left are in both."""
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
        if own == _BOTH and all(sides[each] == _BOTH for *_, each in heap):
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
