"""Build a snapshot: its manifest list, its summary, and the updates that make it the head of a branch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from icefield.codec.manifest_list import ManifestListHeader, encode_manifest_list, splice_manifest_list
from icefield.codec.manifest_list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.commit.action import Change, Workshop
from icefield.commit.manifests import ManifestRow, manifest_codec, with_sequence
from icefield.commit.summary import NOTHING, Tally, summarise
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN, Operation, Snapshot, SnapshotRef
from icefield.model.updates import AddSnapshot, AssertRefSnapshotId, AssertTableUUID, SetSnapshotRef


@dataclass(frozen=True)
class SnapshotDraft:
    """What a snapshot does to its parent.

    new: manifests that it adds. kept: rows of the parent's manifest list that stay; None keeps all.
    """

    snapshot_id: int
    operation: Operation
    new: Sequence[ManifestRow]
    added: Tally
    removed: Tally = NOTHING
    kept: pa.Table | None = None
    changed_partitions: int = 0


def propose_snapshot(draft: SnapshotDraft, base: TableMetadata, workshop: Workshop) -> Change:
    """Write the manifest list of a draft on a base, and propose it as the head of `main`."""
    parent = base.ref_head(MAIN)
    parent_id = parent.snapshot_id if parent else None
    sequence_number = base.last_sequence_number + 1
    location = workshop.metadata_location(
        base, f"snap-{draft.snapshot_id}-{sequence_number}-{workshop.ambient.random_uuid()}.avro"
    )
    header = ManifestListHeader(draft.snapshot_id, parent_id, sequence_number, base.format_version)
    workshop.store.put_new(location, _ListWriter(base, workshop, header, location).encode(draft, parent))
    snapshot = Snapshot(
        snapshot_id=draft.snapshot_id,
        sequence_number=sequence_number,
        timestamp_ms=max(workshop.ambient.now_ms(), base.last_updated_ms),
        manifest_list=location,
        parent_snapshot_id=parent_id,
        schema_id=base.current_schema_id,
        summary=summarise(draft.operation, draft.added, draft.removed, parent, draft.changed_partitions),
    )
    return Change(
        updates=[AddSnapshot(snapshot), SetSnapshotRef(MAIN, _moved(base.refs.get(MAIN), snapshot))],
        requirements=[AssertTableUUID(base.table_uuid), AssertRefSnapshotId(MAIN, parent_id)],
        files=[location],
    )


def _moved(ref: SnapshotRef | None, snapshot: Snapshot) -> SnapshotRef:
    """Point a branch at its new head; its retention rules stay."""
    return replace(ref, snapshot_id=snapshot.snapshot_id) if ref else SnapshotRef(snapshot.snapshot_id)


@dataclass(frozen=True)
class _ListWriter:
    base: TableMetadata
    workshop: Workshop
    header: ManifestListHeader
    location: str

    def encode(self, draft: SnapshotDraft, parent: Snapshot | None) -> bytes:
        rows = [with_sequence(row, draft.snapshot_id, self.header.sequence_number) for row in draft.new]
        new = pa.Table.from_pylist(rows, schema=MANIFEST_LIST_ARROW_SCHEMA)
        if parent is not None and draft.kept is None:
            previous = self.workshop.store.read(parent.manifest_list)
            return splice_manifest_list(previous, parent.manifest_list, new, self.header, self.location)
        kept = [] if draft.kept is None else [draft.kept]
        codec = manifest_codec(self.base)
        return encode_manifest_list(pa.concat_tables([new, *kept]), self.header, self.location, codec)
