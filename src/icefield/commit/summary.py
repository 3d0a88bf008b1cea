"""The summary of a snapshot: what it added and removed, and the totals after it.

(spec: Optional Snapshot Summary Fields)

All totals are written on every commit: one engine of the field cannot append to a table whose parent lacks them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefield.model.snapshot import Operation, Snapshot

TOTALS = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


@dataclass(frozen=True)
class Tally:
    """Counts of files on one side of a change."""

    files: int = 0
    records: int = 0
    bytes: int = 0


NOTHING = Tally()


def tally(files: pa.Table) -> Tally:
    """Count data files, their rows and bytes."""
    records = pc.sum(files.column("record_count")).as_py() or 0
    return Tally(files.num_rows, records, pc.sum(files.column("file_size_in_bytes")).as_py() or 0)


def summarise(operation: Operation, changes: Mapping[str, int], parent: Snapshot | None) -> dict[str, str]:
    """Build the summary; totals that the parent lacks cannot be known and are left out."""
    summary = {"operation": operation.value}
    summary |= {key: str(value) for key, value in changes.items() if value}
    for total, (plus, minus) in TOTALS.items():
        before = _total_before(parent, total)
        if before is not None:
            summary[total] = str(before + changes.get(plus, 0) - changes.get(minus, 0))
    return summary


def _total_before(parent: Snapshot | None, key: str) -> int | None:
    if parent is None:
        return 0
    text = parent.summary.get(key)
    return int(text) if text is not None and text.isdecimal() else None
