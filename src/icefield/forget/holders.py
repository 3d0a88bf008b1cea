"""What holds rows: data files, deleted rows included; equality deletes; and the metadata that mentions those files.

    data file        a row in it matches, whether a delete hides it or not
    equality delete  a key in it matches; or may, if the filter uses columns that it does not have
    manifest         it lists such a file, also as deleted: its statistics hold values of the rows
    snapshot         its manifest list names such a manifest

All snapshots are looked at, whether a branch leads to them or not. A data file that manifests list only as deleted may
be gone, so that it cannot be read; it counts if its statistics allow a match.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.header import DELETE_MANIFEST
from icefield.codec.manifest.rows import NO_MANIFESTS, ManifestEntries, Manifests
from icefield.codec.manifest.schema import DELETED, EQUALITY_DELETES
from icefield.engine.engine import RowEngine
from icefield.engine.file_works import FindMatches
from icefield.expr.bind.bound import Bound, columns_of
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import RefKind
from icefield.parquet.read.task import FileTask
from icefield.plan.entries import LIVE, load_batches
from icefield.plan.manifest_list import is_of, load_many_manifests
from icefield.plan.metrics import ScanMetrics
from icefield.plan.plan import ScanPlan, plan_listed_files
from icefield.plan.planned_files import PlannedFiles
from icefield.plan.versions import ResolvedVersion

_OF_DELETES = ManifestColumns(
    (
        "status",
        "snapshot_id",
        "sequence_number",
        "content",
        "file_path",
        "record_count",
        "file_size_in_bytes",
        "equality_ids",
    ),
    partition=False,
)


@dataclass(frozen=True)
class Holders:
    """What holds the rows that a filter matches.

    files: data files, by location, with their sizes. keys: equality delete files. manifests: those that list one of
    either. snapshot_ids: the snapshots with such manifests. branches, tags: those that point at such a snapshot.
    """

    files: dict[str, int]
    keys: frozenset[str]
    manifests: frozenset[str]
    snapshot_ids: frozenset[int]
    branches: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True)
class _Listed:
    """Files that may hold rows. live: of some snapshot. by_manifest: the files that each manifest lists."""

    live: dict[str, FileTask]
    by_manifest: list[tuple[str, str]]

    @property
    def gone(self) -> set[str]:
        """The files that no snapshot has any more."""
        return {path for path, _ in self.by_manifest} - self.live.keys()


def find_holders(
    context: ReadContext,
    metadata: TableMetadata,
    where: Bound,
    engine: Callable[[int], RowEngine],
    known: dict[str, bool],
) -> Holders:
    """Find what holds matching rows in any snapshot. Only files that metadata cannot rule out are read.

    engine: returns one for so many bytes to read. known: which files have matching rows; what is found is added.
    """
    lists = {
        snapshot.snapshot_id: manifests for snapshot, manifests in load_many_manifests(context, metadata.snapshots)
    }
    manifests = _distinct(lists.values())
    data, keys = _data_files(context, metadata, manifests, where), _key_files(context, manifests, where)
    sure = [task for task in keys.live.values() if task.location not in keys.unknown]
    new = [task for task in (*data.live.values(), *sure) if task.location not in known]
    if new:
        known |= _matching(new, metadata, where, engine(sum(task.file_size_bytes or 0 for task in new)))
    held = {path for path in data.live if known[path]}
    held_keys = {path for path in keys.live if path in keys.unknown or known[path]}
    mentioned = held | data.gone | held_keys | keys.gone
    listing = frozenset(at for path, at in (*data.by_manifest, *keys.by_manifest) if path in mentioned)
    snapshots = frozenset(
        snapshot_id for snapshot_id, own in lists.items() if not listing.isdisjoint(own.manifest_path.to_pylist())
    )
    refs = {name: ref for name, ref in metadata.refs.items() if ref.snapshot_id in snapshots}
    return Holders(
        {path: data.live[path].file_size_bytes or 0 for path in sorted(held)},
        frozenset(held_keys),
        listing,
        snapshots,
        tuple(sorted(name for name, ref in refs.items() if ref.kind is RefKind.BRANCH)),
        tuple(sorted(name for name, ref in refs.items() if ref.kind is not RefKind.BRANCH)),
    )


def _distinct(lists: Iterable[Manifests]) -> Manifests:
    seen: set[str] = set()
    parts = []
    for manifests in lists:
        paths = manifests.manifest_path.to_pylist()
        parts.append(manifests.take([at for at, path in enumerate(paths) if path not in seen]))
        seen.update(paths)
    return Manifests.concat(parts) if parts else NO_MANIFESTS


def _data_files(context: ReadContext, metadata: TableMetadata, manifests: Manifests, where: Bound) -> _Listed:
    live, deleted = (
        plan_listed_files(context, metadata, manifests, where, statuses) for statuses in (LIVE, (DELETED,))
    )
    version = ResolvedVersion(None, metadata.schema)
    tasks = ScanPlan(version, where, live, ScanMetrics()).tasks(live)
    return _Listed({task.location: task for task in tasks}, [*_places(live), *_places(deleted)])


def _places(files: PlannedFiles) -> list[tuple[str, str]]:
    return list(zip(files.file_path.to_pylist(), files.manifest_path.to_pylist(), strict=True))


@dataclass(frozen=True)
class _Keys(_Listed):
    """Equality delete files. unknown: those without a column that the filter uses."""

    unknown: frozenset[str]


def _key_files(context: ReadContext, manifests: Manifests, where: Bound) -> _Keys:
    wanted = columns_of(where)
    live: dict[str, FileTask] = {}
    places: list[tuple[str, str]] = []
    unknown: set[str] = set()
    own = manifests.choose(is_of(manifests, DELETE_MANIFEST))
    for at in range(own.num_rows):
        for _, entries in load_batches(context, own.slice(at, 1), _OF_DELETES, (*LIVE, DELETED)):
            for row in _equality_entries(entries):
                path = row["file_path"]
                places.append((path, own.manifest_path[at].as_py()))
                if row["status"] != DELETED:
                    size = row["file_size_in_bytes"]
                    live[path] = FileTask(path, row["record_count"], 0, 0, file_size_bytes=size)
                    unknown |= set() if wanted <= set(row["equality_ids"] or ()) else {path}
    return _Keys(live, places, frozenset(unknown))


def _equality_entries(entries: ManifestEntries) -> Sequence[dict[str, Any]]:
    found: Sequence[dict[str, Any]] = entries.filter(pc.equal(entries.content, EQUALITY_DELETES)).to_pylist()
    return found


def _matching(tasks: Sequence[FileTask], metadata: TableMetadata, where: Bound, engine: RowEngine) -> dict[str, bool]:
    """Return for each file whether it has a row that matches; deletes do not count."""
    hits = engine.run(FindMatches(metadata.schema, where), engine.group(tasks))
    return {task.location: hit for task, hit in zip(tasks, hits, strict=True)}
