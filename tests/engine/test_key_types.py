"""An upsert finds rows by their keys in every type that a key may have, however the rows to upsert spell them.

A key is compared as the table has it: after a value was widened, and whichever way a uuid is written.
"""

import datetime as dt
import uuid
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.effort import DEEP, sample

from icefield.errors import InvalidInput, SchemaMismatch
from icefield.lake import Lake
from icefield.table.table import Table

UUIDS = (uuid.UUID("0a1b2c3d-1111-4222-8333-444455556666"), uuid.UUID(int=0), uuid.UUID(int=2**128 - 1))
# In the gap of a change to summer time, and before the calendar and time zones of today.
TIMES = (dt.datetime(2024, 3, 10, 2, 30, 0, 123456), dt.datetime(1883, 11, 18, 12), dt.datetime(1970, 1, 1))
DATES = (dt.date(2024, 3, 10), dt.date(1582, 10, 4), dt.date(1970, 1, 1))
UTC_TIMES = tuple(time.replace(tzinfo=dt.UTC) for time in TIMES)
DECIMALS = (Decimal("1.50"), Decimal("-0.01"), Decimal("0.00"))


class Case(NamedTuple):
    """A key column, its values in the table, and the same ones as rows to upsert may have them, in Arrow and Spark."""

    name: str
    kind: str
    table: pa.Array
    arrow: pa.Array
    spark: str | None
    version: int = 2


def sql(form: str, *values: object) -> str:
    return " UNION ALL ".join(f"SELECT {form.format(value)} AS k" for value in values)


STORED_UUIDS = pa.array([u.bytes for u in UUIDS], pa.binary(16))
CASES = [
    Case("int", "int", pa.array([1, 2, 0], pa.int32()), pa.array([1, 2, 0], pa.int8()), sql("{}", 1, 2, 0)),
    Case("int to long", "long", pa.array([1, -2, 0]), pa.array([1, -2, 0], pa.int32()), sql("{}", 1, -2, 0)),
    Case("long", "long", pa.array([2**63 - 1, -(2**63), 0]), pa.array([2**63 - 1, -(2**63), 0]), None),
    Case(
        "wider decimal",
        "decimal(18, 2)",
        pa.array(DECIMALS, pa.decimal128(18, 2)),
        pa.array(DECIMALS, pa.decimal128(9, 2)),
        sql("CAST({} AS DECIMAL(9, 2))", *DECIMALS),
    ),
    Case(
        "uuid as bytes",
        "uuid",
        STORED_UUIDS,
        STORED_UUIDS,
        sql("'{}'", *UUIDS),
    ),
    Case(
        "uuid in braces",
        "uuid",
        STORED_UUIDS,
        pa.array([f"{{{u}}}" for u in UUIDS], pa.string()),
        sql("'{}'", *(f"{{{u}}}" for u in UUIDS)),
    ),
    Case(
        "uuid without dashes",
        "uuid",
        STORED_UUIDS,
        pa.array([u.hex.upper() for u in UUIDS], pa.large_string()),
        sql("'{}'", *(u.hex.upper() for u in UUIDS)),
    ),
    Case(
        "uuid of Arrow",
        "uuid",
        STORED_UUIDS,
        pa.ExtensionArray.from_storage(pa.uuid(), STORED_UUIDS),
        sql("'urn:uuid:{}'", *UUIDS),
    ),
    Case(
        "timestamp",
        "timestamp",
        pa.array(TIMES, pa.timestamp("us")),
        pa.array(TIMES, pa.timestamp("us")),
        sql("TIMESTAMP_NTZ '{}'", *TIMES),
    ),
    Case(
        "timestamptz of a zone",
        "timestamptz",
        pa.array(UTC_TIMES, pa.timestamp("us", "UTC")),
        pa.array(UTC_TIMES, pa.timestamp("us", "Europe/Berlin")),
        sql("TIMESTAMP '{}Z'", *TIMES),
    ),
    Case(
        "timestamp to nanoseconds",
        "timestamp_ns",
        pa.array(TIMES, pa.timestamp("ns")),
        pa.array(TIMES, pa.timestamp("us")),
        sql("TIMESTAMP_NTZ '{}'", *TIMES),
        3,
    ),
    Case(
        "timestamptz to nanoseconds",
        "timestamptz_ns",
        pa.array(UTC_TIMES, pa.timestamp("ns", "UTC")),
        pa.array(UTC_TIMES, pa.timestamp("us", "UTC")),
        sql("TIMESTAMP '{}Z'", *TIMES),
        3,
    ),
    Case("date", "date", pa.array(DATES), pa.array(DATES, pa.date64()), sql("DATE '{}'", *DATES)),
    Case(
        "time", "time", pa.array([TIMES[0].time()], pa.time64("us")), pa.array([TIMES[0].time()], pa.time64("us")), None
    ),
    Case(
        "coarse time",
        "time",
        pa.array([dt.time(1, 2)], pa.time64("us")),
        pa.array([dt.time(1, 2)], pa.time32("s")),
        None,
    ),
    Case("fixed", "fixed[2]", pa.array([b"ab", b"\0\0"], pa.binary(2)), pa.array([b"ab", b"\0\0"], pa.binary(2)), None),
    Case("binary", "binary", pa.array([b"", b"\0"]), pa.array([b"", b"\0"], pa.large_binary()), sql("X'{}'", "", "00")),
    Case("string", "string", pa.array(["", "ä"]), pa.array(["", "ä"], pa.string_view()), sql("'{}'", "", "ä")),
    Case(
        "string of a dictionary",
        "string",
        pa.array(["A", "a"]),
        pa.array(["A", "a"]).dictionary_encode(),
        sql("'{}' COLLATE UTF8_LCASE", "A", "a"),
    ),
    Case("boolean", "boolean", pa.array([True]), pa.array([True]), sql("{}", "true")),
]
IDS = [case.name for case in CASES]
# Types that Spark's own cast gets wrong, or fails at; of each a normal run has one case.
ON_SPARK = {"uuid as bytes", "uuid in braces", "timestamp to nanoseconds", "timestamptz to nanoseconds", "time"}
SPARK_CASES = sample([c for c in CASES if DEEP or c.name in ON_SPARK], 1, lambda case: case.kind.replace("tz", ""))


def make(lake: Lake, case: Case, mode: str = "copy-on-write") -> Table:
    table = lake.create_table(
        "a.t", f"k {case.kind}, x string", format_version=case.version, properties={"write.merge.mode": mode}
    )
    other = pa.nulls(1, case.table.type)
    table.append(pa.table({"k": pa.concat_arrays([case.table, other]), "x": ["old"] * (len(case.table) + 1)}))
    return table


def values_of(table: Table) -> list[tuple[str, str]]:
    return sorted((repr(row["k"]), row["x"]) for row in table.scan().to_arrow().read_all().to_pylist())


def check(table: Table, case: Case) -> None:
    found = values_of(table)
    assert [x for _, x in found].count("new") == len(case.table), found
    assert [k for k, x in found if x == "old"] == ["None"], found


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_arrow_rows_in_this_process(lake: Lake, case: Case) -> None:
    table = make(lake, case)
    table.upsert(pa.table({"k": case.arrow, "x": ["new"] * len(case.arrow)}), on=["k"], engine="local")
    check(table, case)


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"] if DEEP else ["America/New_York"])
@pytest.mark.parametrize("case", SPARK_CASES, ids=lambda case: str(case.name))
def test_on_spark(lake: Lake, spark: SparkSession, case: Case, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        table = make(lake, case, "merge-on-read")
        table.upsert(pa.table({"k": case.arrow, "x": ["new"] * len(case.arrow)}), on=["k"], engine="spark")
        check(table, case)
        if case.spark is not None:
            table.upsert(frame_of(spark, case.spark, "newer"), on=["k"])
            assert [x for _, x in values_of(table)].count("newer") == len(case.table)
            assert len(values_of(table)) == len(case.table) + 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


@pytest.mark.spark
def test_one_uuid_in_two_spellings_is_a_duplicate_and_nonsense_is_refused(lake: Lake, spark: SparkSession) -> None:
    table = make(lake, next(case for case in CASES if case.name == "uuid in braces"))
    before = values_of(table)
    one = UUIDS[0]
    with pytest.raises(InvalidInput, match="two rows to upsert have the key"):
        table.upsert(frame_of(spark, sql("'{}'", one, one.hex), "new"), on=["k"])
    with pytest.raises(SchemaMismatch, match="'nonsense', which is not a valid UUID"):
        table.upsert(frame_of(spark, sql("'{}'", one, "nonsense"), "new"), on=["k"])
    assert values_of(table) == before


def frame_of(spark: SparkSession, keys: str, value: str) -> DataFrame:
    return spark.sql(f"SELECT k, '{value}' AS x FROM ({keys})")
