"""Replace equality deletes by position deletes, without changing rows, and drop deletes that apply to no file.

The engine that found the deleted rows writes the position deletes before the commit. It does not conflict: on a base
that others have changed,

- a data file that was removed or rewritten, or whose equality deletes another writer converted, gets no new deletes,
- a data file whose position deletes have changed has both (a deletion vector is written again with all positions),
- an equality delete file is removed only if every data file that it applies to was converted; others stay.

What must be true at commit time: the version that was read is still in the history of the branch, so that the deletes
of that version are in effect.
"""

from collections.abc import Iterator, Sequence
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
from icefield.parquet.read.task import DeleteType, FileTask
from icefield.parquet.write.delete_files import (
    DeleteDestination,
    DeleteEntry,
    data_files_of,
    delete_locations,
    open_entry,
)
from icefield.plan.partition.values import load_partition_values
from icefield.plan.plan import ScanPlan, plan_scan
from icefield.plan.planned_files import PlannedFiles
from icefield.plan.versions import ResolvedVersion


@dataclass(kw_only=True)
class ConvertDeletes(FilesAction):
    """Adds position deletes for rows of converted files, and removes the equality deletes that they replace.

    The plan of the read set has all files of the table. converted: those whose equality deletes were applied. deletes:
    the delete files of those that lost rows. has_vectors: they are deletion vectors, which include the positions that
    were deleted before. place: where rewritten delete files go.
    """

    converted: PlannedFiles
    deletes: Sequence[DeleteEntry]
    has_vectors: bool
    place: DeleteDestination

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
        groups = as_added_files(entries, load_partition_values(context.reading, base, plan, touched), base)
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
        applied = {task.location: _equality_deletes(task) for task in self.read_set.plan.tasks(self.converted)}
        tasks = plan.tasks(plan.files.filter(plan.files.delete_keys.is_valid()))
        needed = (_equality_deletes(task) - applied.get(task.location, frozenset()) for task in tasks)
        obsolete = plan.deletes.equality_deletes - frozenset().union(*needed)
        dangling = plan.deletes.find_dangling(plan.files.paths)
        return RemovedFiles(nothing, superseded | dangling.vectors_of, obsolete | dangling.files)

    def _entries(
        self, plan: ScanPlan, base: TableMetadata, context: WriteContext
    ) -> tuple[list[DeleteEntry], frozenset[str]]:
        """Return the new delete files for a base, and the data files whose earlier position deletes they include."""
        own = {path: open_entry(entry) for entry in self.deletes for path in data_files_of(entry)}
        planned = {task.location: task for task in self.read_set.plan.tasks(self.converted.at(own))}
        # Another writer may have removed the file, or have converted its deletes.
        now = {
            task.location: task
            for task in plan.tasks(plan.files.at(own))
            if _equality_deletes(task) & _equality_deletes(planned[task.location])
        }
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


def _equality_deletes(task: FileTask) -> frozenset[str]:
    return frozenset(delete.location for delete in task.deletes if delete.kind is DeleteType.EQUALITY)


def _position_deletes(task: FileTask) -> frozenset[object]:
    return frozenset(delete for delete in task.deletes if delete.kind is not DeleteType.EQUALITY)


def _pairwise_union(positions: Iterator[Positions]) -> Iterator[Positions]:
    for one, other in zip(positions, positions, strict=True):
        yield np.union1d(one, other)
