"""Filters from Spark: a Column means what the same text means, and what Spark itself makes of it."""

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from icefield.errors import InvalidFilter
from icefield.lake import Lake
from icefield.spark.filters.filters import filter_text
from icefield.table.table import Table

pytestmark = pytest.mark.spark
JANUARY = dt.datetime(2026, 1, 5, 10, 30, 0, 123456, tzinfo=dt.UTC)


@pytest.fixture
def table(lake: Lake) -> Table:
    schema = "id long, name string, ts timestamptz, day date, ratio double, price decimal(9, 2), raw binary"
    made = lake.create_table("a.t", f"{schema}, s struct<x: long>, `a.b` long, even boolean", partition_by=["day"])
    count = 8
    columns = {
        "id": pa.array([*range(count - 1), None], pa.int64()),
        "name": pa.array(["ada", "bob", "a%b", "it's", "", "back\\slash", None, "ä"]),
        "ts": pa.array([JANUARY + dt.timedelta(hours=n) for n in range(count)], pa.timestamp("us", "UTC")),
        "day": pa.array([dt.date(1969, 12, 30) + dt.timedelta(days=n) for n in range(count)]),
        "ratio": pa.array([0.5, math.nan, -1.5, None, math.inf, 0.0, 2.0, 3.0]),
        "price": pa.array([Decimal(n) / 4 for n in range(count)], pa.decimal128(9, 2)),
        "raw": pa.array([bytes([n]) for n in range(count)]),
        "s": pa.array([{"x": n} if n % 3 else None for n in range(count)], pa.struct([("x", pa.int64())])),
        "a.b": pa.array(range(count), pa.int64()),
        "even": pa.array([n % 2 == 0 for n in range(count)]),
    }
    made.append(pa.table(columns))
    return made


NAN = float("nan")
FILTERS: list[Callable[[], Column]] = [
    lambda: F.col("id") > 3,
    lambda: 3 < F.col("id"),  # noqa: SIM300 - the column second, on purpose
    lambda: F.col("id") != 3,
    lambda: F.col("id") == -1,
    lambda: F.col("id").between(2, 4),
    lambda: F.col("id").isin(1, 2, 99),
    lambda: ~F.col("id").isin([1, 2]),
    lambda: F.col("id").isNull() | F.col("name").isNull(),
    lambda: F.col("id").isNotNull() & (F.col("name") == "it's"),
    lambda: F.col("id").eqNullSafe(F.lit(None)),
    lambda: F.col("id") == F.lit(None),
    lambda: F.col("name").like("a%"),
    lambda: F.col("name").like("a\\%b"),
    lambda: F.col("name").startswith("b"),
    lambda: F.col("name") == "back\\slash",
    lambda: F.col("name") >= "ä",
    lambda: F.isnan("ratio"),
    lambda: F.col("ratio") > 1.5,
    lambda: F.col("ratio") == NAN,
    lambda: F.col("ratio") < float("inf"),
    lambda: F.col("price") >= Decimal("0.75"),
    lambda: F.col("raw") == F.lit(b"\x03"),
    lambda: F.col("day") <= dt.date(1970, 1, 1),
    lambda: F.col("day") > F.lit("1970-01-02").cast("date"),
    lambda: F.col("ts") > JANUARY + dt.timedelta(hours=2),
    lambda: F.col("id") > F.lit("3").cast("bigint"),
    lambda: F.col("s.x") == 4,
    lambda: F.col("s").getField("x") > 2,
    lambda: ~F.col("s")["x"].isNull(),
    lambda: F.col("`a.b`") == 2,
    lambda: F.col("even"),
    lambda: ~F.col("even") & F.lit(True),
    lambda: F.expr("id BETWEEN 2 AND 4 OR name LIKE 'a%'"),
    lambda: F.col("id").alias("other") == 2,
]


def test_columns_filter_as_spark_does(table: Table, spark: SparkSession) -> None:
    columns = [make() for make in FILTERS]
    answers = [F.coalesce(column, F.expr("false")).alias(f"f{at}") for at, column in enumerate(columns)]
    rows = table.scan().to_spark().select(F.col("`a.b`").alias("key"), *answers).collect()
    for at, column in enumerate(columns):
        found = table.scan(where=column, select=["a.b"]).to_arrow().read_all()
        assert sorted(found[0].to_pylist()) == sorted(row.key for row in rows if row[f"f{at}"]), str(column)


def test_a_column_of_a_frame_goes_by_its_name(table: Table, spark: SparkSession) -> None:
    frame = table.scan().to_spark()
    assert table.scan(where=frame["id"] > 4).count() == table.scan(where=frame.id > 4).count() == 2


def test_a_column_prunes_like_its_text(table: Table, spark: SparkSession) -> None:
    by_column = table.scan(where=F.col("day") == dt.date(1970, 1, 1)).explain()
    assert by_column.filter == "day = DATE '1970-01-01'"
    assert by_column.plan.metrics.files_read == 1


def test_a_column_says_which_rows_to_delete_or_replace(table: Table, spark: SparkSession) -> None:
    table.delete(F.col("id").between(1, 3))
    assert sorted(table.scan("id IS NOT NULL", ["id"]).to_arrow().read_all()["id"].to_pylist()) == [0, 4, 5, 6]
    table.overwrite(table.scan("id = 4").to_arrow().read_all(), where=F.col("id") > 4, check_rows=False)
    assert sorted(table.scan("id IS NOT NULL", ["id"]).to_arrow().read_all()["id"].to_pylist()) == [0, 4, 4]


REFUSED: list[Callable[[], Column]] = [
    lambda: F.lower("name") == "ada",
    lambda: F.col("id") > F.col("s.x"),
    lambda: F.col("id") + 1 > 3,
    lambda: F.col("name").ilike("a%"),
    lambda: F.col("id").cast("string") == "1",
    lambda: F.col("s")[F.col("name")] == 1,
    lambda: F.rand() > 1,
]


def test_what_has_no_place_in_a_filter_is_refused(table: Table, spark: SparkSession) -> None:
    for make in REFUSED:
        with pytest.raises(InvalidFilter):
            table.scan(where=make())


def test_what_is_no_column_is_refused(table: Table, spark: SparkSession) -> None:
    with pytest.raises(InvalidFilter, match="cannot read a filter from"):
        table.scan(where=table.scan().to_spark())
    with pytest.raises(InvalidFilter, match="builtins.int"):
        filter_text(3)
