"""Filters of REPLACE WHERE, PARTITION and TRUNCATE in sessions outside UTC: they match the rows that a query finds."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefield.errors import InvalidFilter
from icefield.expr.bind.bind import bind
from icefield.lake import Lake
from icefield.sql.filters.local_times import with_local_times
from icefield.types.text import parse_schema
from tests.spark_places import changed
from tests.sql.changing import change, rows

ZONE = "spark.sql.session.timeZone"
BERLIN, TOKYO = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Tokyo")
SCHEMA = parse_schema("ts timestamptz, local timestamp, day date, s struct<t: timestamptz>, n timestamptz_ns, id int")


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("text", "zone", "means"),
    [
        ("ts >= '2026-01-02'", TOKYO, "ts >= '2026-01-01 15:00:00Z'"),
        ("ts >= DATE '2026-01-02'", TOKYO, "ts >= '2026-01-01 15:00:00Z'"),
        ("ts = TIMESTAMP_NTZ '2026-07-01 12:00:00'", BERLIN, "ts = '2026-07-01 10:00:00Z'"),
        ("'2026-01-02 01:00' < s.t", BERLIN, "s.t > '2026-01-02 00:00:00Z'"),
        ("ts > '2026-01-02 00:00:00+05:00'", TOKYO, "ts > '2026-01-01 19:00:00Z'"),
        ("n = '2026-01-02 00:00:00.123456789'", TOKYO, "n = '2026-01-01 15:00:00.123456789Z'"),
        ("ts IN ('2026-01-02', NULL) OR NOT ts <=> '2026-01-03'", timezone(timedelta(hours=-5)),
         "ts IN ('2026-01-02 05:00:00Z', NULL) OR NOT ts <=> '2026-01-03 05:00:00Z'"),
        ("ts BETWEEN '2026-01-02' AND '2026-01-03'", TOKYO,
         "ts BETWEEN '2026-01-01 15:00:00Z' AND '2026-01-02 15:00:00Z'"),
        ("ts = '2026-03-29 02:30:00'", BERLIN, "ts = '2026-03-29 01:30:00Z'"),  # skipped
        ("ts = '2026-10-25 02:30:00'", BERLIN, "ts = '2026-10-25 00:30:00Z'"),  # twice
        ("day > TIMESTAMP '2026-01-01 20:00:00Z'", TOKYO, "day > TIMESTAMP_NTZ '2026-01-02 05:00:00'"),
        ("local >= '2026-01-02' AND day = '2026-01-02' AND id = 3", TOKYO,
         "local >= '2026-01-02' AND day = '2026-01-02' AND id = 3"),
        ("ts >= '2026-01-02'", UTC, "ts >= '2026-01-02'"),
        ("ts IS NULL OR id = 1", None, "ts IS NULL OR id = 1"),
    ],
)  # fmt: skip
def test_times_without_a_zone_are_moments_of_the_zone(text: str, zone: Any, means: str) -> None:
    assert bind(with_local_times(text, SCHEMA, zone), SCHEMA) == bind(means, SCHEMA)


def test_what_is_not_certain_is_refused() -> None:
    with pytest.raises(InvalidFilter, match="time zone of the session is not known"):
        with_local_times("ts > '2026-01-02'", SCHEMA, None)
    with pytest.raises(InvalidFilter, match="clocks repeat"):
        with_local_times("day > TIMESTAMP '2026-10-25 00:30:00Z'", SCHEMA, BERLIN)
    with pytest.raises(InvalidFilter, match="outside of years"):
        with_local_times("ts > '290000-01-01'", SCHEMA, TOKYO)


HOURS = [datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(hours=5 * n) for n in range(8)]
CONDITIONS = [
    "ts >= '2026-01-02'",
    "ts < TIMESTAMP '2026-01-02 08:00:00'",
    "ts BETWEEN DATE '2026-01-02' AND '2026-01-02 12:00:00'",
    "NOT (ts > '2026-01-02T00:00:00Z') OR ts IS NULL",
    "day = '2026-01-02'",
    "local >= '2026-01-02' AND id > 1",
]


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "+05:30"])
def test_rows_are_replaced_that_a_query_finds(lake: Lake, spark: SparkSession, zone: str) -> None:
    lake.use(spark)
    table = lake.create_table("shop.t", "id int, ts timestamptz, local timestamp, day date", partition_by=["day(ts)"])
    given = pa.table(
        {
            "id": pa.array(range(8), pa.int32()),
            "ts": HOURS,
            "local": [each.replace(tzinfo=None) for each in HOURS],
            "day": [each.date() for each in HOURS],
        }
    )
    with changed(spark, {ZONE: zone}):
        for condition in CONDITIONS:
            table.overwrite(given)
            matched = {row.id for row in lake.sql(f"SELECT id FROM shop.t WHERE {condition}").collect()}
            done = change(
                lake,
                f"INSERT INTO shop.t REPLACE WHERE {condition} SELECT id + 100, ts, local, day FROM shop.t "
                f"WHERE ({condition}) AND id % 2 = 0",
                engine=None,
            )
            left = {row[0] for row in rows(table, "id")}
            assert {row for row in left if row < 100} == set(range(8)) - matched, condition
            assert done.get("rows_deleted", 0) == len(matched)


@pytest.mark.spark
def test_partitions_are_moments_of_the_session(lake: Lake, spark: SparkSession) -> None:
    lake.use(spark)
    table = lake.create_table("shop.p", "id int, ts timestamptz", partition_by=["ts"])
    with changed(spark, {ZONE: "Asia/Tokyo"}):
        for number in (1, 2):
            text = f"INSERT OVERWRITE shop.p PARTITION (ts = '2026-01-02 00:00:00') SELECT {number}"
            change(lake, text, engine=None)
        assert rows(table) == [(2, datetime(2026, 1, 1, 15, tzinfo=UTC))]
        change(lake, "TRUNCATE TABLE shop.p PARTITION (ts = '2026-01-02 00:00:00')", engine=None)
    assert rows(table) == []


@pytest.mark.spark
def test_rows_are_forgotten_by_moments_of_the_session(lake: Lake, spark: SparkSession) -> None:
    lake.use(spark)
    table = lake.create_table("shop.f", "id int, ts timestamptz")
    moments = [datetime(2026, 1, day, 16, tzinfo=UTC) for day in (1, 2)]
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "ts": pa.array(moments, pa.timestamp("us", "UTC"))}))
    call = "CALL system.forget('shop.f', 'ts >= \"2026-01-02\"', dry_run => true)"
    for zone, count in (("UTC", 1), ("Asia/Tokyo", 2)):
        with changed(spark, {ZONE: zone}):
            assert lake.sql(call).first()["deleted_rows"] == count


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["+05:30", "CST"])
def test_constants_are_times_of_any_zone_that_a_session_has(lake: Lake, spark: SparkSession, zone: str) -> None:
    lake.use(spark)
    table = lake.create_table("shop.v", "id int, ts timestamptz", format_version=3)
    zones = {"+05:30": timezone(timedelta(hours=5, minutes=30)), "CST": ZoneInfo("America/Chicago")}
    for number in (1, 2):
        table.append(pa.table({"id": pa.array([number], pa.int32())}))
    first, second = table.snapshots()
    at = datetime.fromtimestamp(first.timestamp_ms / 1000, zones[zone]).replace(tzinfo=None)
    with changed(spark, {ZONE: zone}):
        assert lake.sql(f"SELECT id FROM shop.v TIMESTAMP AS OF '{at}'").count() == 1
        call = f"CALL system.expire_snapshots('shop.v', older_than => '{at + timedelta(hours=1)}', dry_run => true)"
        assert lake.sql(call).first()["deleted_manifest_lists_count"] == 1
        lake.sql("ALTER TABLE shop.v ALTER COLUMN ts SET DEFAULT TIMESTAMP '2026-01-02 00:00:00'")
        wanted = datetime(2026, 1, 2, tzinfo=zones[zone])
    assert table.schema.find_field("ts").write_default == int(wanted.timestamp() * 1_000_000)
    assert second.snapshot_id == table.metadata.current_snapshot_id


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of this process."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.spark
@pytest.mark.usefixtures("in_tokyo")
def test_a_datetime_without_a_zone_means_the_same_in_queries_and_changes(lake: Lake, spark: SparkSession) -> None:
    lake.use(spark)
    noon = datetime(2026, 1, 2, 12)
    lake.create_table("s.t", "id int, ts timestamptz").append(
        pa.table({"id": pa.array([1, 2], pa.int32()), "ts": [noon.replace(tzinfo=UTC), noon.replace(tzinfo=TOKYO)]})
    )
    with changed(spark, {ZONE: "UTC"}):
        for where, args in (("ts = :t", {"t": noon}), ("ts = ?", [noon]), ("array_contains(:t, ts)", {"t": [noon]})):
            found = lake.sql(f"SELECT id FROM s.t WHERE {where}", args).collect()
            assert [row.id for row in found] == [1]
        (done,) = lake.sql("UPDATE s.t SET id = 3 WHERE ts = :t", {"t": noon}).collect()
        assert done.rows_updated == 1
        (row,) = lake.sql("SELECT id FROM s.t WHERE ts = :t", {"t": noon}).collect()
        assert row.id == 3
