"""Rows are clustered by expressions that change exactly where the partition value does."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from icefield.lake import Lake
from icefield.model.partition import parse_partition_by
from icefield.spark.distribute import HASHES_TO_ZERO, transformed
from icefield.types.arrow import arrow_type
from icefield.types.text import parse_schema

pytestmark = pytest.mark.spark

SCHEMA = "n int, l long, s string, b binary, d date, ts timestamptz, nt timestamp, de decimal(9, 2)"
COLUMNS = (
    "cast(id * 37 - 900 AS int) AS n",
    "id * 1234567891 - 99999 AS l",
    "concat('ü', id % 13, 'abc', id) AS s",
    "cast(concat(id % 11, 'xyz') AS binary) AS b",
    "date_add(DATE '1969-11-20', cast(id AS int)) AS d",
    "timestamp_micros(id * 7777777777 - 99999999999) AS ts",
    "cast(timestamp_micros(id * 7777777777 - 99999999999) AS timestamp_ntz) AS nt",
    "cast(id * 3.33 - 100 AS decimal(9, 2)) AS de",
)


@pytest.mark.parametrize(
    "text",
    [
        "n",
        *(f"bucket(5, {c})" for c in ("n", "l", "s", "b", "d", "ts", "nt", "de")),
        *(f"truncate(3, {c})" for c in ("n", "l", "s", "b", "de")),
        *(f"{t}({c})" for t in ("year", "month", "day") for c in ("d", "ts", "nt")),
        *(f"hour({c})" for c in ("ts", "nt")),
    ],
)
def test_key_is_constant_exactly_where_the_partition_value_is(spark: SparkSession, text: str) -> None:
    schema = parse_schema(SCHEMA)
    spec = parse_partition_by([text], schema)
    part = spec.fields[0]
    kind = spec.source_type(part, schema)
    name = schema.name_of(part.source_id)
    frame = spark.range(200).selectExpr(*COLUMNS)
    frame = frame.union(spark.sql("SELECT " + ", ".join(["NULL"] * len(COLUMNS)))).select(
        F.col(name), transformed(F.col(name), kind, part.transform).alias("key")
    )
    rows = frame.toArrow()
    source = rows[name].combine_chunks().cast(arrow_type(kind))
    values = part.transform.apply(source, kind).to_pylist()
    pairs = set(zip(values, rows["key"].to_pylist(), strict=True))
    assert len(pairs) == len({v for v, _ in pairs}) == len({k for _, k in pairs}) > 1


def test_the_fixed_integer_hashes_to_zero(spark: SparkSession) -> None:
    assert spark.range(1).select(F.hash(F.lit(HASHES_TO_ZERO)).alias("h")).first().h == 0  # type: ignore[union-attr]


def test_writing_many_partitions_makes_one_file_each(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long, p long", partition_by=["p"])
    table.append(spark.range(0, 3000, 1, 8).selectExpr("id", "id % 300 AS p"))
    files = table.scan().files()
    assert files.num_rows == 300
    assert table.scan(where="p = 299").count() == 10
