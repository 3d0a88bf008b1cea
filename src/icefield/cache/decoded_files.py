"""Files that were decoded already: metadata files and manifest lists, which every plan needs and few are many.

A file is read each time, and what was decoded is used only if the bytes are the same. So nothing is trusted: neither
that a location is never written again, nor that a name still means the same table. What is saved is the decoding.

Bounded by the bytes of the files, those used longest ago out first. Safe in many threads.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

MAX_BYTES = 16 * 1024 * 1024
LARGEST_OF_MAX = 4  # no file may take more than a quarter

Decoded = TypeVar("Decoded")
Decode = Callable[[bytes, str], Decoded]


@dataclass(frozen=True)
class _Held:
    data: bytes
    value: Any


class DecodedFiles:
    """What was decoded, by location and by what it was decoded as. The values are shared, so they must not change."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, Decode[Any]], _Held] = OrderedDict()
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """How many bytes of files are there in decoded form."""
        return self._held_bytes

    def decoded(self, data: bytes, location: str, decode: Decode[Decoded]) -> Decoded:
        """Return what a function makes of the bytes that were just read from a location."""
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
