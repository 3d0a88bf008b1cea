"""Every verb on Spark does the same under any settings of the user's session, with names that need quotes."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.effort import DEEP, sample
from tests.spark_places import changed

from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark

Engine = Literal["local", "spark"]
SETTINGS: list[dict[str, str]] = [
    {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.shuffle.partitions": "1",
    },
    {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
    },
    {
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
        "spark.sql.execution.arrow.pyspark.enabled": "false",
    },
    {
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
    },
    {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.sources.useV1SourceList": "",
    },
    {"spark.sql.optimizer.nestedSchemaPruning.enabled": "false", "spark.sql.mapKeyDedupPolicy": "LAST_WIN"},
]
# Names in backticks are patterns, and batches have no limit, which pyspark itself fails at.
HOSTILE = {"spark.sql.parser.quotedRegexColumnNames": "true", "spark.sql.execution.arrow.maxRecordsPerBatch": "0"}
START = dt.datetime(2024, 3, 10, 2, 30, tzinfo=dt.UTC)
SCHEMA = "id long, ts timestamptz, `select` string, `d.e` decimal(20, 4), u uuid, st struct<`a b`: int, c: date>"
SHAPE = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("select", pa.string()),
        ("d.e", pa.decimal128(20, 4)),
        ("u", pa.binary(16)),
        ("st", pa.struct([("a b", pa.int32()), ("c", pa.date32())])),
    ]
)


def rows(*ids: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": n,
                "ts": START + dt.timedelta(hours=n),
                "select": f"s{n % 3}" if n % 4 else None,
                "d.e": Decimal(n) / 4,
                "u": uuid.UUID(int=n).bytes,
                "st": {"a b": n, "c": dt.date(1500 + n, 1, 1)} if n % 5 else None,
            }
            for n in ids
        ],
        schema=SHAPE,
    )


def make(lake: Lake, name: str, version: int) -> Table:
    mode = "copy-on-write" if version == 2 else "merge-on-read"
    table = lake.create_table(
        name,
        SCHEMA,
        format_version=version,
        partition_by=["day(ts)"] if version == 3 else ["bucket(3, u)"],
        order_by=["`d.e` desc"],
        properties={"write.delete.mode": mode, "write.merge.mode": mode},
    )
    table.append(rows(*range(10)))
    table.append(rows(*range(10, 20)))
    return table


def change(table: Table, engine: Engine, source: Any) -> list[object]:
    """Run every verb, and return what it left and what was counted."""
    seen: list[object] = []

    def note(*results: object) -> None:
        seen.append([*map(repr, table.scan().to_arrow().read_all().sort_by("id").to_pylist()), *map(repr, results)])

    table.delete("ts >= '2024-03-10 05:30:00' and id < 5 or st.`a b` = 12", engine=engine)
    note()
    table.upsert(rows(1, 11, 30), on=["id"], engine=engine)
    note()
    table.upsert(source, on=["id"], engine=None if engine == "spark" else engine)
    note()
    table.overwrite(rows(8), where="id = 8 and `select` is null", engine=engine)
    note(
        table.scan(where="`select` > 's0' and `d.e` > 1").count(engine=engine),
        table.scan().max("ts", engine=engine),
        table.scan(where="st.c > '1400-01-01'").min("d.e", engine=engine),
    )
    table.compact(engine=engine)
    note()
    return seen


# A sample has one group of the ordinary settings, and each version, which has a mode of its own, once.
CASES = (
    [(each, version) for version in (2, 3) for each in (HOSTILE, *SETTINGS)]
    if DEEP
    else [
        (HOSTILE, 2),
        (sample(SETTINGS, 1)[0], 3),
    ]
)


@pytest.mark.parametrize(("settings", "version"), CASES, ids=[f"{'+'.join(each)}-{v}" for each, v in CASES])
def test_every_verb_under_settings(lake: Lake, spark: SparkSession, settings: dict[str, str], version: int) -> None:
    frame = spark.createDataFrame([(2, "zz"), (31, "yy")], "id int, `select` string")
    wanted = change(make(lake, "a.local", version), "local", frame.toArrow())
    with changed(spark, settings):
        assert change(make(lake, "a.spark", version), "spark", frame) == wanted
