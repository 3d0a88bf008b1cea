"""Subqueries of changes: they read tables and views of the lake, each at one version."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.commit.racing import race

from icefield.errors import ConcurrentChange, IcefieldError, InvalidInput, NeedsSpark
from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark
MODES = ("copy-on-write", "merge-on-read")


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    read = table.scan().to_arrow().read_all()
    return sorted(tuple(row.values()) for row in read.to_pylist())


def longs(**columns: list[int]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


@pytest.fixture
def orders(lake: Lake, spark: SparkSession) -> Table:
    """Orders 0 to 7 with ten times their number, in partitions of four; orders 2, 3 and 5 were returned."""
    table = lake.create_table("shop.orders", "id long, qty long, part long", partition_by=["part"])
    table.append(longs(id=list(range(8)), qty=[10 * i for i in range(8)], part=[i // 4 for i in range(8)]))
    lake.create_table("shop.returns", "id long, n long").append(longs(id=[2, 3, 5], n=[1, 7, 2]))
    lake.create_table("my shop.odd name", "id long").append(longs(id=[6]))
    lake.create_view("shop.many", "SELECT id FROM returns WHERE n > 1")
    return table


CONDITIONS = {
    "id IN (SELECT id FROM shop.returns)": {2, 3, 5},
    "id NOT IN (SELECT id FROM returns WHERE n = 7)": {0, 1, 2, 4, 5, 6, 7},
    "EXISTS (SELECT 1 FROM returns r WHERE r.id = target.id AND r.n > 1)": {3, 5},
    "NOT EXISTS (SELECT * FROM `shop`.returns WHERE returns.id = target.id) AND part = 0": {0, 1},
    "qty < (SELECT avg(n) FROM icefield.shop.returns)": {0},
    "qty = (SELECT max(n) * 10 FROM returns r WHERE r.id <= target.id)": {7},
    "part = 1 AND id IN (SELECT id FROM shop.many)": {5},
    "id IN (SELECT id FROM `my shop`.`odd name`)": {6},
    "id IN (WITH returns AS (SELECT 1 AS id) SELECT id FROM returns)": {1},
    "id IN (WITH r AS (SELECT id FROM shop.returns) SELECT shop.returns.id FROM shop.returns JOIN r USING (id))": {
        2,
        3,
        5,
    },
    "qty > (SELECT avg(qty) FROM orders)": {4, 5, 6, 7},
    "(id, 1) IN (SELECT id, n FROM returns) OR id = (SELECT count(*) FROM returns)": {2, 3},
    "id IN (SELECT id FROM returns WHERE n = (SELECT max(n) FROM shop.returns)) -- (SELECT nothing": {3},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_read_tables_and_views_of_the_lake(orders: Table, where: str, mode: str) -> None:
    found = CONDITIONS[where]
    done = orders.delete(where, mode=mode, engine="spark")
    assert [row[0] for row in rows_of(orders)] == [i for i in range(8) if i not in found]
    assert done.rows_deleted == len(found)
    if "part = 1 AND" in where:
        assert done.files_read == 1  # the rest of the condition prunes


@pytest.mark.parametrize("mode", MODES)
def test_values_read_tables_of_the_lake(orders: Table, mode: str) -> None:
    orders.update(
        {"qty": "qty + coalesce((SELECT sum(n) FROM returns r WHERE r.id = target.id), 0)", "part": "(SELECT 9L)"},
        "id IN (SELECT id FROM returns) OR id = 0",
        mode=mode,
        engine="spark",
    )
    assert rows_of(orders)[:4] == [(0, 0, 9), (1, 10, 0), (2, 21, 9), (3, 37, 9)]
    source = longs(id=[1, 2, 9])
    merge = orders.merge(source, on=["id"], mode=mode, engine="spark")
    merge.when_matched().update({"qty": "(SELECT max(qty) FROM orders) + source.id"}).when_not_matched().insert(
        {"id": "source.id", "qty": "(SELECT max(n) FROM returns WHERE id < source.id)"}
    ).execute()
    assert [row[:2] for row in rows_of(orders) if row[0] in (1, 2, 9)] == [(1, 71), (2, 72), (9, 7)]


@pytest.mark.usefixtures("generated_code")  # Spark lists its views by generated code alone
def test_tables_of_the_lake_come_before_temporary_views(orders: Table, spark: SparkSession) -> None:
    views = {"returns": spark.range(6, 8), "gone": spark.range(1)}
    try:
        for name, frame in views.items():
            frame.createOrReplaceTempView(name)
        orders.delete("id IN (SELECT id FROM returns) OR id IN (SELECT id FROM gone)", engine="spark")
        assert [row[0] for row in rows_of(orders)] == [1, 4, 6, 7]
        left = {each.name for each in spark.catalog.listTables() if each.isTemporary}
        assert {name for name in left if name.startswith("icefield_")} == set()
    finally:
        for name in views:
            spark.catalog.dropTempView(name)


REFUSED = {
    "id IN (SELECT id FROM shop.nothing)": "nothing",
    "id IN (SELECT id FROM returns VERSION AS OF 1)": "older version inside a subquery",
    "id IN (TABLE returns)": "cannot read the subquery",
    "id IN (SELECT id FROM returns": "a parenthesis is not closed",
    "id IN (SELECT id FROM returns WHERE rand() < 0.5)": "NON_DETERMINISTIC",
    "rand() < (SELECT max(n) FROM returns r WHERE r.id = target.id)": "NON_DETERMINISTIC",
    "id = (SELECT id FROM returns)": "more than one row",
    "id IN (SELECT qty_ FROM returns)": "qty_",
}


@pytest.mark.parametrize("where", REFUSED)
def test_a_refused_subquery_changes_nothing(orders: Table, spark: SparkSession, tmp_path: Path, where: str) -> None:
    files = {path for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(IcefieldError, match=REFUSED[where]):
        orders.delete(where, engine="spark")
    assert set(tmp_path.rglob("*.parquet")) <= files
    assert len(rows_of(orders)) == 8
    assert not [each for each in spark.catalog.listTables() if each.name.startswith("icefield_")]


def test_conditions_of_a_merge_cannot_have_subqueries(orders: Table) -> None:
    source = longs(id=[1])
    with pytest.raises(InvalidInput, match="on contains a subquery"):
        orders.merge(
            source, on="target.id = source.id AND source.id IN (SELECT id FROM returns)"
        ).when_matched().delete().execute()
    with pytest.raises(InvalidInput, match="the condition of 'when matched' contains a subquery"):
        orders.merge(source, on=["id"]).when_matched("EXISTS (SELECT 1 FROM returns)").delete().execute()


def test_a_subquery_needs_spark(orders: Table) -> None:
    with pytest.raises(NeedsSpark, match="only Spark can evaluate a subquery"):
        orders.delete("id IN (SELECT id FROM returns)", engine="local")


def test_a_branch_reads_its_own_rows(lake: Lake, orders: Table) -> None:
    orders.create_branch("dev")
    branch = orders.at("dev")
    branch.append(longs(id=[100], qty=[1000], part=[0]))
    branch.delete("qty = (SELECT max(qty) FROM orders)", engine="spark")
    assert rows_of(branch) == rows_of(orders)


@pytest.mark.parametrize("mode", MODES)
def test_a_change_that_reads_its_own_table_conflicts_with_others(lake: Lake, orders: Table, mode: str) -> None:
    def others() -> None:
        lake.table("shop.orders").delete("id = 7")

    where = "part = 0 AND qty * 2 < (SELECT max(qty) FROM shop.orders)"
    with pytest.raises(ConcurrentChange, match="which a subquery reads"):
        race(lake, others, lambda: orders.delete(where, mode=mode, engine="spark"))
    assert [row[0] for row in rows_of(orders)] == list(range(7))


def test_a_later_change_of_another_table_is_no_conflict(lake: Lake, orders: Table) -> None:
    def others() -> None:
        lake.table("shop.returns").append(longs(id=[0], n=[0]))

    where = "id IN (SELECT id FROM returns)"
    race(lake, others, lambda: orders.delete(where, engine="spark"))
    assert [row[0] for row in rows_of(orders)] == [0, 1, 4, 6, 7]


def test_a_repeated_change_reads_the_newest_versions(lake: Lake, orders: Table) -> None:
    def others() -> None:
        lake.table("shop.returns").append(longs(id=[0], n=[0]))
        lake.table("shop.orders").update({"qty": "qty + 1"}, "id = 2")

    where = "id IN (SELECT id FROM returns)"
    race(lake, others, lambda: orders.delete(where, engine="spark", retry_conflicts=1))
    assert [row[0] for row in rows_of(orders)] == [1, 4, 6, 7]


def test_a_transaction_reads_its_own_changes_and_checks_what_it_read(lake: Lake, orders: Table) -> None:
    with lake.transaction() as tx:
        tx.table("shop.returns").append(longs(id=[0], n=[0]))
        tx.table("shop.orders").delete("id IN (SELECT id FROM returns)", engine="spark")
    assert [row[0] for row in rows_of(orders)] == [1, 4, 6, 7]
    tx = lake.transaction().__enter__()
    tx.table("shop.orders").delete("id IN (SELECT id + 1 FROM returns)", engine="spark")
    lake.table("shop.returns").append(longs(id=[6], n=[0]))
    with pytest.raises(ConcurrentChange, match="shop.returns, which the transaction read"):
        tx.__exit__(None, None, None)
    assert len(rows_of(orders)) == 4
