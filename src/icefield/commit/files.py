"""A snapshot that adds files and removes others: what overwrites, deletes, row deltas and rewrites have in common."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from icefield.commit.action import Change, Target, Workshop
from icefield.commit.footing import Footing
from icefield.commit.loop import remove_quietly
from icefield.commit.manifests import ManifestRow
from icefield.commit.removal import Gone, remove_files
from icefield.commit.snapshots import SnapshotDraft, propose_snapshot
from icefield.commit.summary import NO_DELETE_FILES, NOTHING, DeleteTally, Tally, tally
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation


@dataclass(frozen=True)
class FilesDraft:
    """What a snapshot adds and removes. manifests: those of the files that it adds; partitions: of those alone."""

    snapshot_id: int
    operation: Operation
    gone: Gone
    manifests: Sequence[ManifestRow]
    added: Tally = NOTHING
    added_deletes: DeleteTally = NO_DELETE_FILES
    partitions: frozenset[str] = frozenset()


def propose_files(
    draft: FilesDraft, footing: Footing, target: Target, base: TableMetadata, workshop: Workshop
) -> Change:
    """Propose a draft on a base. Raises ConcurrentChange if a file that is to go is not there."""
    removal = remove_files(draft.gone, base, target.ref, workshop, draft.snapshot_id)
    if removal.missing:
        remove_quietly(workshop.store, removal.locations)
        raise footing.missing(removal.missing)
    partitions = draft.partitions | set(draft.gone.data.column("partition").to_pylist())
    snapshot = SnapshotDraft(
        draft.snapshot_id,
        draft.operation,
        new=[*draft.manifests, *removal.rewritten],
        added=draft.added,
        removed=tally(draft.gone.data),
        added_deletes=draft.added_deletes,
        removed_deletes=removal.deletes,
        kept=removal.kept,
        changed_partitions=len(partitions),
        ref=target.ref,
        extra=target.summary,
    )
    change = propose_snapshot(snapshot, base, workshop)
    return replace(change, files=[*change.files, *removal.locations])


def paths_of(files: pa.Table) -> frozenset[str]:
    """Return the locations of planned files."""
    return frozenset(files.column("file_path").to_pylist())


def with_vectors(files: pa.Table, footing: Footing, base: TableMetadata) -> frozenset[str]:
    """Return those of planned files that have deletion vectors, or may have got some since."""
    if footing.has_moved(base) and base.has_row_ids:
        return paths_of(files)
    vector = pc.struct_field(files.column("delete_keys"), "vector")
    return paths_of(files.filter(pc.fill_null(pc.greater_equal(vector, 0), False)))
