"""Replace data files: some go, others come, in one snapshot.

What must still hold when the commit lands: every file that goes is still there, and nobody deleted rows of it since;
otherwise rows that somebody else removed would come back. Under serializable isolation also: no snapshot since the
planned one added a file that may hold rows of the overwritten range; otherwise rows that this overwrite never saw would
survive it.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from icefield.commit.action import NOTHING_TO_DO, ON_MAIN, Change, Target, Workshop
from icefield.commit.loop import remove_quietly
from icefield.commit.manifests import AddedManifests, ManifestShape
from icefield.commit.removal import remove_files
from icefield.commit.snapshots import SnapshotDraft, propose_snapshot
from icefield.commit.summary import tally
from icefield.commit.token import find_commit
from icefield.errors import ConcurrentChange
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation, Snapshot
from icefield.properties import SERIALIZABLE
from icefield.scan.plan import ScanPlan, plan_added_deletes, plan_added_files

SHOWN_FILES = 3


class OverwriteFiles:
    """Replaces every file of a scan plan by new ones; the new files hold what is to stay of partly matching ones."""

    def __init__(
        self,
        files: pa.Table,
        shape: ManifestShape,
        replaced: ScanPlan,
        target: Target = ON_MAIN,
        *,
        isolation: str = SERIALIZABLE,
    ) -> None:
        self._target = target
        self._isolation = isolation
        self._files = files
        self._shape = shape
        self._replaced = replaced
        self._manifests = AddedManifests(files, self._shape)

    @property
    def changes_nothing(self) -> bool:
        """Nothing to remove and nothing to add."""
        return bool(self._files.num_rows + self._replaced.files.num_rows == 0)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that this makes; None if it was never proposed."""
        return self._manifests.snapshot_id

    def propose(self, base: TableMetadata, workshop: Workshop) -> Change:
        if find_commit(base, self._target.token):
            return NOTHING_TO_DO
        self._check_concurrent_files(base, workshop)
        added, snapshot_id = self._manifests.write(base, workshop)
        partitions = self._shape.partitions_of(self._files) | set(self._replaced.files.column("partition").to_pylist())
        removal = remove_files(self._replaced.files, base, self._target.ref, workshop, snapshot_id)
        rewritten = [str(row["manifest_path"]) for row in removal.rewritten]
        if removal.missing:
            remove_quietly(workshop.store, rewritten)
            raise ConcurrentChange(
                f"cannot overwrite: {len(removal.missing)} file(s) that it replaces were meanwhile removed, "
                f"such as {min(removal.missing)}",
                hint="Nothing was changed; run the overwrite again",
            )
        draft = SnapshotDraft(
            snapshot_id,
            self._operation(),
            new=[*added, *removal.rewritten],
            added=tally(self._files),
            removed=tally(self._replaced.files),
            removed_vectors=removal.vectors,
            kept=removal.kept,
            changed_partitions=len(partitions),
            ref=self._target.ref,
            extra=self._target.summary,
        )
        change = propose_snapshot(draft, base, workshop)
        return Change(change.updates, change.requirements, [*change.files, *rewritten])

    def prepare(self, base: TableMetadata, workshop: Workshop) -> None:
        """Write what every base needs; done before a turn in the lane, it takes no time of others."""
        self._manifests.write(base, workshop)

    def reusable_files(self) -> Sequence[str]:
        return self._manifests.locations

    def _operation(self) -> Operation:
        if self._files.num_rows == 0:
            return Operation.DELETE
        return Operation.OVERWRITE if self._replaced.files.num_rows else Operation.APPEND

    def _check_concurrent_files(self, base: TableMetadata, workshop: Workshop) -> None:
        for snapshot in self._snapshots_since(base):
            found = plan_added_files(workshop.store, base, snapshot, self._replaced)
            if found.num_rows and self._isolation == SERIALIZABLE:
                raise ConcurrentChange(
                    f"cannot overwrite: snapshot {snapshot.snapshot_id} ({snapshot.operation}) meanwhile added "
                    f"{found.num_rows} file(s) that may hold matching rows, such as {_some(found)}",
                    hint="Nothing was changed; run the overwrite again to see the new rows",
                )
            deletes = plan_added_deletes(workshop.store, base, snapshot, self._replaced)
            if deletes.num_rows:
                raise ConcurrentChange(
                    f"cannot overwrite: snapshot {snapshot.snapshot_id} ({snapshot.operation}) meanwhile deleted rows "
                    f"of files that it replaces, by {_some(deletes)}",
                    hint="Nothing was changed; run the overwrite again, or the rows would come back",
                )

    def _snapshots_since(self, base: TableMetadata) -> Iterator[Snapshot]:
        """Yield every snapshot that came between the plan and the base."""
        planned = self._replaced.point.snapshot
        for snapshot in base.ancestors(base.ref_head(self._target.ref)):
            if planned is not None and snapshot.snapshot_id == planned.snapshot_id:
                return
            yield snapshot
        if planned is not None:
            raise ConcurrentChange(
                f"cannot overwrite: snapshot {planned.snapshot_id}, on which it was planned, left the history of "
                f"{self._target.ref}",
                hint="Nothing was changed; run the overwrite again",
            )


def _some(files: pa.Table) -> str:
    return ", ".join(files.column("file_path").to_pylist()[:SHOWN_FILES])
