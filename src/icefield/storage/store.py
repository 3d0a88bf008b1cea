"""The store protocol: immutable files by location.

A key is written once and never overwritten. `put_new` and `open_new` create it atomically, never by check-then-write.
A write is durable when the call returns (unless the store is configured not to wait).
A store is sent to Spark tasks, so it can be pickled if its files can be read from another process.

Errors:
MissingFile         the key does not exist (read, read_range, size, open_input)
FileAlreadyExists   the key exists; it was not changed, and nothing needs cleanup
LocationRefused     the location is outside the roots of the store, or has another scheme
StorageError        the store failed; a write may have happened, so check before writing under another name
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn, Protocol, Self, runtime_checkable

from icefield.deferred import deferred_imports
from icefield.errors import Unsupported

with deferred_imports(__name__):
    import pyarrow as pa


@dataclass(frozen=True)
class StoredFile:
    """One file as a listing shows it."""

    location: str
    size_bytes: int
    modified_ms: int


class NewFile(Protocol):
    """A file being written under its final name; a binary sink that pyarrow's writers accept.

    As a context manager, it closes when the block ends and aborts if the block raises.
    """

    @property
    def closed(self) -> bool:
        """Return whether the file is closed."""
        ...

    def write(self, data: bytes) -> int:
        """Append bytes, and return their number."""
        ...

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        ...

    def flush(self) -> None:
        """Flush buffered bytes; does not make them durable."""
        ...

    def close(self) -> None:
        """Make the file durable and complete. Closing again does nothing."""
        ...

    def abort(self) -> None:
        """Remove what was written. Does nothing after a successful close."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class Store(Protocol):
    """Immutable files by location."""

    def check(self, location: str) -> None:
        """Raise LocationRefused or InvalidInput unless the store may access a location; it need not exist."""
        ...

    def read(self, location: str) -> bytes:
        """Return the whole file."""
        ...

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        """Return `length` bytes from `offset`, fewer only at the end of the file.

        of_size: the required size of the whole file; CorruptFile for any other.
        """
        ...

    def size(self, location: str) -> int:
        """Return the file's size in bytes."""
        ...

    def put_new(self, location: str, data: bytes) -> None:
        """Write a whole file under a new key; raise FileAlreadyExists if the key exists."""
        ...

    def delete(self, location: str) -> None:
        """Remove a file; does nothing if it does not exist."""
        ...

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """Yield every file below a directory, at any depth and in no order; a missing directory is empty."""
        ...

    def open_input(self, location: str) -> pa.NativeFile:
        """Open a file for random reads, for pyarrow's readers."""
        ...

    def native_uri(self, location: str) -> str:
        """Return the percent-encoded URI with which other programs can read the file; it need not exist.

        Raises Unsupported if only this process can read it.
        """
        ...

    def native_uris(self, locations: Iterable[str]) -> Iterator[str]:
        """Yield the URIs of very many files, as native_uri returns them."""
        ...

    def open_new(self, location: str) -> NewFile:
        """Create a key and open it for writing; raise FileAlreadyExists here, or at close() in object stores."""
        ...


@runtime_checkable
class DeletesMany(Protocol):
    """A store that removes many files with few requests."""

    def delete_many(self, locations: Sequence[str]) -> None:
        """Remove files; missing ones are skipped."""
        ...


def delete_many(store: Store, locations: Sequence[str]) -> None:
    """Remove files, in as few requests as the store allows."""
    if isinstance(store, DeletesMany):
        store.delete_many(locations)
        return
    for location in locations:
        store.delete(location)


@runtime_checkable
class HasDirectories(Protocol):
    """A store whose directories stay when their last file is deleted."""

    def remove_empty_directories(self, prefix: str) -> None:
        """Remove the directories below a location that have no file, at any depth."""
        ...


def remove_empty_directories(store: Store, prefix: str) -> None:
    """Remove the directories below a location that have no file, where the store has directories."""
    if isinstance(store, HasDirectories):
        store.remove_empty_directories(prefix)


class StaysInProcess:
    """A handle that cannot be pickled: it has connections, caches and credentials of its process."""

    def __reduce__(self) -> NoReturn:
        raise Unsupported(
            f"a {type(self).__name__.lstrip('_')} cannot be pickled: it holds connections and credentials",
            hint="Call icefield.connect(...) in the task or process that uses it",
        )


def check_reachable(store: Store) -> None:
    """Raise Unsupported for a store whose files no other process, such as a Spark executor, can read."""
    pickle.dumps(store)


def is_reachable(store: Store) -> bool:
    """Return whether other processes can reach the bytes of a store."""
    try:
        check_reachable(store)
    except Unsupported:
        return False
    return True
