"""Format version 3 through Spark: lineage is carried, defaults are read and written, deletes hold."""

import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefield.errors import SchemaMismatch
from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark

LINEAGE = ["_row_id", "_last_updated_sequence_number"]


def by_id(table: Table, *columns: str) -> dict[int, tuple[Any, ...]]:
    """Read through Spark: the columns of each row, by id."""
    rows = table.scan(select=["id", *columns]).to_spark().collect()
    return {row["id"]: tuple(row)[1:] for row in rows}


def test_an_overwrite_by_spark_carries_the_lineage_of_rows_that_stay(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, s string", format_version=3)
    table.append(spark.createDataFrame([(i, f"s{i}") for i in range(5)], "id long, s string").coalesce(1))
    before = by_id(table, *LINEAGE)
    table.overwrite(spark.createDataFrame([(9, "new")], "id long, s string"), where="id = 3", check_rows=False)
    after = by_id(table, *LINEAGE)
    assert {i: after[i] for i in after if i != 9} == {i: before[i] for i in before if i != 3}
    assert after[9][0] not in {row_id for row_id, _ in before.values()}
    assert after[9][1] == 2
    arrow = table.scan(select=["id", *LINEAGE]).to_arrow().read_all().to_pylist()
    assert {r["id"]: (r["_row_id"], r["_last_updated_sequence_number"]) for r in arrow} == after


def test_a_frame_cannot_bring_lineage_of_its_own(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("t.t", "id long", format_version=3)
    with pytest.raises(SchemaMismatch, match="_row_id"):
        table.append(spark.createDataFrame([(1, 1)], "id long, _row_id long"))


def test_defaults_are_read_and_written_and_survive_pushed_filters(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("t.t", "id long", format_version=3)
    table.append(spark.range(2).coalesce(1))
    with table.evolve() as change:
        change.add_column("n", "int", default=42, required=True)
        change.add_column("day", "date", default=datetime.date(1969, 12, 31))
        change.add_column("s", "struct<x int>", default={})
        change.add_column("s.y", "string", default="inner")
    with table.evolve() as change:
        change.set_default("n", 43)
    table.append(spark.range(2, 3))
    old, new = (42, datetime.date(1969, 12, 31)), (43, datetime.date(1969, 12, 31))
    assert by_id(table, "n", "day") == {0: old, 1: old, 2: new}
    frame = table.scan(select=["id", "n", "day"]).to_spark()
    assert sorted(r.id for r in frame.where("n = 42").collect()) == [0, 1]
    assert sorted(r.id for r in frame.where("n > 42 OR day IS NULL").collect()) == [2]
    inner = table.scan().to_spark().selectExpr("id", "s.x", "s.y").collect()
    assert sorted(tuple(r) for r in inner) == [(i, None, "inner") for i in range(3)]


def test_a_name_that_is_used_again_has_its_default_under_filters(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, x int", format_version=3)
    table.append(spark.sql("SELECT 1L AS id, 7 AS x"))
    with table.evolve() as change:
        change.drop_column("x")
    with table.evolve() as change:
        change.add_column("x", "int", default=42)
    frame = table.scan().to_spark()
    assert [tuple(r) for r in frame.where("x = 42").collect()] == [(1, 42)]
    assert frame.where("x = 7").count() == 0


def test_new_types_go_through_spark(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, a timestamp_ns, u unknown, g geometry", format_version=3)
    nanos = pa.array([1_700_000_000_123_456_789], pa.int64()).cast(pa.timestamp("ns"))
    table.append(pa.table({"id": [1], "a": nanos, "g": pa.array([b"\x01"], pa.binary())}))
    assert by_id(table, "a", "u", "g") == {1: (1_700_000_000_123_456_789, None, bytearray(b"\x01"))}
    table.append(spark.sql("SELECT 2L AS id, X'0102' AS g"))
    assert by_id(table, "g")[2] == (bytearray(b"\x01\x02"),)


def test_metadata_columns_can_be_selected_and_filtered(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, p string", partition_by=["p"])
    table.append(spark.sql("SELECT id, if(id % 2 = 0, 'even', 'odd') AS p FROM range(10)"))
    rows = table.scan(where="_pos = 0", select=["id", "_file", "_spec_id", "_pos"]).to_spark().collect()
    assert {r._pos for r in rows} == {0}
    assert {r._file for r in rows} == set(table.scan().files()["file_path"].to_pylist())
