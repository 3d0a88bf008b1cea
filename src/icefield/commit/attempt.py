"""One attempt to commit a change: what it wrote, and whether it may have been committed.

Before the catalog is called, a change has certainly not happened, whatever the error: a full disk, a rejected write, a
keyboard interrupt. All files written for it can be removed. After the call, only the response of the catalog decides.
A file is recorded before it is written, because a failed write may have happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from icefield.deferred import deferred_imports
from icefield.errors import IcefieldError

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.commit.open_write import OpenWrite
    from icefield.model.metadata import TableMetadata
    from icefield.storage.store import NewFile, Store, StoredFile


@dataclass
class Attempt:
    """An attempt.

    store: to write to. written: the locations that were written to. is_sent: the catalog was called. is_landed: it
    confirmed the change; a later failure does not undo that. writes: what protects the new files.
    """

    store: Store
    written: list[str] = field(default_factory=list)
    is_sent: bool = False
    is_landed: bool = False
    writes: Sequence[OpenWrite] = ()

    @property
    def write_id(self) -> str | None:
        """The lease that protects new files; None if there is none."""
        return self.writes[0].write_id if self.writes else None

    @property
    def write_ids(self) -> tuple[str, ...]:
        """All leases that protect files of the attempt."""
        return tuple(write.write_id for write in self.writes if write.write_id is not None)

    def send(self, tables: Iterable[TableMetadata]) -> None:
        """Record that the catalog is about to be called; raise LeaseLost if files of the change may be gone."""
        for metadata in tables:
            for write in self.writes:
                write.before_swap(metadata)
        self.is_sent = True

    def may_have_landed(self, error: BaseException) -> bool:
        """Return whether the change may have been committed although an error was raised."""
        return self.is_landed or (self.is_sent and not (isinstance(error, IcefieldError) and error.cleanable))


def begin_attempt(store: Store, writes: Sequence[OpenWrite] = ()) -> Attempt:
    """Begin an attempt that writes to a store."""
    written: list[str] = []
    return Attempt(_RecordingStore(store, written), written, writes=writes)


class _RecordingStore:
    """A store that records what is written."""

    def __init__(self, store: Store, written: list[str]) -> None:
        self._store = store
        self._written = written

    def check(self, location: str) -> None:
        self._store.check(location)

    def read(self, location: str) -> bytes:
        return self._store.read(location)

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        return self._store.read_range(location, offset, length, of_size=of_size)

    def size(self, location: str) -> int:
        return self._store.size(location)

    def put_new(self, location: str, data: bytes) -> None:
        self._written.append(location)
        self._store.put_new(location, data)

    def delete(self, location: str) -> None:
        self._store.delete(location)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        return self._store.list(prefix)

    def open_input(self, location: str) -> pa.NativeFile:
        return self._store.open_input(location)

    def native_uri(self, location: str) -> str:
        return self._store.native_uri(location)

    def native_uris(self, locations: Iterable[str]) -> Iterator[str]:
        return self._store.native_uris(locations)

    def open_new(self, location: str) -> NewFile:
        self._written.append(location)
        return self._store.open_new(location)


class DraftStore(_RecordingStore):
    """A store that keeps new metadata files to itself: what they would be is known without writing any."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, [])
        self._drafts: dict[str, bytes] = {}

    def read(self, location: str) -> bytes:
        return self._drafts[location] if location in self._drafts else super().read(location)

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        if location in self._drafts:
            return self._drafts[location][offset : offset + length]
        return super().read_range(location, offset, length, of_size=of_size)

    def size(self, location: str) -> int:
        return len(self._drafts[location]) if location in self._drafts else super().size(location)

    def open_input(self, location: str) -> pa.NativeFile:
        return pa.BufferReader(self._drafts[location]) if location in self._drafts else super().open_input(location)

    def put_new(self, location: str, data: bytes) -> None:
        self._drafts[location] = data

    def delete(self, location: str) -> None:
        self._drafts.pop(location, None)
