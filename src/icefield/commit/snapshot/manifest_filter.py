"""Remove files from a snapshot: the manifests that list them are rewritten, all others are kept.

Small manifests that lose files are written as one, so that a change of many small files costs few manifests, and so
does the next plan.

The deletion vectors of a data file are removed with it. (spec: Deletion Vectors) Other deletes may stay: they name
removed files, or apply only to older files.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.decode import MANIFEST_COLUMN
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.rewrite import ManifestSource
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import DELETED, EXISTING
from icefield.commit.action import WriteContext
from icefield.commit.snapshot.manifests import ManifestMerge, ManifestRow, load_many_entries, open_merge
from icefield.commit.snapshot.merge_manifests import target_bytes
from icefield.commit.snapshot.summary import NO_DELETE_FILES, DeleteTally, tally_deletes
from icefield.model.metadata import TableMetadata
from icefield.plan.manifest_list import has_live_files, load_manifests
from icefield.plan.planned_files import PlannedFiles
from icefield.properties.table import MANIFEST_MERGE
from icefield.types.arrays import Longs

OPENED_BYTES = 8 * 1024 * 1024  # of manifests that are opened at once


@dataclass(frozen=True)
class RemovedFiles:
    """What to remove: planned data files and delete files.

    deletes_of: of delete files, those that name one of these as their data file. delete_files: those at these
    locations; not deletion vectors, several of which share a file.
    """

    data: PlannedFiles
    deletes_of: frozenset[str] = frozenset()
    delete_files: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.data.num_rows or self.deletes_of or self.delete_files)


@dataclass(frozen=True)
class ManifestFilterResult:
    """What remains of a parent's manifests.

    kept: rows of its manifest list that are kept; None: all. rewritten: new manifests for those that lost files.
    missing: files that were not found. deletes: the delete files that were removed.
    """

    kept: Manifests | None
    rewritten: list[ManifestRow]
    missing: set[str]
    deletes: DeleteTally = NO_DELETE_FILES


def remove_files(
    removed_files: RemovedFiles, base: TableMetadata, ref: str, context: WriteContext, snapshot_id: int
) -> ManifestFilterResult:
    """Remove files from the head of a branch."""
    paths = set(removed_files.data.paths)
    manifests = load_manifests(context.reading, base.ref_head(ref)) if removed_files else None
    if manifests is None:
        return ManifestFilterResult(None, [], paths)
    remover = _Remover(manifests, base, context, snapshot_id)
    planned = set(removed_files.data.manifest_path.to_pylist())
    removed = remover.remove(DATA_MANIFEST, {"file_path": paths}, planned)
    named = {"referenced_data_file": removed_files.deletes_of, "file_path": removed_files.delete_files}
    deletes = remover.remove(DELETE_MANIFEST, named, set())
    # A manifest with only deleted entries belongs to the snapshot that deleted them.
    kept = manifests.choose(remover.untouched & has_live_files(manifests))
    missing = paths - set(removed.file_path.to_pylist())
    return ManifestFilterResult(kept, remover.rewritten, missing, tally_deletes(deletes))


class _Remover:
    def __init__(self, manifests: Manifests, base: TableMetadata, context: WriteContext, snapshot_id: int) -> None:
        self._manifests = manifests
        self._base = base
        self._context = context
        self._snapshot_id = snapshot_id
        self._sizes: list[int] = manifests.manifest_length.to_pylist()
        self._target = target_bytes(sum(self._sizes), base) if MANIFEST_MERGE.read(base.properties) else 0
        self.untouched = np.ones(manifests.num_rows, np.bool_)
        self.rewritten: list[ManifestRow] = []

    def remove(self, content: int, named: Mapping[str, Set[str]], likely: set[str]) -> ManifestEntries:
        """Mark entries as deleted, and return them; few manifests are opened. named: values of some columns."""
        removed = [ManifestEntries(REMOVED.empty_table())]
        missing = {(column, name) for column, names in named.items() for name in names}
        for rows in self._batches(content, likely):
            if not missing:
                break
            hit = self._remove_from(rows, named)
            missing -= {(column, name) for column in named for name in hit[column].to_pylist()}
            removed.append(hit.select(REMOVED.names))
        return ManifestEntries.concat(removed)

    def _batches(self, content: int, likely: set[str]) -> Iterator[list[int]]:
        """Yield manifests of one spec to open together, those that held the files at planning time first."""
        paths, specs = self._manifests.manifest_path.to_pylist(), self._manifests.partition_spec_id.to_pylist()

        def group(at: int) -> tuple[bool, int]:
            return paths[at] not in likely, specs[at]

        rows = np.flatnonzero(self._manifests.content.to_numpy() == content).tolist()
        for _, members in groupby(sorted(rows, key=group), group):
            batch: list[int] = []
            size = 0
            for at in members:
                if batch and size + self._sizes[at] > OPENED_BYTES:
                    yield batch
                    batch, size = [], 0
                batch.append(at)
                size += self._sizes[at]
            yield batch

    def _remove_from(self, rows: list[int], named: Mapping[str, Set[str]]) -> ManifestEntries:
        """Mark entries of some manifests of one spec as deleted; small ones that lose files become one."""
        manifests = self._manifests.take(rows)
        data, entries = load_many_entries(manifests, self._context)
        status = _statuses(entries, named)
        hit = entries.filter(pc.equal(status, DELETED))
        owner: Longs = entries[MANIFEST_COLUMN].to_numpy()
        starts = np.searchsorted(owner, np.arange(len(rows) + 1)).tolist()
        paths = manifests.manifest_path.to_pylist()
        for touched in self._together(rows, np.unique(hit[MANIFEST_COLUMN].to_numpy()).tolist()):
            parts = [(at, starts[at], starts[at + 1] - starts[at]) for at in touched]
            sources = [
                ManifestSource(paths[at], data[at], manifests.slice(at, 1), status.slice(start, count))
                for at, start, count in parts
            ]
            chosen = ManifestEntries.concat(entries.slice(start, count) for _, start, count in parts)
            self._rewrite(open_merge(sources, chosen, self._base, self._snapshot_id), len(sources))
            self.untouched[[rows[at] for at in touched]] = False
        return hit

    def _together(self, rows: list[int], touched: list[int]) -> list[list[int]]:
        """Return which of the touched manifests become one: the small ones, where the table allows merging."""
        is_small = [self._sizes[rows[at]] < self._target / 2 for at in touched]
        small = [at for at, is_merged in zip(touched, is_small, strict=True) if is_merged]
        large = [[at] for at, is_merged in zip(touched, is_small, strict=True) if not is_merged]
        return [small, *large] if small else large

    def _rewrite(self, merge: ManifestMerge, sources: int) -> None:
        """Write entries to one manifest, or to several if it would be too large."""
        count = merge.selected.num_rows
        parts = max(1, round(merge.size(self._base) / self._target)) if sources > 1 else 1
        cuts = [None] if parts == 1 else [pa.array(cut) for cut in np.array_split(np.arange(count), min(parts, count))]
        self.rewritten += [merge.write(cut, self._base, self._context) for cut in cuts]


REMOVED = pa.schema(
    [
        ("content", pa.int32()),
        ("file_path", pa.string()),
        ("record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("content_size_in_bytes", pa.int64()),
    ]
)


def _statuses(entries: ManifestEntries, named: Mapping[str, Set[str]]) -> pa.Array:
    """Mark live entries as deleted or existing; entries that were deleted earlier are dropped. (spec: Manifests)"""
    live = pc.not_equal(entries.status, DELETED).combine_chunks()
    hit = pa.array(np.zeros(entries.num_rows, np.bool_))
    for column, names in named.items():
        values = pa.array(sorted(names), pa.string())
        hit = pc.or_(hit, pc.is_in(entries[column].combine_chunks(), value_set=values))
    return pc.if_else(live, pc.if_else(hit, DELETED, EXISTING), None).cast(pa.int32())
