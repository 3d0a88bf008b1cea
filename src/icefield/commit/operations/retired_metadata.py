"""Which metadata files may be removed when they drop out of a table's metadata log.

A log does not prove ownership: it is kept when a table is registered elsewhere or its files are copied, and anyone can
write one. A file is removed only if all of this is true:

- its name is that of a metadata file, and it is directly in the table's own metadata directory, links resolved;
- its content says that it belongs to this table, by its uuid, and was written for this entry of this catalog, by the
  key `icefield-entry` (codec.metadata_outline). Files in the log of a registered table were written for another entry,
  or before this one's history began, and are kept;
- no entry of the catalog points at it.

Unreadable files are kept. A commit that succeeded never fails because of this.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from icefield.catalog.catalog import Catalog
from icefield.catalog.missing import METADATA_SUFFIXES
from icefield.codec.json.metadata_owner import ENTRY_KEY, CatalogEntry, MetadataOutline, decode_entry, decode_outline
from icefield.errors import IcefieldError
from icefield.leases.folder import metadata_folder
from icefield.model.metadata import TableMetadata, location_uuid
from icefield.model.names import TableName
from icefield.storage.roots import resolve_location
from icefield.storage.store import Store


def entry_of(catalog: Catalog, table: TableName, base: TableMetadata | None) -> CatalogEntry:
    """Return the entry that the next metadata file is written for; a new history has no `since` yet."""
    digest = hashlib.sha256("\n".join((catalog.identity, catalog.name, str(table))).encode()).hexdigest()[:16]
    before = decode_entry(base.unknown.get(ENTRY_KEY)) if base is not None else None
    return before if before is not None and before.entry == digest else CatalogEntry(digest, "")


def find_removable(store: Store, catalog: Catalog, current: TableMetadata, gone: Iterable[str]) -> Sequence[str]:
    """Return the files dropped from the log that belong to this table only and that no entry points at."""
    try:
        own = list(_find_own(store, current, gone))
        return sorted(set(own) - catalog.pointed_at(own)) if own else ()
    except IcefieldError:
        return ()


def _find_own(store: Store, current: TableMetadata, gone: Iterable[str]) -> Iterator[str]:
    folder = resolve_location(metadata_folder(current))
    entry = decode_entry(current.unknown.get(ENTRY_KEY))
    for location in gone:
        try:
            parent, _, name = location.rpartition("/")
            if not name.endswith(METADATA_SUFFIXES) or resolve_location(parent) != folder:
                continue
            outline = decode_outline(store.read(location), location)
        except IcefieldError:
            continue
        if outline.icefield_entry == entry and _uuid_of(outline) == current.table_uuid:
            yield location


def _uuid_of(outline: MetadataOutline) -> object:
    return outline.table_uuid or location_uuid(outline.location)
