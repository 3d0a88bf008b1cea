"""Write files anew without changing rows: compaction, clustering, another spec.

What must still hold when the commit lands: every file that was read is still there. Rows that others deleted meanwhile
would come back with the new files; where it is known which row went where, those deletes are made again on the new
files, and otherwise the rewrite fails. The new files are as old as the version that was read, so that equality deletes
which came since apply to them as they did to the old ones. (spec: Sequence Numbers)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.codec.manifest_schema import partition_column
from icefield.commit.action import Change, Workshop
from icefield.commit.files import FilesAction, FilesDraft, files_at, paths_of
from icefield.commit.manifests import NewFiles, write_added
from icefield.commit.positions import (
    DeletedAt,
    DeleteWriter,
    FileDeletes,
    load_deletes,
    load_deletes_now,
)
from icefield.commit.removal import Gone
from icefield.commit.summary import NO_DELETE_FILES, tally, tally_deletes
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation
from icefield.parquet.deletes import Positions


@dataclass(frozen=True)
class MovedRows:
    """Where rows went: files were read one after the other, without their deleted rows, and written in that order.

    starts: the number of each source's first row among all that were read. left_out: the positions of each source that
    were not read. targets: the new files in order; ends: the number of the row after each one's last.
    """

    starts: Mapping[str, int]
    left_out: Mapping[str, Positions]
    targets: Sequence[str]
    ends: npt.NDArray[np.int64]

    def find(self, source: str, positions: Positions) -> dict[str, Positions]:
        """Return the places of rows in the new files, by file."""
        numbers = self.starts[source] + positions - np.searchsorted(self.left_out[source], positions)
        files = np.searchsorted(self.ends, numbers, "right")
        begins = np.concatenate([[0], self.ends[:-1]])
        return {self.targets[at]: numbers[files == at] - begins[at] for at in np.unique(files).tolist()}


@dataclass(kw_only=True)
class RewriteFiles(FilesAction):
    """Replaces every file of a footing's plan by new ones with the same rows.

    moved: where the rows of which file went; a file that is in none of them cannot have new deletes.
    """

    moved: Sequence[MovedRows]
    writer: DeleteWriter
    _planned: FileDeletes | None = field(init=False, default=None)

    def propose_on(self, base: TableMetadata, workshop: Workshop) -> Change:
        self.footing.check_history(base)
        replaced = self.footing.plan.files
        deletes = self._remapped(base, workshop)
        manifests, snapshot_id = self._manifests.write(base, workshop)
        written = [row for group in deletes for row in write_added(group, base, workshop, snapshot_id)]
        columns = [group.columns for group in deletes]
        draft = FilesDraft(
            snapshot_id,
            Operation.REPLACE,
            Gone(replaced, paths_of(replaced)),
            [*manifests, *written],
            added=tally(self.files.columns),
            added_deletes=tally_deletes(pa.concat_tables(columns)) if columns else NO_DELETE_FILES,
            partitions=self.files.partitions,
        )
        return self._propose_draft(draft, base, workshop)

    def _remapped(self, base: TableMetadata, workshop: Workshop) -> list[NewFiles]:
        """Write deletes of the new files for rows that others deleted since the old ones were read."""
        replaced = self.footing.plan.files
        if not self.footing.is_disturbed(base, workshop.store, replaced):
            return []
        if self._planned is None:
            self._planned = load_deletes(self.footing.plan, replaced, base, workshop.store)
        now = load_deletes_now(self.footing, replaced, base, workshop.store)
        self._check_keys(now, self._planned)
        since = now.since(self._planned)
        if not since:
            return []
        deleted = self._moved_positions(since)
        spec = self.files.shape.spec
        batch = files_at(self.files.columns, deleted).select(
            ["file_path", *(partition_column(f.field_id) for f in spec.fields)]
        )
        return self.writer.write(deleted, [(spec, batch)], base, workshop)

    def _check_keys(self, now: FileDeletes, planned: FileDeletes) -> None:
        """Refuse new equality deletes of files that change their spec: they apply to files of the old one alone."""
        spec_ids = dict(
            zip(*(self.footing.plan.files.column(c).to_pylist() for c in ("file_path", "spec_id")), strict=True)
        )
        for path, keys in now.keys.items():
            if keys - planned.keys[path] and spec_ids[path] != self.files.shape.spec.spec_id:
                raise self.footing.conflict(f"rows of {path} were meanwhile deleted by key, by {min(keys)}")

    def _moved_positions(self, since: DeletedAt) -> DeletedAt:
        places: dict[str, list[Positions]] = {}
        for path, positions in since.items():
            moved = next((m for m in self.moved if path in m.starts), None)
            if moved is None:
                raise self.footing.conflict(
                    f"rows of {path} were meanwhile deleted, and it is not known where they went",
                    hint="run it again, or the rows would come back",
                )
            for target, found in moved.find(path, positions).items():
                places.setdefault(target, []).append(found)
        return {target: np.unique(np.concatenate(found)) for target, found in places.items()}
