"""A cache of decoded metadata files and manifest lists, which every plan needs.

A file is read each time, and the decoded value is used only if the bytes are the same. So the cache does not rely on
locations never being overwritten, or on a name still meaning the same table. Only the decoding is saved.

Bounded by the bytes of the files; the least recently used are evicted. Thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    from icefield.storage.process_lock import ProcessLock

MAX_BYTES = 16 * 1024 * 1024
LARGEST_OF_MAX = 4  # no file may take more than a quarter

Decoded = TypeVar("Decoded")
Decode = Callable[[bytes, str], Decoded]


@dataclass(frozen=True)
class _Held:
    data: bytes
    value: Any


class DecodedFiles:
    """Decoded values by location and decoder. The values are shared, so they must be immutable."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = ProcessLock()
        self._held: OrderedDict[tuple[str, Decode[Any]], _Held] = OrderedDict()
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """The total size of the files that are cached."""
        return self._held_bytes

    def decoded(self, data: bytes, location: str, decode: Decode[Decoded]) -> Decoded:
        """Decode the bytes that were just read from a location, or return the cached value for them."""
        key = (location, decode)
        with self._lock:
            held = self._held.get(key)
            if held is not None and held.data == data:
                self._held.move_to_end(key)
                return held.value  # type: ignore[no-any-return]
        value = decode(data, location)
        self._keep(key, _Held(data, value))
        return value

    def _keep(self, key: tuple[str, Decode[Any]], new: _Held) -> None:
        with self._lock:
            old = self._held.pop(key, None)
            self._held_bytes -= len(old.data) if old else 0
            if len(new.data) * LARGEST_OF_MAX > self._max_bytes:
                return
            self._held[key] = new
            self._held_bytes += len(new.data)
            while self._held_bytes > self._max_bytes:
                _, oldest = self._held.popitem(last=False)
                self._held_bytes -= len(oldest.data)
