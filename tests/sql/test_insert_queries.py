"""INSERT of queries on Spark: by position and by name, store assignment, overwrites, and where errors point."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefield.errors import InvalidInput, SchemaMismatch
from icefield.lake import Lake
from icefield.table.table import Table
from tests.sql.changing import change, counts, refuse, rows

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"
MODE = "spark.sql.sources.partitionOverwriteMode"


@pytest.fixture
def shop(lake: Lake, spark: SparkSession) -> Lake:
    lake.use(spark)
    lake.create_table("shop.stock", "sku string, qty int, note string")
    lake.create_table("shop.changes", "sku string, qty int, note string, op string")
    change(lake, "INSERT INTO shop.stock VALUES ('a', 1, 'x'), ('b', 2, 'y'), ('c', 3, NULL)")
    change(lake, "INSERT INTO shop.changes VALUES ('a', 10, 'n', 'set'), ('b', NULL, 'n', 'del')")
    return lake


def stock_after(lake: Lake, text: str, args: Any = None, **frames: Any) -> list[tuple[Any, ...]]:
    """Run a statement, undo it, and return the rows that it added."""
    table = lake.table("shop.stock")
    before, snapshot = rows(table), table.metadata.current_snapshot_id
    counts(lake, text, args, engine=None, **frames)
    found = [row for row in rows(table) if row not in before]
    assert snapshot is not None
    table.rollback(snapshot)
    return found


def test_queries_are_inserted_by_position_and_by_name(shop: Lake, spark: SparkSession) -> None:
    def added(text: str, args: Any = None, **frames: Any) -> list[tuple[Any, ...]]:
        return stock_after(shop, f"INSERT INTO shop.stock {text}", args, **frames)

    assert added("SELECT sku || '2', qty, op FROM shop.changes WHERE qty = :n", {"n": 10}) == [("a2", 10, "set")]
    assert added("BY NAME SELECT 1 AS QTY, 'g' AS Sku") == [("g", 1, None)]
    assert added("(qty, sku) SELECT 7, 'h' UNION ALL SELECT 8, 'i'") == [("h", 7, None), ("i", 8, None)]
    assert added("SELECT 'k', 1, DEFAULT") == [("k", 1, None)]
    assert added("VALUES (concat('d', 'd'), 1 + 1, DEFAULT)") == [("dd", 2, None)]
    assert added("SELECT * FROM {frame}", frame=spark.sql("SELECT 'p', 1L, 2.5")) == [("p", 1, "2.5")]
    assert added("SELECT sku || sku, qty, note FROM shop.stock WHERE qty = 1") == [("aa", 1, "x")]
    common = "WITH c AS (SELECT 'w' AS k) INSERT INTO shop.stock (sku) SELECT k FROM c"
    assert stock_after(shop, common) == [("w", None, None)]
    assert stock_after(shop, "INSERT INTO shop.stock SELECT * FROM shop.stock WHERE FALSE") == []


def test_errors_of_queries_point_at_the_item(shop: Lake) -> None:
    def wrong(query: str, at: str, kind: type[InvalidInput] = InvalidInput) -> None:
        refuse(shop, f"INSERT INTO shop.stock {query}", kind, at=at, engine=None)

    wrong("SELECT sku, nothing, note FROM shop.changes", "nothing")
    wrong("SELECT sku, op, note FROM shop.changes", "op, note", SchemaMismatch)
    wrong("SELECT sku, 3000000000, note FROM shop.changes", "3000000000", SchemaMismatch)
    wrong("SELECT sku, 1 DIV 0, note FROM shop.changes", "SELECT")
    wrong("SELECT * FROM shop.changes", "SELECT", SchemaMismatch)
    wrong("BY NAME SELECT 'h' AS sku, 1 AS weight", "BY NAME", SchemaMismatch)
    assert shop.table("shop.stock").count() == 3


def test_fields_of_structs_are_inserted_by_position(shop: Lake) -> None:
    table = shop.create_table(
        "shop.nested", "id int, info struct<kind: string, at: struct<x: double>>, tags list<long>"
    )
    change(
        shop,
        "INSERT INTO shop.nested SELECT 1L, named_struct('a', 'k', 'b', named_struct('c', 1)), array(1, 2)",
        engine=None,
    )
    assert rows(table) == [(1, {"kind": "k", "at": {"x": 1.0}}, [1, 2])]


def test_overwrites_follow_the_mode_of_the_session(shop: Lake, spark: SparkSession) -> None:
    table = shop.create_table("shop.days", "id int, day string, part int", partition_by=["day", "part"])
    content = pa.table(
        {"id": pa.array([1, 2, 3], pa.int32()), "day": ["m", "m", "t"], "part": pa.array([1, 2, 1], pa.int32())}
    )
    table.append(content)

    def after(text: str) -> tuple[dict[str, int], list[int]]:
        table.overwrite(content)
        return counts(shop, text, engine=None), [row[0] for row in rows(table)]

    try:
        spark.conf.set(MODE, "dynamic")
        assert after("INSERT OVERWRITE shop.days SELECT 9, 'm', 1") == ({"inserted": 1, "deleted": 1}, [2, 3, 9])
        assert after("INSERT OVERWRITE shop.days PARTITION (day = 'm') SELECT 9, 1") == (
            {"inserted": 1, "deleted": 1},
            [2, 3, 9],
        )
        assert after("INSERT OVERWRITE shop.days SELECT * FROM shop.days WHERE FALSE") == ({}, [1, 2, 3])
        spark.conf.set(MODE, "static")
        assert after("INSERT OVERWRITE shop.days PARTITION (day = 'm', part) SELECT 9, 1") == (
            {"inserted": 1, "deleted": 2},
            [3, 9],
        )
        query = "SELECT id + 10, day, part FROM shop.days WHERE id > 1"
        assert after(f"INSERT OVERWRITE shop.days {query}") == ({"inserted": 2, "deleted": 3}, [12, 13])
        assert after(f"INSERT INTO shop.days REPLACE WHERE id >= 2 {query}") == (
            {"inserted": 2, "deleted": 2},
            [1, 12, 13],
        )
    finally:
        spark.conf.unset(MODE)


def test_times_without_a_zone_are_in_the_zone_of_the_session(shop: Lake, spark: SparkSession) -> None:
    table: Table = shop.create_table("shop.events", "id int, at timestamptz")
    before = str(spark.conf.get(ZONE))
    spark.conf.set(ZONE, "Europe/Oslo")
    try:
        change(shop, "INSERT INTO shop.events VALUES (1, TIMESTAMP '2026-01-01 00:30:00')", engine=None)
        change(shop, "INSERT INTO shop.events SELECT 2, TIMESTAMP '2026-07-01 00:30:00'", engine=None)
        seconds = [int(row[1].timestamp()) for row in rows(table)]
        assert seconds == [1767223800, 1782858600]
        assert counts(shop, "DELETE FROM shop.events WHERE at < '2026-01-01 00:45:00'", engine=None)["deleted"] == 1
        text = "UPDATE shop.events SET id = 3 WHERE at = TIMESTAMP '2026-07-01 00:30:00'"
        assert counts(shop, text, engine=None)["updated"] == 1
    finally:
        spark.conf.set(ZONE, before)
