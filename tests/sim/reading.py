"""What a table's files say, read without icefield: by json, fastavro and Arrow's Parquet reader alone.

Files never change, so that each is read once.
"""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import fastavro
import pyarrow.parquet as pq

from icefield.storage.store import Store

DELETED = 2
DATA, DELETES = 0, 1
Result = TypeVar("Result")
Row = tuple[int, int]
Rows = tuple[Row, ...]
"""Rows in order; the same one twice counts twice."""


@dataclass(frozen=True)
class Entry:
    """A file that a manifest lists as being there."""

    path: str
    content: int


class Reading:
    """The files of a store, by location."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Any] = {}

    def metadata(self, location: str) -> dict[str, Any]:
        """Read a metadata file."""
        return self._once(location, _metadata)

    def manifests(self, location: str) -> list[tuple[str, int]]:
        """Read a manifest list: where its manifests are, and whether they list data or deletes."""
        return self._once(location, _manifests)

    def entries(self, location: str) -> list[Entry]:
        """Read the live entries of a manifest."""
        return self._once(location, _live_entries)

    def rows(self, location: str) -> Rows:
        """Read a data file."""
        return self._once(location, _rows)

    def files_of(self, snapshot: dict[str, Any]) -> set[str]:
        """Name every file that a snapshot leads to."""
        found = {snapshot["manifest-list"]}
        for manifest, _ in self.manifests(snapshot["manifest-list"]):
            found.add(manifest)
            found.update(entry.path for entry in self.entries(manifest))
        return found

    def files_of_table(self, location: str) -> set[str]:
        """Name every file that a table's metadata leads to, with its own past."""
        key = f"{location}#files"
        if key not in self._known:
            self._known[key] = self._files_of_table(location)
        return set(self._known[key])

    def content(self, snapshot: dict[str, Any]) -> Rows | None:
        """Collect the rows of a snapshot; None if it has deletes, which only a scan can apply."""
        manifests = self.manifests(snapshot["manifest-list"])
        entries = [entry for manifest, _ in manifests for entry in self.entries(manifest)]
        if any(entry.content != DATA for entry in entries):
            return None
        return tuple(sorted(row for entry in entries for row in self.rows(entry.path)))

    def _files_of_table(self, location: str) -> set[str]:
        metadata = self.metadata(location)
        found = {location, *(entry["metadata-file"] for entry in metadata.get("metadata-log", ()))}
        return found.union(*(self.files_of(snapshot) for snapshot in metadata.get("snapshots", ())))

    def _once(self, location: str, read: Callable[[bytes], Result]) -> Result:
        if location not in self._known:
            self._known[location] = read(self._store.read(location))
        found: Result = self._known[location]
        return found


def _metadata(data: bytes) -> dict[str, Any]:
    return dict(json.loads(data))


def _manifests(data: bytes) -> list[tuple[str, int]]:
    return [(record["manifest_path"], record.get("content", DATA)) for record in _avro(data)]


def _avro(data: bytes) -> list[dict[str, Any]]:
    reader: Any = fastavro.reader(io.BytesIO(data))
    return list(reader)


def _live_entries(data: bytes) -> list[Entry]:
    live = [record["data_file"] for record in _avro(data) if record["status"] != DELETED]
    return [Entry(file["file_path"], file.get("content", DATA)) for file in live]


def _rows(data: bytes) -> Rows:
    table = pq.read_table(io.BytesIO(data), columns=["id", "n"], use_threads=False)
    return tuple(sorted(zip(*(table.column(name).to_pylist() for name in ("id", "n")), strict=True)))
