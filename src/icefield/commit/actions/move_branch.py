"""Move a branch to any snapshot of the table. Raises NoSuchSnapshot, InvalidInput."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from icefield.commit.action import NOTHING_TO_DO, ProposedChange, WriteContext
from icefield.commit.validate.key_history import begin_branch
from icefield.errors import InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import RefKind, SnapshotRef
from icefield.model.updates import AssertRefSnapshotId, AssertTableUUID, SetSnapshotRef


@dataclass(frozen=True)
class MoveBranch:
    """Moves a branch, which then has the idempotency keys of the branch that the snapshot is on."""

    branch: str
    snapshot_id: int

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        target = base.snapshot_by_id(self.snapshot_id)
        known = base.refs.get(self.branch)
        if known is not None and known.kind is not RefKind.BRANCH:
            raise InvalidInput(f"cannot move {self.branch!r}: it is a tag")
        if known is not None and known.snapshot_id == target.snapshot_id:
            return NOTHING_TO_DO
        moved = SetSnapshotRef(
            self.branch, replace(known or SnapshotRef(target.snapshot_id), snapshot_id=target.snapshot_id)
        )
        required = AssertRefSnapshotId(self.branch, known.snapshot_id if known else None)
        updates = [moved, *begin_branch(base, self.branch, target)]
        return ProposedChange(updates, [AssertTableUUID(base.table_uuid), required])

    def reusable_files(self) -> Sequence[str]:
        return ()
