"""Settings of the user's session change no row, and reading and writing change no setting."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.peers.normal import normal_rows
from tests.spark_places import SparkPlace, changed, chosen_place

from icefield.lake import Lake
from icefield.spark.session.session import READ_BY_FIELD_ID
from icefield.storage.location import local_path
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema

pytestmark = pytest.mark.spark

REBASE = "spark.sql.parquet.datetimeRebaseModeInRead"
REBASE_INT96 = "spark.sql.parquet.int96RebaseModeInRead"
SETTINGS = (
    {REBASE: "LEGACY", REBASE_INT96: "LEGACY"},
    {REBASE: "EXCEPTION", REBASE_INT96: "EXCEPTION"},
    {"spark.sql.sources.useV1SourceList": ""},
    {"spark.sql.sources.useV1SourceList": "", REBASE: "LEGACY", "spark.sql.parquet.enableVectorizedReader": "false"},
)
MOMENTS = [dt.datetime(*parts) for parts in ((1, 1, 1), (1500, 2, 28, 1), (1899, 12, 31), (2024, 3, 10, 2, 30))]


@pytest.fixture
def table(lake: Lake) -> Table:
    """Moments of all calendars; the second file has a deleted row."""
    schema = "id long, day date, local timestamp, moment timestamptz"
    made = lake.create_table("a.t", schema, properties={"write.delete.mode": "merge-on-read"}, format_version=3)
    for first in (0, 10):
        ids = [first + at for at in range(len(MOMENTS) + 1)]
        days = [*(m.date() for m in MOMENTS), None]
        moments = [*(m.replace(tzinfo=dt.UTC) for m in MOMENTS), None]
        made.append(pa.table({"id": ids, "day": days, "local": [*MOMENTS, None], "moment": moments}))
    made.delete("id = 11")
    return made


@pytest.fixture
def settings_stay(spark: SparkSession) -> Iterator[None]:
    before = own_settings(spark)
    yield
    assert own_settings(spark) == {**before, READ_BY_FIELD_ID: "true"}


def own_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a session, without what icefield notes down in it under names of its own."""
    return {key: value for key, value in dict(spark.conf.getAll).items() if not key.startswith("icefield.")}


def rows(frame: DataFrame, table: Table) -> list[object]:
    return list(normal_rows(frame.toArrow(), arrow_schema(table.schema)))


@pytest.mark.usefixtures("settings_stay")
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_rows_are_read_alike_under_any_settings(table: Table, spark: SparkSession, settings: dict[str, str]) -> None:
    wanted = normal_rows(table.scan().to_arrow().read_all(), arrow_schema(table.schema))
    with changed(spark, settings):
        assert rows(table.scan().to_spark(), table) == wanted
        assert table.scan("day < DATE '1600-01-01'").to_spark().count() == 3
        assert table.scan().to_spark().where("moment < TIMESTAMP_LTZ '1600-01-01 00:00:00+00:00'").count() == 3
        assert table.scan(select=["id", "_file", "_pos"]).to_spark().count() == 9


@pytest.mark.usefixtures("settings_stay")
@pytest.mark.parametrize(("zone", "ansi"), [("America/New_York", "true"), ("Africa/Casablanca", "false")])
def test_rows_are_written_alike_under_any_settings(
    table: Table, lake: Lake, spark: SparkSession, zone: str, ansi: str
) -> None:
    wanted = normal_rows(table.scan().to_arrow().read_all(), arrow_schema(table.schema))
    settings = {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}
    with changed(spark, {**settings, "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}):
        copy = lake.create_table(
            "a.copy", table.schema, partition_by=["day(local)"], order_by=["moment"], format_version=3
        )
        copy.append(table.scan().to_spark())
    assert normal_rows(copy.scan().to_arrow().read_all(), arrow_schema(table.schema)) == wanted


@pytest.mark.parametrize("setting", ["spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"])
def test_a_file_that_is_gone_or_damaged_is_never_passed_over(table: Table, spark: SparkSession, setting: str) -> None:
    frame = table.scan().to_spark()
    data = Path(local_path(table.scan().files()["file_path"][0].as_py()))
    if setting.endswith("MissingFiles"):
        data.unlink()
    else:
        data.write_bytes(data.read_bytes()[:-8] + b"damaged!")
    with changed(spark, {setting: "true"}), pytest.raises((PySparkException, Py4JError), match=data.name):
        frame.collect()


@pytest.fixture
def renamed(lake: Lake) -> Table:
    """Columns that are read by their ids alone: under another name in the file, a float, inside a struct."""
    table = lake.create_table("a.renamed", "id long, before string, number double, s struct<x: long, y: long>")
    table.append(pa.table({"id": [1], "before": ["text"], "number": [0.5], "s": [{"x": 1, "y": 2}]}))
    with table.evolve() as change:
        change.rename_column("before", "after")
        change.rename_column("s.x", "z")
    return table


@pytest.mark.skipif(chosen_place() is SparkPlace.CONNECT, reason="the setting of a server's session is all there is")
@pytest.mark.parametrize("switch", ["false", None], ids=["off", "reset"])
def test_a_frame_keeps_its_rows_when_field_ids_are_switched_off(
    renamed: Table, spark: SparkSession, switch: str | None
) -> None:
    frame = renamed.scan().to_spark()
    if switch is None:
        spark.conf.unset(READ_BY_FIELD_ID)  # as RESET does with all settings
    else:
        spark.conf.set(READ_BY_FIELD_ID, switch)
    assert frame.collect() == [(1, "text", 0.5, (1, 2))]
    assert frame.select("s.z").collect() == [(1,)]
    assert frame.where("after = 'text' AND number = 0.5").count() == 1
    assert renamed.scan().to_spark().where("after = 'text'").count() == 1
