"""Leases: who creates the next version wins, on every store and in every order."""

import itertools
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from icefield.ambient import SeededAmbient, SystemAmbient
from icefield.errors import LeaseLost, StorageError
from icefield.leases.folder import store_time_ms
from icefield.leases.lease import MARGIN_S, KeptLease, Lease, take_lease
from icefield.leases.record import LeaseKind, LeaseRecord, is_of_write, parse_version, uuid_of_write, version_location
from icefield.leases.sample import SeenLease, declare_dead, forget_dead, held, note_sightings, sample_leases, write_ids
from icefield.storage.local import LocalStore
from icefield.storage.location import location_of_path
from icefield.storage.memory import MemoryStore
from icefield.storage.store import Store, StoredFile

TTL_MS = 60_000
FOLDER = "memory://lake/t/metadata/gc"


def record(lease: str | None = None, kind: LeaseKind = LeaseKind.READER) -> LeaseRecord:
    return LeaseRecord(
        lease=lease or uuid.UUID(int=7).hex, version=1, table_uuid=uuid.UUID(int=1), kind=kind, ttl_ms=TTL_MS
    )


@pytest.fixture
def ambient() -> SeededAmbient:
    return SeededAmbient(1)


@pytest.fixture
def store(ambient: SeededAmbient) -> MemoryStore:
    return MemoryStore(ambient)


def collect(store: Store, ambient: SeededAmbient, folder: str = FOLDER) -> list[SeenLease]:
    """Do what a collector does with leases, and return those that are still held."""
    leases = held(sample_leases(store, [folder]))
    note_sightings(store, leases)
    dead = declare_dead(store, leases, store_time_ms(store, folder, ambient), TTL_MS)
    return [lease for lease in leases if lease not in dead]


def versions(store: Store) -> list[int]:
    found = (parse_version(file.location) for file in store.list(f"{FOLDER}/leases"))
    return sorted(name[1] for name in found if name is not None)


def test_a_lease_is_seen_until_it_ends(store: MemoryStore, ambient: SeededAmbient) -> None:
    lease = take_lease(store, ambient, FOLDER, record())
    assert [seen.version for seen in sample_leases(store, [FOLDER])] == [1]
    lease.renew()
    lease.renew()
    assert [seen.version for seen in sample_leases(store, [FOLDER])] == [3]
    lease.end()
    assert sample_leases(store, [FOLDER]) == []


def test_a_lease_that_is_renewed_never_dies(store: MemoryStore, ambient: SeededAmbient) -> None:
    lease = take_lease(store, ambient, FOLDER, record())
    for _ in range(50):
        ambient.sleep(TTL_MS / 1000 / 2)
        lease.keep()
        assert len(collect(store, ambient)) == 1


def test_keep_renews_only_after_a_third_of_the_time(store: MemoryStore, ambient: SeededAmbient) -> None:
    lease = take_lease(store, ambient, FOLDER, record())
    ambient.sleep(TTL_MS / 1000 / 3 - 1)
    lease.keep()
    assert lease.record.version == 1
    ambient.sleep(1)
    lease.keep()
    assert lease.record.version == 2


def test_a_lease_that_is_not_renewed_dies_at_the_second_sighting(store: MemoryStore, ambient: SeededAmbient) -> None:
    lease = take_lease(store, ambient, FOLDER, record())
    ambient.sleep(10 * TTL_MS)  # however long ago it was renewed: nobody has looked yet
    assert len(collect(store, ambient)) == 1
    ambient.sleep(TTL_MS / 1000 + MARGIN_S - 1)
    assert len(collect(store, ambient)) == 1
    ambient.sleep(1)
    assert collect(store, ambient) == []
    assert held(sample_leases(store, [FOLDER])) == []
    with pytest.raises(LeaseLost, match="declared dead"):
        lease.renew()


def test_a_holder_that_comes_back_after_all_records_are_gone_has_lost(
    store: MemoryStore, ambient: SeededAmbient
) -> None:
    lease = take_lease(store, ambient, FOLDER, record())
    lease.renew()
    collect(store, ambient)
    ambient.sleep(TTL_MS / 1000 + MARGIN_S)
    collect(store, ambient)
    forget_dead(store, sample_leases(store, [FOLDER]))
    assert versions(store) == []
    with pytest.raises(LeaseLost):
        lease.renew()
    assert versions(store) == []


def test_an_unreadable_lease_is_held_and_dies_in_time(store: MemoryStore, ambient: SeededAmbient) -> None:
    store.put_new(version_location(FOLDER, uuid.UUID(int=9).hex, 1), b"{")
    (seen,) = collect(store, ambient)
    assert seen.record is None
    assert write_ids([seen]) == [seen.lease]
    ambient.sleep(TTL_MS / 1000 + MARGIN_S)
    assert collect(store, ambient) == []


class LostResponses(MemoryStore):
    """Writes, and then fails as if the response was lost."""

    loses = False

    def put_new(self, location: str, data: bytes) -> None:
        super().put_new(location, data)
        if self.loses:
            raise StorageError("the response was lost")


def test_a_renewal_whose_response_was_lost_is_recognised_by_the_next_one(ambient: SeededAmbient) -> None:
    store = LostResponses(ambient)
    lease = take_lease(store, ambient, FOLDER, record())
    store.loses = True
    with pytest.raises(StorageError, match="lost"):
        lease.renew()
    store.loses = False
    lease.renew()
    assert lease.record.version == 3
    assert versions(store) == [1, 2, 3]


def test_a_listing_during_renewals_shows_the_lease(ambient: SeededAmbient) -> None:
    """Whatever part of a directory was read before a renewal and whatever part after it."""

    class Torn(MemoryStore):
        def list(self, prefix: str) -> Iterator[StoredFile]:
            before = list(super().list(prefix))
            if "/leases" not in prefix:
                yield from before
                return
            lease.renew()
            lease.renew()
            after = list(super().list(prefix))
            # Reversed order, and of each name the state at either moment: a name is missed only if it was missing then.
            yield from (file for file in after if file in before)

    store = Torn(ambient)
    lease = take_lease(store, ambient, FOLDER, record())
    for _ in range(3):
        note_sightings(store, held(sample_leases(store, [FOLDER])))
        ambient.sleep(10 * TTL_MS)
        seen = held(sample_leases(store, [FOLDER]))
        assert seen, "a lease that is held was not seen"
        assert declare_dead(store, seen, store_time_ms(store, FOLDER, ambient), TTL_MS) == []
        lease.renew()


@pytest.mark.parametrize("seed", range(60))
def test_in_any_order_a_lease_is_either_held_or_lost(seed: int) -> None:
    """A holder that renews without an error is held in the next sample; a dead lease can never be renewed again."""
    rng, ambient = Random(seed), SeededAmbient(seed)
    store = MemoryStore(ambient)
    lease: Lease | None = None
    is_dead = False
    for step in range(80):
        match rng.choice(("take", "renew", "collect", "collect", "forget", "sleep", "end")):
            case "take" if lease is None:
                lease, is_dead = take_lease(store, ambient, FOLDER, record(uuid.UUID(int=step).hex)), False
            case "renew" if lease is not None:
                try:
                    lease.renew()
                except LeaseLost:
                    assert is_dead
                    lease = None
                else:
                    assert not is_dead
                    assert lease.record.lease in {seen.lease for seen in held(sample_leases(store, [FOLDER]))}
            case "collect":
                left = {seen.lease for seen in collect(store, ambient)}
                is_dead = lease is not None and lease.record.lease not in left
            case "forget":
                forget_dead(store, sample_leases(store, [FOLDER]))
            case "sleep":
                ambient.sleep(rng.choice((1, TTL_MS / 2000, TTL_MS / 1000 + MARGIN_S)))
            case "end" if lease is not None and rng.random() < 0.3:
                lease.end()
                lease = None


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_two_collectors_and_a_holder_have_one_winner(where: str, tmp_path: Path) -> None:
    ambient = SeededAmbient(3)
    store: Store = MemoryStore(ambient) if where == "memory" else LocalStore()
    folder = FOLDER if where == "memory" else location_of_path(str(tmp_path))
    for order in itertools.permutations(("holder", "first", "second")):
        lease = take_lease(store, ambient, folder, record(ambient.random_uuid().hex))
        seen = [s for s in sample_leases(store, [folder]) if s.lease == lease.record.lease]
        note_sightings(store, seen)
        late = store_time_ms(store, folder, ambient) + TTL_MS + int(MARGIN_S * 1000) + 1000
        won = []
        for who in order:
            if who == "holder":
                try:
                    lease.renew()
                    won.append(who)
                except LeaseLost:
                    pass
            elif declare_dead(store, seen, late, TTL_MS):
                won.append(who)
        assert won == [order[0]]
        lease.end()


def test_a_kept_lease_is_renewed_in_the_background() -> None:
    ambient = SystemAmbient()
    store = MemoryStore(ambient)
    short = LeaseRecord(
        lease=uuid.UUID(int=7).hex, version=1, table_uuid=uuid.UUID(int=1), kind=LeaseKind.READER, ttl_ms=30
    )
    kept = KeptLease(take_lease(store, ambient, FOLDER, short))
    while kept.lease.record.version < 3:
        ambient.sleep(0.005)
    kept.check()
    kept.close()
    assert versions(store) == []


def test_a_kept_lease_may_end_in_the_thread_that_renews_it() -> None:
    """As a finalizer does, which runs in any thread."""
    ambient = SystemAmbient()
    store = MemoryStore(ambient)
    short = LeaseRecord(
        lease=uuid.UUID(int=7).hex, version=1, table_uuid=uuid.UUID(int=1), kind=LeaseKind.READER, ttl_ms=30
    )
    real, ended = store.put_new, threading.Event()

    def put_new(location: str, data: bytes) -> None:
        real(location, data)
        if ".000002." in location:
            kept.close()
            ended.set()

    kept = KeptLease(take_lease(store, ambient, FOLDER, short))
    store.put_new = put_new  # type: ignore[method-assign]
    assert ended.wait(30)
    kept.close()


def test_files_are_owned_by_the_id_in_their_names() -> None:
    write_id = uuid.UUID(int=0xABCDEF << 96)
    named = f"00001-{uuid_of_write(write_id.hex, uuid.uuid4())}.metadata.json"
    for name in (f"00000-{write_id.hex}-00001.parquet", f"{write_id}-m0.avro", f"snap-1-1-{write_id}.avro", named):
        assert is_of_write(f"file:///t/{name}", [write_id.hex])
        assert not is_of_write(f"file:///t/{write_id.hex}/{name}", [uuid.UUID(int=5 << 96).hex])


@pytest.mark.parametrize("removed", [1, 2, 3])
def test_the_stores_clock_is_read_again_if_another_process_removes_the_probe(
    removed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, left = MemoryStore(), removed
    listed = store.list

    def remove_first(prefix: str) -> Iterator[StoredFile]:
        nonlocal left
        if left:
            left -= 1
            for found in list(listed(prefix)):
                store.delete(found.location)
        return listed(prefix)

    monkeypatch.setattr(store, "list", remove_first)
    if removed < 3:
        assert store_time_ms(store, FOLDER, SeededAmbient(1)) > 0
    else:
        with pytest.raises(StorageError, match="does not list what was just written"):
            store_time_ms(store, FOLDER, SeededAmbient(1))
    assert list(listed(FOLDER)) == []


def test_leases_that_come_and_go_do_not_keep_a_sample_from_its_end(
    store: MemoryStore, ambient: SeededAmbient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every read of a lease it ends, and another one is taken; one is held all the time."""
    held_one = take_lease(store, ambient, FOLDER, record("f" * 32))
    short = [take_lease(store, ambient, FOLDER, record(f"{number:032x}")) for number in range(3)]
    real = store.read

    def read(location: str) -> bytes:
        if short and held_one.record.lease not in location:
            short.pop(0).end()
            short.append(take_lease(store, ambient, FOLDER, record(ambient.random_uuid().hex)))
        return real(location)

    monkeypatch.setattr(store, "read", read)
    assert held_one.record.lease in [seen.lease for seen in sample_leases(store, [FOLDER])]


def test_a_lease_that_one_process_ends_and_another_has_renewed_is_seen(
    store: MemoryStore, ambient: SeededAmbient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version that was listed is gone, and there is a later one."""
    lease = take_lease(store, ambient, FOLDER, record())
    other = Lease(store, ambient, FOLDER, lease.record, lease.renewed_at)
    real = store.read

    def read(location: str) -> bytes:
        monkeypatch.setattr(store, "read", real)
        other.renew()
        lease.end()
        return real(location)

    monkeypatch.setattr(store, "read", read)
    assert [(seen.lease, seen.version) for seen in sample_leases(store, [FOLDER])] == [(lease.record.lease, 2)]
