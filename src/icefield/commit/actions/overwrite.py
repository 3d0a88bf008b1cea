"""Replace data files: remove some and add others, in one snapshot.

What must be true at commit time: every file to remove is still there; no rows were deleted concurrently from files that
were rewritten, or they would reappear; and, under serializable isolation, no rows were added concurrently that match
the overwritten range, which this overwrite did not read and which would survive it.
"""

from dataclasses import dataclass

from icefield.commit.action import ProposedChange, WriteContext
from icefield.commit.actions.snapshot_update import FilesAction, FilesDraft, with_vectors
from icefield.commit.snapshot.manifest_filter import RemovedFiles
from icefield.commit.snapshot.summary import tally
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation
from icefield.plan.planned_files import PlannedFiles


@dataclass(kw_only=True)
class OverwriteFiles(FilesAction):
    """Replaces every file of a read set's plan by new ones.

    carried: the planned files whose remaining rows were copied to the new ones.
    """

    carried: PlannedFiles

    @property
    def changes_nothing(self) -> bool:
        """Nothing to remove and nothing to add."""
        return bool(self.files.columns.num_rows + self._replaced.num_rows == 0)

    def propose_on(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        self.read_set.check_added_rows(base, context)
        self.read_set.check_deleted_rows(base, context, self.carried)
        manifests, snapshot_id = self._manifests.write(base, context)
        draft = FilesDraft(
            snapshot_id,
            self._operation(),
            RemovedFiles(self._replaced, with_vectors(self._replaced, self.read_set, base)),
            manifests,
            added=tally(self.files.columns),
            partitions=self.files.partitions,
        )
        return self._propose_draft(draft, base, context)

    @property
    def _replaced(self) -> PlannedFiles:
        return self.read_set.plan.files

    def _operation(self) -> Operation:
        if self.files.columns.num_rows == 0:
            return Operation.DELETE
        return Operation.OVERWRITE if self._replaced.num_rows else Operation.APPEND
