"""Transactions over several tables: one moment, one swap, or nothing at all."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.ambient import SystemAmbient
from icefield.backend import Backend
from icefield.catalog.catalog import Catalog
from icefield.catalog.object_store.catalog import ObjectStoreCatalog
from icefield.errors import ConcurrentChange, InvalidInput, NoSuchTable, Unsupported
from icefield.lake import Lake
from icefield.storage.local import LocalStore
from icefield.storage.location import location_of_path
from icefield.storage.object_store.directory import DirectoryStore
from icefield.table.table import Table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all().column("id").to_pylist())


@pytest.fixture(params=["memory", "sqlite"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    with icefield.connect("memory:" if request.param == "memory" else tmp_path, durable=False) as made:
        for name in ("t.a", "t.b"):
            made.create_table(name, "id long").append(rows(1))
        yield made


def files(lake: Lake) -> set[str]:
    return {f.location for f in lake.store.list(lake.warehouse) if "catalog.db" not in f.location}


def test_all_tables_change_at_once(lake: Lake) -> None:
    with lake.transaction() as tx:
        tx.table("t.a").append(rows(2))
        tx.table("t.b").overwrite(rows(9), where="id = 1", check_rows=False)
        assert ids(tx.table("t.a")) == [1, 2]
        assert ids(lake.table("t.a")) == [1]
    assert ids(lake.table("t.a")) == [1, 2]
    assert ids(lake.table("t.b")) == [9]


def test_each_action_is_a_snapshot_and_all_are_one_version(lake: Lake) -> None:
    table = lake.table("t.a")
    before = len(table.metadata.metadata_log)
    with lake.transaction() as tx:
        inside = tx.table("t.a")
        inside.append(rows(2))
        with inside.evolve() as change:
            change.add_column("s", "string")
        inside.append(pa.table({"id": [3], "s": ["x"]}))
        inside.delete("id = 2")
    assert ids(table) == [1, 3]
    assert len(table.snapshots()) == 4
    assert len(table.metadata.metadata_log) == before + 1


def test_a_block_that_raises_changes_nothing_and_leaves_nothing(lake: Lake) -> None:
    before = files(lake)

    def change_and_fail() -> None:
        with lake.transaction() as tx:
            tx.table("t.a").append(rows(2))
            tx.table("t.b").delete("id = 1")
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        change_and_fail()
    assert (ids(lake.table("t.a")), ids(lake.table("t.b"))) == ([1], [1])
    assert files(lake) == before


def test_nothing_is_left_of_a_transaction_but_what_it_committed(lake: Lake) -> None:
    with lake.transaction() as tx:
        tx.table("t.a").append(rows(2))
        tx.table("t.a").overwrite(rows(5), where="id = 2", check_rows=False)
    table = lake.table("t.a")
    reachable = {s.manifest_list for s in table.snapshots()}
    lists = {f for f in files(lake) if "/snap-" in f and table.location in f}
    assert lists == reachable


def test_appends_of_others_concurrently_stay(lake: Lake) -> None:
    with lake.transaction() as tx:
        tx.table("t.a").append(rows(2))
        lake.table("t.a").append(rows(3))
        lake.table("t.b").append(rows(4))
        tx.table("t.a").append(rows(5))
    assert ids(lake.table("t.a")) == [1, 2, 3, 5]


def test_a_change_in_the_way_of_one_table_stops_all(lake: Lake) -> None:
    at_the_end: set[str] = set()

    def change_what_another_changes() -> None:
        with lake.transaction() as tx:
            tx.table("t.a").append(rows(2))
            tx.table("t.b").overwrite(rows(9), where="id = 1", check_rows=False)
            lake.table("t.b").overwrite(rows(1, 1), where="id = 1")
            at_the_end.update(files(lake))

    with pytest.raises(ConcurrentChange, match="concurrently added"):
        change_what_another_changes()
    assert (ids(lake.table("t.a")), ids(lake.table("t.b"))) == ([1], [1, 1])
    assert files(lake) < at_the_end


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_a_table_that_was_only_read_counts_under_serializable_isolation(lake: Lake, isolation: str) -> None:
    def transfer() -> None:
        with lake.transaction(isolation=isolation) as tx:
            known = ids(tx.table("t.a"))
            tx.table("t.b").append(rows(len(known)))
            lake.table("t.a").append(rows(7))

    if isolation == "snapshot":
        transfer()
        assert ids(lake.table("t.b")) == [1, 1]
    else:
        with pytest.raises(ConcurrentChange, match=r"t\.a, which the transaction read"):
            transfer()
        assert ids(lake.table("t.b")) == [1]


def test_tables_are_read_as_of_one_moment(lake: Lake) -> None:
    def open_one_after_the_other() -> None:
        with lake.transaction() as tx:
            ids(tx.table("t.a"))
            lake.table("t.a").append(rows(2))
            tx.table("t.b")

    with pytest.raises(ConcurrentChange, match=r"rows of t\.a, which the transaction read"):
        open_one_after_the_other()
    with lake.transaction() as tx:
        tx.pin(["t.a", "t.b"])
        lake.table("t.a").append(rows(3))
        lake.table("t.b").append(rows(3))
        assert (ids(tx.table("t.a")), ids(tx.table("t.b"))) == ([1, 2], [1])


def test_a_table_that_nobody_read_is_taken_as_of_the_later_moment(lake: Lake) -> None:
    with lake.transaction() as tx:
        inside = tx.table("t.a")
        inside.append(rows(2))
        lake.table("t.a").append(rows(3))
        lake.table("t.b").append(rows(3))
        assert ids(tx.table("t.b")) == [1, 3]
        assert ids(inside) == [1, 2, 3]
    assert ids(lake.table("t.a")) == [1, 2, 3]


def test_appends_need_no_common_moment(lake: Lake) -> None:
    for number in range(10, 15):
        with lake.transaction() as tx:
            tx.table("t.a").append(rows(number))
            lake.table("t.a").append(rows(-number))
            tx.table("t.b").append(rows(number))
    assert ids(lake.table("t.a")) == [*range(-14, -9), 1, *range(10, 15)]
    assert ids(lake.table("t.b")) == [1, *range(10, 15)]


def test_what_was_read_of_a_table_that_was_only_compacted_still_holds(lake: Lake) -> None:
    lake.table("t.a").append(rows(2))
    with lake.transaction() as tx:
        assert ids(tx.table("t.a")) == [1, 2]
        lake.table("t.a").compact()
        lake.table("t.a").rewrite_manifests()
        tx.table("t.b").append(rows(2))
    assert ids(lake.table("t.b")) == [1, 2]


def test_what_makes_no_sense_is_refused(lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="isolation"):
        lake.transaction(isolation="none")
    with pytest.raises(NoSuchTable, match=r"t\.c"), lake.transaction() as tx:
        tx.table("t.c")
    with lake.transaction() as over:
        pass
    with pytest.raises(InvalidInput, match="is over"):
        over.table("t.a")


def test_a_transaction_of_reads_commits_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(catalog: Catalog, changes: object) -> None:
        raise AssertionError("nothing is to be swapped")

    monkeypatch.setattr(type(lake.catalog), "swap", never)
    with lake.transaction() as tx:
        assert ids(tx.table("t.a")) == [1]


def test_a_catalog_that_moves_one_pointer_at_a_time_says_so_before_any_work(tmp_path: Path) -> None:
    root = location_of_path(str(tmp_path))
    catalog = ObjectStoreCatalog(DirectoryStore(durable=False), f"{root}/catalog")
    with Lake(Backend(catalog, LocalStore(roots=[root], durable=False), SystemAmbient()), root) as lake:
        lake.create_table("t.a", "id long").append(rows(1))
        with pytest.raises(Unsupported, match="one pointer at a time"):
            lake.transaction()
        assert ids(lake.table("t.a")) == [1]


def test_a_handle_of_a_transaction_that_is_over_is_refused_and_leaves_nothing(lake: Lake) -> None:
    with lake.transaction() as tx:
        changed, unchanged = tx.table("t.a"), tx.table("t.b")
        changed.append(rows(2))
    before = files(lake)
    for handle in (changed, unchanged):
        with pytest.raises(InvalidInput, match="the transaction is over"):
            handle.append(rows(3))
    with pytest.raises(InvalidInput, match="the transaction is over"):
        changed.count()
    with pytest.raises(InvalidInput, match="the transaction is over"):
        tx.__enter__()
    assert files(lake) == before
    assert (ids(lake.table("t.a")), ids(lake.table("t.b"))) == ([1, 2], [1])


@pytest.mark.parametrize("idempotency_key", ["job-1", icefield.StreamBatch("jobs", 1)])
def test_a_change_that_another_run_made_concurrently_leaves_no_file(
    lake: Lake, idempotency_key: icefield.StreamBatch | str
) -> None:
    with lake.transaction() as tx:
        inside = tx.table("t.a")
        inside.append(rows(2), idempotency_key=idempotency_key)
        inside.append(rows(3))
        lake.table("t.a").append(rows(2), idempotency_key=idempotency_key)
        between = files(lake)
    assert ids(lake.table("t.a")) == [1, 2, 3]
    new = {location for location in files(lake) - between if location.endswith(".parquet")}
    assert new == set()
    stored = {location for location in files(lake) if "/t/a-" in location and not location.endswith(".json")}
    table = lake.table("t.a")
    lists = {snapshot.manifest_list for snapshot in table.snapshots()}
    manifests = set(table.inspect("all_manifests").to_arrow().read_all()["path"].to_pylist())
    data = set(table.inspect("all_files").to_arrow().read_all()["file_path"].to_pylist())
    assert stored == lists | manifests | data


def test_a_transaction_without_a_block_ends_by_commit_or_rollback(lake: Lake) -> None:
    table = lake.create_table("shop.orders", "id long")
    kept, dropped = lake.transaction(), lake.transaction()
    kept.table("shop.orders").append(pa.table({"id": [1]}))
    dropped.table("shop.orders").append(pa.table({"id": [2]}))
    dropped.rollback()
    kept.commit()
    assert table.scan().to_arrow().read_all()["id"].to_pylist() == [1]
    for ended in (kept, dropped):
        with pytest.raises(InvalidInput, match="over"):
            ended.commit()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("end", "kept"), [("commit", [1, 2]), ("rollback", [1])])
def test_a_transaction_that_is_over_before_its_block_ends_stays_as_it_ended(
    lake: Lake, end: str, kept: list[int], *, fails: bool
) -> None:
    def run() -> None:
        with lake.transaction() as tx:
            tx.table("t.a").append(rows(2))
            getattr(tx, end)()
            lake.table("t.b").append(rows(2))
            if fails:
                raise KeyError(end)

    if fails:
        with pytest.raises(KeyError, match=end):
            run()
    else:
        run()
    assert ids(lake.table("t.a")) == kept
    assert ids(lake.table("t.b")) == [1, 2]
    assert lake.fsck(deep=True).is_healthy
