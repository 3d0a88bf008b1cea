"""What a store is: immutable files by location.

A key is written once and never again. `put_new` and `open_new` claim it atomically; there is no check-then-write and
no overwrite anywhere. What was written is durable when the call returns (unless the store is configured not to wait).
A store travels to Spark tasks, so it can be pickled where its bytes can be reached from another process.

Error semantics:
MissingFile         the key is not there (read, read_range, size, open_input)
FileAlreadyExists   the key is taken; it was left as it was, and nothing needs cleaning
LocationRefused     the location is outside the roots of the store, or of another scheme
StorageError        the store failed; a write may or may not have happened, so look before writing under another name
"""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn, Protocol, Self

import pyarrow as pa

from icefield.errors import Unsupported


@dataclass(frozen=True)
class StoredFile:
    """One file as a listing shows it."""

    location: str
    size_bytes: int
    modified_ms: int


class NewFile(Protocol):
    """A file being written, at its final name; a binary sink that pyarrow's writers accept.

    Used as a context, it closes when the block ends and aborts when the block raises.
    """

    @property
    def closed(self) -> bool:
        """Return whether the file takes no more bytes."""
        ...

    def write(self, data: bytes) -> int:
        """Append bytes, and return how many."""
        ...

    def tell(self) -> int:
        """Return how many bytes were written so far."""
        ...

    def flush(self) -> None:
        """Hand buffered bytes on; says nothing of durability."""
        ...

    def close(self) -> None:
        """Make the file durable and complete. Closing again does nothing."""
        ...

    def abort(self) -> None:
        """Remove what was written. Does nothing after a close that succeeded."""
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
        """Raise LocationRefused or InvalidInput unless the store may touch a location; it need not exist."""
        ...

    def read(self, location: str) -> bytes:
        """Return the whole file."""
        ...

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        """Return `length` bytes from `offset`, fewer only where the file ends.

        of_size: the size that the whole file must have; CorruptFile if it has another.
        """
        ...

    def size(self, location: str) -> int:
        """Return the file's size in bytes."""
        ...

    def put_new(self, location: str, data: bytes) -> None:
        """Write a file whole under a key that is free; raise FileAlreadyExists when somebody else has it."""
        ...

    def delete(self, location: str) -> None:
        """Remove a file; one that is not there counts as removed."""
        ...

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """Yield every file below a directory, at any depth and in no order; a missing directory is empty."""
        ...

    def open_input(self, location: str) -> pa.NativeFile:
        """Open a file for random reads, as pyarrow's readers want it."""
        ...

    def native_uri(self, location: str) -> str:
        """Return the URI, percent-encoded, under which other programs can read the file; it need not exist.

        Raises Unsupported where only this process can.
        """
        ...

    def native_uris(self, locations: Iterable[str]) -> Iterator[str]:
        """Yield the URIs of very many files, each as native_uri gives it."""
        ...

    def open_new(self, location: str) -> NewFile:
        """Claim a free key and open it for writing; raise FileAlreadyExists here, or at close() in object stores."""
        ...


class StaysInProcess:
    """A handle that cannot be pickled: it holds connections and caches of its process, and credentials."""

    def __reduce__(self) -> NoReturn:
        raise Unsupported(
            f"a {type(self).__name__.lstrip('_')} cannot be pickled: it holds connections and credentials",
            hint="Call icefield.connect(...) in the task or process that uses it",
        )


def check_reachable(store: Store) -> None:
    """Raise Unsupported for a store whose bytes no other process can reach, such as Spark's executors."""
    pickle.dumps(store)


def is_reachable(store: Store) -> bool:
    """Return whether other processes can reach the bytes of a store."""
    try:
        check_reachable(store)
    except Unsupported:
        return False
    return True
