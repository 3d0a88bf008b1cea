"""Remove files from a snapshot: the manifests that list them are rewritten, all others are kept.

The deletion vectors of a data file are removed with it. (spec: Deletion Vectors) Other deletes may stay: they name
removed files, or apply only to older files.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.rewrite import ManifestSource
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import DELETED, EXISTING
from icefield.commit.action import WriteContext
from icefield.commit.snapshot.manifests import ManifestRow, load_entries, rewrite_without
from icefield.commit.snapshot.summary import NO_DELETE_FILES, DeleteTally, tally_deletes
from icefield.model.metadata import TableMetadata
from icefield.plan.manifest_list import has_live_files, load_manifests
from icefield.plan.planned_files import PlannedFiles


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
        self.untouched = np.ones(manifests.num_rows, np.bool_)
        self.rewritten: list[ManifestRow] = []

    def remove(self, content: int, named: Mapping[str, Set[str]], likely: set[str]) -> ManifestEntries:
        """Mark entries as deleted, and return them; few manifests are opened. named: values of some columns."""
        removed: list[ManifestEntries] = []
        missing = {(column, name) for column, names in named.items() for name in names}
        for at in self._candidates(content, likely):
            if not missing:
                break
            manifest = self._manifests.slice(at, 1)
            data, entries = load_entries(manifest, self._context)
            status = _statuses(entries, named)
            hit = entries.filter(pc.equal(status, DELETED))
            if hit.num_rows == 0:
                continue
            self.untouched[at] = False
            missing -= {(column, name) for column in named for name in hit[column].to_pylist()}
            source = ManifestSource(manifest.manifest_path[0].as_py(), data, manifest, status)
            self.rewritten.append(rewrite_without(source, entries, self._base, self._context, self._snapshot_id))
            removed.append(hit.select(REMOVED.names))
        return ManifestEntries.concat(removed) if removed else ManifestEntries(REMOVED.empty_table())

    def _candidates(self, content: int, likely: set[str]) -> Iterator[int]:
        """Yield manifests, those that held the files at planning time first."""
        paths = self._manifests.manifest_path.to_pylist()
        rows = np.flatnonzero(self._manifests.content.to_numpy() == content).tolist()
        yield from sorted(rows, key=lambda at: paths[at] not in likely)


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
