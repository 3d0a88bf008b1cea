"""Merges of many rows: no side passes through the driver, whatever size Spark estimates for it."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.merge_paths import MergePath, take_path

from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.spark.change import merge, source
from icefield.table.table import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def table(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table whose files are read by tasks, since they have no field ids; to a merge it is large."""
    take_path(monkeypatch, MergePath.SHUFFLE)
    monkeypatch.setattr(merge, "MOST_ROWS_TO_BROADCAST", 10)
    monkeypatch.setattr(merge, "MOST_ROWS_TO_STREAM_PAST", 10)
    monkeypatch.setattr(source, "MOST_KEYS_HERE", 10)
    made = lake.create_table("a.t", "id long, n long", format_version=3)
    given = tmp_path / "lake" / "given"
    given.mkdir(parents=True)
    pq.write_table(pa.table({"id": range(100), "n": [0] * 100}), given / "rows.parquet")
    made.add_files(str(given))
    return made


def rows_from_tasks(spark: SparkSession, first: int, last: int) -> DataFrame:
    """Return rows that a Python task makes of one: Spark takes them for as few."""

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield pa.RecordBatch.from_pydict({"id": list(range(first, last)), "n": [7] * (last - first)})

    return spark.range(1).coalesce(1).mapInArrow(make, "id long, n long")


def executed_plans(spark: SparkSession, since: int) -> list[str]:
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    return [found.apply(at).physicalPlanDescription() for at in range(found.size()) if at >= since]


@pytest.mark.parametrize("with_insert", [True, False])
def test_no_side_is_broadcast(table: Table, spark: SparkSession, *, with_insert: bool) -> None:
    since = spark._jsparkSession.sharedState().statusStore().executionsList().size()
    begun = table.merge(rows_from_tasks(spark, 50, 120), on=["id"]).when_matched().update({"n": "target.n + source.n"})
    if with_insert:
        begun = begun.when_not_matched().insert_all()
    done = begun.when_not_matched_by_source("target.id < 10").delete().execute()
    assert (done.rows_updated, done.rows_deleted, done.rows_inserted) == (50, 10, 20 if with_insert else 0)
    joins = [plan for plan in executed_plans(spark, since) if "Join" in plan]
    assert joins
    assert all("SortMergeJoin" in plan and "BroadcastHashJoin" not in plan for plan in joins)


def test_keys_of_many_rows_are_checked_in_one_pass(table: Table, spark: SparkSession) -> None:
    assert table.upsert(rows_from_tasks(spark, 50, 120), ["id"]).rows_updated == 50
    many = rows_from_tasks(spark, 0, 50)
    with pytest.raises(InvalidInput, match="two rows to upsert have the key {'id': 7}"):
        table.upsert(many.union(many.where("id = 7")), ["id"])
    with pytest.raises(InvalidInput, match="no value in the key column 'id'"):
        table.upsert(many.selectExpr("CASE WHEN id <> 9 THEN id END AS id", "n"), ["id"])
    assert table.count() == 120
