"""Replace data files: remove some and add others, in one snapshot.

What must be true at commit time: every file to remove is still there, or compaction has moved its rows to other files,
where they are deleted; no rows were deleted concurrently from files that
were rewritten, or they would reappear; and, under serializable isolation, no rows were added concurrently that match
the overwritten range, which this overwrite did not read and which would survive it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.action import ProposedChange, WriteContext
from icefield.commit.actions.snapshot_update import FilesAction, FilesDraft, with_vectors
from icefield.commit.snapshot.carried_over import LostFiles, carry_over, find_lost_files, live_rows
from icefield.commit.snapshot.manifest_filter import RemovedFiles
from icefield.commit.snapshot.manifests import AddedFiles, write_added
from icefield.commit.snapshot.position_deletes import as_added_files, open_delete_writer
from icefield.commit.snapshot.summary import tally, tally_deletes
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation
from icefield.parquet.write.delete_files import DeleteDestination
from icefield.plan.planned_files import PlannedFiles


@dataclass(kw_only=True)
class OverwriteFiles(FilesAction):
    """Replaces every file of a read set's plan by new ones.

    carried: the planned files whose remaining rows were copied to the new ones. place: where position deletes go, if
    the rows of a planned file were moved to another.
    """

    carried: PlannedFiles
    place: DeleteDestination

    @property
    def changes_nothing(self) -> bool:
        """Nothing to remove and nothing to add."""
        return bool(self.files.columns.num_rows + self._replaced.num_rows == 0)

    def propose_on(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        self.read_set.check_added_rows(base, context)
        self.read_set.check_deleted_rows(base, context, self.carried)
        lost = find_lost_files(self.read_set, self._replaced, base, context)
        manifests, snapshot_id = self._manifests.write(base, context)
        draft = FilesDraft(
            snapshot_id,
            self._operation(),
            RemovedFiles(self._replaced, with_vectors(self._replaced, self.read_set, base)),
            manifests,
            added=tally(self.files.columns),
            partitions=self.files.partitions,
        )
        draft = draft if lost is None else self._carried_over(draft, lost, base, context)
        return self._propose_draft(draft, base, context)

    def _carried_over(
        self, draft: FilesDraft, lost: LostFiles, base: TableMetadata, context: WriteContext
    ) -> FilesDraft:
        """Delete the rows of lost files where they are now."""
        copied = self.carried.paths
        rows = (
            replace(each, is_exact=each.planned.location in copied)
            for each in live_rows(self.read_set, lost.files, base, context)
        )
        moved = carry_over(self.read_set, lost, rows, base, context)
        writer = open_delete_writer(self.place, base, context.store, context.ambient)
        moved.write(writer)
        deletes: Sequence[AddedFiles] = as_added_files(writer.close(), moved.partition_values(base, context), base)
        kept = self._replaced.at(self._replaced.paths - lost.paths)
        vectors = with_vectors(kept, self.read_set, base) | moved.superseded
        removed = PlannedFiles.concat([kept, moved.emptied])
        columns = [group.columns for group in deletes]
        written = [row for group in deletes for row in write_added(group, base, context, draft.snapshot_id)]
        return replace(
            draft,
            removed_files=RemovedFiles(removed, vectors | moved.emptied.paths),
            manifests=[*draft.manifests, *written],
            added_deletes=tally_deletes(DataFiles.concat(columns)) if columns else draft.added_deletes,
            partitions=draft.partitions | lost.files.partitions,
        )

    @property
    def _replaced(self) -> PlannedFiles:
        return self.read_set.plan.files

    def _operation(self) -> Operation:
        if self.files.columns.num_rows == 0:
            return Operation.DELETE
        return Operation.OVERWRITE if self._replaced.num_rows else Operation.APPEND
