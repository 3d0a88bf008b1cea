"""Rewrite files without changing rows: compaction, clustering, another spec.

What must be true at commit time: every file that was read is still there. Rows that were deleted concurrently would
reappear in the new files: if the new positions of rows are known, those deletes are applied to the new files, and
otherwise the rewrite fails. The new files keep the sequence number of the version that was read, so that later equality
deletes apply to them as they did to the old ones. (spec: Sequence Numbers)

For example, a has 5 rows, of which row 2 was deleted before the plan, and b has 2. Their 6 rows are written to x and y,
3 to each. Concurrently, another writer deletes the rows 1 and 4 of a:

    row of a     0    1    2    3    4         row of b     0    1
    read as      0    1    -    2    3                      4    5
    written to   x:0  x:1  -    x:2  y:0                    y:1  y:2

    >>> moved = MovedRows(starts={"a": 0, "b": 4}, targets=["x", "y"], ends=np.array([3, 6]))
    >>> moved.find("a", np.array([1, 4]), left_out=np.array([2]))
    {'x': array([1]), 'y': array([0])}
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from icefield.codec.manifest.rows import DataFiles, ManifestEntries
from icefield.codec.manifest.schema import partition_column
from icefield.commit.action import ProposedChange, WriteContext
from icefield.commit.actions.snapshot_update import FilesAction, FilesDraft
from icefield.commit.snapshot.manifest_filter import RemovedFiles
from icefield.commit.snapshot.manifests import AddedFiles, write_added
from icefield.commit.snapshot.position_deletes import (
    ChangedFile,
    as_added_files,
    find_changed_files,
    load_positions,
    open_delete_writer,
)
from icefield.commit.snapshot.summary import NO_DELETE_FILES, tally, tally_deletes
from icefield.errors import MissingFile
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation
from icefield.parquet.read.deletes import Positions
from icefield.parquet.write.delete_files import DeleteDestination


@dataclass(frozen=True)
class MovedRows:
    """The new positions of rows: files were read in order, without their deleted rows, and written in that order.

    starts: the number of each source's first row among all that were read. targets: the new files in order; ends: the
    number of the row after each one's last.
    """

    starts: Mapping[str, int]
    targets: Sequence[str]
    ends: npt.NDArray[np.int64]

    def find(self, source: str, positions: Positions, left_out: Positions) -> dict[str, Positions]:
        """Return the positions of rows in the new files, by file; left_out: those of the source that were not read."""
        numbers = self.starts[source] + positions - np.searchsorted(left_out, positions)
        files = np.searchsorted(self.ends, numbers, "right")
        begins = np.concatenate([[0], self.ends[:-1]])
        return {self.targets[at]: numbers[files == at] - begins[at] for at in np.unique(files).tolist()}


@dataclass(kw_only=True)
class RewriteFiles(FilesAction):
    """Replaces every file of a read set's plan by new ones with the same rows.

    moved: the new positions of rows by file; a file without them cannot have new deletes.
    """

    moved: Sequence[MovedRows]
    place: DeleteDestination

    def propose_on(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        self.read_set.check_history(base)
        replaced = self.read_set.plan.files
        deletes = self._remapped(base, context)
        manifests, snapshot_id = self._manifests.write(base, context)
        written = [row for group in deletes for row in write_added(group, base, context, snapshot_id)]
        columns = [group.columns for group in deletes]
        draft = FilesDraft(
            snapshot_id,
            Operation.REPLACE,
            RemovedFiles(replaced, replaced.paths),
            [*manifests, *written],
            added=tally(self.files.columns),
            added_deletes=tally_deletes(DataFiles.concat(columns)) if columns else NO_DELETE_FILES,
            partitions=self.files.partitions,
        )
        return self._propose_draft(draft, base, context)

    def _remapped(self, base: TableMetadata, context: WriteContext) -> list[AddedFiles]:
        """Write deletes for the new files, for rows that were deleted since the old ones were read."""
        changed = find_changed_files(self.read_set, self.read_set.plan.files, base, context.reading)
        self._check_keys(changed)
        deleted = self._moved_positions(changed, base, context)
        if not deleted:
            return []
        writer = open_delete_writer(self.place, base, context.store, context.ambient)
        for path, positions in deleted.items():
            writer.add(path, positions)
        spec = self.files.shape.spec
        names = ["file_path", *(partition_column(f.field_id) for f in spec.fields)]
        batch = ManifestEntries(self.files.columns.at(deleted).table.select(names))
        return as_added_files(writer.close(), [(spec, batch)], base)

    def _check_keys(self, changed: Sequence[ChangedFile]) -> None:
        """Raise ConcurrentChange for new equality deletes of files that change their spec: they are for the old one."""
        for change in changed:
            if (new := change.new_equality_deletes) and change.now.spec_id != self.files.shape.spec.spec_id:
                raise self.read_set.conflict(
                    f"rows in {change.now.location} were concurrently deleted by an equality delete, {min(new)}"
                )

    def _moved_positions(
        self, changed: Sequence[ChangedFile], base: TableMetadata, context: WriteContext
    ) -> dict[str, Positions]:
        moves = {path: moved for moved in self.moved for path in moved.starts}
        found: dict[str, list[Positions]] = {}
        loaded = load_positions((t for change in changed for t in (change.planned, change.now)), base, context.store)
        try:
            for change, planned, now in zip(changed, loaded, loaded, strict=True):
                path, since = change.now.location, np.setdiff1d(now, planned)
                if len(since) == 0:
                    continue
                if path not in moves:
                    raise self.read_set.conflict(
                        f"rows in {path} were concurrently deleted, and their new positions are unknown"
                    )
                for target, positions in moves[path].find(path, since, planned).items():
                    found.setdefault(target, []).append(positions)
        except MissingFile as error:  # of an expired version
            raise self.read_set.conflict(f"delete files of the planned version no longer exist: {error}") from error
        return {target: np.unique(np.concatenate(parts)) for target, parts in found.items()}
