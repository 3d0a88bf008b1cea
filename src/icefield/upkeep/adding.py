"""Refuse to add a file to a table that a collector is about to delete, or that of another table may delete."""

from collections.abc import Iterable

import pyarrow as pa

from icefield.commit.validate.ownership import check_not_collected
from icefield.dml.head import TableHead
from icefield.errors import InvalidInput
from icefield.leases.folder import gc_folders
from icefield.marks.files import NO_TABLE_FILES, fold
from icefield.marks.mark import list_marks, read_unless_done


def check_addable(head: TableHead, locations: Iterable[str]) -> None:
    """Raise InvalidInput if a file would be deleted although this table needs it."""
    wanted = list(locations)
    check_not_marked(head, wanted)
    backend = head.backend
    if backend.catalog.metadata_server is None:  # a server does not list the directories of its tables
        check_not_collected(backend.store, backend.catalog.entries(), head.load().metadata.table_uuid, wanted)


def check_not_marked(head: TableHead, locations: Iterable[str]) -> None:
    """Raise InvalidInput if a file is marked for deletion.

    The caller holds a lease that names the files where the grace period is short; where it is long, files that are
    marked later are kept for longer than the commit takes.
    """
    metadata, store = head.load().metadata, head.backend.store
    wanted = fold(pa.array(list(locations), pa.string()))
    for mark in list_marks(store, gc_folders(metadata, store)):
        files = read_unless_done(store, mark, metadata.table_uuid)
        marked = NO_TABLE_FILES if files is None else files.filter(files.is_in(wanted))
        if marked.num_rows:
            raise InvalidInput(
                f"cannot add {marked.location[0].as_py()}: it is marked for deletion",
                hint="Add a copy of it, or add it again after the next sweep if it is still there",
            )
