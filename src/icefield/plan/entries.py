"""The live entries of manifests, decoded in batches: small manifests cost a tenth of what they cost one by one."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from icefield.cache.manifests import CachedManifest, Key, ManifestCache, is_cacheable
from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.decode import MANIFEST_COLUMN, STRINGS, decode_manifest, decode_manifests_in_turn
from icefield.codec.manifest.inherit import inherit
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import ADDED, EXISTING, partition_column
from icefield.codec.rows import Rows
from icefield.model.partition import PartitionSpec
from icefield.storage.read_ahead import Wanted
from icefield.storage.sizes import read_sized
from icefield.types.arrays import Ints, Longs, Mask

MANIFESTS_PER_BATCH = 1_000
BYTES_PER_BATCH = 1024 * 1024
CACHED_IS_LESS = 32
LIVE = (EXISTING, ADDED)
ADDED_ONLY = (ADDED,)


def batches_of_one_spec(manifests: Manifests, cache: ManifestCache | None = None) -> Iterator[Manifests]:
    """Group manifests into batches of one spec each; cached manifests are less work, so a batch takes more of them."""
    if not manifests.num_rows:
        return
    spec_ids = manifests.partition_spec_id.to_numpy()
    sizes = _work(manifests, cache)
    for spec_id in _distinct(spec_ids):
        rows = np.flatnonzero(spec_ids == spec_id)
        for first, last in pairwise(_cuts(sizes[rows])):
            whole = last - first == manifests.num_rows
            yield manifests if whole else manifests.take(rows[first:last])


def _distinct(spec_ids: Ints) -> Sequence[int]:
    """Return the ids in ascending order; mostly there is one, which takes no sorting."""
    distinct: list[int] = (spec_ids[:1] if (spec_ids == spec_ids[0]).all() else np.unique(spec_ids)).tolist()
    return distinct


def cold_bytes(manifests: Manifests, cache: ManifestCache | None) -> int:
    """Return how many bytes of manifests must be decoded."""
    sizes: Longs = manifests.manifest_length.to_numpy()
    return int(sizes[_work(manifests, cache) == sizes].sum())


@dataclass(frozen=True)
class Entries:
    """Entries of manifests of one spec, with inherited values applied.

    `columns` is without STRINGS and `manifest_path`; `complete` adds them to the rows that are left in the end.
    """

    columns: ManifestEntries
    _numbers: Longs
    _parts: Sequence["_Part"]
    _locations: pa.ChunkedArray

    def without(self, names: Sequence[str]) -> "Entries":
        """Return the same entries without some columns."""
        return replace(self, columns=self.columns.without(names)) if names else self

    def complete(self, keep: Mask | None = None) -> ManifestEntries:
        """Return all columns of the rows to keep."""
        kept = self.columns if keep is None else self.columns.choose(keep)
        strings = self._strings(self._numbers if keep is None else self._numbers[keep])
        locations = self._locations.take(kept[MANIFEST_COLUMN])
        return kept.extended({name: strings[name] for name in strings.column_names} | {"manifest_path": locations})

    def _strings(self, numbers: Longs) -> ManifestEntries:
        begins = np.cumsum([0, *(part.table.num_rows for part in self._parts)])
        cuts = np.searchsorted(numbers, begins)
        of_parts = [
            part.strings(numbers[first:last] - begin)
            for part, begin, (first, last) in zip(self._parts, begins[:-1], pairwise(cuts), strict=True)
            if last > first or len(self._parts) == 1
        ]
        return ManifestEntries.concat(of_parts) if of_parts else self._parts[0].strings(numbers)


def open_entries(
    context: ReadContext, manifests: Manifests, want: ManifestColumns, statuses: Collection[int]
) -> Entries:
    """Load the filter columns of entries of manifests of one spec."""
    parts = list(_open_parts(context, manifests, want))
    table = parts[0].table if len(parts) == 1 else ManifestEntries.concat(part.table for part in parts)
    owner = np.concatenate([part.owner for part in parts]) if len(parts) > 1 else parts[0].owner
    table = inherit(table.extended({MANIFEST_COLUMN: pa.array(owner)}), manifests)
    status = table.status.to_numpy()
    is_wanted = np.zeros(len(status), np.bool_)
    for each in statuses:
        is_wanted |= status == each
    return Entries(table.choose(is_wanted), np.flatnonzero(is_wanted), parts, manifests.manifest_path)


def load_entries(
    context: ReadContext, manifests: Manifests, want: ManifestColumns, statuses: Collection[int]
) -> ManifestEntries:
    """Load entries of manifests of one spec, with inherited values applied, and the `manifest_path` of each."""
    return open_entries(context, manifests, want, statuses).complete()


def load_batches(
    context: ReadContext, manifests: Manifests, want: ManifestColumns, statuses: Collection[int]
) -> Iterator[tuple[Manifests, ManifestEntries]]:
    """Yield manifests in batches of one spec, each with its entries.

    Later manifests are read ahead.
    """
    with context.read_ahead(wanted_manifests(context, manifests, want)) as near:
        for batch in batches_of_one_spec(manifests):
            yield batch, load_entries(near, batch, want, statuses)


def wanted_manifests(context: ReadContext, manifests: Manifests, want: ManifestColumns) -> Iterator[Wanted]:
    """Yield the files to read for manifests, in the order of `batches_of_one_spec`."""
    cache = context.cache if is_cacheable(want) else None
    for batch in batches_of_one_spec(manifests):
        for key in _keys(batch):
            if cache is None or not cache.has(key, want):
                yield Wanted(key.location, key.length)


def partition_columns(entries: Rows, spec: PartitionSpec) -> list[pa.Array]:
    """Return the partition tuple of entries, one column per field; a field that a manifest lacks is null."""
    names = [partition_column(f.field_id) for f in spec.fields]
    return [
        entries[name].combine_chunks() if name in entries.column_names else pa.nulls(entries.num_rows) for name in names
    ]


@dataclass(frozen=True)
class _Part:
    """Entries as stored: of manifests that were decoded together, or of one from the cache.

    owner: which manifest of the batch each is of. strings: makes the strings of some rows, by their numbers, ascending.
    """

    table: ManifestEntries
    owner: Ints
    strings: Callable[[Longs], ManifestEntries]


def _open_parts(context: ReadContext, manifests: Manifests, want: ManifestColumns) -> Iterator[_Part]:
    cache = context.cache if is_cacheable(want) else None
    keys = _keys(manifests)
    cold: list[int] = []
    for ordinal, key in enumerate(keys):
        found = cache.find(key, want) if cache else None
        if found is None:
            cold.append(ordinal)
            continue
        if cold:
            yield _decoded(context, keys, cold, want, cache)
            cold = []
        yield _cached(context, key, ordinal, want, found)
    if cold:
        yield _decoded(context, keys, cold, want, cache)


def _decoded(
    context: ReadContext,
    keys: Sequence[Key],
    ordinals: Sequence[int],
    want: ManifestColumns,
    cache: ManifestCache | None,
) -> _Part:
    """Decode manifests together, and cache those that are likely to be used again."""
    files = [(keys[i].location, read_sized(context.store, *keys[i])) for i in ordinals]
    table, strings = decode_manifests_in_turn(files, want)
    runs = table[MANIFEST_COLUMN].to_numpy()
    table = table.without([MANIFEST_COLUMN])
    again = [at for at, ordinal in enumerate(ordinals) if cache and cache.note(keys[ordinal])]
    if again and cache:
        whole = _with_strings(table, strings(np.arange(table.num_rows)))
        for at in again:
            first, last = np.searchsorted(runs, (at, at + 1))
            # A slice of several manifests would keep all of them in memory, so it is copied.
            mine = whole if len(ordinals) == 1 else whole.take(np.arange(first, last))
            cache.keep(keys[ordinals[at]], mine)
    return _Part(table, np.array(ordinals, np.int32)[runs], lambda rows: _only_strings(strings(rows)))


def _cached(
    context: ReadContext, key: Key, ordinal: int, want: ManifestColumns, found: tuple[CachedManifest, ManifestEntries]
) -> _Part:
    manifest, table = found
    names = tuple(name for name in want.fields if name in STRINGS)

    def strings(rows: Longs) -> ManifestEntries:
        held = manifest.strings(names)
        if held is None:  # evicted concurrently
            held = decode_manifest(
                read_sized(context.store, *key), key.location, ManifestColumns(names, partition=False)
            )
        return held.take(rows)

    return _Part(table, np.full(table.num_rows, ordinal, np.int32), strings)


def _only_strings(entries: ManifestEntries) -> ManifestEntries:
    return entries.without([name for name in entries.column_names if name not in STRINGS])


def _with_strings(entries: ManifestEntries, strings: ManifestEntries) -> ManifestEntries:
    return entries.extended({name: strings[name] for name in _only_strings(strings).column_names})


def _keys(manifests: Manifests) -> list[Key]:
    columns = manifests.manifest_path.to_pylist(), manifests.manifest_length.to_pylist()
    return [Key(location, length) for location, length in zip(*columns, strict=True)]


def _work(manifests: Manifests, cache: ManifestCache | None) -> Longs:
    """Return the number of bytes to decode for each manifest."""
    sizes: Longs = manifests.manifest_length.to_numpy()
    if cache is None:
        return sizes
    is_cached = np.array([cache.holds(key) for key in _keys(manifests)], np.bool_)
    return np.where(is_cached, sizes // CACHED_IS_LESS, sizes)


def _cuts(sizes: Longs) -> list[int]:
    """Return the boundaries of batches: each has at least one manifest, and ends when it is large enough."""
    cuts, total = [0], 0
    for at, size in enumerate(sizes.tolist(), 1):
        total += size
        if total >= BYTES_PER_BATCH or at - cuts[-1] == MANIFESTS_PER_BATCH:
            cuts.append(at)
            total = 0
    return cuts if cuts[-1] == len(sizes) else [*cuts, len(sizes)]
