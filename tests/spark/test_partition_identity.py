"""Through Spark too: partitions are distinguished by value, and an overwrite takes rows that match its filter."""

import math
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.commit.racing import files_of

from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark

PAIRS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "null": ("a string, b string", [(None, "x"), ("null", "x"), ("", "x")]),
    "slashes": ("a string, b string", [("x/b=y", "z"), ("x", "y/b=z"), ("x%2Fb%3Dy", "z")]),
    "zeros": ("a double, b string", [(0.0, "x"), (-0.0, "x"), (math.nan, "x"), (None, "x")]),
}


def ids_of(table: Table) -> tuple[list[int], list[int]]:
    by_arrow = sorted(table.scan().to_arrow().read_all()["id"].to_pylist())
    return by_arrow, sorted(row.id for row in table.scan().to_spark().collect())


@pytest.mark.parametrize("kind", PAIRS)
def test_overwriting_a_partition_leaves_those_that_print_alike(lake: Lake, spark: SparkSession, kind: str) -> None:
    columns, values = PAIRS[kind]
    table = lake.create_table("t.t", f"id long, {columns}", partition_by=["a", "b"])
    given = [(at, *value) for at, value in enumerate(values)]
    table.append(spark.createDataFrame(given, f"id long, {columns}"))
    snapshot = table.overwrite_partitions(spark.createDataFrame([(100, *values[0])], f"id long, {columns}"))
    left = [*range(1, len(values)), 100]
    assert ids_of(table) == (left, left)
    assert snapshot is not None
    assert snapshot.summary["changed-partition-count"] == "1"


def test_rows_outside_the_filter_are_refused(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("t.t", "id long, day string", partition_by=["day"])
    table.append(pa.table({"id": [1, 2, 3], "day": ["mon", "mon", "tue"]}))
    before = files_of(lake)
    for where, row in (("day = 'mon'", (9, "tue")), ("id = 1", (9, "mon")), ("id < 3", (None, "mon"))):
        frame = spark.createDataFrame([row], "id long, day string")
        with pytest.raises(InvalidInput, match="a row to write does not match it"):
            table.overwrite(frame, where=where)
        assert files_of(lake) == before
    assert ids_of(table) == ([1, 2, 3], [1, 2, 3])


def test_rows_that_stay_need_not_match_and_others_can_be_let_through(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("t.t", "id long, day string")
    table.append(pa.table({"id": [1, 2, 3], "day": ["mon", "mon", "tue"]}))
    table.overwrite(spark.createDataFrame([(1, "wed")], "id long, day string"), where="id = 1")
    assert sorted(table.scan().to_arrow().read_all()["day"].to_pylist()) == ["mon", "tue", "wed"]
    table.overwrite(spark.createDataFrame([(9, "wed")], "id long, day string"), where="id = 1", check_rows=False)
    assert ids_of(table) == ([2, 3, 9], [2, 3, 9])
