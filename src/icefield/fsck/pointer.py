"""Whether the catalog points at the newest version of a table.

A metadata file with a higher number than the current one, which is not in its log, is one of these:

    a commit in progress        its metadata file is written before the pointer moves: a young file
    a commit that crashed       the same, but old; it was never reported as successful
    a catalog that went back    restored from a copy: the file belongs to a version that was committed

The last is certain where the file's own log has another file that the current version does not know.
"""

from icefield.catalog.missing import METADATA_SUFFIXES
from icefield.codec.json.metadata import decode_metadata
from icefield.commit.operations.tables import IN_FLIGHT_MS, TableVersion, metadata_number
from icefield.errors import IcefieldError
from icefield.fsck.finding import Check, Findings
from icefield.leases.folder import metadata_folder
from icefield.storage.store import Store, StoredFile


def check_newest(store: Store, version: TableVersion, now_ms: int, findings: Findings) -> None:
    """Report metadata files of the table that are newer than the one that the catalog points at."""
    current = metadata_number(version.location)
    folder = metadata_folder(version.metadata).rstrip("/") + "/"
    known = {_name(version.location), *(_name(entry.metadata_file) for entry in version.metadata.metadata_log)}
    if current is None:
        return
    for file in store.list(folder):
        number = metadata_number(file.location)
        is_newer = number is not None and number > current and _name(file.location) not in known
        if is_newer and file.location.endswith(METADATA_SUFFIXES):
            _check_newer(store, version, file, now_ms, findings)


def _check_newer(store: Store, version: TableVersion, file: StoredFile, now_ms: int, findings: Findings) -> None:
    try:
        newer = decode_metadata(store.read(file.location), file.location)
    except IcefieldError:
        return  # not a version of any table: an orphan file
    if newer.table_uuid != version.metadata.table_uuid:
        return
    log = [_name(entry.metadata_file) for entry in newer.metadata_log]
    steps = len(log) - log.index(_name(version.location)) if _name(version.location) in log else None
    if steps == 1 and now_ms - file.modified_ms < IN_FLIGHT_MS:
        return
    if steps == 1:
        why = "a commit crashed before it moved the pointer; the next commit makes the file an orphan"
    elif steps is None:
        why = "its history is another one: the catalog may have been restored from a copy, and changed since"
    else:
        why = "it was committed: the catalog may have been restored from a copy; register the newest metadata file"
    findings.add(
        Check.POINTER,
        f"{file.location} is newer than {version.location}, which the catalog points at: {why}",
        location=file.location,
    )


def _name(location: str) -> str:
    return location.rsplit("/", 1)[-1]
