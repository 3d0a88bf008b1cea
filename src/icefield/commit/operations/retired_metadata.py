"""Metadata files that left a table's metadata log: they are marked, and deleted when their grace period is over.

    00120-….metadata.json    current
    00020 … 00119            its log, which `write.metadata.previous-versions-max` bounds
    00000 … 00019            found in the log of 00020, and so on; the search ends at a file that is marked or gone

A log does not prove ownership: it is kept when a table is registered elsewhere or its files are copied, and anyone can
write one. A file is marked only if all of this is true:

- its name is that of a metadata file with a lower number than the one in whose log it is, and it is directly in the
  table's own metadata directory, links resolved;
- its content says that it belongs to this table, by its uuid, and was written for this entry of this catalog, by the
  key `icefield-entry` (codec.metadata_owner). Files in the log of a registered table were written for another entry,
  or before this one's history began, and are kept;
- no entry of the catalog points at it.

A sweep does the rest, as with all marks. So that a table without upkeep stays small, a commit looks, too: once in as
many commits as the log has entries, by the number of its metadata file. It then deletes what such marks list and is
due, and nothing else. The commit has landed before, so nothing that happens then makes it fail.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from icefield.catalog.missing import METADATA_SUFFIXES
from icefield.codec.json.metadata_owner import ENTRY_KEY, LoggedOutline, decode_entry, decode_logged_outline
from icefield.deferred import deferred_imports
from icefield.errors import IcefieldError
from icefield.marks.mark import ORPHAN, RETIRED, Mark, list_marks, read_unless_done, remove_old_audits, write_mark
from icefield.properties.table import GC_ENABLED, METADATA_DELETE_AFTER_COMMIT, PREVIOUS_VERSIONS_MAX

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.backend import Backend
    from icefield.commit.operations.tables import PointerTableOperations, TableVersion, metadata_number
    from icefield.leases.folder import gc_folder, gc_folders, metadata_folder, store_time_ms
    from icefield.leases.record import is_of_write
    from icefield.leases.sample import held, sample_leases, write_ids
    from icefield.marks.clear import MarkClearing
    from icefield.marks.files import FileKind, TableFiles, fold_one, table_files
    from icefield.marks.grace import grace_of
    from icefield.model.metadata import TableMetadata, location_uuid
    from icefield.model.names import TableName
    from icefield.storage.read_ahead import Wanted
    from icefield.storage.roots import resolve_location
    from icefield.storage.store import Store

LOG = logging.getLogger("icefield.upkeep")  # of what happens after a commit, which cannot raise
LEAST_COMMITS = 8  # between two looks, however short the log is: each look may leave a mark
MOST_RETIRED = 1_000  # that one look reads; if more have been left, the rest are found as orphan files


def look_after_commit(backend: Backend, table: TableName, landed: TableVersion) -> None:
    """Mark and delete metadata files that left the log of a table that was just committed, if it is time to look."""
    if not _is_time(landed) or not _is_wanted(backend, landed.metadata.properties):
        return
    try:
        folder = gc_folder(landed.metadata)
        mark_retired(backend, landed, _newest_of_each(list_marks(backend.store, [folder])))
        _sweep(backend, table, landed.metadata)
    except Exception as error:  # the commit has landed
        LOG.warning("old metadata files of %s were not removed: %s: %s", table, type(error).__name__, error)


def mark_retired(backend: Backend, version: TableVersion, marks: Iterable[Mark]) -> str | None:
    """Mark the metadata files that left the log of a table, if it removes them; return the name of the mark.

    marks: those that may list some of them already.
    """
    metadata = version.metadata
    if not _is_wanted(backend, metadata.properties):
        return None
    listed = (read_unless_done(backend.store, mark, metadata.table_uuid) for mark in marks)
    marked = {fold_one(place) for files in listed if files is not None for place in files.location.to_pylist()}
    found = _find_retired(backend, version, marked)
    for pointer in backend.catalog.pointed_at(found) if found else ():
        found.pop(pointer, None)
    if not found:
        return None
    files = table_files(list(found), FileKind.METADATA, pa.array(found.values(), pa.int64()))
    return write_mark(backend.store, backend.ambient, gc_folder(metadata), metadata.table_uuid, RETIRED, files)


def _is_time(landed: TableVersion) -> bool:
    """Return whether this is the commit, of as many as the log has entries, that looks."""
    most = PREVIOUS_VERSIONS_MAX.read(landed.metadata.properties)
    number = metadata_number(landed.location) or 0
    is_turn = number > 0 and number % max(most, LEAST_COMMITS) == 0
    return is_turn and len(landed.metadata.metadata_log) >= most


def _is_wanted(backend: Backend, properties: Mapping[str, str]) -> bool:
    """Return whether old metadata files are removed; without garbage collection only on request.

    A server that writes metadata files removes them, too.
    """
    is_asked = METADATA_DELETE_AFTER_COMMIT.key in properties
    is_on = METADATA_DELETE_AFTER_COMMIT.read(properties) and (is_asked or GC_ENABLED.read(properties))
    return is_on and backend.catalog.metadata_server is None


def _newest_of_each(marks: Sequence[Mark]) -> list[Mark]:
    """Return the newest mark of each reason that a metadata file can have; earlier ones list older files."""
    return list({mark.reason: mark for mark in marks if mark.reason in (RETIRED, ORPHAN)}.values())


def _find_retired(backend: Backend, version: TableVersion, marked: set[str]) -> dict[str, int]:
    """Return the table's own files before the oldest one in its log, newest first, and their sizes."""
    own, found = _OwnFiles(version), dict[str, int]()
    log = [entry.metadata_file for entry in version.metadata.metadata_log]
    kept = marked.union(fold_one(location) for location in log)
    oldest = own.read(backend.store, log[0]) if log else None
    while oldest is not None:
        earlier = [entry.metadata_file for entry in reversed(oldest.metadata_log)]
        oldest = None
        with backend.reading.read_ahead(Wanted(location) for location in earlier) as near:
            for location in earlier:
                read = None if fold_one(location) in kept else own.read(near.store, location)
                if read is None or len(found) == MOST_RETIRED:
                    return found
                found[location], oldest = own.size_bytes, read
    return found


class _OwnFiles:
    """Reads metadata files of a table's own history, from newer to older ones."""

    def __init__(self, version: TableVersion) -> None:
        metadata = version.metadata
        self._uuid = metadata.table_uuid
        self._folder = resolve_location(metadata_folder(metadata))
        self._entry = decode_entry(metadata.unknown.get(ENTRY_KEY))
        self._before = metadata_number(version.location) or 0
        self.size_bytes = 0

    def read(self, store: Store, location: str) -> LoggedOutline | None:
        """Read the next file; None if it is not there, or not certainly the table's own."""
        number = metadata_number(location)
        if number is None or number >= self._before:
            return None
        try:
            if not _is_in(self._folder, location):
                return None
            data = store.read(location)
            outline = decode_logged_outline(data, location)
        except IcefieldError:
            return None
        is_own = (outline.table_uuid or location_uuid(outline.location)) == self._uuid
        if not is_own or self._entry is None or outline.icefield_entry != self._entry:
            return None
        self._before, self.size_bytes = number, len(data)
        return outline


def _is_in(folder: str, location: str) -> bool:
    """Return whether a location is that of a metadata file directly in a directory, links resolved."""
    parent, _, name = location.rpartition("/")
    return name.endswith(METADATA_SUFFIXES) and resolve_location(parent) == folder


def _sweep(backend: Backend, table: TableName, landed: TableMetadata) -> None:
    """Delete what is due of the marks of metadata files: the order is that of `upkeep.sweep`."""
    store, folder = backend.store, gc_folder(landed)
    marks = [mark for mark in list_marks(store, [folder]) if mark.reason == RETIRED]
    if not marks:
        return
    grace_ms, now_ms = grace_of(landed.properties, RETIRED), store_time_ms(store, folder, backend.ambient)
    due = [mark for mark in marks if now_ms - mark.made_ms >= grace_ms]
    if not due:
        return
    leases = held(sample_leases(store, gc_folders(landed, store)))
    newest = PointerTableOperations(backend).load(table)
    if not newest.metadata.is_table(landed.table_uuid):
        return
    needed = {fold_one(entry.metadata_file) for entry in newest.metadata.metadata_log} | {fold_one(newest.location)}
    own, writes = resolve_location(metadata_folder(newest.metadata)), write_ids(leases)
    holds_all = any(seen.record is None for seen in leases)

    def choose(files: TableFiles) -> tuple[TableFiles, TableFiles]:
        locations = files.location.to_pylist()
        pointers = backend.catalog.pointed_at(locations)
        is_free = [fold_one(each) not in needed and each not in pointers and _is_in(own, each) for each in locations]
        is_held = [holds_all or is_of_write(each, writes) for each in locations]
        free = [of_none and not of_write for of_none, of_write in zip(is_free, is_held, strict=True)]
        waiting = [of_none and of_write for of_none, of_write in zip(is_free, is_held, strict=True)]
        return files.filter(pa.array(free, pa.bool_())), files.filter(pa.array(waiting, pa.bool_()))

    clearing = MarkClearing(store, backend.ambient, landed.table_uuid, choose, lambda _: None)
    for mark in due:
        clearing.clear(mark)
    remove_old_audits(store, [folder], landed.properties, now_ms)
