"""Replace data files: some go, others come, in one snapshot.

What must still hold when the commit lands: every file that goes is still there; nobody deleted rows of files that were
written anew in part, or those rows would come back; and, under serializable isolation, nobody added rows of the
overwritten range, which this overwrite never saw and which would survive it.
"""

from dataclasses import dataclass

import pyarrow as pa

from icefield.commit.action import ProposedChange, WriteContext
from icefield.commit.actions.snapshot_update import FilesAction, FilesDraft, with_vectors
from icefield.commit.snapshot.manifest_filter import RemovedFiles
from icefield.commit.snapshot.summary import tally
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation


@dataclass(kw_only=True)
class OverwriteFiles(FilesAction):
    """Replaces every file of a footing's plan by new ones.

    carried: those of the planned files that rows were carried over from into the new ones.
    """

    carried: pa.Table

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
    def _replaced(self) -> pa.Table:
        return self.read_set.plan.files

    def _operation(self) -> Operation:
        if self.files.columns.num_rows == 0:
            return Operation.DELETE
        return Operation.OVERWRITE if self._replaced.num_rows else Operation.APPEND
