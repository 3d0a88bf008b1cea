"""See which leases of a table are held, and declare those dead that are not renewed.

A sample is one listing. A lease that was taken before the listing began, and not ended before it finished, is in it
(leases.record says why). Whoever takes a lease later reads the table's pointer after that, and sees what the collector
did before the listing.

    sample_leases  →  held leases     declare_dead: same version for ttl + margin, by sightings on the store's clock
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from icefield.errors import FileAlreadyExists, MissingFile, StorageError
from icefield.leases.folder import LEASES, SIGHTINGS
from icefield.leases.lease import MARGIN_S, dead_version
from icefield.leases.record import (
    LeaseKind,
    LeaseRecord,
    LeaseState,
    decode_record,
    encode_record,
    parse_version,
    version_location,
)
from icefield.storage.location import join_location
from icefield.storage.store import Store

_LISTINGS = 20


@dataclass(frozen=True)
class SeenLease:
    """The newest version of a lease in a sample. record: None if it cannot be read; such a lease holds everything."""

    folder: str
    lease: str
    version: int
    record: LeaseRecord | None
    modified_ms: int

    @property
    def is_dead(self) -> bool:
        """Whether a collector declared it dead."""
        return self.record is not None and self.record.state is LeaseState.DEAD


def sample_leases(store: Store, folders: Iterable[str]) -> list[SeenLease]:
    """Return the leases in some directories, held and dead ones."""
    return [seen for folder in folders for seen in _sample(store, folder)]


def held(leases: Iterable[SeenLease]) -> list[SeenLease]:
    """Return those that are not dead."""
    return [seen for seen in leases if not seen.is_dead]


def write_ids(leases: Iterable[SeenLease]) -> list[str]:
    """Return the ids of writers, which are in the names of their files."""
    return [seen.lease for seen in leases if seen.record is None or seen.record.kind is LeaseKind.WRITER]


def note_sightings(store: Store, leases: Iterable[SeenLease]) -> None:
    """Record that these versions were seen; the store's clock gives the time of the first sighting."""
    for seen in leases:
        try:
            store.put_new(_sighting(seen), b"")
        except FileAlreadyExists:
            continue


def declare_dead(store: Store, leases: Sequence[SeenLease], now_ms: int, default_ttl_ms: int) -> list[SeenLease]:
    """Declare leases dead whose version was first seen longer than ttl + margin ago; return those that are.

    now_ms: by the store's clock. A lease that is renewed at the same time stays: who creates the next version wins.
    """
    if not leases:
        return []
    first_seen = _first_seen(store, {seen.folder for seen in leases})
    return [seen for seen in leases if _is_late(seen, first_seen, now_ms, default_ttl_ms) and _win(store, seen)]


def forget_dead(store: Store, leases: Iterable[SeenLease]) -> None:
    """Remove the records of dead leases, the record of their death last, and sightings of versions that are gone."""
    listed = list(leases)
    for seen in listed:
        if seen.is_dead:
            _forget(store, seen, seen.version)
    current = {(seen.folder, seen.lease, seen.version) for seen in listed if not seen.is_dead}
    for folder in {seen.folder for seen in listed}:
        for found in list(store.list(join_location(folder, SIGHTINGS))):
            name = parse_version(found.location)
            if name is not None and (folder, *name) not in current:
                store.delete(found.location)


def forget_lost(store: Store, seen: SeenLease) -> None:
    """Remove the records of one lease that `declare_dead` returned; not of a writer, which must be fenced first."""
    _forget(store, seen, seen.version + 1)
    store.delete(_sighting(seen))


def _forget(store: Store, seen: SeenLease, last: int) -> None:
    """Remove the versions of a dead lease; the last one is the record of its death."""
    for version in range(1, last + 1):
        store.delete(version_location(seen.folder, seen.lease, version))


def _sample(store: Store, folder: str) -> list[SeenLease]:
    """Read the newest version of every lease in a directory.

    One that is gone since it was listed has ended, unless another process that holds it has renewed it: only such
    leases are listed again, so that a sample comes to its end however many others come and go.
    """
    seen: list[SeenLease] = []
    again: set[str] | None = None
    for _ in range(_LISTINGS):
        newest: dict[str, tuple[int, int]] = {}
        for found in store.list(join_location(folder, LEASES)):
            name = parse_version(found.location)
            if name is not None and (again is None or name[0] in again):
                newest[name[0]] = max(newest.get(name[0], (0, 0)), (name[1], found.modified_ms))
        again = set()
        for lease, version in newest.items():
            try:
                seen.append(_read(store, folder, lease, *version))
            except MissingFile:
                again.add(lease)
        if not again:
            return sorted(seen, key=lambda each: each.lease)
    raise StorageError(f"the leases in {folder} changed while they were read, {_LISTINGS} times", hint="Run it again")


def _read(store: Store, folder: str, lease: str, version: int, modified_ms: int) -> SeenLease:
    data = store.read(version_location(folder, lease, version))
    return SeenLease(folder, lease, version, decode_record(data), modified_ms)


def _first_seen(store: Store, folders: Iterable[str]) -> dict[tuple[str, str, int], int]:
    found = ((folder, file) for folder in folders for file in store.list(join_location(folder, SIGHTINGS)))
    return {(folder, *name): file.modified_ms for folder, file in found if (name := parse_version(file.location))}


def _is_late(seen: SeenLease, first_seen: dict[tuple[str, str, int], int], now_ms: int, default_ttl_ms: int) -> bool:
    since = first_seen.get((seen.folder, seen.lease, seen.version))
    ttl_ms = default_ttl_ms if seen.record is None else seen.record.ttl_ms
    return since is not None and now_ms - since >= ttl_ms + MARGIN_S * 1000


def _win(store: Store, seen: SeenLease) -> bool:
    record = seen.record or _unreadable(seen)
    dead = dead_version(record)
    try:
        store.put_new(version_location(seen.folder, seen.lease, dead.version), encode_record(dead))
    except FileAlreadyExists:
        return False
    return True


def _unreadable(seen: SeenLease) -> LeaseRecord:
    """Return a record for a lease whose holder crashed while writing it, so that it can be declared dead."""
    return LeaseRecord(lease=seen.lease, version=seen.version, table_uuid=UUID(int=0), kind=LeaseKind.READER, ttl_ms=0)


def _sighting(seen: SeenLease) -> str:
    return join_location(seen.folder, SIGHTINGS, f"{seen.lease}.{seen.version:06d}.json")
