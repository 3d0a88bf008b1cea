"""A snapshot that adds files and removes others: what overwrites, deletes, row deltas and rewrites have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefield.commit.action import NOTHING_TO_DO, ON_MAIN, Change, Target, Workshop
from icefield.commit.snapshot.build import SnapshotDraft, propose_snapshot
from icefield.commit.snapshot.manifest_filter import Gone, remove_files
from icefield.commit.snapshot.manifests import AddedManifests, ManifestRow, NewFiles
from icefield.commit.snapshot.summary import NO_DELETE_FILES, NOTHING, DeleteTally, Tally, tally
from icefield.commit.validate.idempotency_key import was_made
from icefield.commit.validate.read_set import Footing
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation
from icefield.plan.partition.keys import Partition, partitions_of
from icefield.plan.planned_files import paths_of


@dataclass(kw_only=True)
class FilesAction(ABC):
    """An action that adds files in one snapshot, and rests on what was read before.

    Subclasses say in `propose_on` what the snapshot is on a base; they are not asked where the change was made before,
    under its token.
    """

    files: NewFiles
    footing: Footing
    target: Target = ON_MAIN
    _manifests: AddedManifests = field(init=False)

    def __post_init__(self) -> None:
        self._manifests = AddedManifests(self.files)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that this makes; None if it was never proposed."""
        return self._manifests.snapshot_id

    def propose(self, base: TableMetadata, workshop: Workshop) -> Change:
        if self._manifests.are_in(base) or was_made(base, self.target.ref, self.target.token):
            return NOTHING_TO_DO
        return self.propose_on(base, workshop)

    @abstractmethod
    def propose_on(self, base: TableMetadata, workshop: Workshop) -> Change:
        """Propose the snapshot on a base."""

    def prepare(self, base: TableMetadata, workshop: Workshop) -> None:
        """Write what every base needs; done before a turn in the lane, it takes no time of others."""
        self._manifests.write(base, workshop)

    def reusable_files(self) -> Sequence[str]:
        return self._manifests.locations

    def _propose_draft(self, draft: "FilesDraft", base: TableMetadata, workshop: Workshop) -> Change:
        return propose_files(draft, self.footing, self.target, base, workshop)


@dataclass(frozen=True)
class FilesDraft:
    """What a snapshot adds and removes. manifests: those of the files that it adds; partitions: of those alone."""

    snapshot_id: int
    operation: Operation
    gone: Gone
    manifests: Sequence[ManifestRow]
    added: Tally = NOTHING
    added_deletes: DeleteTally = NO_DELETE_FILES
    partitions: frozenset[Partition] = frozenset()


def propose_files(
    draft: FilesDraft, footing: Footing, target: Target, base: TableMetadata, workshop: Workshop
) -> Change:
    """Propose a draft on a base. Raises ConcurrentChange if a file that is to go is not there."""
    removal = remove_files(draft.gone, base, target.ref, workshop, draft.snapshot_id)
    if removal.missing:
        raise footing.missing(removal.missing)
    partitions = draft.partitions | partitions_of(draft.gone.data)
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
        target=target,
    )
    return propose_snapshot(snapshot, base, workshop)


def with_vectors(files: pa.Table, footing: Footing, base: TableMetadata) -> frozenset[str]:
    """Return those of planned files that have deletion vectors, or may have got some since."""
    if footing.has_moved(base) and base.has_row_ids:
        return paths_of(files)
    vector = pc.struct_field(files.column("delete_keys"), "vector")
    return paths_of(files.filter(pc.fill_null(pc.greater_equal(vector, 0), False)))
