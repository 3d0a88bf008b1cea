"""Replace deletes by position deletes, without changing rows, and drop deletes that apply to no file.

Equality deletes become position deletes; position deletes of many files become those of few, or deletion vectors. The
engine that read the deleted rows writes the new deletes before the commit. It does not conflict: on a base that others
have changed,

- a data file that was removed or rewritten, or whose old deletes another writer has replaced, gets no new deletes,
- a data file whose position deletes have changed has both (a deletion vector is written again with all positions),
- an old delete file is removed only if the new deletes replace it for every data file that it applies to; others stay.

What must be true at commit time: the version that was read is still in the history of the branch, so that the deletes
of that version are in effect.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.action import NOTHING_TO_DO, ProposedChange, WriteContext
from icefield.commit.actions.snapshot_update import FilesAction, FilesDraft
from icefield.commit.snapshot.manifest_filter import RemovedFiles
from icefield.commit.snapshot.manifests import write_added
from icefield.commit.snapshot.position_deletes import (
    as_added_files,
    has_position_deletes,
    load_positions,
    open_delete_writer,
    with_deletes,
)
from icefield.commit.snapshot.summary import NO_DELETE_FILES, tally_deletes
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.task import DeleteFile, DeleteType, FileTask
from icefield.parquet.write.delete_files import (
    DeleteDestination,
    DeleteEntry,
    data_files_of,
    delete_locations,
    open_entry,
)
from icefield.plan.partition.values import load_partition_values
from icefield.plan.plan import ScanPlan, plan_scan
from icefield.plan.versions import ResolvedVersion

NO_DELETES = frozenset[DeleteFile]()


@dataclass(kw_only=True)
class RewriteDeletes(FilesAction):
    """Adds position deletes, and removes the deletes that they replace.

    The plan of the read set has all files of the table. replaced: the deletes of each data file that the new ones
    include; a data file that they delete no row of is there, too. deletes: the new delete files. has_vectors: they are
    deletion vectors, which include all positions that were deleted before. place: where rewritten delete files go.
    sequence_number: of the new deletes, if they are as old as those that they replace; None to inherit it.
    left_out: the data files of the newest proposal whose old deletes another writer has replaced.
    """

    replaced: Mapping[str, frozenset[DeleteFile]]
    deletes: Sequence[DeleteEntry]
    has_vectors: bool
    place: DeleteDestination
    sequence_number: int | None = None
    left_out: frozenset[str] = frozenset()

    @property
    def changes_nothing(self) -> bool:
        """Nothing to add and nothing to remove, in the version that was read."""
        return not (self.deletes or self._removed(self.read_set.plan, frozenset()))

    def propose_on(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        plan = self._plan_now(base, context)
        entries, superseded = self._entries(plan, base, context)
        removed = self._removed(plan, superseded)
        if not (removed or entries):
            return NOTHING_TO_DO
        _, snapshot_id = self._manifests.write(base, context)
        touched = plan.files.at(path for entry in entries for path in data_files_of(entry))
        values = load_partition_values(context.reading, base, plan, touched)
        groups = [replace(g, sequence_number=self.sequence_number) for g in as_added_files(entries, values, base)]
        columns = [group.columns for group in groups]
        draft = FilesDraft(
            snapshot_id,
            Operation.REPLACE,
            removed,
            [row for group in groups for row in write_added(group, base, context, snapshot_id)],
            added_deletes=tally_deletes(DataFiles.concat(columns)) if columns else NO_DELETE_FILES,
            partitions=touched.partitions,
        )
        used = set(delete_locations(entries))
        unused = [location for location in delete_locations(self.deletes) if location not in used]
        return replace(self._propose_draft(draft, base, context), unused=unused)

    def _plan_now(self, base: TableMetadata, context: WriteContext) -> ScanPlan:
        """Return the plan of all files; fail if the version that was read is no longer in the history."""
        if not self.read_set.has_moved(base):
            return self.read_set.plan
        planned = self.read_set.plan
        version = ResolvedVersion(base.ref_head(self.read_set.ref), planned.version.schema)
        return plan_scan(context.reading, base, version, planned.where)

    def _removed(self, plan: ScanPlan, superseded: frozenset[str]) -> RemovedFiles:
        """Return the deletes that no data file needs any more. superseded: the files with new deletion vectors."""
        nothing = plan.files.slice(0, 0)
        if plan.deletes is None:
            return RemovedFiles(nothing)
        tasks = plan.tasks(plan.files.filter(plan.files.delete_keys.is_valid()))
        needed = {
            delete.location
            for task in tasks
            for delete in _deletes(task) - self.replaced.get(task.location, NO_DELETES)
        }
        vectors = plan.deletes.vector_targets - plan.files.paths
        return RemovedFiles(nothing, superseded | vectors, plan.deletes.delete_files - needed)

    def _entries(
        self, plan: ScanPlan, base: TableMetadata, context: WriteContext
    ) -> tuple[list[DeleteEntry], frozenset[str]]:
        """Return the new delete files for a base, and the data files whose earlier position deletes they include."""
        own = {path: open_entry(entry) for entry in self.deletes for path in data_files_of(entry)}
        planned = {task.location: task for task in self.read_set.plan.tasks(self.read_set.plan.files.at(own))}
        found = {task.location: task for task in plan.tasks(plan.files.at(own))}
        # Another writer may have removed the file, or have replaced its deletes.
        now = {path: task for path, task in found.items() if _deletes(task) & self.replaced[path]}
        self.left_out = frozenset(found.keys() - now.keys())
        live = [entry for entry in self.deletes if not now.keys().isdisjoint(data_files_of(entry))]
        if not base.has_row_ids:
            return live, frozenset()
        superseded = frozenset(path for path, task in now.items() if has_position_deletes(task))
        stale = [
            path
            for path, task in now.items()
            if not self.has_vectors or _position_deletes(task) != _position_deletes(planned[path])
        ]
        if not stale:
            return live, superseded
        writer = open_delete_writer(self.place, base, context.store, context.ambient)
        both = (task for path in stale for task in (now[path], with_deletes(now[path], own[path])))
        for path, positions in zip(stale, _pairwise_union(load_positions(both, base, context.store)), strict=True):
            writer.add(path, positions)
        rewritten = writer.close()
        return [*(entry for entry in live if set(stale).isdisjoint(data_files_of(entry))), *rewritten], superseded


def equality_deletes(task: FileTask) -> frozenset[DeleteFile]:
    """Return the equality deletes that apply to a data file."""
    return frozenset(delete for delete in task.deletes if delete.kind is DeleteType.EQUALITY)


def _deletes(task: FileTask) -> frozenset[DeleteFile]:
    return frozenset(task.deletes)


def _position_deletes(task: FileTask) -> frozenset[DeleteFile]:
    return _deletes(task) - equality_deletes(task)


def _pairwise_union(positions: Iterator[Positions]) -> Iterator[Positions]:
    for one, other in zip(positions, positions, strict=True):
        yield np.union1d(one, other)
