"""Metadata tables and appended rows as DataFrames: the same rows as through Arrow."""

import uuid
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions

from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table(
        "a.t",
        "id long, name string, code uuid, inner struct<x: int>",
        partition_by=["name"],
        format_version=3,
        properties={"write.delete.mode": "merge-on-read"},
    )
    for first in (0, 10):
        made.append(pa.Table.from_pylist([row(first + i) for i in range(4)], made.scan().to_arrow().schema))
    made.delete("id = 2")
    return made


def row(number: int) -> dict[str, Any]:
    return {"id": number, "name": "ab"[number % 2], "code": uuid.UUID(int=number).bytes, "inner": {"x": number}}


def test_a_metadata_table_is_a_frame_with_the_same_rows(spark: SparkSession, table: Table) -> None:
    for name in ("snapshots", "all_manifests", "entries"):
        inspection = table.inspect(name)
        frame = inspection.to_spark()
        assert frame.columns == [f.name for f in inspection.schema.fields]
        assert frame.count() == inspection.count(), name


def test_values_filters_and_columns(spark: SparkSession, table: Table) -> None:
    files = table.inspect(
        "files",
        where="content = 0 AND partition.name = 'a'",
        select=["record_count", "readable_metrics.code.lower_bound", "value_counts"],
    ).to_spark()
    output = {(r.record_count, r.readable_metrics.code.lower_bound, r.value_counts[1]) for r in files.collect()}
    assert output == {(2, str(uuid.UUID(int=0)), 2), (2, str(uuid.UUID(int=10)), 2)}
    (deleted,) = table.inspect("position_deletes").to_spark().selectExpr("pos", "partition.name", "row.id").collect()
    assert tuple(deleted) == (1, "a", None)
    assert table.inspect("files", where=functions.col("content") == 1).count() == 1
    nothing = table.inspect("files", where="file_path = 'none'").to_spark()
    assert nothing.count() == 0
    assert nothing.schema == table.inspect("files").to_spark().schema


def test_appended_rows_come_through_spark(spark: SparkSession, table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    rows = table.scan_appends(first, where="id > 10").to_spark().orderBy("id").collect()
    assert [(r.id, r.code) for r in rows] == [(n, str(uuid.UUID(int=n))) for n in (11, 12, 13)]
