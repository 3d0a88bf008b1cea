"""Fill in what entries inherit from the manifest list. (spec: Sequence Number Inheritance, First Row ID Inheritance)

Raises CorruptFile for an entry that must have its own number and does not.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.decode import MANIFEST_COLUMN
from icefield.codec.manifest.header import DATA_MANIFEST
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import ADDED, DATA, DELETED
from icefield.errors import CorruptFile


def inherit(entries: ManifestEntries, manifests: Manifests) -> ManifestEntries:
    """Return the entries with all inherited values filled in.

    `manifests` has rows of a manifest list, in the order in which the files were decoded; one row for
    `decode_manifest`. Columns that were not decoded are skipped; `status` is required, and `record_count` for row ids.
    """
    if MANIFEST_COLUMN in entries:
        owner = entries[MANIFEST_COLUMN].to_numpy()
    else:
        owner = np.zeros(entries.num_rows, np.int32)
    source = _Source(entries, manifests, owner)
    names = set(entries.column_names)
    return entries.replaced({name: fill(source, name) for name, fill in _FILLS if name in names})


class _Source:
    def __init__(self, entries: ManifestEntries, manifests: Manifests, owner: Any) -> None:
        self.entries, self.manifests, self.owner = entries, manifests, owner

    def of_manifest(self, name: str) -> pa.Array:
        """Return the value of a manifest list column for each entry."""
        return self.manifests[name].combine_chunks().take(pa.array(self.owner))

    def status(self) -> pa.ChunkedArray:
        return self.entries.status


def _fill_sequence_number(source: _Source, name: str) -> pa.ChunkedArray:
    """Give added entries their manifest's number; in a v1 manifest (number 0) every entry has 0."""
    stored = source.entries[name]
    if stored.null_count == 0:
        return stored
    inherited = source.manifests.sequence_number.to_numpy()[source.owner]
    cannot = (inherited != 0) & (source.status().to_numpy() != ADDED)
    bad = cannot & stored.is_null().to_numpy() if cannot.any() else cannot
    if bad.any():
        row = int(np.argmax(bad))
        location = source.manifests.manifest_path[int(source.owner[row])].as_py()
        raise CorruptFile(location, f"entry {row} is existing or deleted and has no {name}")
    filled = pa.chunked_array([pa.array(inherited)])
    return filled if stored.null_count == len(stored) else pc.coalesce(stored, filled)


def _fill_snapshot_id(source: _Source, name: str) -> pa.ChunkedArray:
    stored = source.entries[name]
    return stored if stored.null_count == 0 else pc.coalesce(stored, source.of_manifest("added_snapshot_id"))


def _fill_content(source: _Source, name: str) -> pa.ChunkedArray:
    return pc.fill_null(source.entries[name], DATA)


def _fill_first_row_id(source: _Source, name: str) -> pa.ChunkedArray:
    """Assign first row ids to the data files that have none yet, in manifest order.

    As in Iceberg Java: deleted entries are skipped, and in a manifest without an id (committed before the table was v3)
    files have none, whatever is stored.
    """
    stored = source.entries[name]
    if source.manifests.first_row_id.null_count == source.manifests.num_rows:
        return pa.chunked_array([pa.nulls(len(stored), pa.int64())])
    first = source.of_manifest("first_row_id")
    takes = pc.and_(stored.is_null(), pc.not_equal(source.status(), DELETED))
    rows = pc.if_else(takes, source.entries.record_count, 0).to_numpy()
    before = np.cumsum(rows) - rows
    # The sum restarts with each manifest; the entries of a manifest are contiguous.
    starts = np.flatnonzero(np.diff(source.owner, prepend=-1))
    before -= np.repeat(before[starts], np.diff(starts, append=len(before)))
    assigned = pc.if_else(takes, pc.add(first, pa.array(before)), stored)
    has_ids = pc.and_(first.is_valid(), pc.equal(source.of_manifest("content"), DATA_MANIFEST))
    return pc.if_else(has_ids, assigned, pa.scalar(None, pa.int64()))


_FILLS = (
    ("snapshot_id", _fill_snapshot_id),
    ("sequence_number", _fill_sequence_number),
    ("file_sequence_number", _fill_sequence_number),
    ("content", _fill_content),
    ("first_row_id", _fill_first_row_id),
)
