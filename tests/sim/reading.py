"""What a table's files say, read without icefield: by json, gzip, fastavro and Arrow's Parquet reader alone.

Files never change, so that each is read once.
"""

import gzip
import io
import json
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, TypeVar

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from tests.sim.vectors import decode_vector

from icefield.errors import MissingFile
from icefield.storage.store import Store

GZIP = b"\x1f\x8b"  # files of 16 KB and more are compressed
DELETED = 2
DATA, DELETES, EQUALITY_DELETES = 0, 1, 2
Result = TypeVar("Result")
Row = tuple[int, int]
Rows = tuple[Row, ...]
"""Rows; the same one twice counts twice."""


@dataclass(frozen=True)
class Entry:
    """A file that a manifest lists as being there."""

    path: str
    content: int
    vector: tuple[str, int, int] | None = None  # the data file of a deletion vector, and where it is in the Puffin file


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
        """Read a data file, in its order."""
        return self._once(location, _rows)

    def files_of(self, snapshot: dict[str, Any]) -> set[str]:
        """Name every file that a snapshot leads to."""
        found = {snapshot["manifest-list"]}
        for manifest, _ in self.manifests(snapshot["manifest-list"]):
            found.add(manifest)
            found.update(entry.path for entry in self.entries(manifest))
        return found

    def files_of_table(self, location: str) -> frozenset[str]:
        """Name every file that a table's metadata leads to, with its own past."""
        key = f"{location}#files"
        if key not in self._known:
            self._known[key] = self._files_of_table(location)
        found: frozenset[str] = self._known[key]
        return found

    def log_of(self, location: str) -> frozenset[str]:
        """Name a metadata file and those that it has replaced, as far as its log goes."""
        log = self.metadata(location).get("metadata-log", ())
        return frozenset({location, *(entry["metadata-file"] for entry in log)})

    def content(self, snapshot: dict[str, Any]) -> Rows | None:
        """Collect the rows of a snapshot; None if it has equality deletes, which only a scan can apply."""
        manifests = self.manifests(snapshot["manifest-list"])
        entries = [entry for manifest, _ in manifests for entry in self.entries(manifest)]
        if any(entry.content == EQUALITY_DELETES for entry in entries):
            return None
        gone: set[tuple[str, int]] = set()
        for entry in entries:
            if entry.content == DELETES:
                gone |= self._positions(entry)
        return tuple(
            sorted(
                row
                for entry in entries
                if entry.content == DATA
                for at, row in enumerate(self.rows(entry.path))
                if (entry.path, at) not in gone
            )
        )

    def gone(self, locations: Iterable[str]) -> list[str]:
        """Name those of some files that are not there."""
        return sorted(location for location in locations if not self.is_there(location))

    def known(self) -> dict[str, Any]:
        """Return what was read, for a store with the same files."""
        return dict(self._known)

    def learn(self, known: Mapping[str, Any]) -> None:
        """Take what was read of another store with the same files."""
        self._known.update(known)

    def is_there(self, location: str) -> bool:
        """Return whether a file is there."""
        try:
            self._store.size(location)
        except MissingFile:
            return False
        return True

    def _positions(self, entry: Entry) -> Set[tuple[str, int]]:
        """Read the rows that a delete file deletes: of a Parquet file, or of the one data file of a vector."""
        if entry.vector is None:
            return self._once(entry.path, _position_deletes)
        data_file, offset, size = entry.vector
        blob = self._store.read_range(entry.path, offset, size)
        return {(data_file, at) for at in decode_vector(blob)}

    def _files_of_table(self, location: str) -> frozenset[str]:
        snapshots = self.metadata(location).get("snapshots", ())
        return self.log_of(location).union(*(self.files_of(snapshot) for snapshot in snapshots))

    def _once(self, location: str, read: Callable[[bytes], Result]) -> Result:
        if location not in self._known:
            self._known[location] = read(self._store.read(location))
        found: Result = self._known[location]
        return found


def _metadata(data: bytes) -> dict[str, Any]:
    return dict(json.loads(gzip.decompress(data) if data.startswith(GZIP) else data))


def _manifests(data: bytes) -> list[tuple[str, int]]:
    return [(record["manifest_path"], record.get("content", DATA)) for record in _avro(data)]


def _avro(data: bytes) -> list[dict[str, Any]]:
    reader: Any = fastavro.reader(io.BytesIO(data))
    return list(reader)


def _live_entries(data: bytes) -> list[Entry]:
    live = [record["data_file"] for record in _avro(data) if record["status"] != DELETED]
    return [Entry(file["file_path"], file.get("content", DATA), _vector_of(file)) for file in live]


def _vector_of(file: Mapping[str, Any]) -> tuple[str, int, int] | None:
    if file.get("content_offset") is None:
        return None
    return file["referenced_data_file"], file["content_offset"], file["content_size_in_bytes"]


def _rows(data: bytes) -> Rows:
    return tuple(_columns(data, "id", "n"))


def _position_deletes(data: bytes) -> frozenset[tuple[str, int]]:
    return frozenset(_columns(data, "file_path", "pos"))


def _columns(data: bytes, *names: str) -> Iterable[Any]:
    table = pq.ParquetFile(pa.BufferReader(data)).read(columns=list(names), use_threads=False)
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)
