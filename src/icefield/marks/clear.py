"""Delete what a mark lists, as far as nothing needs it.

    1  read the mark        without what an earlier sweep of it has deleted
    2  choose               the caller says which files are free, and which must wait
    3  write the audit      complete before the first delete
    4  delete               data before the manifests that list it, metadata last
    5  end                  the audit is finished; the mark goes when nothing waits

Any number of processes may do this at once. What was interrupted is done by the next.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow.compute as pc

from icefield.ambient import Ambient
from icefield.marks.files import FileKind, TableFiles, fold
from icefield.marks.mark import Mark, finish_audit, read_audits, read_unless_done, write_audit
from icefield.storage.store import Store, delete_many

_BATCH = 1_000  # what one request to an object store may delete

Choose = Callable[[TableFiles], tuple[TableFiles, TableFiles]]


@dataclass(frozen=True)
class Cleared:
    """What became of a mark: the files that were deleted, and those that must wait, which keep the mark."""

    deleted: TableFiles
    waiting: TableFiles


@dataclass(frozen=True)
class MarkClearing:
    """Deletes the files of marks of one table.

    choose: returns the free files among those of a mark, and then those that wait; it leaves out files that are in use
    again or not the table's own. progress: called with each file that is deleted.
    """

    store: Store
    ambient: Ambient
    table: uuid.UUID
    choose: Choose
    progress: Callable[[str], None]

    def clear(self, mark: Mark, *, dry_run: bool = False) -> Cleared | None:
        """Delete the free files of a mark; None if another sweep has finished it since it was listed."""
        files = read_unless_done(self.store, mark, self.table)
        if files is None:
            return None
        begun, gone = read_audits(self.store, mark, self.table)
        # A mark stays while a lease holds one of its files; what was deleted before is not deleted and recorded again.
        free, waiting = self.choose(files.filter(pc.invert(files.is_in(fold(gone.location)))))
        if not dry_run:
            if free.num_rows:
                audit = write_audit(self.store, self.ambient, mark, self.table, free)
                delete_in_order(self.store, free, self.progress)
                finish_audit(self.store, audit)
            for location in begun:
                finish_audit(self.store, location)
            if not waiting.num_rows:
                self.store.delete(mark.location)
        return Cleared(free, waiting)


def delete_in_order(store: Store, files: TableFiles, progress: Callable[[str], None]) -> None:
    """Delete files, those of one kind together, and what refers to a file after it."""
    ordered = files.sort_by("kind", "location")
    for kind in FileKind:
        locations = ordered.filter(pc.equal(ordered.kind, int(kind))).location.to_pylist()
        for start in range(0, len(locations), _BATCH):
            batch = locations[start : start + _BATCH]
            delete_many(store, batch)
            for location in batch:
                progress(location)
