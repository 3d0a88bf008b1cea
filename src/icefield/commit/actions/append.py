"""Append data files. Appends commute: whatever else was committed meanwhile, they still hold."""

from collections.abc import Sequence

import pyarrow as pa

from icefield.commit.action import NOTHING_TO_DO, ON_MAIN, Change, Target, Workshop
from icefield.commit.snapshot.build import SnapshotDraft, propose_snapshot
from icefield.commit.snapshot.manifests import AddedManifests, ManifestShape, NewFiles
from icefield.commit.snapshot.merge_manifests import merge_manifests
from icefield.commit.snapshot.summary import tally
from icefield.commit.validate.idempotency_key import was_made
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import Operation
from icefield.types.schema import Schema


class AppendFiles:
    """Adds data files in new manifests; the manifests are written once, whatever the number of tries."""

    def __init__(self, files: pa.Table, spec: PartitionSpec, schema: Schema, target: Target = ON_MAIN) -> None:
        self._target = target
        self._files = NewFiles(files, ManifestShape(schema, spec))
        self._manifests = AddedManifests(self._files)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that this makes; None if it was never proposed."""
        return self._manifests.snapshot_id

    def propose(self, base: TableMetadata, workshop: Workshop) -> Change:
        if self._manifests.are_in(base) or was_made(base, self._target.ref, self._target.token):
            return NOTHING_TO_DO
        added, snapshot_id = self._manifests.write(base, workshop)
        merged = merge_manifests(base.ref_head(self._target.ref), base, workshop, snapshot_id)
        draft = SnapshotDraft(
            snapshot_id,
            Operation.APPEND,
            new=[*added, *(merged.manifests if merged else ())],
            kept=merged.kept if merged else None,
            added=tally(self._files.columns),
            changed_partitions=len(self._files.partitions),
            target=self._target,
        )
        return propose_snapshot(draft, base, workshop)

    def prepare(self, base: TableMetadata, workshop: Workshop) -> None:
        """Write what every base needs; done before a turn in the lane, it takes no time of others."""
        self._manifests.write(base, workshop)

    def reusable_files(self) -> Sequence[str]:
        return self._manifests.locations
