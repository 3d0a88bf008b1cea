"""Marks: immutable lists of files to delete later; and audits: what a sweep deletes, complete before the first delete.

    gc/marks/<mark>.parquet              location, kind, size_bytes, snapshot_id; why, by whom
    gc/audit/<mark>/<sweep>.parquet      the same, of those files that a sweep deletes
    gc/audit/<mark>/<sweep>.done         that sweep has finished

Both are Parquet files that any engine can read. Their age is measured by the store's clock; audits are kept for
`icefield.gc.audit-retention-ms`.
Raises CorruptFile for a mark that cannot be read: then its files are kept.
"""

import io
import re
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from icefield.ambient import Ambient
from icefield.errors import CorruptFile, FileAlreadyExists, MissingFile
from icefield.leases.folder import AUDIT, MARKS
from icefield.leases.record import this_holder
from icefield.marks.files import FILES_SCHEMA, TableFiles, concat_files
from icefield.properties.upkeep import GC_AUDIT_RETENTION_MS
from icefield.storage.location import join_location
from icefield.storage.store import Store, remove_empty_directories

EXPIRED, ORPHAN, RETIRED = "expired", "orphan", "retired"  # retired: a metadata file that left the metadata log
_MARK = re.compile(rf"({EXPIRED}|{ORPHAN}|{RETIRED})-[0-9a-f]{{32}}\.parquet")
_AUDIT, _DONE = ".parquet", ".done"
_UUID_KEY, _HOLDER_KEY, _REASON_KEY = b"icefield.table-uuid", b"icefield.by", b"icefield.reason"


@dataclass(frozen=True)
class Mark:
    """A list of files to delete. made_ms: by the store's clock."""

    name: str
    folder: str
    reason: str
    made_ms: int
    size_bytes: int

    @property
    def location(self) -> str:
        """Where it is."""
        return join_location(self.folder, MARKS, f"{self.name}.parquet")

    @property
    def audits(self) -> str:
        """The directory of what sweeps of it have deleted."""
        return join_location(self.folder, AUDIT, self.name)


def write_mark(store: Store, ambient: Ambient, folder: str, table: uuid.UUID, reason: str, files: TableFiles) -> str:
    """Write a mark, and return its name."""
    name = f"{reason}-{ambient.random_uuid().hex}"
    store.put_new(join_location(folder, MARKS, f"{name}.parquet"), encode_files(files, table, reason))
    return name


def list_marks(store: Store, folders: Iterable[str]) -> list[Mark]:
    """Return all marks, oldest first."""
    found = []
    for folder in folders:
        for file in store.list(join_location(folder, MARKS)):
            name = _MARK.fullmatch(file.location.rpartition("/")[2])
            if name is not None:
                mark = file.location.rpartition("/")[2].removesuffix(".parquet")
                found.append(Mark(mark, folder, name.group(1), file.modified_ms, file.size_bytes))
    return sorted(found, key=lambda mark: (mark.made_ms, mark.name))


def read_mark(store: Store, mark: Mark, table: uuid.UUID) -> TableFiles:
    """Return the files of a mark of this table."""
    return _decode(store.read(mark.location), mark.location, table)


def read_unless_done(store: Store, mark: Mark, table: uuid.UUID) -> TableFiles | None:
    """Return the files of a mark; None if another sweep has finished it since it was listed."""
    with suppress(MissingFile):
        return read_mark(store, mark, table)
    return None


def write_audit(store: Store, ambient: Ambient, mark: Mark, table: uuid.UUID, files: TableFiles) -> str:
    """Record what is about to be deleted; return the location of the record."""
    location = join_location(mark.audits, f"{ambient.random_uuid().hex}{_AUDIT}")
    store.put_new(location, encode_files(files, table, mark.reason))
    return location


def finish_audit(store: Store, location: str) -> None:
    """Record that everything in an audit is deleted; two sweeps may finish the same one."""
    with suppress(FileAlreadyExists):
        store.put_new(location.removesuffix(_AUDIT) + _DONE, b"")


def read_audits(store: Store, mark: Mark, table: uuid.UUID) -> tuple[list[str], TableFiles]:
    """Return the audits of a mark whose sweep did not finish, and the files that other sweeps of it have deleted."""
    names = {file.location for file in store.list(mark.audits)}
    unfinished, finished = list[str](), list[TableFiles]()
    for location in sorted(name for name in names if name.endswith(_AUDIT)):
        if location.removesuffix(_AUDIT) + _DONE in names:
            finished.append(_decode(store.read(location), location, table))
        else:
            unfinished.append(location)
    return unfinished, concat_files(finished)


def remove_old_audits(store: Store, folders: Iterable[str], properties: Mapping[str, str], now_ms: int) -> None:
    """Remove the audits of sweeps that finished longer ago than a table keeps them; now_ms: by the store's clock."""
    retention_ms = GC_AUDIT_RETENTION_MS.read(properties)
    for folder in folders:
        place = join_location(folder, AUDIT)
        listed = [file for file in store.list(place) if file.location.endswith(_DONE)]
        old = [file.location for file in listed if now_ms - file.modified_ms >= retention_ms]
        for location in old:
            # An audit without the record of its end would be taken for one that is unfinished.
            store.delete(location.removesuffix(_DONE) + _AUDIT)
            store.delete(location)
        if old:
            remove_empty_directories(store, place)


def encode_files(files: TableFiles, table: uuid.UUID, reason: str) -> bytes:
    """Encode a list of files of a table."""
    header = {_UUID_KEY: str(table), _HOLDER_KEY: this_holder(), _REASON_KEY: reason}
    sink = io.BytesIO()
    pq.write_table(files.table.cast(FILES_SCHEMA).replace_schema_metadata(header), sink, compression="zstd")
    return sink.getvalue()


def _decode(data: bytes, location: str, table: uuid.UUID) -> TableFiles:
    try:
        read = pq.ParquetFile(pa.BufferReader(data)).read()
        header = read.schema.metadata or {}
        files = TableFiles(read.cast(FILES_SCHEMA))
    except (pa.ArrowException, TypeError, ValueError, OSError) as error:
        raise CorruptFile(location, f"it is not a list of files: {error}") from error
    if header.get(_UUID_KEY) != str(table).encode():
        raise CorruptFile(location, "it was written for another table", hint="Remove it if it was copied here")
    return files
