"""Every table and every directory has one owner: what a new or moved pointer must not share with other entries.

Two names for one table, or two tables in one directory, work until one of them removes files that the other needs. So
a new pointer, or a change of a table's directories, is checked against every other entry of the catalog: before any
work, and again in the transaction that writes the pointer, which excludes races.

    Claim(uuid, roots)  →  guard(entries)  →  AlreadyExists: the uuid is there   InvalidInput: a directory is shared

The claims of other entries are in their metadata files, which are immutable, so each is read once per store. An entry
with unreadable metadata claims the directory of its pointer. Tables that already overlap can be opened and written as
before.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from icefield.catalog.catalog import Entry, Guard
from icefield.codec.json.metadata_owner import decode_outline
from icefield.errors import AlreadyExists, CorruptFile, InvalidInput, LocationRefused, MissingFile, Unsupported
from icefield.model.metadata import location_uuid
from icefield.model.names import TableName
from icefield.properties.table import GC_ENABLED
from icefield.storage.location import parse_location
from icefield.storage.roots import Roots, resolve_location
from icefield.storage.store import Store

# Where a table writes outside its location. (Iceberg: write properties; the last two are older names.)
ROOT_PROPERTIES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
_READERS = 32
_MOST_KNOWN = 100_000


@dataclass(frozen=True)
class Claim:
    """What a table or view owns: its uuid, and every directory that it writes to.

    is_collected: its upkeep deletes files there.
    """

    uuid: uuid.UUID | None
    locations: Sequence[str]
    is_collected: bool = True

    @cached_property
    def roots(self) -> Roots:
        """The directories, normalised for comparison."""
        return Roots(self.locations)


def roots_of(location: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return every directory that a table or view writes to."""
    return (location, *(properties[key] for key in ROOT_PROPERTIES if properties.get(key)))


def claim_of(owner_uuid: uuid.UUID, location: str, properties: Mapping[str, str]) -> Claim:
    """Return what a table or view claims by its metadata."""
    return Claim(owner_uuid, roots_of(location, properties))


def guard_of(store: Store, name: TableName, claim: Claim) -> Guard:
    """Return the check of a claim against all entries of a catalog."""

    def guard(entries: Mapping[TableName, Entry]) -> None:
        others = {other: entry for other, entry in entries.items() if other != name}
        for other, theirs in _read_claims(store, others).items():
            _check(name, claim, other, theirs)

    return guard


def check_not_collected(
    store: Store, entries: Mapping[TableName, Entry], own: uuid.UUID, locations: Iterable[str]
) -> None:
    """Refuse files in the directories of another table: its upkeep deletes what it does not need itself.

    own: the table that is to have the files.
    """
    folders = {resolve_location(location).rpartition("/")[0]: location for location in locations}
    claims = _read_claims(store, entries)
    others = {name: claim for name, claim in claims.items() if claim.is_collected and claim.uuid != own}
    for folder, location in folders.items():
        owner = next((name for name, claim in others.items() if claim.roots.hold(folder)), None)
        if owner is not None:
            raise InvalidInput(
                f"cannot add {location}: it is in a directory of {owner}, which would delete it",
                hint=f"Add a copy of it, or set {GC_ENABLED.key} to false for {owner}",
            )


def _check(name: TableName, claim: Claim, other: TableName, theirs: Claim) -> None:
    if claim.uuid is not None and claim.uuid == theirs.uuid:
        raise AlreadyExists(
            f"cannot create {name}: the catalog has the same table as {other} (uuid {claim.uuid})",
            hint="A table under two names would lose files; rename it, or drop the other name first",
        )
    if (shared := claim.roots.find_overlap(theirs.roots)) is not None:
        raise InvalidInput(
            f"cannot place {name} at {', '.join(claim.locations)}: {other} is at {shared}",
            hint="Tables and views that share a directory would remove each other's files; choose another location",
        )


# By store, and by the location of a metadata file.
_known: "WeakKeyDictionary[Store, dict[str, Claim]]" = WeakKeyDictionary()


def _read_claims(store: Store, entries: Mapping[TableName, Entry]) -> dict[TableName, Claim]:
    known = _known.setdefault(store, {})
    if len(known) > _MOST_KNOWN:
        known.clear()
    missing = [entry.pointer for entry in entries.values() if entry.pointer not in known]
    if len(missing) > 1:
        with ThreadPoolExecutor(min(_READERS, len(missing))) as readers:
            known.update(zip(missing, readers.map(lambda pointer: _read_claim(store, pointer), missing), strict=True))
    elif missing:
        known[missing[0]] = _read_claim(store, missing[0])
    return {name: known[entry.pointer] for name, entry in entries.items()}


def _read_claim(store: Store, pointer: str) -> Claim:
    try:
        outline = decode_outline(store.read(pointer), pointer)
        locations = [str(parse_location(root)) for root in roots_of(outline.location, outline.properties or {})]
    except (MissingFile, CorruptFile, Unsupported, LocationRefused, InvalidInput):
        folder = pointer.rpartition("/")[0].removesuffix("/metadata")
        return Claim(None, [folder] if _is_location(folder) else [])
    owner_uuid = outline.table_uuid or outline.view_uuid or location_uuid(outline.location)
    return Claim(owner_uuid, locations, outline.view_uuid is None and _is_collected(outline.properties or {}))


def _is_collected(properties: Mapping[str, str]) -> bool:
    try:
        return GC_ENABLED.read(properties)
    except InvalidInput:
        return True


def _is_location(text: str) -> bool:
    try:
        parse_location(text)
    except InvalidInput:
        return False
    return True
