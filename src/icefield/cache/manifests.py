"""A cache of decoded manifests: in memory, and, where a directory is given, on disk.

Manifests never change, so what was decoded stays true; a manifest is known by its location and its length, and nothing
that only depends on the manifest list (what entries inherit) is kept. Only what planning asked for is kept: the columns
of filters that were never used cost nothing.

A manifest is kept when it is used for the second time: a plan that is made once pays nothing, and takes no memory.
Losing any part of the cache costs time alone. Safe in many threads.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from icefield.cache.decoded_files import MAX_BYTES as FILES_MAX_BYTES
from icefield.cache.decoded_files import DecodedFiles
from icefield.cache.plans import MOST_PLANS, SmallAnswers, SmallPlan
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.decode import STRINGS
from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import KINDS, PARTITION_PREFIX

MEMORY_MAX_BYTES = 512 * 1024 * 1024
MOST_SEEN = 1_000_000


class Key(NamedTuple):
    """Which file: where it is, and how long the manifest list says that it is."""

    location: str
    length: int


class CachedManifest(Protocol):
    """The entries of one manifest, as stored in it."""

    def has(self, want: ManifestColumns) -> bool:
        """Return whether all wanted columns are there, strings too."""
        ...

    def table(self, want: ManifestColumns) -> ManifestEntries | None:
        """Return the wanted columns, but for the strings; None if any wanted column, strings too, is not there."""
        ...

    def strings(self, names: tuple[str, ...]) -> ManifestEntries | None:
        """Return text columns; None if they are there no more."""
        ...


class Sidecars(Protocol):
    """Cached manifests that outlive the process."""

    def holds(self, key: Key) -> bool:
        """Return whether a manifest is there, probably."""
        ...

    def find(self, key: Key) -> CachedManifest | None:
        """Open a manifest, if it is there and sound."""
        ...

    def note(self, key: Key) -> bool:
        """Note that a manifest was used; return whether it was before."""
        ...

    def keep(self, key: Key, columns: ManifestEntries) -> None:
        """Store columns, beside others of this manifest that are there; does nothing if it cannot."""
        ...


class ManifestCache:
    """What was decoded, by manifest."""

    def __init__(self, max_bytes: int = MEMORY_MAX_BYTES, sidecars: Sidecars | None = None) -> None:
        self._max_bytes = max_bytes
        self._sidecars = sidecars
        self._lock = threading.Lock()
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
        """Return whether something of a manifest is there, probably."""
        return key in self._held or (self._sidecars is not None and self._sidecars.holds(key))

    def has(self, key: Key, want: ManifestColumns) -> bool:
        """Return whether all wanted columns of a manifest are there, without loading them."""
        held = self._held.get(key)
        found = self._sidecars.find(key) if self._sidecars and held is None else held
        return found is not None and found.has(want)

    def find(self, key: Key, want: ManifestColumns) -> tuple[CachedManifest, ManifestEntries] | None:
        """Find a manifest with all wanted columns: (it, the columns but for the strings)."""
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
        """Note that a manifest was decoded; return whether it is time to keep it."""
        with self._lock:
            known = hash(key) in self._seen
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen.add(hash(key))
        # Both must hear of it, whatever the other says.
        before = self._sidecars is not None and self._sidecars.note(key)
        return (known and self._max_bytes > 0) or before

    def keep(self, key: Key, columns: ManifestEntries) -> None:
        """Keep columns of a manifest, all rows and in its order, beside those that are there."""
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
    """Return whether what is wanted is made of columns that are kept: whole maps and raw records are not."""
    return want.partition and not want.data_file and not any(pa.types.is_map(KINDS[name]) for name in want.fields)


def wanted_names(want: ManifestColumns, there: Mapping[str, object]) -> list[str] | None:
    """Return the wanted columns without the strings, with those of the partition; None if one of all is missing."""
    names = want.names()
    if any(name not in there for name in names):
        return None
    partition = [name for name in there if name.startswith(PARTITION_PREFIX)]
    return [*(name for name in names if name not in STRINGS), *partition]


def _columns(entries: ManifestEntries) -> dict[str, pa.ChunkedArray]:
    return dict(zip(entries.column_names, entries.table.columns, strict=True))
