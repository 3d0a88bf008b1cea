"""Where a table keeps what readers, writers and the collector agree on: `gc` in its metadata directory.

metadata/gc/leases/<lease>.<version>.json      who reads or writes (leases.record)
metadata/gc/sightings/<lease>.<version>        when a collector first saw that version
metadata/gc/marks/<mark>.parquet               what is to be deleted
metadata/gc/audit/<mark>/<sweep>.parquet       what was deleted, or is being deleted
metadata/gc/claims/<number>.json               which lease works on the upkeep of the table (leases.claim)
metadata/gc/searches/<id>                      when orphan files were last searched
metadata/gc/probes/<id>                        the store's clock
"""

from icefield.ambient import Ambient
from icefield.errors import IcefieldError, LocationRefused, StorageError
from icefield.model.metadata import TableMetadata
from icefield.properties.table import METADATA_PATH
from icefield.storage.location import join_location
from icefield.storage.store import Store, StoredFile

_ABANDONED_MS = 3600 * 1000  # a probe that its process has not deleted, because it stopped
_PROBES_TRIED = 3
GC, LEASES, SIGHTINGS, MARKS, AUDIT, PROBES = "gc", "leases", "sightings", "marks", "audit", "probes"
CLAIMS, SEARCHES = "claims", "searches"


def metadata_folder(metadata: TableMetadata) -> str:
    """Return the directory of a table's metadata files."""
    return METADATA_PATH.read(metadata.properties) or join_location(metadata.location, "metadata")


def gc_folder(metadata: TableMetadata) -> str:
    """Return the directory in which new leases and marks of a table are put."""
    return join_location(metadata_folder(metadata), GC)


def gc_folders(metadata: TableMetadata, store: Store) -> list[str]:
    """Return the directory of new leases first, then those that the table had at earlier locations.

    A reader that began before the table's location changed has its lease where the metadata was then.
    """
    files = [entry.metadata_file for entry in metadata.metadata_log]
    files += [snapshot.manifest_list for snapshot in metadata.snapshots if snapshot.manifest_list]
    parents = dict.fromkeys(file.rpartition("/")[0] for file in files)
    earlier = (_folder_below(parent, store) for parent in parents)
    return list(dict.fromkeys((gc_folder(metadata), *(folder for folder in earlier if folder is not None))))


def store_time_ms(store: Store, folder: str, ambient: Ambient) -> int:
    """Return what time it is by the store's clock: the time at which it stores an object now.

    The ages of files, marks and sightings are measured by this clock alone, never by that of a machine.
    """
    for _ in range(_PROBES_TRIED):
        probes, now_ms = _probe(store, join_location(folder, PROBES), ambient.random_uuid().hex)
        if now_ms is not None:
            break
    else:
        raise StorageError(f"the store does not list what was just written to {join_location(folder, PROBES)}")
    for left in probes:
        if now_ms - left.modified_ms > _ABANDONED_MS:
            store.delete(left.location)
    return now_ms


def _probe(store: Store, folder: str, name: str) -> tuple[list[StoredFile], int | None]:
    """Return the probes of a folder, and when the store stored a new one; None if it is not listed.

    Another process may have removed it: with the whole table, or as abandoned because this one was stopped for long.
    """
    probe = join_location(folder, name)
    store.put_new(probe, b"")
    try:
        probes = list(store.list(folder))
    finally:
        store.delete(probe)
    return probes, next((found.modified_ms for found in probes if found.location.endswith(name)), None)


def seen_time_ms(store: Store, folder: str, ambient: Ambient) -> int:
    """Return the time by the store's clock, or by that of this machine if nothing can be written: for dry runs only."""
    try:
        return store_time_ms(store, folder, ambient)
    except (StorageError, LocationRefused):
        return ambient.now_ms()


def _folder_below(parent: str, store: Store) -> str | None:
    try:
        place = join_location(parent, GC)
        store.check(place)
    except IcefieldError:
        return None
    return place
