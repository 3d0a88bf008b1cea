"""Read data files and their deletes ahead, if the store has a high latency.

A small file is read whole in one request. Of a larger one only the end, with the footer, is read ahead.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import tee

from icefield.model.metadata import TableMetadata
from icefield.parquet.read.read import TableFiles, TableReader
from icefield.parquet.read.task import DeleteFile, DeleteType, FileTask
from icefield.storage.read_ahead import Part, ReadAhead, Wanted
from icefield.storage.store import Store

WHOLE_BYTES = 1024 * 1024
OPENED_BYTES = 64 * 1024
Wants = Callable[[Iterable[FileTask]], Iterator[Wanted]]


def read_ahead(
    store: Store, metadata: TableMetadata, tasks: Iterable[FileTask], wants: Wants | None = None
) -> Iterator[tuple[TableReader, FileTask]]:
    """Yield each task with a reader that reads its files, and those of the next tasks, ahead.

    wants: what is read of the tasks; by default the data files and their deletes.
    """
    return read_files_ahead(store, TableFiles.of(metadata), tasks, wants)


def read_files_ahead(
    store: Store, files: TableFiles, tasks: Iterable[FileTask], wants: Wants | None = None
) -> Iterator[tuple[TableReader, FileTask]]:
    """Do the same, given what a reader needs from a table."""
    tasks, ahead = tee(tasks)
    with ReadAhead(store, (wants or wanted_files)(ahead)) as near:
        reader = files.reader(near)
        for task in tasks:
            yield reader, task


def wanted_files(tasks: Iterable[FileTask]) -> Iterator[Wanted]:
    """Yield what is read of data files and their deletes."""
    seen: set[str] = set()
    for task in tasks:
        yield from _wanted_deletes(task, seen)
        yield _wanted_file(task.location, task.file_size_bytes)


def wanted_deletes(tasks: Iterable[FileTask]) -> Iterator[Wanted]:
    """Yield what is read of the deletes of data files."""
    seen: set[str] = set()
    for task in tasks:
        yield from _wanted_deletes(task, seen)


def _wanted_deletes(task: FileTask, seen: set[str]) -> Iterator[Wanted]:
    for delete in task.deletes:
        if delete.kind is DeleteType.VECTOR:
            yield _wanted_vector(delete)
        elif delete.location not in seen:  # readers cache what they have read of the others
            seen.add(delete.location)
            yield _wanted_file(delete.location, delete.file_size_bytes)


def _wanted_vector(delete: DeleteFile) -> Wanted:
    return Wanted(delete.location, delete.content_size_bytes, Part.RANGE, delete.content_offset, delete.file_size_bytes)


def _wanted_file(location: str, size_bytes: int | None) -> Wanted:
    if size_bytes is None or size_bytes > WHOLE_BYTES:
        return Wanted(location, OPENED_BYTES, Part.OPENED)
    return Wanted(location, size_bytes)
