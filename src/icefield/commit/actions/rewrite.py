"""Rewrite files without changing rows: compaction, clustering, another spec.

It gives way to every other change. The files are rewritten in groups, which are independent: at commit time, a group of
which a file is no longer there is left out, and the others are committed. Rows that were deleted concurrently would
reappear in the new files: if the new positions of rows are known, those deletes are applied to the new files, and
otherwise the group is left out. The new files keep the sequence number of the version that was read, so that later
equality deletes apply to them as they did to the old ones. (spec: Sequence Numbers)

The new positions of rows are stored with the snapshot, for changes that were planned on the old files.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc

from icefield.codec.manifest.rows import DataFiles, ManifestEntries
from icefield.codec.manifest.schema import partition_column
from icefield.commit.action import NOTHING_TO_DO, ProposedChange, WriteContext
from icefield.commit.actions.snapshot_update import FilesAction, FilesDraft
from icefield.commit.snapshot.manifest_filter import RemovedFiles
from icefield.commit.snapshot.manifests import AddedFiles, write_added
from icefield.commit.snapshot.moved_rows import ROW_MAP, MovedRows, encode_row_map
from icefield.commit.snapshot.position_deletes import (
    ChangedFile,
    as_added_files,
    find_files_now,
    load_positions,
    open_delete_writer,
)
from icefield.commit.snapshot.summary import NO_DELETE_FILES, tally, tally_deletes
from icefield.errors import CommitError, MissingFile
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation
from icefield.parquet.read.deletes import Positions
from icefield.parquet.write.delete_files import DeleteDestination
from icefield.plan.planned_files import PlannedFiles


@dataclass(frozen=True)
class RewrittenGroup:
    """Planned files and the new ones with the same rows; moved: the new positions of rows, None if unknown.

    Raises CommitError if the new files have more rows than the old ones, or fewer than those that are not deleted.
    """

    replaced: PlannedFiles
    files: DataFiles
    moved: MovedRows | None

    def __post_init__(self) -> None:
        old, new = tally(self.replaced), tally(self.files)
        deleted = self.replaced.deleted_rows
        most_deleted = old.records if deleted.null_count else pc.sum(deleted).as_py()
        if not old.records - most_deleted <= new.records <= old.records:
            raise CommitError(
                f"cannot replace {old.files:,} files with {old.records:,} rows, of which {most_deleted:,} are deleted, "
                f"by {new.files:,} files with {new.records:,} rows: a rewrite must not change rows",
                hint="The table was not changed. This is a bug: please report it",
            )


@dataclass(frozen=True)
class _Intact:
    """The groups that can be committed on a base, and the positions to delete in their new files."""

    groups: Sequence[RewrittenGroup]
    deleted: dict[str, Positions]


@dataclass(kw_only=True)
class RewriteFiles(FilesAction):
    """Replaces groups of planned files by new ones with the same rows; groups that others changed are left out.

    committed: the groups of the newest proposal.
    """

    groups: Sequence[RewrittenGroup]
    place: DeleteDestination
    committed: Sequence[RewrittenGroup] = ()

    def propose_on(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        self.read_set.check_history(base)
        intact = self._find_intact(base, context)
        self.committed = intact.groups
        if not intact.groups:
            return NOTHING_TO_DO
        manifests, snapshot_id = self._manifests.write(base, context)
        files, unused = self.files, list[str]()
        if len(intact.groups) < len(self.groups):
            files = replace(self.files, columns=DataFiles.concat(group.files for group in intact.groups))
            used = files.columns.paths
            unused = [*self._manifests.locations, *(path for path in self.files.locations if path not in used)]
            manifests = write_added(files, base, context, snapshot_id)
        deletes = self._write_deletes(intact.deleted, base, context)
        written = [row for group in deletes for row in write_added(group, base, context, snapshot_id)]
        columns = [group.columns for group in deletes]
        replaced = PlannedFiles.concat(group.replaced for group in intact.groups)
        row_map = encode_row_map(group.moved for group in intact.groups if group.moved is not None)
        draft = FilesDraft(
            snapshot_id,
            Operation.REPLACE,
            RemovedFiles(replaced, replaced.paths),
            [*manifests, *written],
            added=tally(files.columns),
            added_deletes=tally_deletes(DataFiles.concat(columns)) if columns else NO_DELETE_FILES,
            partitions=files.partitions,
            header={} if row_map is None else {ROW_MAP: row_map},
        )
        return replace(self._propose_draft(draft, base, context), unused=unused)

    def _find_intact(self, base: TableMetadata, context: WriteContext) -> _Intact:
        """Find the groups whose files are all there, and whose concurrent deletes can be applied to the new files."""
        now = find_files_now(self.read_set, self.read_set.plan.files, base, context.reading)
        if now is None:
            return _Intact(self.groups, {})
        groups: list[RewrittenGroup] = []
        deleted: dict[str, Positions] = {}
        changed = {change.now.location: change for change in now.changed}
        for group in self.groups:
            own = [changed[path] for path in group.replaced.file_path.to_pylist() if path in changed]
            if not group.replaced.paths.isdisjoint(now.removed):
                continue
            found = self._moved_positions(group, own, base, context)
            if found is not None:
                groups.append(group)
                deleted |= found
        return _Intact(groups, deleted)

    def _moved_positions(
        self, group: RewrittenGroup, changed: Sequence[ChangedFile], base: TableMetadata, context: WriteContext
    ) -> dict[str, Positions] | None:
        """Return the rows that were deleted since the old files were read, by new file; None if that is unknown."""
        spec_id = self.files.shape.spec.spec_id
        if any(change.new_equality_deletes and change.now.spec_id != spec_id for change in changed):
            return None  # these deletes are for the old spec
        found: dict[str, list[Positions]] = {}
        loaded = load_positions((t for change in changed for t in (change.planned, change.now)), base, context.store)
        try:
            for change, planned, now in zip(changed, loaded, loaded, strict=True):
                since = np.setdiff1d(now, planned)
                if len(since) == 0:
                    continue
                if group.moved is None:
                    return None
                for target, positions in group.moved.find(change.now.location, since).items():
                    found.setdefault(target, []).append(positions)
        except MissingFile:  # a delete file of an expired version
            return None
        return {target: np.unique(np.concatenate(parts)) for target, parts in found.items()}

    def _write_deletes(
        self, deleted: dict[str, Positions], base: TableMetadata, context: WriteContext
    ) -> list[AddedFiles]:
        """Write deletes for the new files, for rows that were deleted since the old ones were read."""
        if not deleted:
            return []
        writer = open_delete_writer(self.place, base, context.store, context.ambient)
        for path, positions in deleted.items():
            writer.add(path, positions)
        spec = self.files.shape.spec
        names = ["file_path", *(partition_column(f.field_id) for f in spec.fields)]
        batch = ManifestEntries(self.files.columns.at(deleted).table.select(names))
        return as_added_files(writer.close(), [(spec, batch)], base)
