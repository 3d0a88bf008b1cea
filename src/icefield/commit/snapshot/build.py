"""Build a snapshot: its manifest list, its summary, and the updates that make it the head of a branch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.header import DATA_MANIFEST
from icefield.codec.manifest.list import (
    ManifestListHeader,
    encode_manifest_list,
    is_spliceable,
    splice_manifest_list,
)
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rows import Manifests
from icefield.commit.action import ON_MAIN, CommitTarget, ProposedChange, WriteContext
from icefield.commit.snapshot.manifests import ManifestRow, complete_manifests, manifest_codec, with_sequence
from icefield.commit.snapshot.summary import NO_DELETE_FILES, NOTHING, DeleteTally, Tally, summarise
from icefield.commit.validate.key_history import remember
from icefield.errors import InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation, RefKind, Snapshot, SnapshotRef
from icefield.model.updates import AddSnapshot, AssertRefSnapshotId, AssertTableUUID, SetSnapshotRef
from icefield.plan.manifest_list import load_manifests, read_manifest_list

_HIGHEST_ROW_ID = 2**63 - 1


@dataclass(frozen=True)
class SnapshotDraft:
    """What a snapshot changes relative to its parent.

    new: manifests that it adds. kept: rows of the parent's manifest list to keep; None keeps all.
    target: the branch whose head it becomes, and its idempotency key. extra: more keys for the summary. header: more
    keys for the header of the manifest list. begins_branch: the branch does not exist yet.
    """

    snapshot_id: int
    operation: Operation
    new: Sequence[ManifestRow]
    added: Tally
    removed: Tally = NOTHING
    added_deletes: DeleteTally = NO_DELETE_FILES
    removed_deletes: DeleteTally = NO_DELETE_FILES
    kept: Manifests | None = None
    changed_partitions: int = 0
    target: CommitTarget = ON_MAIN
    extra: Mapping[str, str] = field(default_factory=dict)
    header: Mapping[str, str] = field(default_factory=dict)
    begins_branch: bool = False

    def changes(self) -> dict[str, int]:
        """Count the changes, under their summary keys."""
        return {
            "added-data-files": self.added.files,
            "added-records": self.added.records,
            "added-files-size": self.added.bytes + self.added_deletes.bytes,
            "deleted-data-files": self.removed.files,
            "deleted-records": self.removed.records,
            "removed-files-size": self.removed.bytes + self.removed_deletes.bytes,
            **self.added_deletes.counts("added"),
            **self.removed_deletes.counts("removed"),
            "changed-partition-count": self.changed_partitions,
        }


def propose_snapshot(draft: SnapshotDraft, base: TableMetadata, context: WriteContext) -> ProposedChange:
    """Write the manifest list of a draft on a base, and propose it as the head of its branch."""
    ref = draft.target.ref
    check_branch(base, ref)
    noted = draft.target.summary(base)
    more = remember(base, ref, noted)
    parent = None if draft.begins_branch else base.ref_head(ref)
    parent_id = parent.snapshot_id if parent else None
    sequence_number = base.next_sequence_number
    first_row_id = base.next_row_id if base.has_row_ids else None
    location = context.metadata_location(base, f"snap-{draft.snapshot_id}-{sequence_number}-{context.unique()}.avro")
    header = ManifestListHeader(
        draft.snapshot_id, parent_id, sequence_number, base.format_version, first_row_id, draft.header
    )
    data, next_row_id = _ListWriter(base, context, header, location).encode(draft, parent)
    context.store.put_new(location, data)
    snapshot = Snapshot(
        snapshot_id=draft.snapshot_id,
        sequence_number=sequence_number,
        timestamp_ms=max(context.ambient.now_ms(), base.last_updated_ms),
        manifest_list=location,
        parent_snapshot_id=parent_id,
        schema_id=base.current_schema_id,
        summary={**context.notes, **noted, **draft.extra, **summarise(draft.operation, draft.changes(), parent)},
        first_row_id=first_row_id,
        added_rows=None if first_row_id is None else next_row_id - first_row_id,
    )
    return ProposedChange(
        updates=[AddSnapshot(snapshot), SetSnapshotRef(ref, _moved(base.refs.get(ref), snapshot)), *more],
        requirements=[AssertTableUUID(base.table_uuid), AssertRefSnapshotId(ref, parent_id)],
    )


def check_branch(base: TableMetadata, ref: str) -> None:
    """Raise InvalidInput for a ref that is not a branch: tags do not move."""
    found = base.refs.get(ref)
    if found is not None and found.kind is not RefKind.BRANCH:
        raise InvalidInput(f"cannot write to {ref!r}: it is a tag", hint="Create a branch from it and write there")


def assign_row_ids(manifests: Manifests, next_row_id: int) -> tuple[Manifests, int]:
    """Assign a first row id to every data manifest without one, in order; return them and the next free id.

    Ids are reserved for existing rows too: their files may come from a table without row ids, and inherit theirs.
    Assigned ids never change. (spec: First Row ID Assignment)
    """
    given = manifests.first_row_id
    is_data = pc.equal(manifests.content, DATA_MANIFEST)
    takes = pc.and_(is_data, given.is_null())
    rows = pc.if_else(takes, pc.add(manifests.added_rows_count, manifests.existing_rows_count), 0).to_numpy()
    if next_row_id + sum(rows.tolist()) > _HIGHEST_ROW_ID:
        raise InvalidInput(f"cannot add rows: row ids are exhausted (next row id: {next_row_id})")
    ends = next_row_id + np.cumsum(rows)
    first = pc.if_else(takes, pa.array(ends - rows), pc.if_else(is_data, given, pa.scalar(None, pa.int64())))
    return manifests.replaced({"first_row_id": first}), int(ends[-1]) if len(ends) else next_row_id


def _moved(ref: SnapshotRef | None, snapshot: Snapshot) -> SnapshotRef:
    """Point a branch at its new head; its retention rules are kept."""
    return replace(ref, snapshot_id=snapshot.snapshot_id) if ref else SnapshotRef(snapshot.snapshot_id)


@dataclass(frozen=True)
class _ListWriter:
    base: TableMetadata
    context: WriteContext
    header: ManifestListHeader
    location: str

    def encode(self, draft: SnapshotDraft, parent: Snapshot | None) -> tuple[bytes, int]:
        """Return the manifest list, and the next free row id after it."""
        rows = [with_sequence(row, draft.snapshot_id, self.header.sequence_number) for row in draft.new]
        new = Manifests(pa.Table.from_pylist(rows, schema=MANIFEST_LIST_ARROW_SCHEMA))
        if parent is not None and parent.manifest_list and draft.kept is None:
            previous = read_manifest_list(self.context.store, parent)
            # Only a list of an earlier format version can lack the counts or row ids that this one requires.
            if is_spliceable(previous, parent.manifest_list, self.header.format_version):
                new, next_row_id = self._with_row_ids(new)
                data = splice_manifest_list(previous, parent.manifest_list, new, self.header, self.location)
                return data, next_row_id
        kept = load_manifests(self.context.reading, parent) if draft.kept is None else draft.kept
        manifests = new if kept is None else Manifests.concat([new, kept])
        manifests, next_row_id = self._with_row_ids(complete_manifests(manifests, self.base, self.context))
        return encode_manifest_list(manifests, self.header, self.location, manifest_codec(self.base)), next_row_id

    def _with_row_ids(self, manifests: Manifests) -> tuple[Manifests, int]:
        return assign_row_ids(manifests, self.base.next_row_id) if self.base.has_row_ids else (manifests, 0)
