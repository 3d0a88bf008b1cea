"""A snapshot that adds and removes files: the common part of overwrites, deletes, row deltas and rewrites."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow.compute as pc

from icefield.commit.action import NOTHING_TO_DO, ON_MAIN, CommitTarget, ProposedChange, WriteContext
from icefield.commit.snapshot.build import SnapshotDraft, propose_snapshot
from icefield.commit.snapshot.manifest_filter import RemovedFiles, remove_files
from icefield.commit.snapshot.manifests import AddedFiles, AddedManifests, ManifestRow
from icefield.commit.snapshot.summary import NO_DELETE_FILES, NOTHING, DeleteTally, Tally, tally
from icefield.commit.validate.idempotency_key import was_made
from icefield.commit.validate.read_set import ReadSet
from icefield.errors import CorruptFile
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation
from icefield.plan.partition.keys import Partition
from icefield.plan.planned_files import PlannedFiles


@dataclass(kw_only=True)
class FilesAction(ABC):
    """An action that adds files in one snapshot, and depends on what was read before.

    Subclasses define in `propose_on` the snapshot on a base; it is not called if the change was already committed under
    its idempotency key.
    """

    files: AddedFiles
    read_set: ReadSet
    target: CommitTarget = ON_MAIN
    _manifests: AddedManifests = field(init=False)

    def __post_init__(self) -> None:
        self._manifests = AddedManifests(self.files)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot of this action; None if it was never proposed."""
        return self._manifests.snapshot_id

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if self._manifests.are_in(base) or was_made(base, self.target.ref, self.target.idempotency_key):
            return NOTHING_TO_DO
        return self.propose_on(base, context)

    @abstractmethod
    def propose_on(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        """Propose the snapshot on a base."""

    def prepare(self, base: TableMetadata, context: WriteContext) -> None:
        """Write the files that every base needs, before waiting in the commit queue, to hold it for less time."""
        self._manifests.write(base, context)

    def reusable_files(self) -> Sequence[str]:
        return self._manifests.locations

    def _propose_draft(self, draft: "FilesDraft", base: TableMetadata, context: WriteContext) -> ProposedChange:
        return propose_files(draft, self.read_set, self.target, base, context)


@dataclass(frozen=True)
class FilesDraft:
    """What a snapshot adds and removes.

    manifests: of the files that it adds. partitions: of those files only. header: of the manifest list. extra: more
    keys for the summary.
    """

    snapshot_id: int
    operation: Operation
    removed_files: RemovedFiles
    manifests: Sequence[ManifestRow]
    added: Tally = NOTHING
    added_deletes: DeleteTally = NO_DELETE_FILES
    partitions: frozenset[Partition] = frozenset()
    header: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)


def propose_files(
    draft: FilesDraft, read_set: ReadSet | None, target: CommitTarget, base: TableMetadata, context: WriteContext
) -> ProposedChange:
    """Propose a draft on a base. Raises ConcurrentChange if a file to remove is missing.

    read_set: None for files that were found in the base itself.
    """
    filtered = remove_files(draft.removed_files, base, target.ref, context, draft.snapshot_id)
    if filtered.missing and read_set is not None:
        raise read_set.missing(filtered.missing, base, context.reading)
    if filtered.missing:
        raise CorruptFile(min(filtered.missing), "no manifest of the newest version lists it, although its plan does")
    partitions = draft.partitions | draft.removed_files.data.partitions
    snapshot = SnapshotDraft(
        draft.snapshot_id,
        draft.operation,
        new=[*draft.manifests, *filtered.rewritten],
        added=draft.added,
        removed=tally(draft.removed_files.data),
        added_deletes=draft.added_deletes,
        removed_deletes=filtered.deletes,
        kept=filtered.kept,
        changed_partitions=len(partitions),
        target=target,
        header=draft.header,
        extra=draft.extra,
    )
    return propose_snapshot(snapshot, base, context)


def with_vectors(files: PlannedFiles, read_set: ReadSet, base: TableMetadata) -> frozenset[str]:
    """Return the planned files that have deletion vectors, or may have got some since."""
    if read_set.has_moved(base) and base.has_row_ids:
        return files.paths
    vector = pc.struct_field(files.delete_keys, "vector")
    return files.filter(pc.fill_null(pc.greater_equal(vector, 0), False)).paths
