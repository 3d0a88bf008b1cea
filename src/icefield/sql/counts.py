"""What a statement changed, as one row.

rows_inserted | rows_updated | rows_deleted | rows_matched | rows_copied | files_added | files_removed | ...

The snapshot id is a text, because not every reader of 64-bit numbers keeps all digits; it is null if nothing changed.
A dry run has the counts of what would be done, and a further column that says what is read, and why.
"""

from collections.abc import Mapping

import pyarrow as pa

from icefield.dml.result import ChangeResult
from icefield.model.snapshot import Snapshot
from icefield.sql.session import Rows

_COUNTS = (
    *("rows_inserted", "rows_updated", "rows_deleted", "rows_matched", "rows_copied"),
    *("files_added", "files_removed", "delete_files_added"),
)
_SCHEMA = pa.schema([*(pa.field(name, pa.int64()) for name in _COUNTS), pa.field("snapshot_id", pa.string())])
_PLANNED = _SCHEMA.append(pa.field("plan", pa.string()))


def counts_of_change(result: ChangeResult) -> Rows:
    """Return what a row-level change did, or would do."""
    counts = {
        "rows_inserted": result.rows_inserted,
        "rows_updated": result.rows_updated,
        "rows_deleted": result.rows_deleted,
        "rows_matched": result.rows_matched,
        "rows_copied": result.rows_copied,
        "files_added": result.files_added,
        "files_removed": result.files_rewritten + result.files_dropped,
        "delete_files_added": result.delete_files_added,
    }
    return counted(counts, result.snapshot, str(result) if result.is_dry_run else None)


def counts_of_append(snapshot: Snapshot | None) -> Rows:
    """Return what a commit of new rows added."""
    return counted({"rows_inserted": number_of(snapshot, "added-records"), **files_of(snapshot)}, snapshot)


def number_of(snapshot: Snapshot | None, key: str) -> int:
    """Return a number of the summary of a snapshot."""
    return 0 if snapshot is None else int(snapshot.summary.get(key, "0"))


def files_of(snapshot: Snapshot | None) -> dict[str, int]:
    """Return how many files a snapshot added and removed."""
    return {
        "files_added": number_of(snapshot, "added-data-files"),
        "files_removed": number_of(snapshot, "deleted-data-files"),
        "delete_files_added": number_of(snapshot, "added-delete-files"),
    }


def counted(counts: Mapping[str, int | None], snapshot: Snapshot | None, plan: str | None = None) -> Rows:
    """Return counts; those that are not given are 0. plan: what a dry run says."""
    row = [counts.get(name, 0) for name in _COUNTS]
    shown: list[object] = [*row, None if snapshot is None else str(snapshot.snapshot_id)]
    return Rows.of(_SCHEMA, [shown]) if plan is None else Rows.of(_PLANNED, [[*shown, plan]])
