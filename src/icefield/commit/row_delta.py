"""Delete rows by position and add others, in one snapshot: merge-on-read deletes, updates and upserts.

What must still hold when the commit lands: the data files that rows are deleted from are still there, and nobody else
deleted one of the same rows (two updates of one row, or an update of a row that is gone, do not commute). Deletes of
other rows of the same file commute: both hold. Rows that came since count as for an overwrite.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from icefield.commit.action import Change, Workshop
from icefield.commit.files import FilesAction, FilesDraft, files_at, with_vectors
from icefield.commit.manifests import ManifestRow, NewFiles, write_added
from icefield.commit.positions import (
    DeletedAt,
    DeleteWriter,
    FileDeletes,
    delete_locations,
    load_deletes,
    load_deletes_now,
)
from icefield.commit.references import remove_quietly
from icefield.commit.removal import Gone
from icefield.commit.summary import tally, tally_deletes
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation
from icefield.scan.partition_values import load_partition_values
from icefield.scan.partitions import partitions_of


@dataclass(frozen=True)
class _Written:
    """Delete files and their manifests, for bases of one kind of deletes."""

    files: Sequence[NewFiles]
    manifests: Sequence[ManifestRow]
    vectors: bool

    @property
    def locations(self) -> list[str]:
        """Everything that was written."""
        return [*delete_locations(self.files), *(str(row["manifest_path"]) for row in self.manifests)]


@dataclass(kw_only=True)
class RowDelta(FilesAction):
    """Deletes rows of a footing's files by position, removes other files of it whole, and adds files.

    deleted: the rows to delete by data file, of files in the footing's plan; none of them is deleted already.
    removed: the planned files that go.
    """

    deleted: DeletedAt
    removed: pa.Table
    writer: DeleteWriter
    _planned: FileDeletes | None = field(init=False, default=None)
    _written: _Written | None = field(init=False, default=None)

    def propose_on(self, base: TableMetadata, workshop: Workshop) -> Change:
        self.footing.check_added_rows(base, workshop)
        manifests, snapshot_id = self._manifests.write(base, workshop)
        before = self._deletes_before(base, workshop)
        is_disturbed = before is not self._planned
        written = self._write(before, base, workshop) if is_disturbed else self._undisturbed(base, workshop)
        deletes = pa.concat_tables([group.columns for group in written.files], promote_options="permissive")
        draft = FilesDraft(
            snapshot_id,
            Operation.OVERWRITE if self.files.columns.num_rows else Operation.DELETE,
            Gone(self.removed, self._superseded(before, base) | with_vectors(self.removed, self.footing, base)),
            [*manifests, *written.manifests],
            added=tally(self.files.columns),
            added_deletes=tally_deletes(deletes),
            partitions=self.files.partitions | partitions_of(self._touched),
        )
        change = self._propose_draft(draft, base, workshop)
        unused = self._written.locations if self._written is not None and self._written is not written else ()
        return replace(change, unused=unused)

    def prepare(self, base: TableMetadata, workshop: Workshop) -> None:
        """Write what every base needs that nothing happened to; it takes no time of others."""
        super().prepare(base, workshop)
        self._deletes_before(base, workshop)
        self._undisturbed(base, workshop)

    def reusable_files(self) -> Sequence[str]:
        return [*super().reusable_files(), *(self._written.locations if self._written else ())]

    @property
    def _touched(self) -> pa.Table:
        return files_at(self.footing.plan.files, self.deleted)

    def _deletes_before(self, base: TableMetadata, workshop: Workshop) -> FileDeletes:
        """Return what is deleted of the touched files on this base, after checking that it does not contradict."""
        touched = self._touched
        if self._planned is None:
            self._planned = load_deletes(self.footing.plan, touched, base, workshop.store)
        if not self.footing.is_disturbed(base, workshop.store, touched):
            return self._planned
        now = load_deletes_now(self.footing, touched, base, workshop.store)
        for path, positions in now.since(self._planned).items():
            if both := len(np.intersect1d(positions, self.deleted[path])):
                raise self.footing.conflict(
                    f"{both} row(s) of {path} that it changes were meanwhile deleted or changed by another commit"
                )
        for path, keys in now.keys.items():
            # Whether they hit one of our rows only reading tells; a row that was added in place of it would come back.
            if self.files.columns.num_rows and (new := keys - self._planned.keys[path]):
                raise self.footing.conflict(f"rows of {path} were meanwhile deleted by key, by {min(new)}")
        return now

    def _undisturbed(self, base: TableMetadata, workshop: Workshop) -> _Written:
        assert self._planned is not None
        if self._written is not None and self._written.vectors is not base.has_row_ids:
            remove_quietly(workshop.store, self._written.locations)  # the table was upgraded meanwhile
            self._written = None
        if self._written is None:
            self._written = self._write(self._planned, base, workshop)
        return self._written

    def _write(self, before: FileDeletes, base: TableMetadata, workshop: Workshop) -> _Written:
        assert self.snapshot_id is not None
        deleted = self.deleted
        if base.has_row_ids:
            deleted = {path: np.union1d(rows, before.positions[path]) for path, rows in deleted.items()}
        batches = load_partition_values(workshop.store, base, self.footing.plan, self._touched)
        files = self.writer.write(deleted, list(batches), base, workshop)
        manifests = [row for group in files for row in write_added(group, base, workshop, self.snapshot_id)]
        return _Written(files, manifests, base.has_row_ids)

    def _superseded(self, before: FileDeletes, base: TableMetadata) -> frozenset[str]:
        """Return the data files whose delete files the new vectors stand in place of."""
        if not base.has_row_ids:
            return frozenset()
        return frozenset(path for path in self.deleted if len(before.positions[path]))
