"""Which snapshots a version contains: its ancestors, and those of branches that were published to it.

A publish of a branch that has diverged adds one snapshot, with the changes of the branch. Its only parent is the head
of the branch it was published to; its summary names the head of the other one:

    main      A ── M1 ── P        P: icefield.merged-snapshot-id = B2
               └── B1 ── B2       P contains A, M1, B1 and B2

It lists the others, too (`icefield.merged-snapshot-ids`): if B2 expires, it is still known that P contains B1. What a
version contained before one of its snapshots expired is not known. If that may be a change of the other version, the
change might be applied twice, so that the two are not merged.
Raises ConcurrentChange for versions that have no snapshot in common, or of which it is not known which they have.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from icefield.arguments import whole_number
from icefield.errors import ConcurrentChange
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation, Snapshot

MERGED = "icefield.merged-snapshot-id"
MERGED_MORE = "icefield.merged-snapshot-ids"  # the snapshots before MERGED that came with it, newest first
MERGED_BRANCH = "icefield.merged-branch"
PICKED = "source-snapshot-id"  # Iceberg's key for a cherry-pick
REVERTED = "icefield.reverted-snapshot-id"
_OURS, _THEIRS = 1, 2
_BOTH = _OURS | _THEIRS
_INSIDE = 4  # contained by a snapshot that both sides contain
_MOST_LISTED = 100  # of MERGED_MORE
_APPLY_AGAIN = "Nothing was changed; apply the changes again on a new branch"


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
    if not bases and not _began_empty(*only.values()):
        raise ConcurrentChange(
            f"snapshots {ours.snapshot_id} and {theirs.snapshot_id} have no snapshot in common: it has expired, the "
            "table was replaced since, or there never was one",
            hint=_APPLY_AGAIN,
        )
    mine, other = tuple(only[_OURS]), tuple(only[_THEIRS])
    return Parted(tuple(bases), mine, other, _find_picked(metadata, mine, other))


def _began_empty(ours: list[Snapshot], theirs: list[Snapshot]) -> bool:
    """Return whether two versions have their first snapshots, and those of one are empty: of a branch of no rows.

    If both began with rows, one of them is what the table was before it was replaced.
    """
    roots = [[each for each in side if each.parent_snapshot_id is None] for side in (ours, theirs)]
    return all(roots) and any(all(map(_is_empty, side)) for side in roots)


def _is_empty(snapshot: Snapshot) -> bool:
    return snapshot.summary.get("total-data-files") == "0"


def check_known(metadata: TableMetadata, parted: Parted) -> None:
    """Refuse two versions of which one may have contained a change of the other before its history expired."""
    mine, other = (_newest_cut(metadata, side) for side in (parted.ours, parted.theirs))
    if mine is not None and other is not None:
        _refuse_unknown(mine)
    for cut, side in ((mine, parted.theirs), (other, parted.ours)):
        if cut is not None and any(_is_older(metadata, each, cut) for each in side):
            _refuse_unknown(cut)


def check_not_among(metadata: TableMetadata, snapshots: Iterable[Snapshot], snapshot_ids: Iterable[int]) -> None:
    """Refuse a change if what expired before some snapshots may have contained it, or taken it back."""
    cut = _newest_cut(metadata, snapshots)
    if cut is None:
        return
    for found in map(metadata.snapshots.find, snapshot_ids):
        if found is None or _is_older(metadata, found, cut):
            _refuse_unknown(cut)


def _newest_cut(metadata: TableMetadata, snapshots: Iterable[Snapshot]) -> Snapshot | None:
    """Return the newest of some snapshots before which something has expired; what that contained is not known."""
    cut = [each for each in snapshots if None in _parents(metadata, each)]
    return newest_first(metadata, cut)[0] if cut else None


def _is_older(metadata: TableMetadata, snapshot: Snapshot, other: Snapshot) -> bool:
    order = _Order(metadata)
    return order.of(snapshot) > order.of(other)


def _refuse_unknown(cut: Snapshot) -> NoReturn:
    raise ConcurrentChange(
        "cannot apply the change: it is not known whether both sides have it, because what came before snapshot "
        f"{cut.snapshot_id} has expired",
        hint=_APPLY_AGAIN,
    )


def merge_summary(merged: Snapshot, parted: Parted) -> dict[str, str]:
    """Return the summary of a snapshot that merges another version: by it, it contains what that contains."""
    more = [str(each.snapshot_id) for each in parted.theirs if each.snapshot_id != merged.snapshot_id]
    listed = {MERGED_MORE: " ".join(more[:_MOST_LISTED])} if more else {}
    return {MERGED: str(merged.snapshot_id), **listed}


def _parents(metadata: TableMetadata, snapshot: Snapshot) -> Iterator[Snapshot | None]:
    """Yield the snapshots that one directly contains; None for one that has expired and may have contained others."""
    if snapshot.parent_snapshot_id is not None:
        yield metadata.snapshots.find(snapshot.parent_snapshot_id)
    if (merged_id := summary_id(snapshot, MERGED)) is None:
        return
    if (merged := metadata.snapshots.find(merged_id)) is not None:
        yield merged
        return
    listed = snapshot.summary.get(MERGED_MORE, "").split()
    yield from (found for each in listed if (found := metadata.snapshots.find(whole_number(each) or 0)) is not None)
    if len(listed) >= _MOST_LISTED:
        yield None


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
        left += _parents(metadata, snapshot)


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
        for parent in _parents(metadata, snapshot):
            if parent is None:  # expired
                continue
            if parent.snapshot_id not in known:
                known[parent.snapshot_id] = parent
                heapq.heappush(heap, order.of(parent))
            sides[parent.snapshot_id] = sides.get(parent.snapshot_id, 0) | own


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
