"""Read files ahead, many at a time, because a store behind a network has a high latency.

`ReadAhead` is a store. It is given the files that will be read, in order, and requests some of them before they are
used. How many depends on the measured latency of the store: a local disk responds at once, so nothing is read ahead and
no thread is started; a store that takes 50 ms has 128 requests in flight. The reads in flight and the results that wait
to be used are limited by count and by bytes.

A read that fails raises when its file is used, as it would without reading ahead, and not at all if the file is never
used. When the block ends, reads that have not begun are cancelled, and those in flight are awaited.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa

from icefield.ambient import Ambient, SystemAmbient
from icefield.storage.store import NewFile, Store, StoredFile

MOST_IN_FLIGHT = 128
FIRST_IN_FLIGHT = 32  # before the latency is known
LEAST_IN_FLIGHT = 4  # for a store behind a network, however fast it is
REQUESTS_PER_SECOND = 4_000  # what this process can use
MOST_BYTES = 64 * 1024 * 1024
UNKNOWN_BYTES = 1024 * 1024
# A local file system that repeatedly takes this long is a network file system.
SLOW_LOCAL_S, LOCAL_SAMPLES = 0.001, 3
LOCAL = ("file:", "/")
IN_PROCESS = "memory:"
MISSES_TO_FORGET = 8


class Part(Enum):
    """Which part of a file is read."""

    WHOLE = "whole"
    RANGE = "range"
    OPENED = "opened"  # what `open_input` reads at once, for files too large to keep in memory


class Wanted(NamedTuple):
    """A file or range that will be read; the size is the memory it takes, None if unknown.

    of_size: the size of the whole file, to be checked when a range of it is read.
    """

    location: str
    size_bytes: int | None = None
    part: Part = Part.WHOLE
    offset: int = 0
    of_size: int | None = None


_Key = tuple[str, int | None]  # the location, and where a range begins


class _Read(NamedTuple):
    result: "Future[Any]"
    size_bytes: int


class ReadAhead:
    """A store that reads the wanted files ahead; a context manager.

    wanted: in the order of use; consumed as there is room, in the reading thread.
    """

    def __init__(self, store: Store, wanted: Iterable[Wanted], ambient: Ambient | None = None) -> None:
        self.store = store
        self._wanted: Iterator[Wanted] = iter(wanted)
        self._next: Wanted | None = None
        self._ambient = ambient or SystemAmbient()
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.RLock()
        self._reads: OrderedDict[_Key, _Read] = OrderedDict()
        self._bytes = 0
        self._read_already: set[_Key] = set()
        self._fastest_s: float | None = None
        self._samples = 0
        self._is_fast = False
        self._misses = 0
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_over = True
            self._reads.clear()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def __reduce__(self) -> tuple[object, ...]:
        return _itself, (self.store,)

    def check(self, location: str) -> None:
        self.store.check(location)

    def read(self, location: str) -> bytes:
        found: bytes | pa.NativeFile = self._take(Wanted(location))
        return found if isinstance(found, bytes) else found.read()

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        found: bytes = self._take(Wanted(location, length, Part.RANGE, offset, of_size))
        return found[:length]

    def open_input(self, location: str) -> pa.NativeFile:
        found: bytes | pa.NativeFile = self._take(Wanted(location, part=Part.OPENED))
        return pa.BufferReader(found) if isinstance(found, bytes) else found

    def size(self, location: str) -> int:
        return self.store.size(location)

    def put_new(self, location: str, data: bytes) -> None:
        self.store.put_new(location, data)

    def delete(self, location: str) -> None:
        self.store.delete(location)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        return self.store.list(prefix)

    def native_uri(self, location: str) -> str:
        return self.store.native_uri(location)

    def native_uris(self, locations: Iterable[str]) -> Iterator[str]:
        return self.store.native_uris(locations)

    def open_new(self, location: str) -> NewFile:
        return self.store.open_new(location)

    def _take(self, wanted: Wanted) -> Any:
        """Return a wanted part, read ahead or from the store."""
        if self._is_fast and not self._reads and wanted.location.startswith(LOCAL):
            self._skip_local()
            return self._reader(wanted)()
        self._fill()
        with self._lock:
            found = self._reads.pop(_key(wanted), None)
            if found is not None:
                self._misses = 0
            else:
                self._note_read(_key(wanted))
        if found is None:
            return self._measured(self._reader(wanted))
        try:
            return found.result.result()
        finally:
            with self._lock:
                self._bytes -= found.size_bytes
            self._fill()

    def _skip_local(self) -> None:
        """Drop the next local file: on a fast disk none is read ahead."""
        if self._next is None or self._next.location.startswith(LOCAL):
            self._next = next(self._wanted, None)

    def _note_read(self, key: _Key) -> None:
        """Record that a file is read now, without having been read ahead."""
        if self._is_over:
            return
        if self._next is not None and _key(self._next) == key:
            self._next = None
        else:
            self._read_already.add(key)
        self._drop_forgotten()

    def _fill(self) -> None:
        """Start as many reads as there is room for."""
        with self._lock:
            while not self._is_over:
                self._next = self._next or self._pull()
                if self._next is None or not self._has_room(self._next):
                    return
                self._start(self._next)
                self._next = None

    def _pull(self) -> Wanted | None:
        for wanted in self._wanted:
            # A file that was used earlier than expected is not read again.
            if _key(wanted) not in self._read_already and _key(wanted) not in self._reads:
                return wanted
            self._read_already.discard(_key(wanted))
        return None

    def _has_room(self, wanted: Wanted) -> bool:
        if len(self._reads) >= self._limit(wanted):
            return False
        return not self._reads or self._bytes + _size(wanted) <= MOST_BYTES

    def _limit(self, wanted: Wanted) -> int:
        """Return how many reads may be in flight, given the fastest one so far."""
        if wanted.location.startswith(IN_PROCESS):
            return 0
        is_local = wanted.location.startswith(LOCAL)
        if self._fastest_s is None:
            return 0 if is_local else FIRST_IN_FLIGHT
        if is_local and (self._samples < LOCAL_SAMPLES or self._is_fast):
            return 0
        return max(LEAST_IN_FLIGHT, min(MOST_IN_FLIGHT, int(self._fastest_s * REQUESTS_PER_SECOND)))

    def _start(self, wanted: Wanted) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MOST_IN_FLIGHT, "icefield-read-ahead")
        result = self._pool.submit(self._measured, self._reader(wanted))
        self._reads[_key(wanted)] = _Read(result, _size(wanted))
        self._bytes += _size(wanted)

    def _drop_forgotten(self) -> None:
        """Make room if the user continues with other files: the waiting results will not be used."""
        self._misses += 1
        if self._next is None or self._misses < MISSES_TO_FORGET:
            return
        for key in [key for key, read in self._reads.items() if read.result.done()]:
            self._bytes -= self._reads.pop(key).size_bytes

    def _reader(self, wanted: Wanted) -> Callable[[], Any]:
        location, size, part, offset, of_size = wanted
        if part is Part.RANGE:
            assert size is not None
            return lambda: self.store.read_range(location, offset, size, of_size=of_size)
        if part is Part.OPENED:
            return lambda: self.store.open_input(location)
        return lambda: self.store.read(location)

    def _measured(self, read: Callable[[], Any]) -> Any:
        begin = self._ambient.monotonic()
        try:
            return read()
        finally:
            taken_s = self._ambient.monotonic() - begin
            with self._lock:
                self._samples += 1
                self._fastest_s = taken_s if self._fastest_s is None else min(self._fastest_s, taken_s)
                self._is_fast = self._fastest_s < SLOW_LOCAL_S


def read_many(store: Store, locations: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield files with their contents, in order."""
    locations = list(locations)
    with ReadAhead(store, map(Wanted, locations)) as near:
        for location in locations:
            yield location, near.read(location)


def _key(wanted: Wanted) -> _Key:
    return wanted.location, wanted.offset if wanted.part is Part.RANGE else None


def _size(wanted: Wanted) -> int:
    return UNKNOWN_BYTES if wanted.size_bytes is None else wanted.size_bytes


def _itself(store: Store) -> Store:
    return store
