"""Delete rows by position and add others, in one snapshot: merge-on-read deletes, updates and upserts.

The engine that found the rows writes the delete files before the commit. They hold the positions; the commit loads them
only for data files from which another writer deleted rows since the plan.

What must be true at commit time: the data files are still there, and no one else deleted one of the same rows (two
updates of one row conflict, and so do an update and a delete). Deletes of other rows of the same file do not conflict,
unless the file is rewritten. Concurrently added rows are handled as for an overwrite. If compaction has moved the rows
to other files since, they are deleted there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.action import ProposedChange, WriteContext
from icefield.commit.actions.snapshot_update import FilesAction, FilesDraft, with_vectors
from icefield.commit.snapshot.carried_over import CarriedOver, LostRows, carry_over, find_lost_files, live_rows
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
from icefield.commit.snapshot.summary import NO_DELETE_FILES, tally, tally_deletes
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
        moved, lost = self._find_moved(base, context)
        manifests, snapshot_id = self._manifests.write(base, context)
        proposed = self._propose_deletes(base, context, moved, lost)
        columns = [group.columns for group in proposed.files]
        removed = self.removed.at(self.removed.paths - lost)
        vectors = proposed.superseded | with_vectors(removed, self.read_set, base)
        if moved is not None:
            removed, vectors = PlannedFiles.concat([removed, moved.emptied]), vectors | moved.emptied.paths
        draft = FilesDraft(
            snapshot_id,
            Operation.OVERWRITE if self.files.columns.num_rows else Operation.DELETE,
            RemovedFiles(removed, vectors),
            [*manifests, *proposed.manifests],
            added=tally(self.files.columns),
            added_deletes=tally_deletes(DataFiles.concat(columns)) if columns else NO_DELETE_FILES,
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

    def _find_moved(self, base: TableMetadata, context: WriteContext) -> tuple[CarriedOver | None, frozenset[str]]:
        """Find the rows of planned files that were rewritten since, and those files."""
        touched = self._touched
        lost = find_lost_files(self.read_set, PlannedFiles.concat([touched, self.removed]), base, context)
        if lost is None:
            return None, frozenset()
        copied = self.carried.paths
        removed = live_rows(self.read_set, self.removed.at(lost.paths), base, context)
        rows = chain(
            (replace(each, is_exact=each.planned.location in copied) for each in removed),
            self._lost_positions(touched.at(lost.paths), base, context),
        )
        return carry_over(self.read_set, lost, rows, base, context), lost.paths

    def _lost_positions(self, files: PlannedFiles, base: TableMetadata, context: WriteContext) -> Iterator[LostRows]:
        own = {path: open_entry(entry) for entry in self.deletes for path in data_files_of(entry)}
        planned = list(self.read_set.plan.tasks(files))
        tasks = (task for each in planned for task in (each, with_deletes(each, own[each.location])))
        loaded = load_positions(tasks, base, context.store)
        for task, before, written in zip(planned, loaded, loaded, strict=True):
            yield LostRows(task, np.setdiff1d(written, before) if self.has_vectors else written, is_exact=True)

    def _propose_deletes(
        self,
        base: TableMetadata,
        context: WriteContext,
        moved: CarriedOver | None = None,
        lost: frozenset[str] = frozenset(),
    ) -> _Proposed:
        """Return the deletes for a base, after checking that they do not conflict with concurrent ones.

        moved: the rows of lost files, which get deletes where they are now.
        """
        touched = self._touched
        touched = touched.at(touched.paths - lost) if lost else touched
        changed = {c.now.location: c for c in find_changed_files(self.read_set, touched, base, context.reading)}
        pairs = [changed.get(task.location, ChangedFile(task, task)) for task in self.read_set.plan.tasks(touched)]
        was_upgraded = base.has_row_ids is not self.has_vectors
        merged = self._merge(pairs if was_upgraded else list(changed.values()), base, context)
        superseded = frozenset(pair.now.location for pair in pairs if has_position_deletes(pair.now))
        if moved is None and (not base.has_row_ids or not (changed or was_upgraded)):
            # Position delete files stay valid, whatever other writers deleted.
            for _ in merged:
                continue
            replaced = superseded if base.has_row_ids else frozenset[str]()
            self._undisturbed = self._undisturbed or self._propose(self.deletes, replaced, base, context)
            return self._undisturbed
        writer = open_delete_writer(self.place, base, context.store, context.ambient)
        for path, positions in merged if base.has_row_ids else self._left_of_entries(merged, lost, base, context):
            writer.add(path, positions)
        if moved is not None:
            moved.write(writer)
            superseded |= moved.superseded
        rewritten = {path: entry for entry in writer.close() for path in data_files_of(entry)}
        # Either vectors of one data file each, or position delete files that are all rewritten.
        stale = rewritten.keys() | lost
        kept = [entry for entry in self.deletes if stale.isdisjoint(data_files_of(entry))]
        replaced = superseded if base.has_row_ids else frozenset[str]()
        return self._propose([*kept, *rewritten.values()], replaced, base, context, moved)

    def _left_of_entries(
        self,
        merged: Iterator[tuple[str, Positions]],
        lost: frozenset[str],
        base: TableMetadata,
        context: WriteContext,
    ) -> Iterator[tuple[str, Positions]]:
        """Yield the positions of files that share a delete file with a lost one, after all checks."""
        for _ in merged:
            continue
        broken = [entry for entry in self.deletes if not lost.isdisjoint(data_files_of(entry))]
        own = {path: open_entry(entry) for entry in broken for path in data_files_of(entry) if path not in lost}
        tasks = list(self.read_set.plan.tasks(self.read_set.plan.files.at(own)))
        loaded = load_positions((with_deletes(t, own[t.location]) for t in tasks), base, context.store)
        yield from ((task.location, positions) for task, positions in zip(tasks, loaded, strict=True))

    def _propose(
        self,
        entries: Sequence[DeleteEntry],
        superseded: frozenset[str],
        base: TableMetadata,
        context: WriteContext,
        moved: CarriedOver | None = None,
    ) -> _Proposed:
        assert self.snapshot_id is not None
        touched = self._touched.at(path for entry in entries for path in data_files_of(entry))
        planned = load_partition_values(context.reading, base, self.read_set.plan, touched)
        files = as_added_files(entries, chain(planned, moved.partition_values(base, context) if moved else ()), base)
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
