"""Append data files. Appends do not conflict with concurrent commits."""

from collections.abc import Sequence

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.action import NOTHING_TO_DO, ON_MAIN, CommitTarget, ProposedChange, WriteContext
from icefield.commit.snapshot.build import SnapshotDraft, propose_snapshot
from icefield.commit.snapshot.manifests import AddedFiles, AddedManifests, ManifestShape
from icefield.commit.snapshot.merge_manifests import merge_manifests
from icefield.commit.snapshot.summary import tally
from icefield.commit.validate.idempotency_key import was_made
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import Operation
from icefield.types.schema import Schema


class AppendFiles:
    """Adds data files in new manifests, which are written once for all attempts."""

    def __init__(self, files: DataFiles, spec: PartitionSpec, schema: Schema, target: CommitTarget = ON_MAIN) -> None:
        self._target = target
        self._files = AddedFiles(files, ManifestShape(schema, spec))
        self._manifests = AddedManifests(self._files)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot of this action; None if it was never proposed."""
        return self._manifests.snapshot_id

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if self._manifests.are_in(base) or was_made(base, self._target.ref, self._target.idempotency_key):
            return NOTHING_TO_DO
        added, snapshot_id = self._manifests.write(base, context)
        merged = merge_manifests(base.ref_head(self._target.ref), base, context, snapshot_id)
        draft = SnapshotDraft(
            snapshot_id,
            Operation.APPEND,
            new=[*added, *(merged.manifests if merged else ())],
            kept=merged.kept if merged else None,
            added=tally(self._files.columns),
            changed_partitions=len(self._files.partitions),
            target=self._target,
        )
        return propose_snapshot(draft, base, context)

    def prepare(self, base: TableMetadata, context: WriteContext) -> None:
        """Write the files that every base needs, before waiting in the commit queue, to hold it for less time."""
        self._manifests.write(base, context)

    def reusable_files(self) -> Sequence[str]:
        return self._manifests.locations
