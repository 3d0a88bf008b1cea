"""Merge small manifests into larger ones while appending, so that a table of many appends stays fast to plan.

A commit only counts manifests until there are enough to merge; then the small ones of each spec are merged up to the
target size of the table. Data files are copied as encoded bytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.decode import MANIFEST_COLUMN
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.list import count_manifests
from icefield.codec.manifest.rewrite import ManifestSource
from icefield.codec.manifest.rows import Manifests
from icefield.codec.manifest.schema import DELETED, EXISTING
from icefield.commit.action import WriteContext
from icefield.commit.snapshot.manifests import ManifestRow, load_many_entries, merge_sources
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.plan.manifest_list import load_manifests, read_manifest_list
from icefield.properties.table import MANIFEST_MERGE, MANIFEST_MIN_COUNT_TO_MERGE, MANIFEST_TARGET_SIZE_BYTES


@dataclass(frozen=True)
class Merged:
    """The rows of a manifest list to keep, and the merged manifests that replace the others."""

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
    target = MANIFEST_TARGET_SIZE_BYTES.read(base.properties)
    bins = [rows for content in contents for rows in _bins(manifests, content, target)]
    return None if sum(map(len, bins)) < least else _merge_bins(manifests, bins, base, context, snapshot_id)


def merge_all(parent: Snapshot | None, base: TableMetadata, context: WriteContext, snapshot_id: int) -> Merged | None:
    """Merge the small manifests of a snapshot, of data and of deletes; None if there are fewer than two."""
    manifests = load_manifests(context.reading, parent)
    if manifests is None:
        return None
    target = MANIFEST_TARGET_SIZE_BYTES.read(base.properties)
    bins = [rows for content in (DATA_MANIFEST, DELETE_MANIFEST) for rows in _bins(manifests, content, target)]
    return _merge_bins(manifests, bins, base, context, snapshot_id) if bins else None


def _merge_bins(
    manifests: Manifests, bins: list[list[int]], base: TableMetadata, context: WriteContext, snapshot_id: int
) -> Merged:
    merged = [_merge(manifests.take(rows), base, context, snapshot_id) for rows in bins]
    removed_files = np.isin(np.arange(manifests.num_rows), np.concatenate([np.array(rows) for rows in bins]))
    return Merged(manifests.choose(~removed_files), merged, int(removed_files.sum()))


def _bins(manifests: Manifests, content: int, target_bytes: int) -> list[list[int]]:
    """Return groups of manifests worth merging."""
    return [rows for rows in _all_bins(manifests, content, target_bytes) if len(rows) > 1]


def _all_bins(manifests: Manifests, content: int, target_bytes: int) -> Iterator[list[int]]:
    """Yield groups of manifests of one spec, in order, of about the target size."""
    is_meant = manifests.content.to_numpy() == content
    sizes = manifests.manifest_length.to_numpy()
    specs = manifests.partition_spec_id.to_numpy()
    small = is_meant & (sizes < target_bytes / 2)
    for spec_id in np.unique(specs[small]):
        rows: list[int] = []
        size = 0
        for at in np.flatnonzero(small & (specs == spec_id)).tolist():
            if rows and size + sizes[at] > target_bytes:
                yield rows
                rows, size = [], 0
            rows.append(at)
            size += int(sizes[at])
        yield rows


def _merge(manifests: Manifests, base: TableMetadata, context: WriteContext, snapshot_id: int) -> ManifestRow:
    found, entries = load_many_entries(manifests, context)
    # Entries deleted earlier belong to the snapshot that deleted them. (spec: Manifests)
    live = pc.not_equal(entries.status, DELETED).combine_chunks()
    status = pc.if_else(live, EXISTING, None).cast(pa.int32())
    counts = np.bincount(entries[MANIFEST_COLUMN].to_numpy(), minlength=len(found))
    starts = np.cumsum(counts) - counts
    sources = [
        ManifestSource(location, data, manifests.slice(at, 1), status.slice(starts[at], counts[at]))
        for at, (location, data) in enumerate(zip(manifests.manifest_path.to_pylist(), found, strict=True))
    ]
    return merge_sources(sources, entries, base, context, snapshot_id)
