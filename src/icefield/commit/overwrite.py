"""Replace data files: some go, others come, in one snapshot.

What must still hold when the commit lands: every file that goes is still there; nobody deleted rows of files that were
written anew in part, or those rows would come back; and, under serializable isolation, nobody added rows of the
overwritten range, which this overwrite never saw and which would survive it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from icefield.commit.action import NOTHING_TO_DO, ON_MAIN, Change, Target, Workshop
from icefield.commit.files import FilesDraft, propose_files, with_vectors
from icefield.commit.footing import Footing
from icefield.commit.manifests import AddedManifests, NewFiles
from icefield.commit.removal import Gone
from icefield.commit.summary import tally
from icefield.commit.token import find_commit
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation


@dataclass
class OverwriteFiles:
    """Replaces every file of a footing's plan by new ones.

    carried: those of the planned files that rows were carried over from into the new ones.
    """

    files: NewFiles
    footing: Footing
    carried: pa.Table
    target: Target = ON_MAIN
    _manifests: AddedManifests = field(init=False)

    def __post_init__(self) -> None:
        self._manifests = AddedManifests(self.files)

    @property
    def changes_nothing(self) -> bool:
        """Nothing to remove and nothing to add."""
        return bool(self.files.columns.num_rows + self._replaced.num_rows == 0)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that this makes; None if it was never proposed."""
        return self._manifests.snapshot_id

    def propose(self, base: TableMetadata, workshop: Workshop) -> Change:
        if find_commit(base, self.target.token):
            return NOTHING_TO_DO
        self.footing.check_added_rows(base, workshop)
        self.footing.check_deleted_rows(base, workshop, self.carried)
        manifests, snapshot_id = self._manifests.write(base, workshop)
        draft = FilesDraft(
            snapshot_id,
            self._operation(),
            Gone(self._replaced, with_vectors(self._replaced, self.footing, base)),
            manifests,
            added=tally(self.files.columns),
            partitions=frozenset(self.files.partitions),
        )
        return propose_files(draft, self.footing, self.target, base, workshop)

    def prepare(self, base: TableMetadata, workshop: Workshop) -> None:
        """Write what every base needs; done before a turn in the lane, it takes no time of others."""
        self._manifests.write(base, workshop)

    def reusable_files(self) -> Sequence[str]:
        return self._manifests.locations

    @property
    def _replaced(self) -> pa.Table:
        return self.footing.plan.files

    def _operation(self) -> Operation:
        if self.files.columns.num_rows == 0:
            return Operation.DELETE
        return Operation.OVERWRITE if self._replaced.num_rows else Operation.APPEND
