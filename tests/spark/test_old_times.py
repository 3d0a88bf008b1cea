"""Filters of the user's own on dates and times from before 1900: Java's old classes, to which Spark turns the values
that it pushes into Parquet, have another calendar and other zones there.
"""

import os
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.effort import DEEP

from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark

# Around the days that the calendar of Java's old classes has not, a change of a zone's offset, and today.
DAYS = [date(1582, 10, day) for day in (4, 5, 10, 14, 15)] + [date(1, 1, 1), date(1883, 11, 18), date(2026, 1, 1)]
TIMES = [datetime(day.year, day.month, day.day, 12, 3, 58, tzinfo=UTC) for day in DAYS]


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table("a.old", "d date, t timestamptz, s struct<d: date, t: timestamptz>")
    for day, time in zip(DAYS, TIMES, strict=True):  # a file for each, so that statistics are sharp
        made.append(
            pa.table({"d": [day], "t": pa.array([time], pa.timestamp("us", "UTC")), "s": [{"d": day, "t": time}]})
        )
    return made


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"] if DEEP else ["America/New_York"])
def test_a_filter_of_the_user_finds_old_dates_and_times(table: Table, spark: SparkSession, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = table.scan().to_spark()
        tests = [
            (f"{column} {operator} {literal}", _count(values, operator, value))
            for values, columns in ((DAYS, ("d", "s.d")), (TIMES, ("t", "s.t")))
            for column in columns
            for value in values
            for operator in (("=", ">=", "<=") if DEEP or column == "d" else ("=",))
            for literal in [_literal(value)]
        ]
        # One job for each filter would take minutes: each is a branch of one union, and still pushed alone.
        parts = [frame.where(test).selectExpr(f"{at} AS at") for at, (test, _) in enumerate(tests)]
        found: dict[int, int] = {}
        for start in range(0, len(parts), 24):
            some = parts[start]
            for other in parts[start + 1 : start + 24]:
                some = some.union(other)
            found |= {row["at"]: row["count"] for row in some.groupBy("at").count().collect()}
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")
    wrong = [
        (test, expected, found.get(at, 0)) for at, (test, expected) in enumerate(tests) if expected != found.get(at, 0)
    ]
    assert not wrong


@pytest.mark.skipif("ICEFIELD_SPARK" in os.environ, reason="looks at the plan in the JVM")
def test_files_with_new_dates_alone_keep_their_names(lake: Lake, spark: SparkSession) -> None:
    made = lake.create_table("a.new", "d date")
    made.append(pa.table({"d": [date(1900, 1, 1), date(2026, 1, 1), None]}))
    plan = made.scan().to_spark().where("d = DATE'2026-01-01'")._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters: [IsNotNull(d), EqualTo(d,2026-01-01)]" in plan
    made.append(pa.table({"d": [date(1899, 12, 31)]}))
    assert made.scan().to_spark().where("d = DATE'1899-12-31'").count() == 1


def _count(values: list[date] | list[datetime], operator: str, value: date) -> int:
    compare = {"=": lambda a: a == value, ">=": lambda a: a >= value, "<=": lambda a: a <= value}[operator]
    return sum(map(compare, values))


def _literal(value: date) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP'{value:%Y-%m-%d %H:%M:%S}Z'".replace(f"'{value.year}-", f"'{value.year:04d}-")
    return f"DATE'{value.isoformat()}'"
