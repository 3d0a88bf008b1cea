"""Claims: one process at a time, also after one died or came late."""

import pytest
from tests.upkeep.fixtures import Yard, make_yard

from icefield.errors import LeaseLost
from icefield.leases.claim import Claim, take_claim
from icefield.leases.lease import MARGIN_S
from icefield.properties.upkeep import GC_LEASE_TTL_MS
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table

LAPSE_S = GC_LEASE_TTL_MS.default / 1000 + MARGIN_S


@pytest.fixture
def yard() -> Yard:
    return make_yard()


@pytest.fixture
def table(yard: Yard) -> Table:
    return yard.table()


def claim(yard: Yard, table: Table, store: MemoryStore | None = None) -> Claim:
    return take_claim(store or yard.store, yard.ambient, table.metadata)


def claims(table: Table, yard: Yard) -> list[str]:
    return [file.location.rpartition("/")[2] for file in yard.store.list(f"{table.location}/metadata/gc/claims")]


def test_one_process_has_the_claim_until_it_ends(yard: Yard, table: Table) -> None:
    first = claim(yard, table)
    second = claim(yard, table)
    assert (first.lease is not None, second.lease, second.holder) == (True, None, first.holder)
    assert [lease.kind for lease in table.leases()] == ["upkeep"]
    first.close()
    third = claim(yard, table)
    assert third.lease is not None
    assert claims(table, yard) == ["000002.json"]


def test_a_claim_that_is_not_renewed_lapses(yard: Yard, table: Table) -> None:
    stopped = claim(yard, table)
    yard.ambient.sleep(10 * LAPSE_S)  # nobody has looked yet
    assert claim(yard, table).lease is None
    yard.ambient.sleep(LAPSE_S - 1)
    assert claim(yard, table).lease is None
    yard.ambient.sleep(1)
    taken = claim(yard, table)
    assert taken.lease is not None
    with pytest.raises(LeaseLost):
        stopped.check()
    taken.check()
    assert len(table.leases()) == 1


def test_a_claim_that_is_renewed_does_not_lapse(yard: Yard, table: Table) -> None:
    kept = claim(yard, table)
    for _ in range(5):
        yard.ambient.sleep(LAPSE_S / 2)
        kept.check()
        assert claim(yard, table).lease is None


def test_one_that_comes_late_finds_the_later_claim(yard: Yard, table: Table) -> None:
    """It saw that the newest claim had ended; until it creates the next, others had that and the one after it."""
    claim(yard, table).close()
    others: list[Claim] = []

    class Slow(MemoryStore):
        def put_new(self, location: str, data: bytes) -> None:
            if "/claims/" in location and not others:
                others.append(claim(yard, table))
                others[0].close()
                others.append(claim(yard, table))
            super().put_new(location, data)

    slow = Slow(yard.ambient)
    slow._files = yard.store._files
    late = claim(yard, table, slow)
    assert [each.lease is not None for each in (*others, late)] == [True, True, False]
    assert len(table.leases()) == 1


def test_a_claim_whose_writer_crashed_half_way_is_free(yard: Yard, table: Table) -> None:
    yard.store.put_new(f"{table.location}/metadata/gc/claims/000004.json", b'{"lea')
    assert claim(yard, table).lease is not None
    assert claims(table, yard) == ["000005.json"]
