"""How data files with changed rows end: dropped, rewritten without those rows, or with a delete file for them.

The decision is made file by file, where all positions of a file are known:

    every live row is touched                          dropped
    copy-on-write                                      rewritten
    merge-on-read                                      delete file
    auto   the file is small, or so many of its rows
           would be deleted that scans waste time      rewritten
           otherwise                                   delete file

The rows that remain of small files are written together, by partition, unless the table has a sort order: files of
neighbouring rows prune better. A change in many small files would otherwise leave as many, at the cost of writing each.
"""

import numpy as np

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.validate.references import remove_quietly
from icefield.engine.change import Changed, ChangeSettings, RowCounts
from icefield.engine.engine import Site
from icefield.engine.file_works import NO_POSITIONS, delete_destination, write_batches
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.delete_files import DeleteFileWriter
from icefield.parquet.write.write import DataWriter
from icefield.properties.table import AUTO_MODE, MERGE_ON_READ
from icefield.types.schema import Schema

# A rewrite costs about 1.3 us per row once, a deletion vector 80 ns per row of the file in every scan (decision 0042).
REWRITTEN_SHARE = 0.3
SMALL_FILE_BYTES = 1024 * 1024


class FileEnds:
    """Ends the touched data files of one task, one after another."""

    def __init__(self, settings: ChangeSettings, site: Site) -> None:
        self._settings = settings
        self._site = site
        self._reader = site.files.reader(site.store)
        self._deletes = DeleteFileWriter(
            delete_destination(settings.deletes or settings.rows, site.name), site.store, settings.has_vectors
        )
        self._copies: list[DataFiles] = []
        self._small_copies = DataWriter(settings.rows, site.store, f"{site.name}-copies")
        self._rewritten: set[str] = set()
        self._dropped: set[str] = set()
        self._planned: set[object] = set()  # delete files that a dry run does not write
        self._copied = 0

    def add(self, task: FileTask, touched: Positions) -> None:
        """End one data file. touched: the sorted positions of its changed rows."""
        before = self._reader.deleted_positions(task) if task.deletes else NO_POSITIONS
        both = np.union1d(before, touched)
        if len(both) == task.record_count:
            self._dropped.add(task.location)
        elif self._is_rewritten(task, len(both)):
            self._rewrite(task, touched, len(both))
        elif self._settings.is_dry_run:
            self._planned.add(self._group(task))
        else:
            deleted = both if self._settings.has_vectors else touched
            self._deletes.add(task.location, deleted, task.partition_identity)

    def close(self) -> Changed:
        """Finish, and return what was done."""
        deletes = self._deletes.close()
        together = self._small_copies.close()
        return Changed(
            (*self._copies, *([together] if together.num_rows else [])),
            deletes,
            frozenset(self._rewritten),
            frozenset(self._dropped),
            RowCounts(copied=self._copied),
            len(deletes) + len(self._planned),
        )

    def abort(self) -> None:
        """Remove the files that were written, or may have been."""
        self._deletes.abort()
        self._small_copies.abort()
        remove_quietly(self._site.store, [path for files in self._copies for path in files.paths])

    def _group(self, task: FileTask) -> object:
        """Return what one delete file is for: a data file, or a partition."""
        plan = self._settings.deletes
        is_shared = plan is not None and plan.deletes_by_partition and not self._settings.has_vectors
        return task.location if not is_shared or task.partition_identity is None else task.partition_identity

    def _is_rewritten(self, task: FileTask, deleted: int) -> bool:
        if self._settings.mode != AUTO_MODE or self._settings.deletes is None:
            return self._settings.mode != MERGE_ON_READ
        return _is_small(task) or deleted >= REWRITTEN_SHARE * task.record_count

    def _rewrite(self, task: FileTask, touched: Positions, deleted: int) -> None:
        self._rewritten.add(task.location)
        if self._settings.is_dry_run:
            self._copied += self._count_without(task, touched) if task.has_key_deletes else task.record_count - deleted
            return
        batches = self._reader.read_without(task, self._settings.rows.schema, touched)
        if _is_small(task) and not self._settings.has_order:
            for batch in batches:
                self._copied += batch.num_rows
                self._small_copies.write(batch)
            return
        # One writer for each large file, so that memory is bounded by the file.
        name = f"{self._site.name}-copy-{len(self._rewritten)}"
        self._copies.append(write_batches(self._settings.rows, batches, self._site.store, name))
        self._copied += sum(self._copies[-1].record_count.to_pylist())

    def _count_without(self, task: FileTask, touched: Positions) -> int:
        """Count the rows that a rewrite would copy; which of them equality deletes delete is only known by reading."""
        return sum(batch.num_rows for batch in self._reader.read_without(task, Schema(()), touched))


def _is_small(task: FileTask) -> bool:
    return task.file_size_bytes is not None and task.file_size_bytes < SMALL_FILE_BYTES
