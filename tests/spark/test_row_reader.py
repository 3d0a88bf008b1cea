"""Spark's reader that goes row by row gives every type at every depth.

Spark takes it in place of the one that reads batches where the session says so, at the time when a query runs.
"""

from collections.abc import Sequence
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.effort import sample
from tests.histories.values import arrow_values, plain_field
from tests.matrix.reading_values import ColumnValues
from tests.peers.normal import normal_rows
from tests.spark_places import changed

from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.datatypes import NestedField

pytestmark = pytest.mark.spark

TYPES = (
    *("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "binary"),
    *("uuid", "fixed(2)", "decimal(9,2)", "decimal(18,3)", "decimal(38,10)", "timestamp_ns", "timestamptz_ns"),
)
PLAIN = {
    "plain": "{}",
    "part": "struct<x: {}, y: int>",
    "value": "map<string, {}>",
    "part_of_value": "map<string, struct<x: {}>>",
}
LISTS = {
    "item": "list<{}>",
    "part_of_item": "list<struct<x: {}>>",
    "item_of_item": "list<list<{}>>",
    "item_of_part": "struct<x: list<{}>>",
    "value_of_item": "list<map<string, {}>>",
    "item_of_value": "map<string, list<{}>>",
}
SETTINGS = {
    "no batches": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "no batches of nested columns": {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"},
}


@pytest.mark.parametrize("name", sample(list(SETTINGS), 1))
def test_every_type_at_every_depth_is_read_row_by_row(name: str, lake: Lake, spark: SparkSession) -> None:
    columns = [
        f"c{at}_{name} {shape.format(k)}" for at, k in enumerate(TYPES) for name, shape in (PLAIN | LISTS).items()
    ]
    table = lake.create_table("a.t", ", ".join(columns), format_version=3)
    table.append(_draw_rows(Random(13), table.schema.fields, 12))
    names = [column.split()[0] for column in columns]
    # A column that Spark cannot read takes the others of its query along, so each type has a query of its own.
    queries = [[name for name in names if name.partition("_")[2] in PLAIN]]
    queries += [[f"c{at}_{name}" for name in LISTS] for at in range(len(TYPES))]
    with changed(spark, SETTINGS[name]):
        assert [found for query in queries for found in _differences(table, query)] == []


def _draw_rows(random: Random, fields: Sequence[NestedField], count: int) -> pa.Table:
    drawn = [(ColumnValues(random, f), f.type) for f in fields]
    arrays = [arrow_values([column.draw() for _ in range(count)], kind) for column, kind in drawn]
    return pa.Table.from_arrays(arrays, schema=pa.schema([plain_field(f) for f in fields]))


def _differences(table: Table, columns: list[str]) -> list[str]:
    wanted = table.scan(select=columns).to_arrow().read_all()
    try:
        found = table.scan(select=columns).to_spark().toArrow()
    except Exception as error:
        causes = [line for line in str(error).splitlines() if line.startswith("Caused by")]
        return [f"{columns}: {(causes or [str(error)])[-1]}"]
    same = normal_rows(found, wanted.schema) == normal_rows(wanted, wanted.schema)
    return [] if same else [f"{columns}: other rows"]
