"""How the new rows of a change are distributed: by partition, large ones over several tasks, or as properties say."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.effort import DEEP

from icefield.lake import Lake
from icefield.spark.change.skew import BLOCK_ROWS, split_count
from icefield.table.table import Table

pytestmark = pytest.mark.spark
MODES = ("copy-on-write", "merge-on-read")
MANY = 400_000


def new_files(table: Table) -> Counter[Any]:
    """The files that the newest snapshot added, by partition."""
    return Counter(str(row["partition"]) for row in _added(table))


def writing_tasks(table: Table) -> set[str]:
    """The tasks that wrote them: the number of the task is in the name of a file."""
    return {re.search(r"(\d{5}-\d+)-", str(row["file_path"]).rpartition("/")[2])[1] for row in _added(table)}  # type: ignore[index]


def _added(table: Table) -> Iterator[dict[str, Any]]:
    newest = table.metadata.current_snapshot
    assert newest is not None
    for entry in table.inspect("entries").to_arrow().read_all().to_pylist():
        if entry["snapshot_id"] == newest.snapshot_id and entry["status"] == 1 and entry["data_file"]["content"] == 0:
            yield entry["data_file"]


def test_the_number_of_tasks() -> None:
    assert split_count(10, 100, 1000) == 1
    assert split_count(BLOCK_ROWS + 1, 100, 1000) == 2
    assert split_count(100 * BLOCK_ROWS, 100, 1000) == 8
    assert split_count(100, 20_500, 1000) == 21


@pytest.mark.parametrize("mode", MODES if DEEP else MODES[1:])
def test_one_partition_with_many_new_rows_is_written_by_several_tasks(
    lake: Lake, spark: SparkSession, mode: str
) -> None:
    table = lake.create_table("a.t", "id long, p long", partition_by=["p"], order_by=["id"])
    table.append(
        pa.table({"id": pa.array(range(10), pa.int64()), "p": pa.array([i % 5 for i in range(10)], pa.int64())})
    )
    source = spark.range(MANY).selectExpr("id", "IF(id < 20, id % 5, 7) AS p")
    table.upsert(source, on=["id"], mode=mode)
    assert table.scan().count() == MANY
    found = new_files(table)
    assert len(found) == 6
    assert [count for key, count in found.items() if "7" not in key] == [1] * 5  # small partitions have one file each
    assert [count for key, count in found.items() if "7" in key] == [2]
    # An update that only Spark can evaluate, of all rows of that partition.
    table.update({"id": "-id - least(length(repeat('a', 3)), 1) + 1"}, "p = 7", mode=mode, engine="spark")
    assert table.scan("id < 0").count() == MANY - 20
    assert len(writing_tasks(table)) > 1


@pytest.mark.parametrize("distribution", ["none", "hash", "range"])
@pytest.mark.parametrize("mode", MODES)
def test_every_distribution_writes_the_same_rows(lake: Lake, spark: SparkSession, mode: str, distribution: str) -> None:
    properties = {"write.merge.distribution-mode": distribution, "write.update.distribution-mode": distribution}
    table = lake.create_table(
        "a.t", "id long, v double, p string", partition_by=["bucket(3, p)"], order_by=["v desc"], properties=properties
    )
    rows = {
        "id": pa.array(range(300), pa.int64()),
        "v": [i * 0.5 for i in range(300)],
        "p": [f"p{i % 7}" for i in range(300)],
    }
    table.append(pa.table(rows))
    source = spark.range(200, 500, 1, 3).selectExpr("id", "-1D * id AS v", "concat('p', id % 7) AS p")
    done = table.upsert(source, on=["id"], mode=mode, engine="spark")
    assert (done.rows_updated, done.rows_inserted) == (100, 200)
    files = new_files(table)
    table.update({"v": "v * length('ab')"}, "id % 2 = length('')", mode=mode, engine="spark")
    found = {row["id"]: row["v"] for row in table.scan().to_arrow().read_all().to_pylist()}
    expected = {i: (i * 0.5 if i < 200 else -1.0 * i) * (2 if i % 2 == 0 else 1) for i in range(500)}
    assert found == expected
    if distribution == "hash" and mode == "merge-on-read":
        assert set(files.values()) == {1}
