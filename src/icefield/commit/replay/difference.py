"""What distinguishes two versions of a table: files and rows that only one of them has.

A row is known by its file and its position. For example, with deletes in brackets:

    before     a [1]      b        c [0]
    after      a [1, 3]            c [0]     d [2]

    removed    row 3 of a, all rows of b
    added      all rows of d but row 2

Manifests that both versions share are not opened, unless their deletes differ. New equality deletes can be listed
instead of applied: only reading all files of their partitions would show which rows they delete.
Raises MissingFile, CorruptFile.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.rows import NO_MANIFESTS, Manifests
from icefield.commit.snapshot.moved_rows import NO_POSITIONS
from icefield.commit.snapshot.position_deletes import ChangedFile
from icefield.expr.bind.bound import TRUE
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.read_ahead import read_ahead
from icefield.parquet.read.task import DeleteFile, DeleteType, FileTask
from icefield.plan.delete_index import DeleteIndex
from icefield.plan.manifest_list import is_of, load_manifests
from icefield.plan.metrics import ScanMetrics
from icefield.plan.plan import ScanPlan, plan_manifests
from icefield.plan.planned_files import NO_FILES, PlannedFiles
from icefield.plan.versions import ResolvedVersion
from icefield.storage.store import Store
from icefield.types.arrays import Mask
from icefield.types.metadata_columns import DELETED, POSITION, with_free_names


@dataclass(frozen=True)
class Difference:
    """Two versions, and the files that distinguish them.

    added: files of `after` only. removed: files of `before` only. changed: files of both whose deletes differ.
    key_deletes: new equality deletes of `after` that are listed, not applied.
    """

    before: ScanPlan
    after: ScanPlan
    added: PlannedFiles
    removed: PlannedFiles
    changed: Sequence[ChangedFile]
    key_deletes: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """The versions have the same files and deletes."""
        return not (self.added.num_rows or self.removed.num_rows or self.changed or self.key_deletes)


def no_difference(version: ResolvedVersion) -> Difference:
    """Return that of a version from itself."""
    plan = ScanPlan(version, TRUE, NO_FILES, ScanMetrics())
    return Difference(plan, plan, NO_FILES, NO_FILES, ())


def find_difference(
    context: ReadContext,
    metadata: TableMetadata,
    before: Snapshot | None,
    after: Snapshot | None,
    by: Iterable[Snapshot] = (),
) -> Difference:
    """Find the files that distinguish two versions. by: snapshots whose equality deletes are listed, not applied."""
    lists = [load_manifests(context, snapshot) for snapshot in (before, after)]
    was, now = (NO_MANIFESTS if listed is None else listed for listed in lists)
    same_deletes = not (_only_in(was, now, DELETE_MANIFEST).any() or _only_in(now, was, DELETE_MANIFEST).any())
    plans = []
    for snapshot, own, other in ((before, was, now), (after, now, was)):
        # Deletes that differ may be deletes of any file.
        unread = is_of(own, DATA_MANIFEST) & ~_only_in(own, other, DATA_MANIFEST) & same_deletes
        version = ResolvedVersion(snapshot, metadata.schema)
        plans.append(plan_manifests(context, metadata, version, own.choose(~unread)))
    listed = frozenset(snapshot.snapshot_id for snapshot in by)
    was_plan, now_plan = plans
    return _compare_files(was_plan, now_plan) if same_deletes else _compare(was_plan, now_plan, listed)


def _compare_files(was: ScanPlan, now: ScanPlan) -> Difference:
    return Difference(was, now, _absent(now.files, was.files), _absent(was.files, now.files), ())


def _compare(was: ScanPlan, now: ScanPlan, own: frozenset[int]) -> Difference:
    before, after = _key_deletes(was.deletes), _key_deletes(now.deletes)
    listed = frozenset(path for path, added_by in after.items() if added_by in own) - before.keys()
    both = was.files.paths & now.files.paths
    paths = (_with_deletes(was.files) | _with_deletes(now.files)) & both
    tasks = {task.location: task for task in now.tasks(now.files.at(paths))}
    pairs = (ChangedFile(task, tasks[task.location]) for task in was.tasks(was.files.at(paths)))
    changed = [pair for pair in pairs if set(pair.planned.deletes) != without_keys(pair.now, listed)]
    return replace(_compare_files(was, now), changed=changed, key_deletes=listed)


def load_deleted(tasks: Iterable[FileTask], metadata: TableMetadata, store: Store) -> Iterator[Positions]:
    """Load the positions of all deleted rows of each file, also of those that are deleted by their keys."""
    schema, names = with_free_names(metadata.schema, (POSITION, DELETED))
    position, deleted = names
    for reader, task in read_ahead(store, metadata, tasks):
        if not task.has_key_deletes:
            yield reader.deleted_positions(task)
            continue
        batches = reader.read(task, schema, names, TRUE)
        found = [batch.column(position).filter(batch.column(deleted)).to_numpy() for batch in batches]
        yield np.unique(np.concatenate([NO_POSITIONS, *found]))


def without_keys(task: FileTask, key_deletes: frozenset[str]) -> frozenset[DeleteFile]:
    """Return the deletes of a file but some equality deletes, by their locations."""
    return frozenset(delete for delete in task.deletes if delete.location not in key_deletes)


def _only_in(manifests: Manifests, others: Manifests, content: int) -> Mask:
    """Return which manifests of one content are not in another list."""
    shared = pc.is_in(manifests.manifest_path, value_set=others.manifest_path.combine_chunks())
    return is_of(manifests, content) & ~shared.to_numpy()  # type: ignore[no-any-return]


def _absent(files: PlannedFiles, others: PlannedFiles) -> PlannedFiles:
    return files.filter(pc.invert(pc.is_in(files.file_path, value_set=others.file_path.combine_chunks())))


def _with_deletes(files: PlannedFiles) -> frozenset[str]:
    return files.filter(files.delete_keys.is_valid()).paths


def _key_deletes(deletes: DeleteIndex | None) -> dict[str, int]:
    """Return the equality deletes of a version, and the snapshots that added them."""
    listed = () if deletes is None else deletes.listed
    return {each.location: each.snapshot_id for each in listed if each.kind is DeleteType.EQUALITY}


def find_files(paths: Set[str], listings: Sequence[PlannedFiles]) -> PlannedFiles:
    """Return files, each as the first of some listings has it."""
    found, left = [], set(paths)
    for files in listings:
        found.append(files.at(left))
        left -= found[-1].paths
    return PlannedFiles.concat(found)
