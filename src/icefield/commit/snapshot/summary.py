"""The summary of a snapshot: what it added and removed, and the new totals.

(spec: Optional Snapshot Summary Fields)

All totals are written on every commit: some engines cannot append to a table whose parent snapshot lacks them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefield.arguments import whole_number
from icefield.codec.manifest.rows import DataFiles, Files, ManifestEntries
from icefield.codec.manifest.schema import EQUALITY_DELETES
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
    """Counts of added or removed data files."""

    files: int = 0
    records: int = 0
    bytes: int = 0


NOTHING = Tally()


def tally(files: Files) -> Tally:
    """Count data files, their rows and bytes."""
    return Tally(files.num_rows, _total(files.record_count), _total(files.file_size_in_bytes))


@dataclass(frozen=True)
class DeleteTally:
    """Counts of added or removed delete files, by content; a deletion vector counts as a delete file."""

    files: int = 0
    position_files: int = 0
    vectors: int = 0
    equality_files: int = 0
    positions: int = 0
    keys: int = 0
    bytes: int = 0

    def counts(self, verb: str) -> dict[str, int]:
        """Return the counts under their summary keys; `verb` is added or removed."""
        return {
            f"{verb}-delete-files": self.files,
            f"{verb}-position-delete-files": self.position_files,
            f"{verb}-dvs": self.vectors,
            f"{verb}-equality-delete-files": self.equality_files,
            f"{verb}-position-deletes": self.positions,
            f"{verb}-equality-deletes": self.keys,
        }


NO_DELETE_FILES = DeleteTally()


def tally_deletes(files: ManifestEntries | DataFiles) -> DeleteTally:
    """Count delete files; needs content, record_count, and the sizes of files and of vectors in them."""
    is_key = pc.equal(files.content, EQUALITY_DELETES)
    is_vector = files.content_size_in_bytes.is_valid()
    keys, vectors = files.filter(is_key), files.filter(is_vector)
    rows = _total(files.record_count)
    # Several vectors share one file; each counts with its own bytes.
    sizes = pc.coalesce(files.content_size_in_bytes, files.file_size_in_bytes)
    return DeleteTally(
        files=files.num_rows,
        position_files=files.num_rows - keys.num_rows - vectors.num_rows,
        vectors=vectors.num_rows,
        equality_files=keys.num_rows,
        positions=rows - _total(keys.record_count),
        keys=_total(keys.record_count),
        bytes=_total(sizes),
    )


def _total(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)


def summarise(operation: Operation, changes: Mapping[str, int], parent: Snapshot | None) -> dict[str, str]:
    """Build the summary; totals that the parent lacks are unknown and left out."""
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
    return whole_number(parent.summary.get(key))
