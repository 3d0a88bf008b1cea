"""Whether the counts in snapshot summaries are true. (spec: Optional Snapshot Summary Fields)

A writer takes the totals of the parent snapshot and adds its own changes, so one wrong total makes all later ones
wrong. Iceberg Java does not count the bytes of files that its procedure `add_files` takes; so a total of bytes is
reported only where it becomes wrong, and not of a snapshot of Iceberg Java that has too few.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.arguments import whole_number
from icefield.codec.manifest.schema import ADDED, DATA, DELETED, EQUALITY_DELETES
from icefield.fsck.finding import Check, Findings
from icefield.fsck.tree import Tree, TreeEntries
from icefield.model.snapshot import Snapshot
from icefield.types.arrays import Longs

BYTES = "total-files-size"
_OF_JAVA = "iceberg-version"
# By status: the keys of data files, of their rows, and of delete files.
_CHANGES = {
    ADDED: ("added-data-files", "added-records", "added-delete-files"),
    DELETED: ("deleted-data-files", "deleted-records", "removed-delete-files"),
}


def check_summaries(snapshots: Sequence[Snapshot], tree: Tree, findings: Findings) -> None:
    """Compare summaries with the entries of their snapshots; keys that a summary lacks are not checked."""
    totals, changes = _totals(tree), _changes(tree.entries)
    bytes_are_true: dict[int, bool] = {}
    for snapshot in snapshots:
        if not tree.is_whole(snapshot.snapshot_id):
            continue
        listed = tree.lists[snapshot.snapshot_id]
        # A manifest that is listed twice is a fault of its own.
        found = {key: int(sums[np.unique(listed)].sum()) for key, sums in totals.items()}
        found |= {key: changes.get((snapshot.snapshot_id, key), 0) for keys in _CHANGES.values() for key in keys}
        wrong = dict(_wrong(snapshot.summary, found))
        bytes_are_true[snapshot.snapshot_id] = BYTES not in wrong
        if BYTES in wrong and not _is_to_blame(snapshot, wrong[BYTES] < found[BYTES], bytes_are_true):
            del wrong[BYTES]
        if wrong:
            said = ", ".join(f"{key} {value:,} instead of {found[key]:,}" for key, value in wrong.items())
            findings.add(
                Check.SUMMARIES,
                f"the summary of snapshot {snapshot.snapshot_id} has {said}",
                snapshot_id=snapshot.snapshot_id,
            )


def _wrong(summary: Mapping[str, str], found: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for key, actual in found.items():
        said = whole_number(summary.get(key))
        if said is not None and said != actual:
            yield key, said


def _is_to_blame(snapshot: Snapshot, too_few: bool, bytes_are_true: Mapping[int, bool]) -> bool:  # noqa: FBT001
    """Return whether a snapshot made the total of bytes wrong, and did not take it over from its parent."""
    if too_few and _OF_JAVA in snapshot.summary:
        return False
    parent = snapshot.parent_snapshot_id
    return parent is None or bytes_are_true.get(parent, False)


def _totals(tree: Tree) -> dict[str, Longs]:
    """Return the sums of live files for each manifest."""
    live = tree.entries.live()
    is_data, is_key = pc.equal(live.content, DATA), pc.equal(live.content, EQUALITY_DELETES)
    data, keys = live.filter(is_data), live.filter(is_key)
    positions = live.filter(pc.invert(pc.or_(is_data, is_key)))
    # Several deletion vectors share a file; each counts with its own bytes.
    sizes = pc.coalesce(live.content_size_in_bytes, live.file_size_in_bytes)
    return {
        "total-data-files": tree.sums(data),
        "total-records": tree.sums(data, data.record_count),
        "total-delete-files": tree.sums(keys) + tree.sums(positions),
        "total-position-deletes": tree.sums(positions, positions.record_count),
        "total-equality-deletes": tree.sums(keys, keys.record_count),
        BYTES: tree.sums(live, sizes),
    }


def _changes(entries: TreeEntries) -> dict[tuple[int, str], int]:
    """Return what each snapshot added and removed, by snapshot and key of its summary."""
    table = pa.table(
        {
            "snapshot": entries.snapshot_id,
            "status": entries.status,
            "is_data": pc.equal(entries.content, DATA),
            "rows": entries.record_count,
        }
    )
    sums = table.group_by(["snapshot", "status", "is_data"], use_threads=False).aggregate(
        [("rows", "count"), ("rows", "sum")]
    )
    found: dict[tuple[int, str], int] = {}
    for row in sums.to_pylist():
        if row["status"] in _CHANGES:
            files, rows, deletes = _CHANGES[row["status"]]
            found[row["snapshot"], files if row["is_data"] else deletes] = row["rows_count"]
            if row["is_data"]:
                found[row["snapshot"], rows] = row["rows_sum"]
    return found
