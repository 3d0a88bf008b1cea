"""Delete rows by position and add others, in one snapshot: merge-on-read deletes, updates and upserts.

The engine that found the rows writes the delete files before the commit. They hold the positions; the commit loads them
only for data files from which another writer deleted rows since the plan.

What must be true at commit time: the data files are still there, and no one else deleted one of the same rows (two
updates of one row conflict, and so do an update and a delete). Deletes of other rows of the same file do not conflict,
unless the file is rewritten. Concurrently added rows are handled as for an overwrite.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.action import ProposedChange, WriteContext
from icefield.commit.actions.snapshot_update import FilesAction, FilesDraft, with_vectors
from icefield.commit.snapshot.manifest_filter import RemovedFiles
from icefield.commit.snapshot.manifests import AddedFiles, ManifestRow, write_added
from icefield.commit.snapshot.position_deletes import (
    ChangedFile,
    as_added_files,
    find_changed_files,
    has_position_deletes,
    load_positions,
    open_delete_writer,
    with_deletes,
)
from icefield.commit.snapshot.summary import tally, tally_deletes
from icefield.errors import MissingFile
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation
from icefield.parquet.read.deletes import Positions
from icefield.parquet.write.delete_files import (
    DeleteDestination,
    DeleteEntry,
    data_files_of,
    delete_locations,
    open_entry,
)
from icefield.plan.partition.values import load_partition_values
from icefield.plan.planned_files import PlannedFiles


@dataclass(frozen=True)
class _Proposed:
    """Delete files and their manifests, for bases on which they are valid.

    superseded: the data files whose earlier deletes the new vectors include.
    """

    entries: Sequence[DeleteEntry]
    files: Sequence[AddedFiles]
    manifests: Sequence[ManifestRow]
    superseded: frozenset[str]

    @property
    def locations(self) -> list[str]:
        """All files that were written."""
        return [*delete_locations(self.entries), *self.manifest_paths]

    @property
    def manifest_paths(self) -> list[str]:
        return [str(row["manifest_path"]) for row in self.manifests]


@dataclass(kw_only=True)
class RowDelta(FilesAction):
    """Deletes rows of planned files by position, removes other planned files, and adds files.

    deletes: the delete files of all data files that lose rows, at most one for each. has_vectors: they are deletion
    vectors, which include the positions that were deleted before. removed: the planned files to remove. carried: those
    of them whose rows were copied to the new files, changed or not. place: where rewritten delete files go.
    """

    deletes: Sequence[DeleteEntry]
    has_vectors: bool
    removed: PlannedFiles
    carried: PlannedFiles
    place: DeleteDestination
    _undisturbed: _Proposed | None = field(init=False, default=None)

    def propose_on(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        self.read_set.check_added_rows(base, context)
        self.read_set.check_deleted_rows(base, context, self.carried)
        manifests, snapshot_id = self._manifests.write(base, context)
        proposed = self._propose_deletes(base, context)
        columns = DataFiles.concat(group.columns for group in proposed.files)
        draft = FilesDraft(
            snapshot_id,
            Operation.OVERWRITE if self.files.columns.num_rows else Operation.DELETE,
            RemovedFiles(self.removed, proposed.superseded | with_vectors(self.removed, self.read_set, base)),
            [*manifests, *proposed.manifests],
            added=tally(self.files.columns),
            added_deletes=tally_deletes(columns),
            partitions=self.files.partitions | self._touched.partitions,
        )
        change = self._propose_draft(draft, base, context)
        used = set(proposed.locations)
        before = [*delete_locations(self.deletes), *(self._undisturbed.manifest_paths if self._undisturbed else ())]
        return replace(change, unused=[path for path in before if path not in used])

    def prepare(self, base: TableMetadata, context: WriteContext) -> None:
        """Write the files that every unchanged base needs, before waiting in the commit queue."""
        super().prepare(base, context)
        self._propose_deletes(base, context)

    def reusable_files(self) -> Sequence[str]:
        return [*super().reusable_files(), *(self._undisturbed.manifest_paths if self._undisturbed else ())]

    @property
    def _touched(self) -> PlannedFiles:
        return self.read_set.plan.files.at(path for entry in self.deletes for path in data_files_of(entry))

    def _propose_deletes(self, base: TableMetadata, context: WriteContext) -> _Proposed:
        """Return the deletes for a base, after checking that they do not conflict with concurrent ones."""
        touched = self._touched
        changed = {c.now.location: c for c in find_changed_files(self.read_set, touched, base, context.reading)}
        pairs = [changed.get(task.location, ChangedFile(task, task)) for task in self.read_set.plan.tasks(touched)]
        was_upgraded = base.has_row_ids is not self.has_vectors
        merged = self._merge(pairs if was_upgraded else list(changed.values()), base, context)
        superseded = frozenset(pair.now.location for pair in pairs if has_position_deletes(pair.now))
        if not base.has_row_ids or not (changed or was_upgraded):
            # Position delete files stay valid, whatever other writers deleted.
            for _ in merged:
                continue
            replaced = superseded if base.has_row_ids else frozenset[str]()
            self._undisturbed = self._undisturbed or self._propose(self.deletes, replaced, base, context)
            return self._undisturbed
        writer = open_delete_writer(self.place, base, context.store, context.ambient)
        for path, positions in merged:
            writer.add(path, positions)
        rewritten = {path: entry for entry in writer.close() for path in data_files_of(entry)}
        # Either vectors of one data file each, or position delete files that are all rewritten.
        kept = [entry for entry in self.deletes if rewritten.keys().isdisjoint(data_files_of(entry))]
        entries = [*kept, *rewritten.values()]
        return self._propose(entries, superseded, base, context)

    def _propose(
        self, entries: Sequence[DeleteEntry], superseded: frozenset[str], base: TableMetadata, context: WriteContext
    ) -> _Proposed:
        assert self.snapshot_id is not None
        partitions = load_partition_values(context.reading, base, self.read_set.plan, self._touched)
        files = as_added_files(entries, partitions, base)
        manifests = [row for group in files for row in write_added(group, base, context, self.snapshot_id)]
        return _Proposed(entries, files, manifests, superseded)

    def _merge(
        self, changed: Sequence[ChangedFile], base: TableMetadata, context: WriteContext
    ) -> Iterator[tuple[str, Positions]]:
        """Yield all deletes of changed files, ours and concurrent ones, after checking that they share no row."""
        own = {path: open_entry(entry) for entry in self.deletes for path in data_files_of(entry)}
        for change in changed:
            # Only reading shows whether they delete one of our rows; a row added in its place would reappear.
            if self.files.columns.num_rows and (new := change.new_equality_deletes):
                path = change.now.location
                raise self.read_set.conflict(
                    f"rows in {path} were concurrently deleted by an equality delete, {min(new)}"
                )
        tasks = (
            task
            for change in changed
            for task in (change.planned, change.now, with_deletes(change.planned, own[change.now.location]))
        )
        loaded = load_positions(tasks, base, context.store)
        try:
            for change, planned, now, written in zip(changed, loaded, loaded, loaded, strict=True):
                deleted = np.setdiff1d(written, planned) if self.has_vectors else written
                if both := len(np.intersect1d(np.setdiff1d(now, planned), deleted)):
                    raise self.read_set.conflict(
                        f"{both} row(s) of {change.now.location} were concurrently deleted or changed by another commit"
                    )
                yield change.now.location, np.union1d(now, deleted)
        except MissingFile as error:  # of an expired version
            raise self.read_set.conflict(f"delete files of the planned version no longer exist: {error}") from error
