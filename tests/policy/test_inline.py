"""Compaction after commits: few files, little rewriting, and never at the cost of the commit."""

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest
from tests.upkeep.fixtures import Yard, ids, make_yard, rows

from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.catalog.catalog import PointerSwap
from icefield.catalog.memory import MemoryCatalog
from icefield.errors import CommitConflict, StorageError
from icefield.lake import Lake
from icefield.leases.claim import take_claim
from icefield.model.snapshot import Snapshot
from icefield.policy.inline import RETRIES
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table

INLINE = {"icefield.upkeep.inline.enabled": "true"}
FULL = 8  # files make a level full


@pytest.fixture
def yard() -> Yard:
    return make_yard()


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "icefield.upkeep")


def create(lake: Lake, name: str = "t.t", **more: str) -> Table:
    given = {key.replace("__", ".").replace("_", "-"): value for key, value in more.items()}
    return lake.create_table(name, "id long, n long", properties=INLINE | given)


def replaced(table: Table) -> list[Snapshot]:
    return [snapshot for snapshot in table.snapshots() if snapshot.operation == "replace"]


def total(snapshots: Sequence[Snapshot], key: str) -> int:
    return sum(int(snapshot.summary.get(key, 0)) for snapshot in snapshots)


def test_a_hundred_appends_of_one_row_stay_few_files_and_are_rewritten_seldom(yard: Yard) -> None:
    table = create(yard.lake)
    most = 0
    for number in range(100):
        made = table.append(rows(number))
        assert made is not None
        assert made.operation == "append"
        most = max(most, total([made], "total-data-files"))
    assert most <= 2 * FULL
    again, first = replaced(table), [s for s in table.snapshots() if s.operation == "append"]
    for key in ("added-files-size", "added-records"):
        assert (total(again, key) + total(first, key)) / total(first, key) < 3  # the promise is 4.5
    assert ids(table) == list(range(100))
    assert table.leases() == []


VERBS: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(rows(9)),
    "overwrite": lambda table: table.overwrite(rows(0), "id = 0"),
    "overwrite files": lambda table: table.overwrite(
        rows(0), files=table.scan("id = 0").files()["file_path"].to_pylist()
    ),
    "delete": lambda table: table.delete("id = 0"),
    "update": lambda table: table.update({"n": "n + 1"}, "id = 0"),
    "merge": lambda table: table.merge(rows(9), on=["id"]).when_not_matched().insert_all().execute(),
    "upsert": lambda table: table.upsert(rows(9), on=["id"]),
}


@pytest.mark.every_case
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_looks_at_its_first_commit(yard: Yard, verb: str) -> None:
    table = yard.lake.create_table("t.t", "id long, n long", properties={"icefield.compaction.min-input-files": "3"})
    for number in range(4):
        table.append(rows(number))
    table.set_properties(INLINE)
    VERBS[verb](yard.lake_again().table("t.t"))
    assert [snapshot.summary["added-data-files"] for snapshot in replaced(table)] == ["1"]
    assert set(ids(table)) >= {1, 2, 3}


def test_it_is_off_by_default_in_transactions_and_above_its_bytes(yard: Yard) -> None:
    off = yard.lake.create_table("t.off", "id long, n long")
    small = create(yard.lake, "t.small", icefield__upkeep__inline__max_bytes="2000")
    together = create(yard.lake, "t.together")
    for number in range(FULL + 1):
        off.append(rows(number))
        small.append(rows(number))
        with yard.lake.transaction() as tx:
            tx.table("t.together").append(rows(number))
    assert [replaced(off), replaced(small), replaced(together)] == [[], [], []]


def test_it_works_on_the_branch_that_was_written_and_on_its_newest_partition(yard: Yard) -> None:
    table = yard.lake.create_table("t.t", "id long, n long", partition_by=["n"], properties=INLINE)
    table.append(rows(0))
    table.create_branch("b")
    branch = table.at("b")
    for _ in range(FULL + 1):
        branch.append(pa.table({"id": pa.array([5], pa.int64()), "n": pa.array([5], pa.int64())}))
    assert len(branch.scan().files()) <= 4
    assert ids(table) == [0]
    assert replaced(table)[0].summary["deleted-data-files"] == str(FULL)


def test_it_is_left_to_a_process_that_is_at_it(yard: Yard, caplog: pytest.LogCaptureFixture) -> None:
    table = create(yard.lake)
    claim = take_claim(yard.store, yard.ambient, table.metadata)
    for number in range(2 * FULL + 1):
        table.append(rows(number))
    assert replaced(table) == []
    assert f"is left to {claim.holder}" in caplog.text
    claim.close()
    for number in range(FULL):
        table.append(rows(number))
    assert len(replaced(table)) == 1


class Failing(MemoryStore):
    """A store in which nothing can be claimed."""

    def put_new(self, location: str, data: bytes) -> None:
        if "/claims/" in location:
            raise StorageError("the store is full")
        super().put_new(location, data)


class Busy(MemoryCatalog):
    """A catalog in which other writers commit first whenever files are replaced."""

    refused = 0
    allowed = 0

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        if self.allowed == 0:
            self.refused += 1
            raise CommitConflict("another writer was first")
        self.allowed -= 1
        super().swap(changes)


def test_what_fails_is_logged_and_the_commit_has_landed(caplog: pytest.LogCaptureFixture) -> None:
    ambient = SeededAmbient(5)
    lake = Lake(Backend(MemoryCatalog("c"), Failing(ambient), ambient), "memory://lake")
    table = create(lake)
    for number in range(FULL + 1):
        assert table.append(rows(number)) is not None
    assert "gave up: StorageError: the store is full" in caplog.text
    assert ids(table) == list(range(FULL + 1))
    assert replaced(table) == []


def test_it_gives_up_where_other_writers_commit_first(caplog: pytest.LogCaptureFixture) -> None:
    ambient, catalog = SeededAmbient(6), Busy("c")
    store = MemoryStore(ambient)
    catalog.allowed = 1
    table = create(Lake(Backend(catalog, store, ambient), "memory://lake"))
    for number in range(FULL + 1):
        catalog.allowed = 1
        assert table.append(rows(number)) is not None
    assert catalog.refused == RETRIES + 1
    assert "gave up: CommitConflict" in caplog.text
    assert ids(table) == list(range(FULL + 1))
    files = {file.location for file in store.list(f"{table.location}/data")}
    assert files == set(table.scan().files()["file_path"].to_pylist())
