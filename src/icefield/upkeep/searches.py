"""When the orphan files of a table were last searched, by the store's clock, for all machines to see.

A search lists the table's directories, which costs more than any other look at it; so upkeep makes one only after an
interval. The record is an empty object in `gc/searches`, whose time is that of the search.
"""

from icefield.backend import Backend
from icefield.leases.folder import SEARCHES, gc_folder
from icefield.model.metadata import TableMetadata
from icefield.storage.location import join_location


def note_search(backend: Backend, metadata: TableMetadata) -> None:
    """Record that the orphan files of a table were searched now, and remove earlier records."""
    folder = join_location(gc_folder(metadata), SEARCHES)
    earlier = list(backend.store.list(folder))
    backend.store.put_new(join_location(folder, backend.ambient.random_uuid().hex), b"")
    for record in earlier:
        backend.store.delete(record.location)


def last_search_ms(backend: Backend, metadata: TableMetadata) -> int | None:
    """Return when orphan files were last searched; None if they never were."""
    found = backend.store.list(join_location(gc_folder(metadata), SEARCHES))
    return max((record.modified_ms for record in found), default=None)
