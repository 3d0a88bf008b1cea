"""A cache of decoded manifests: in memory, and on disk if a directory is configured.

Manifests never change, so decoded columns stay valid. A manifest is identified by its location and length, and values
that depend on the manifest list (those that entries inherit) are not cached. Only columns that planning used are
cached: the statistics of columns that were never filtered on cost nothing.

A manifest is cached when it is used for the second time: a single plan has no extra cost and takes no memory.
Losing any part of the cache only costs time. Thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from icefield.cache.decoded_files import MAX_BYTES as FILES_MAX_BYTES
from icefield.cache.decoded_files import DecodedFiles
from icefield.cache.plans import MOST_PLANS, SmallAnswers, SmallPlan
from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.codec.manifest import schema as manifest_schema
    from icefield.codec.manifest.columns import ManifestColumns
    from icefield.codec.manifest.decode import STRINGS
    from icefield.codec.manifest.rows import ManifestEntries
    from icefield.storage.process_lock import ProcessLock

MEMORY_MAX_BYTES = 512 * 1024 * 1024
MOST_SEEN = 1_000_000


class Key(NamedTuple):
    """A manifest: its location, and its length according to the manifest list."""

    location: str
    length: int


class CachedManifest(Protocol):
    """The entries of one manifest, as stored in it."""

    def has(self, want: ManifestColumns) -> bool:
        """Return whether all wanted columns are cached, including strings."""
        ...

    def table(self, want: ManifestColumns) -> ManifestEntries | None:
        """Return the wanted columns except strings; None if any wanted column, including strings, is missing."""
        ...

    def strings(self, names: tuple[str, ...]) -> ManifestEntries | None:
        """Return string columns; None if they are no longer cached."""
        ...


class Sidecars(Protocol):
    """Cached manifests that outlive the process."""

    def holds(self, key: Key) -> bool:
        """Return whether a manifest is probably cached."""
        ...

    def find(self, key: Key) -> CachedManifest | None:
        """Open a manifest, if it is cached and not corrupt."""
        ...

    def note(self, key: Key) -> bool:
        """Record that a manifest was used; return whether it was used before."""
        ...

    def keep(self, key: Key, columns: ManifestEntries) -> None:
        """Store columns, in addition to those of this manifest that are cached; errors are ignored."""
        ...


class ManifestCache:
    """Decoded columns by manifest."""

    def __init__(self, max_bytes: int = MEMORY_MAX_BYTES, sidecars: Sidecars | None = None) -> None:
        self._max_bytes = max_bytes
        self._sidecars = sidecars
        self._lock = ProcessLock()
        self._held: OrderedDict[Key, HeldManifest] = OrderedDict()
        self._held_bytes = 0
        self._seen: set[int] = set()
        self.files = DecodedFiles(min(max_bytes, FILES_MAX_BYTES))
        self.plans: SmallAnswers[SmallPlan] = SmallAnswers(MOST_PLANS if max_bytes else 0)
        self.candidates: SmallAnswers[Sequence[Any]] = SmallAnswers(MOST_PLANS if max_bytes else 0)

    @property
    def held_bytes(self) -> int:
        """How much memory the columns take."""
        return self._held_bytes

    def holds(self, key: Key) -> bool:
        """Return whether some columns of a manifest are probably cached."""
        return key in self._held or (self._sidecars is not None and self._sidecars.holds(key))

    def has(self, key: Key, want: ManifestColumns) -> bool:
        """Return whether all wanted columns of a manifest are cached, without loading them."""
        held = self._held.get(key)
        found = self._sidecars.find(key) if self._sidecars and held is None else held
        return found is not None and found.has(want)

    def find(self, key: Key, want: ManifestColumns) -> tuple[CachedManifest, ManifestEntries] | None:
        """Find a manifest with all wanted columns: (the manifest, its columns except strings)."""
        with self._lock:
            held = self._held.get(key)
            if held is not None:
                self._held.move_to_end(key)
        for found in (held, self._sidecars.find(key) if self._sidecars and held is None else None):
            table = found.table(want) if found else None
            if found is not None and table is not None:
                return found, table
        return None

    def note(self, key: Key) -> bool:
        """Record that a manifest was decoded; return whether to cache it."""
        with self._lock:
            known = hash(key) in self._seen
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen.add(hash(key))
        # Record it in both, whatever either returns.
        before = self._sidecars is not None and self._sidecars.note(key)
        return (known and self._max_bytes > 0) or before

    def keep(self, key: Key, columns: ManifestEntries) -> None:
        """Cache columns of a manifest, with all rows in its order, in addition to those that are cached."""
        with self._lock:
            old = self._held.pop(key, None)
            if old is not None:
                self._held_bytes -= old.size_bytes
            held = HeldManifest({**(old.columns if old else {}), **_columns(columns)})
            if held.size_bytes <= self._max_bytes:
                self._held[key] = held
                self._held_bytes += held.size_bytes
            while self._held_bytes > self._max_bytes:
                _, oldest = self._held.popitem(last=False)
                self._held_bytes -= oldest.size_bytes
        if self._sidecars is not None:
            self._sidecars.keep(key, columns)


@dataclass(frozen=True)
class HeldManifest:
    """Columns in memory."""

    columns: Mapping[str, pa.ChunkedArray]

    @property
    def size_bytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values())

    def has(self, want: ManifestColumns) -> bool:
        return wanted_names(want, self.columns) is not None

    def table(self, want: ManifestColumns) -> ManifestEntries | None:
        names = wanted_names(want, self.columns)
        return None if names is None else ManifestEntries(pa.table({name: self.columns[name] for name in names}))

    def strings(self, names: tuple[str, ...]) -> ManifestEntries | None:
        return ManifestEntries(pa.table({name: self.columns[name] for name in names}))


def is_cacheable(want: ManifestColumns) -> bool:
    """Return whether the wanted columns can be cached: whole maps and raw records cannot."""
    return (
        want.partition
        and not want.data_file
        and not any(pa.types.is_map(manifest_schema.KINDS[name]) for name in want.fields)
    )


def wanted_names(want: ManifestColumns, there: Mapping[str, object]) -> list[str] | None:
    """Return the wanted columns without the strings, with those of the partition; None if one of all is missing."""
    names = want.names()
    if any(name not in there for name in names):
        return None
    partition = [name for name in there if name.startswith(manifest_schema.PARTITION_PREFIX)]
    return [*(name for name in names if name not in STRINGS), *partition]


def _columns(entries: ManifestEntries) -> dict[str, pa.ChunkedArray]:
    return dict(zip(entries.column_names, entries.table.columns, strict=True))
