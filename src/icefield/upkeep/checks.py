"""When the collector refuses to work: the table forbids it, shares files, or the catalog does not fit the store.

Raises InvalidInput (what the table's properties or the caller ask for), CatalogError (the catalog may be older than the
store, or names one table twice). Nothing is deleted then.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icefield.backend import Backend
from icefield.cache.reading import ReadContext
from icefield.catalog.missing import METADATA_SUFFIXES
from icefield.codec.json.metadata_owner import decode_outline
from icefield.commit.load import load_table_metadata
from icefield.commit.operations.choose import operations_of
from icefield.commit.operations.tables import IN_FLIGHT_MS, TableVersion, metadata_number
from icefield.commit.validate.ownership import claim_of, guard_of
from icefield.dml.head import TableHead
from icefield.errors import AlreadyExists, CatalogError, IcefieldError, InvalidInput, MissingFile, NoSuchTable
from icefield.leases.folder import metadata_folder
from icefield.leases.record import is_of_write
from icefield.marks.files import fold_one
from icefield.model.metadata import location_uuid
from icefield.model.names import TableName
from icefield.properties.table import GC_ENABLED
from icefield.properties.upkeep import GC_ORPHAN_AGE_MS
from icefield.storage.store import StoredFile


def check_enabled(properties: Mapping[str, str]) -> None:
    """Refuse a table that shares its files."""
    if not GC_ENABLED.read(properties):
        raise InvalidInput(
            f"cannot delete files: the table's property {GC_ENABLED.key} is false: other tables may share its files",
            hint=f"Set {GC_ENABLED.key} to true if none does",
        )


def load_newest(head: TableHead) -> TableVersion:
    """Load a table as the catalog has it now.

    A REST server may answer from a cache, or be one that does not belong to the store. So it is asked again, without
    the tag that allows it to say that nothing has changed; the table must be the one that the handle knows, in no
    older version, and its metadata file must be in the store.
    """
    known = head.load()
    if head.backend.catalog.metadata_server is None:
        return known
    newest = operations_of(head.backend).load(head.name)
    location, uuid = newest.location, known.metadata.table_uuid
    if not newest.metadata.is_table(uuid):
        raise _refuse(head, f"the server has another table under the name, at {location}")
    if _age(newest) < _age(known):
        raise _refuse(head, f"the server has {location} as its newest version, which is older than {known.location}")
    try:
        stored = decode_outline(head.backend.store.read(location), location)
    except IcefieldError as error:
        raise _refuse(head, f"the server names a metadata file that cannot be read: {error.message}") from error
    if (stored.table_uuid or location_uuid(stored.location)) != uuid:
        raise _refuse(head, f"the metadata file that the server names, {location}, is that of another table")
    return newest


def _age(version: TableVersion) -> tuple[int, int]:
    """Return what grows with every commit; a server need not keep a log of versions."""
    return version.metadata.last_sequence_number, version.metadata.last_updated_ms


def _refuse(head: TableHead, why: str) -> CatalogError:
    hint = "Run it again; if it is refused again, check that the server and the store belong together"
    return CatalogError(f"cannot delete files of {head.name}: {why}", hint=hint)


def check_identity(backend: Backend, name: TableName, version: TableVersion) -> None:
    """Refuse a table that the catalog has under two names, or whose directories are not its own."""
    if backend.catalog.metadata_server is not None:
        return  # the server assigns locations and does not list those of all tables (`load_newest` checks this one)
    metadata, entries = version.metadata, backend.catalog.entries()
    if name not in entries:
        raise NoSuchTable(f"table {name} was dropped or renamed since it was loaded", hint="Reopen it")
    claim = claim_of(metadata.table_uuid, metadata.location, metadata.properties)
    try:
        guard_of(backend.store, name, claim)(entries)
    except (AlreadyExists, InvalidInput) as error:
        raise CatalogError(
            f"cannot delete files of {name}: it is not their only owner: {error.message}",
            hint="Drop the other entry, or move one of the tables",
        ) from error


def find_proposed(
    reading: ReadContext, version: TableVersion, listed: Iterable[StoredFile], write_ids: Sequence[str], now_ms: int
) -> list[TableVersion]:
    """Return versions that were written on top of the current one, and that the catalog does not point at.

    Either a writer crashed before its swap, or the catalog was restored from a copy and has lost one commit. Nobody can
    tell, so what they lead to is kept until the next commit. A file that was written on top of another such version was
    certainly committed: then the catalog is older than the table, and nothing is deleted.

    listed: the files of the metadata directory. A young file, or one of a writer with a lease, is a commit in progress.
    """
    found = []
    for location in _find_newer(version, listed, write_ids, now_ms):
        try:
            metadata = load_table_metadata(reading, location)
        except MissingFile:
            continue  # its writer has removed it
        except IcefieldError as error:
            raise _older(location, version) from error
        log = metadata.metadata_log
        if not metadata.is_table(version.metadata.table_uuid) or not log:
            raise _older(location, version)
        if fold_one(log[-1].metadata_file) != fold_one(version.location):
            raise _older(location, version)
        found.append(TableVersion(metadata, location))
    return found


def _find_newer(
    version: TableVersion, listed: Iterable[StoredFile], write_ids: Sequence[str], now_ms: int
) -> Iterator[str]:
    current = metadata_number(version.location)
    if current is None:
        return
    logged = (entry.metadata_file for entry in version.metadata.metadata_log)
    known = {fold_one(location) for location in (version.location, *logged)}
    young_ms = min(IN_FLIGHT_MS, GC_ORPHAN_AGE_MS.read(version.metadata.properties))
    folder = fold_one(metadata_folder(version.metadata))
    for file in listed:
        number = metadata_number(file.location) if file.location.endswith(METADATA_SUFFIXES) else None
        if number is None or number <= current:
            continue
        place = fold_one(file.location)
        is_own = place not in known and place.rpartition("/")[0] == folder
        if is_own and not is_of_write(file.location, write_ids) and now_ms - file.modified_ms >= young_ms:
            yield file.location


def _older(location: str, version: TableVersion) -> CatalogError:
    return CatalogError(
        f"cannot delete files: {location} is newer than the metadata that the catalog points at ({version.location})",
        hint="If the catalog was restored from a copy, register the newest metadata file, else delete that file",
    )
