"""Rewrite manifests, clustered by partition, so that planning opens few of them, and those that it opens are small.

    candidates   small manifests; if asked for, also those with entries of deleted files, too large ones, and those
                 that span many more partitions than they have files
    order        of their entries: by partition; along a Hilbert curve if the partition has several fields
    cut          into manifests of about the target size, between partitions where that is possible

The target size follows the table: with small manifests the manifest list is large, with large ones a query for one
partition reads much that it does not need. It is about the geometric mean of both, unless the table's properties say
otherwise. A commit only counts manifests until there are enough to merge. Data files are copied as encoded bytes; they
keep their sequence numbers, snapshot ids and row ids.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.decode import MANIFEST_COLUMN
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.list import count_manifests
from icefield.codec.manifest.rewrite import ManifestSource
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import DELETED, EXISTING
from icefield.commit.action import WriteContext
from icefield.commit.snapshot.manifests import ManifestMerge, ManifestRow, load_many_entries, open_merge
from icefield.model.hilbert import curve_positions
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.plan.entries import partition_columns
from icefield.plan.manifest_list import find_spec, load_manifests, read_manifest_list
from icefield.properties.table import MANIFEST_MERGE, MANIFEST_MIN_COUNT_TO_MERGE, MANIFEST_TARGET_SIZE_BYTES
from icefield.types.arrays import Longs, Mask

LIST_BYTES = 1024  # the target size is the geometric mean of this and of the size of all manifests
LEAST_TARGET_BYTES = 16 * 1024
LARGE = 2.5  # times the target size
WIDE = 3  # times the partitions of a clustered manifest
GAIN = 1.5  # how many times as many partitions manifests must span to be rewritten for it
MOST_BYTES = 256 * 1024 * 1024  # of manifests that are rewritten at once


@dataclass(frozen=True)
class Merged:
    """The rows of a manifest list to keep, and the new manifests that replace the others."""

    kept: Manifests
    manifests: list[ManifestRow]
    replaced: int


def merge_manifests(
    parent: Snapshot | None,
    base: TableMetadata,
    context: WriteContext,
    snapshot_id: int,
    contents: Sequence[int] = (DATA_MANIFEST,),
) -> Merged | None:
    """Merge the small manifests of a snapshot; None if there are too few, or merging is disabled.

    contents: what the manifests hold that are merged, data or deletes.
    """
    least = MANIFEST_MIN_COUNT_TO_MERGE.read(base.properties)
    if parent is None or not parent.manifest_list or not MANIFEST_MERGE.read(base.properties):
        return None
    if count_manifests(read_manifest_list(context.store, parent), parent.manifest_list) < least:
        return None
    manifests = load_manifests(context.reading, parent)
    assert manifests is not None
    small = manifests.manifest_length.to_numpy() < target_bytes(_total(manifests), base) / 2
    groups = [rows for content in contents for rows in _by_spec(manifests, content, small) if len(rows) > 1]
    if sum(map(len, groups)) < least:
        return None
    opened = [_Opened(manifests.take(rows), base, context) for rows in groups]
    work = [_Rewrite(rows, each, np.ones(len(rows), np.bool_)) for rows, each in zip(groups, opened, strict=True)]
    return _write(manifests, work, base, context, snapshot_id)


def merge_all(parent: Snapshot | None, base: TableMetadata, context: WriteContext, snapshot_id: int) -> Merged | None:
    """Rewrite all manifests of a snapshot that are not good, of data and of deletes; None if all are."""
    manifests = load_manifests(context.reading, parent)
    if manifests is None:
        return None
    target = target_bytes(_total(manifests), base)
    everything = np.ones(manifests.num_rows, np.bool_)
    work = []
    for content in (DATA_MANIFEST, DELETE_MANIFEST):
        for rows in _by_spec(manifests, content, everything):
            opened = _Opened(manifests.take(rows), base, context)
            work.append(_Rewrite(rows, opened, opened.find_bad(target), is_optional=True))
    return _write(manifests, work, base, context, snapshot_id)


def count_bad(parent: Snapshot | None, base: TableMetadata, context: WriteContext) -> int:
    """Return how many manifests of a snapshot `merge_all` would look at more closely; nothing is written."""
    manifests = load_manifests(context.reading, parent)
    if manifests is None:
        return 0
    target = target_bytes(_total(manifests), base)
    everything = np.ones(manifests.num_rows, np.bool_)
    found = [rows for content in (DATA_MANIFEST, DELETE_MANIFEST) for rows in _by_spec(manifests, content, everything)]
    bad = [_Opened(manifests.take(rows), base, context).find_bad(target) for rows in found]
    # One small manifest has nothing to be merged with.
    return sum(int(np.count_nonzero(each)) for each in bad if len(each) > 1)


def target_bytes(total_bytes: int, base: TableMetadata) -> int:
    """Return the target size of manifests: of the table's properties, or by the size of all manifests."""
    most = MANIFEST_TARGET_SIZE_BYTES.read(base.properties)
    if MANIFEST_TARGET_SIZE_BYTES.key in base.properties:
        return most
    return min(max(int((total_bytes * LIST_BYTES) ** 0.5), LEAST_TARGET_BYTES), most)


def _total(manifests: Manifests) -> int:
    return int(pc.sum(manifests.manifest_length).as_py() or 0)


def _by_spec(manifests: Manifests, content: int, chosen: Mask) -> Iterator[list[int]]:
    """Yield the chosen manifests of each spec, in the order of the list."""
    meant = chosen & (manifests.content.to_numpy() == content)
    specs = manifests.partition_spec_id.to_numpy()
    for spec_id in np.unique(specs[meant]):
        rows = np.flatnonzero(meant & (specs == spec_id))
        within = np.cumsum(manifests.manifest_length.to_numpy()[rows]) <= MOST_BYTES
        within[:2] = True
        yield rows[within].tolist()


@dataclass(frozen=True)
class _Rewrite:
    """Manifests of one spec to rewrite. rows: of the manifest list. is_optional: not if nothing is gained."""

    rows: list[int]
    opened: "_Opened"
    chosen: Mask
    is_optional: bool = False


def _write(
    manifests: Manifests, work: Sequence[_Rewrite], base: TableMetadata, context: WriteContext, snapshot_id: int
) -> Merged | None:
    work = [each for each in work if each.chosen.any()]
    merges = [each.opened.merge(each.chosen, snapshot_id) for each in work]
    sizes = [0 if merge is None else merge.size(base) for merge in merges]
    is_kept = np.ones(manifests.num_rows, np.bool_)
    for each in work:
        is_kept[np.array(each.rows)[each.chosen]] = False
    # What one manifest with all entries would take is less than what many small ones take.
    target = target_bytes(_total(manifests.choose(is_kept)) + sum(sizes), base)
    made: list[ManifestRow] = []
    replaced: list[int] = []
    for each, merge, size in zip(work, merges, sizes, strict=True):
        cuts = each.opened.cut(each.chosen, max(1, round(size / target)))
        if each.is_optional and not each.opened.gains(each.chosen, cuts):
            continue
        made += [merge.write(each.opened.numbers(each.chosen, cut), base, context) for cut in cuts if merge is not None]
        replaced += np.array(each.rows)[each.chosen].tolist()
    if not replaced:
        return None
    is_replaced = np.isin(np.arange(manifests.num_rows), np.array(replaced))
    return Merged(manifests.choose(~is_replaced), made, len(replaced))


class _Opened:
    """Manifests of one spec with their entries."""

    def __init__(self, manifests: Manifests, base: TableMetadata, context: WriteContext) -> None:
        self._manifests = manifests
        self._base = base
        self._data, self._entries = load_many_entries(manifests, context)
        self._owner: Longs = self._entries[MANIFEST_COLUMN].to_numpy()
        self._starts = np.searchsorted(self._owner, np.arange(manifests.num_rows + 1)).tolist()
        # Entries deleted earlier belong to the snapshot that deleted them. (spec: Manifests)
        self._live: Mask = pc.not_equal(self._entries.status, DELETED).to_numpy()
        self._place = _places(self._entries, base, int(manifests.partition_spec_id[0].as_py()))

    def find_bad(self, target: int) -> Mask:
        """Return which manifests are too small or too large, have deleted entries, or span too many partitions."""
        count = self._manifests.num_rows
        sizes = self._manifests.manifest_length.to_numpy()
        is_bad: Mask = (sizes < target / 2) | (sizes > target * LARGE)
        is_bad |= np.bincount(self._owner[~self._live], minlength=count) > 0
        for at in range(count):
            own = self._places_of(at)
            is_bad[at] |= len(own) > 0 and _span(own) > WIDE * len(np.unique(own))
        return is_bad

    def merge(self, chosen: Mask, snapshot_id: int) -> ManifestMerge | None:
        """Open the live entries of chosen manifests; None if there are none."""
        is_chosen = chosen[self._owner]
        if not (is_chosen & self._live).any():
            return None
        status = pc.if_else(pa.array(self._live), EXISTING, None).cast(pa.int32())
        paths = self._manifests.manifest_path.to_pylist()
        sources = [
            ManifestSource(paths[at], self._data[at], self._manifests.slice(at, 1), status.slice(start, end - start))
            for at, (start, end) in enumerate(pairwise(self._starts))
            if chosen[at]
        ]
        return open_merge(sources, self._entries.filter(pa.array(is_chosen)), self._base, snapshot_id)

    def cut(self, chosen: Mask, parts: int) -> list[Longs]:
        """Split the live entries of chosen manifests, in the order of partitions; between partitions if possible."""
        own = np.flatnonzero(chosen[self._owner] & self._live)
        if len(own) == 0:
            return []
        own = own[np.argsort(self._place[own], kind="stable")]
        parts = min(len(own), parts)
        changes = np.flatnonzero(np.diff(self._place[own])) + 1
        cuts = [_near(len(own) * at // parts, changes, len(own) // (4 * parts)) for at in range(1, parts)]
        return [part for part in np.split(own, np.unique(np.array(cuts, np.int64))) if len(part)]

    def numbers(self, chosen: Mask, cut: Longs) -> pa.Array:
        """Return entries by their numbers among the live ones of chosen manifests."""
        return pa.array((np.cumsum(chosen[self._owner] & self._live) - 1)[cut], pa.int64())

    def gains(self, chosen: Mask, cuts: Sequence[Longs]) -> bool:
        """Return whether new manifests are fewer, without deleted entries, smaller, or span fewer partitions."""
        count = int(np.count_nonzero(chosen))
        if len(cuts) != count or (~self._live & chosen[self._owner]).any():
            return True
        before = [self._places_of(at) for at in np.flatnonzero(chosen).tolist()]
        return sum(map(_span, before)) > GAIN * sum(_span(self._place[cut]) for cut in cuts)

    def _places_of(self, at: int) -> Longs:
        """Return where the live entries of a manifest are in the order of partitions."""
        own = slice(self._starts[at], self._starts[at + 1])
        return self._place[own][self._live[own]]


def _places(entries: ManifestEntries, base: TableMetadata, spec_id: int) -> Longs:
    """Return where each entry is in the order of partitions; equal for those of one partition."""
    columns = partition_columns(entries, find_spec(base, spec_id))
    if not columns:
        return np.zeros(entries.num_rows, np.int64)
    ranks = [_ranks(column) for column in columns]
    order = curve_positions(ranks) if len(ranks) > 1 else ranks[0]
    # The curve has few cells: partitions of one cell are put in order by their values.
    table = pa.table([pa.array(order), *map(pa.array, ranks)], names=["o", *(f"r{at}" for at in range(len(ranks)))])
    rows = pc.sort_indices(table, [(name, "ascending") for name in table.column_names]).to_numpy()
    keys = np.stack([order, *ranks])[:, rows]
    places = np.empty(len(rows), np.int64)
    places[rows] = np.concatenate([[0], np.cumsum((np.diff(keys) != 0).any(axis=0))]) if len(rows) else []
    return places


def _ranks(column: pa.Array) -> Longs:
    """Number the distinct values of a column in their order; null is the lowest."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64)
    values = column.dictionary_encode()
    order = pc.sort_indices(values.dictionary)
    ranks = np.empty(len(order), np.int64)
    ranks[order.to_numpy()] = np.arange(1, len(order) + 1)
    indices = pc.fill_null(values.indices, 0).to_numpy(zero_copy_only=False)
    known = ranks[indices] if len(ranks) else np.zeros(len(column), np.int64)
    return np.where(column.is_null().to_numpy(zero_copy_only=False), 0, known).astype(np.int64)


def _span(places: Longs) -> int:
    return int(places.max() - places.min()) + 1 if len(places) else 0


def _near(cut: int, changes: Longs, most: int) -> int:
    """Move a cut to a change of partition that is near."""
    if len(changes) == 0:
        return cut
    at = int(np.searchsorted(changes, cut))
    around = changes[max(0, at - 1) : at + 1]
    best = int(around[np.argmin(np.abs(around - cut))])
    return best if abs(best - cut) <= most else cut
