"""A store in the memory of this process, with `memory://` locations: for tests, and for temporary lakes.

Thread-safe. It cannot be pickled, because a copy in another process would be another store.
"""

import io
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from icefield.ambient import Ambient, SystemAmbient
from icefield.errors import FileAlreadyExists, InvalidInput, LocationRefused, MissingFile, StorageError, Unsupported
from icefield.storage.location import is_inside, parse_location
from icefield.storage.sizes import check_size
from icefield.storage.store import NewFile, StoredFile

MEMORY_SCHEME = "memory"


@dataclass(frozen=True)
class _Kept:
    data: bytes
    modified_ms: int


class MemoryStore:
    """A store in a dictionary; a key that is being written is reserved but cannot be read yet."""

    def __init__(self, ambient: Ambient | None = None) -> None:
        self._ambient = ambient or SystemAmbient()
        self._lock = threading.Lock()
        self._files: dict[str, _Kept | None] = {}

    def check(self, location: str) -> None:
        _key(location)

    def read(self, location: str) -> bytes:
        return self._kept(location).data

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        if offset < 0 or length < 0:
            raise InvalidInput(f"cannot read {length} bytes at {offset} of {location}: both must be 0 or more")
        data = self._kept(location).data
        check_size(location, len(data), of_size)
        return data[offset : offset + length]

    def size(self, location: str) -> int:
        return len(self._kept(location).data)

    def put_new(self, location: str, data: bytes) -> None:
        self._claim(location, _Kept(bytes(data), self._ambient.now_ms()))

    def delete(self, location: str) -> None:
        key = _key(location)
        with self._lock:
            self._files.pop(key, None)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        root = _key(prefix)
        below = root.rstrip("/") + "/"
        with self._lock:
            files = [(key, kept) for key, kept in self._files.items() if kept is not None and key.startswith(below)]
        return (
            StoredFile(key, len(kept.data), kept.modified_ms)
            for key, kept in files
            if key != root and is_inside(key, root)
        )

    def open_input(self, location: str) -> pa.NativeFile:
        return pa.BufferReader(self._kept(location).data)

    def native_uri(self, location: str) -> str:
        raise Unsupported(f"no other process can read {location}", hint="Use a lake on disk for Spark")

    def native_uris(self, locations: Iterable[str]) -> Iterator[str]:
        return map(self.native_uri, locations)

    def open_new(self, location: str) -> "MemoryNewFile":
        self._claim(location, None)
        return MemoryNewFile(self, location)

    def finish(self, location: str, data: bytes) -> None:
        """Write a key that open_new reserved; called by the sink, not by users."""
        kept = _Kept(data, self._ambient.now_ms())
        with self._lock:
            if self._files.get(_key(location), kept) is not None:
                raise StorageError(f"cannot write {location}: it was deleted while being written")
            self._files[_key(location)] = kept

    def __reduce__(self) -> NoReturn:
        raise Unsupported(
            "Spark cannot read a lake in memory: it exists in this process only",
            hint="Read with to_arrow(), or connect to a directory or an object store",
        )

    def _kept(self, location: str) -> _Kept:
        with self._lock:
            kept = self._files.get(_key(location))
        if kept is None:
            raise MissingFile(location)
        return kept

    def _claim(self, location: str, kept: _Kept | None) -> None:
        key = _key(location)
        with self._lock:
            if key in self._files:
                raise FileAlreadyExists(f"cannot write {location}: it already exists")
            self._files[key] = kept


class MemoryNewFile(NewFile):
    """The sink of `MemoryStore.open_new`; see `store.NewFile` for its contract.

    It has a buffer but is not an io object: those close themselves when garbage-collected, which would complete the
    file.
    """

    def __init__(self, store: MemoryStore, location: str) -> None:
        self._store = store
        self._location = location
        self._buffer = io.BytesIO()

    @property
    def closed(self) -> bool:
        return self._buffer.closed

    def write(self, data: bytes) -> int:
        return self._buffer.write(data)

    def tell(self) -> int:
        return self._buffer.tell()

    def flush(self) -> None:
        pass

    def close(self) -> None:
        if not self.closed:
            data = self._buffer.getvalue()
            self._buffer.close()
            self._store.finish(self._location, data)

    def abort(self) -> None:
        if not self.closed:
            self._buffer.close()
            self._store.delete(self._location)


def _key(location: str) -> str:
    parsed = parse_location(location)
    if parsed.scheme != MEMORY_SCHEME:
        raise LocationRefused(f"{location} is not in memory: its scheme is {parsed.scheme}")
    return str(parsed)
