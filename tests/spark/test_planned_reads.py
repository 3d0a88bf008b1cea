"""Spark reads what was planned: filters no more than metadata left open, and cuts large files into several tasks."""

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.spark_places import explained

from icefield.lake import Lake
from icefield.spark.read import native_deletes, read
from icefield.table.table import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def table(lake: Lake) -> Table:
    """Two partitions; every row of the first matches `v < 100`, and some of the second."""
    made = lake.create_table("a.t", "p long, v long", partition_by=["p"])
    made.append(pa.table({"p": [1] * 50 + [2] * 50, "v": [*range(50), *range(75, 125)]}))
    return made


def values(frame: DataFrame) -> list[int]:
    return sorted(row.v for row in frame.collect())


def plan_text(frame: DataFrame) -> str:
    return explained(frame).partition("== Optimized Logical Plan ==")[2].partition("== Physical Plan ==")[0]


def test_what_is_proven_for_every_file_is_not_filtered_by(table: Table, spark: SparkSession) -> None:
    frame = table.scan("p > 0 AND v < 100").to_spark()
    assert values(frame) == [*range(50), *range(75, 100)]
    assert "v#" in plan_text(frame)
    assert "p#" not in plan_text(frame).partition("Filter")[2].partition("\n")[0]
    whole = table.scan("p = 1").to_spark()
    assert "Filter" not in plan_text(whole)
    assert whole.count() == 50


def test_files_whose_rows_all_match_are_read_apart_where_it_pays(
    table: Table, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = table.scan("v < 100").to_spark()
    assert "Union" not in plan_text(together)
    monkeypatch.setattr(read, "BLOCK_BYTES", 1)
    apart = table.scan("v < 100").to_spark()
    assert plan_text(apart).count("Filter") == 1
    assert "Union" in plan_text(apart)
    assert values(apart) == values(together) == [*range(50), *range(75, 100)]


def test_a_large_file_that_our_tasks_read_is_read_by_several(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_deletes, "MOST_FILES", 0)
    properties = {"read.split.target-size": "4000", "read.split.open-file-cost": "0"}
    properties |= {"write.parquet.row-group-size-bytes": "8000", "write.delete.mode": "merge-on-read"}
    made = lake.create_table("a.d", "v long", properties=properties)
    made.append(pa.table({"v": range(4_000)}))
    made.delete("v IN (7, 1007, 3999)")
    frame = made.scan(select=["v", "_pos"]).to_spark()
    assert made.scan().files().num_rows == 1
    assert frame.select(F.spark_partition_id().alias("task")).distinct().count() > 1
    rows = frame.collect()
    assert sorted(row.v for row in rows) == [n for n in range(4_000) if n not in (7, 1007, 3999)]
    assert all(row.v == row["_pos"] for row in rows)
