"""Claim the upkeep of a table, so that several machines share the work instead of doing it twice.

    gc/claims/000007.json    {"lease": "5f0c…"}

A claim is held as long as its lease is. Claims have numbers: once the lease of the newest one has ended or is dead,
whoever creates the next number has the claim. The newest is never removed, so one that comes late finds a later number.
Nothing but the saved work relies on it: every step of upkeep is safe if two processes do it at once.

Raises StorageError.
"""

import re
from dataclasses import dataclass

import msgspec

from icefield.ambient import Ambient
from icefield.errors import FileAlreadyExists, MissingFile, StorageError
from icefield.leases.folder import CLAIMS, gc_folder, store_time_ms
from icefield.leases.lease import KeptLease, take_lease
from icefield.leases.record import LeaseKind, first_version, this_holder
from icefield.leases.sample import declare_dead, forget_lost, held, note_sightings, sample_leases
from icefield.model.metadata import TableMetadata
from icefield.properties.upkeep import GC_LEASE_TTL_MS
from icefield.storage.location import join_location
from icefield.storage.store import Store

_NAME = re.compile(r"(\d{6,})\.json")
_READS = 10


@dataclass(frozen=True)
class Claim:
    """Who works on a table. lease: held by this process until `close`; None if another process has the claim."""

    holder: str
    lease: KeptLease | None = None

    def check(self) -> None:
        """Renew the claim if it is time; raise LeaseLost if others took it for dead."""
        if self.lease is not None:
            self.lease.check()

    def close(self) -> None:
        """End the claim."""
        if self.lease is not None:
            self.lease.close()


class _Record(msgspec.Struct):
    lease: str


def take_claim(store: Store, ambient: Ambient, metadata: TableMetadata) -> Claim:
    """Take the claim on a table, or return who has it."""
    folder = gc_folder(metadata)
    newest, lease_id = _find_newest(store, folder)
    holder = None if lease_id is None else _find_holder(store, ambient, metadata, lease_id)
    if holder is not None:
        return Claim(holder)
    record = first_version(LeaseKind.UPKEEP, ambient.random_uuid().hex, metadata)
    lease = KeptLease(take_lease(store, ambient, folder, record))
    try:
        is_first = _put(store, folder, newest + 1, record.lease)
        numbers = _numbers(store, folder)
    except BaseException:
        lease.close()
        raise
    if not is_first or max(numbers, default=0) > newest + 1:
        lease.close()
        return Claim("another process")
    for number in numbers:
        if number <= newest:
            store.delete(_location(folder, number))
    return Claim(this_holder(), lease)


def _find_newest(store: Store, folder: str) -> tuple[int, str | None]:
    """Return the newest number, and the lease of that claim; None for one whose writer crashed."""
    for _ in range(_READS):
        newest = max(_numbers(store, folder), default=0)
        if newest == 0:
            return 0, None
        try:
            data = store.read(_location(folder, newest))
        except MissingFile:
            continue  # a later one was created since
        try:
            return newest, msgspec.json.decode(data, type=_Record).lease
        except (ValueError, RecursionError):
            return newest, None
    raise StorageError(f"the claims in {folder} changed while they were read, {_READS} times", hint="Run it again")


def _find_holder(store: Store, ambient: Ambient, metadata: TableMetadata, lease_id: str) -> str | None:
    """Return who holds a lease; None if it has ended, or is dead by the rule for all leases."""
    folder = gc_folder(metadata)
    found = [seen for seen in held(sample_leases(store, [folder])) if seen.lease == lease_id]
    if not found:
        return None
    note_sightings(store, found)
    now_ms = store_time_ms(store, folder, ambient)
    lost = declare_dead(store, found, now_ms, GC_LEASE_TTL_MS.read(metadata.properties))
    for seen in lost:
        forget_lost(store, seen)
    record = found[0].record
    return None if lost else record.holder if record is not None else "another process"


def _put(store: Store, folder: str, number: int, lease_id: str) -> bool:
    try:
        store.put_new(_location(folder, number), msgspec.json.encode(_Record(lease_id)))
    except FileAlreadyExists:
        return False
    return True


def _numbers(store: Store, folder: str) -> list[int]:
    names = (file.location.rpartition("/")[2] for file in store.list(join_location(folder, CLAIMS)))
    return [int(found.group(1)) for name in names if (found := _NAME.fullmatch(name))]


def _location(folder: str, number: int) -> str:
    return join_location(folder, CLAIMS, f"{number:06d}.json")
