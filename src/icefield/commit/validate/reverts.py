"""What reverts have restored: the rows that a snapshot removed, and that a revert of it has added again.

A row that two reverts restored would be there twice. Both may have reverted the same snapshot, or one a copy of it:

    main      A ── D ── R             D deletes a row of A, R reverts D
               └── D' ── R'           D' is a cherry-pick of D, R' reverts D'

A publish would add the row of R' to that of R.

What a snapshot stands for is found in its summary: what it was picked from, published or rebased. A revert that was
itself reverted restores nothing, unless that was reverted, too.
"""

from collections.abc import Iterable, Mapping

from icefield.commit.validate.ancestry import MERGED, PICKED, REVERTED, find_origins, newest_first, only_in, summary_id
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot


def find_reverted(metadata: TableMetadata, snapshot: Snapshot) -> int | None:
    """Return the snapshot that this one reverts, also if it is a cherry-pick of the revert; None if it reverts none."""
    origins = (metadata.snapshots.find(each) for each in find_origins(metadata, snapshot))
    ids = (summary_id(each, REVERTED) for each in (snapshot, *origins) if each is not None)
    return next((each for each in ids if each is not None), None)


def find_covered(metadata: TableMetadata, snapshot_id: int) -> frozenset[int]:
    """Return a snapshot and those whose changes it has: what it was picked from, and what it published or rebased."""
    left, seen = [snapshot_id], set[int]()
    while left:
        found = metadata.snapshots.find(known := left.pop())
        if known in seen:
            continue
        seen.add(known)
        if found is None:  # expired
            continue
        left += [each for key in (PICKED, MERGED) if (each := summary_id(found, key)) is not None]
        merged, parent = (
            metadata.snapshots.find(each or 0) for each in (summary_id(found, MERGED), found.parent_snapshot_id)
        )
        if merged is not None and parent is not None:
            left += [each.snapshot_id for each in only_in(metadata, merged, parent)]
    return frozenset(seen)


def find_reverts(metadata: TableMetadata, snapshots: Iterable[Snapshot]) -> Mapping[int, tuple[Snapshot, int]]:
    """Return the reverts among some snapshots that no other one has taken back, each with what it reverts, by id."""
    targets = {
        each.snapshot_id: (each, target) for each in snapshots if (target := find_reverted(metadata, each)) is not None
    }
    covered = {own: find_covered(metadata, target) for own, (_, target) in targets.items()}
    same = {own: find_covered(metadata, own) for own in targets}
    in_effect: dict[int, bool] = {}
    for each in newest_first(metadata, (each for each, _ in targets.values())):
        own = each.snapshot_id
        in_effect[own] = not any(is_on and covered[later] & same[own] for later, is_on in in_effect.items())
    return {own: found for own, found in targets.items() if in_effect[own]}


def find_restored(metadata: TableMetadata, snapshots: Iterable[Snapshot]) -> Mapping[int, int]:
    """Return the snapshots whose removed rows are restored by some others, each with that which restores them."""
    reverts = find_reverts(metadata, snapshots).values()
    return {
        each: revert.snapshot_id
        for revert, target in reverts
        if "added-records" in revert.summary
        for each in find_covered(metadata, target)
    }
