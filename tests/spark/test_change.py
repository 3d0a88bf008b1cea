"""MERGE, UPDATE and DELETE on Spark: rows that are split, shuffled or computed twice, and columns of any name."""

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.spark.merge_paths import MergePath, take_path
from tests.spark_places import SparkPlace, chosen_place

from icefield import lit
from icefield.errors import IcefieldError, InvalidInput, SchemaMismatch
from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("generated_code")]
MOST_JOBS = 6
VECTORS = {"write.merge.mode": "merge-on-read"}


@pytest.fixture(autouse=True)
def _shuffled(monkeypatch: pytest.MonkeyPatch) -> None:
    """All merges are shuffled (test_small_merge.py and test_range_merge.py have the other ways)."""
    take_path(monkeypatch, MergePath.SHUFFLE)


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    read = table.scan().to_arrow().read_all()
    return sorted((tuple(row.values()) for row in read.to_pylist()), key=repr)


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.suffix in (".parquet", ".puffin")}


def numbers(count: int, **columns: Any) -> pa.Table:
    return pa.table({"id": pa.array(range(count), pa.int64()), **columns})


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_that_is_read_in_parts_gets_one_delete_file(lake: Lake, spark: SparkSession, version: int) -> None:
    small = {"write.parquet.row-group-size-bytes": "20000", "write.merge.mode": "merge-on-read"}
    table = lake.create_table("a.t", "id long, v long", properties=small, format_version=version)
    table.append(numbers(40_000, v=list(range(40_000))))
    source = pa.table({"id": pa.array(range(0, 40_000, 100), pa.int64()), "v": pa.array([-1] * 400, pa.int64())})
    before = str(spark.conf.get("spark.sql.files.maxPartitionBytes"))
    spark.conf.set("spark.sql.files.maxPartitionBytes", "65536")
    try:
        table.upsert(source, on=["id"], engine="spark")
        # The second time, deletes of the first must be kept.
        table.merge(source, on=["id"], engine="spark").when_matched("target.id % 200 = 0").delete().execute()
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    deletes = table.inspect("delete_files").to_arrow().read_all()
    if version == 3:
        assert set(Counter(deletes["referenced_data_file"].to_pylist()).values()) == {1}
    read = table.scan().to_arrow().read_all()
    assert sorted(read["id"].to_pylist()) == [i for i in range(40_000) if i % 200]
    assert Counter(read["v"].to_pylist())[-1] == 200


def test_rows_that_move_to_another_partition_are_there_once(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table(
        "a.t", "id long, p string", partition_by=["p"], properties={"write.merge.mode": "merge-on-read"}
    )
    table.append(numbers(6, p=["a", "a", "b", "b", "c", "c"]))
    source = pa.table({"id": pa.array([0, 2, 4, 5], pa.int64()), "p": ["b", "c", "a", None]})
    done = table.upsert(source, on=["id"], engine="spark")
    assert rows_of(table) == sorted([(0, "b"), (1, "a"), (2, "c"), (3, "b"), (4, "a"), (5, None)], key=repr)
    assert (done.rows_matched, done.rows_updated, done.rows_inserted) == (4, 4, 0)


def test_a_source_that_is_never_twice_the_same_is_read_once(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("a.t", "id long, v double")
    table.append(numbers(2_000, v=[0.0] * 2_000))
    picked = spark.range(0, 4_000, 1, 4).where(F.rand() < 0.3).withColumn("v", F.rand() + 1)
    done = table.upsert(picked, on=["id"])
    read = table.scan().to_arrow().read_all()
    ids = read["id"].to_pylist()
    assert len(ids) == len(set(ids)) == 2_000 + done.rows_inserted
    assert sum(v > 0 for v in read["v"].to_pylist()) == done.rows_updated + done.rows_inserted
    limited = spark.range(0, 4_000, 1, 8).selectExpr("id", "1D AS v").repartition(8).limit(100)
    done = table.upsert(limited, on=["id"])
    ids = table.scan().to_arrow().read_all()["id"].to_pylist()
    assert len(ids) == len(set(ids))
    assert done.rows_updated + done.rows_inserted == 100


@pytest.mark.skipif(chosen_place() is SparkPlace.CONNECT, reason="jobs are counted by the session's context")
def test_an_upsert_takes_few_jobs(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table(
        "a.t", "id long, day date", partition_by=["day"], properties={"write.merge.mode": "merge-on-read"}
    )
    days = [dt.date(2026, 1, 1 + i % 5) for i in range(100)]
    table.append(numbers(100, day=days))
    source = spark.range(90, 110).withColumn("day", F.lit(dt.date(2026, 1, 2)))
    table.upsert(source, on=["id"])
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    table.upsert(source, on=["id"])
    assert len(set(tracker.getJobIdsForGroup(None)) - before) <= MOST_JOBS


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.delete("rand() < 0.5"),
        lambda t: t.update({"v": "rand()"}, "length(s) > 0"),
        lambda t: t.update({"v": "1D"}, "v > avg(v)"),
        lambda t: t.merge(numbers(3), on=["id"]).when_matched("rand() < 0.5").delete().execute(),
        lambda t: t.merge(numbers(3), on="target.id = source.id AND rand() < 0.5").when_matched().delete().execute(),
        lambda t: t.merge(numbers(3), on=["id"]).when_not_matched().insert({"v": "rand()"}).execute(),
        lambda t: t.merge(numbers(3), on=["id"]).when_not_matched_by_source("rand() < 1").delete().execute(),
        lambda t: t.merge(numbers(3), on=["id"]).when_matched("target.id IN (SELECT 1)").delete().execute(),
        lambda t: t.merge(numbers(3), on=["id"]).when_not_matched("target.id = 1").insert_all().execute(),
        lambda t: t.merge(numbers(3), on=["id"]).when_matched("length(nothing) = 1").delete().execute(),
    ],
)
def test_an_expression_that_must_not_decide_is_refused(
    lake: Lake, spark: SparkSession, tmp_path: Path, change: Any
) -> None:
    table = lake.create_table("a.t", "id long, v double, s string")
    table.append(numbers(5, v=[1.0] * 5, s=["a"] * 5))
    files = files_below(tmp_path)
    with pytest.raises(IcefieldError) as caught:
        change(table)
    assert "icefield_" not in str(caught.value)
    assert table.scan().count() == 5
    assert files_below(tmp_path) == files


SETTINGS = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.storeAssignmentPolicy": ("ANSI", "LEGACY", "STRICT"),
    "spark.sql.caseSensitive": ("true", "false"),
    "spark.sql.session.timeZone": ("UTC", "America/New_York"),
    "spark.sql.adaptive.enabled": ("true", "false"),
}


@pytest.mark.parametrize("other", [0, -1])
def test_values_are_stored_by_one_rule_whatever_the_session_says(lake: Lake, spark: SparkSession, other: int) -> None:
    schema = "id long not null, i int, d decimal(4, 2), s string, t timestamp, f float, n struct<x int, y string>"
    table = lake.create_table("a.t", schema)
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    before = {name: str(spark.conf.get(name)) for name in SETTINGS}
    for name, values in SETTINGS.items():
        spark.conf.set(name, values[other])
    try:
        noon = dt.datetime(2026, 1, 1, 12)
        given = {"i": "bit_count(7) * 2L", "d": "1.005BD", "s": "length('ab')", "f": "sqrt(4)", "n.x": "6L"}
        table.update({**given, "t": lit(noon), "n.y": lit("it's")}, "id = 1", engine="spark")
        for name, value in (("i", "length('a') * 3000000000"), ("d", "length('a') * 100.0BD"), ("i", "upper('1')")):
            with pytest.raises(IcefieldError):
                table.update({name: value}, engine="spark")
            by_spark = f"reverse({value})" if "upper" in value else f"{value} + bit_count(0)"
            with pytest.raises(SchemaMismatch, match="column '[id]'"):
                table.update({name: by_spark}, engine="spark")
        with pytest.raises(IcefieldError, match="column 'id'"):
            table.update({"id": "nullif(length('a'), 1)"}, engine="spark")
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert rows_of(table) == [
        (1, 6, Decimal("1.01"), "2", noon, 2.0, {"x": 6, "y": "it's"}),
        (2, None, None, None, None, None, None),
    ]


NAMES = ["a.b", "back`tick", "sp ace", "twin", "Twin", "file", "pos", "clause", "part", "task", "c0", "target", "p0"]


def test_columns_have_any_name(lake: Lake, spark: SparkSession) -> None:
    columns = ", ".join(f"`{name.replace('`', '``')}` long" for name in NAMES)
    table = lake.create_table("a.t", f"id long, {columns}", partition_by=["bucket(2, id)"])
    table.append(numbers(4, **{name: pa.array([at] * 4, pa.int64()) for at, name in enumerate(NAMES)}))
    source = numbers(6, **{name: pa.array([100 + at] * 6, pa.int64()) for at, name in enumerate(NAMES)}).slice(2)
    table.upsert(source, on=["id"], engine="spark")
    old, new = tuple(range(len(NAMES))), tuple(range(100, 100 + len(NAMES)))
    expected = [(i, *(old if i < 2 else new)) for i in range(6)]
    assert rows_of(table) == sorted(expected, key=repr)
    merge = table.merge(source, on="target.`a.b` = source.`a.b` AND target.id = source.id", engine="spark")
    merge.when_matched("source.file > 0 AND target.`back``tick` > 0").update(
        {"`sp ace`": "target.`sp ace` + source.pos", "task": "source.`task` + target.c0"}
    ).execute()
    read = {row["id"]: row for row in table.scan().to_arrow().read_all().to_pylist()}
    assert read[3]["sp ace"] == 102 + 106
    assert read[3]["task"] == 109 + 110
    assert read[1]["sp ace"] == 2


def test_two_matches_of_one_row_are_shown(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    table = lake.create_table("a.t", "id long, v string")
    table.append(numbers(3, v=["a", "b", "c"]))
    files = files_below(tmp_path)
    source = pa.table({"id": pa.array([1, 1, 9, 9], pa.int64()), "v": ["x", "y", "z", "z"]})
    merge = table.merge(source, on=["id"], engine="spark")
    with pytest.raises(InvalidInput) as caught:
        # Counted before the conditions of clauses.
        merge.when_matched("source.v = 'x'").update_all().execute()
    for part in ("{'id': 1}", "'v': 'x'", "'v': 'y'"):
        assert part in str(caught.value)
    with pytest.raises(InvalidInput, match="at position 0 of"):
        table.merge(source, on="source.id > target.id + 6", engine="spark").when_matched().update_all().execute()
    assert files_below(tmp_path) == files
    # To delete a row twice is to delete it; rows that match nothing may be there twice.
    done = merge.when_matched().delete().when_not_matched().insert_all().execute()
    assert (done.rows_matched, done.rows_deleted, done.rows_inserted) == (1, 1, 2)
    assert rows_of(table) == [(0, "a"), (2, "c"), (9, "z"), (9, "z")]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_no_file_is_left_after_an_error(lake: Lake, spark: SparkSession, tmp_path: Path, mode: str) -> None:
    table = lake.create_table("a.t", "id long not null, v string not null", partition_by=["bucket(4, id)"])
    table.append(numbers(100, v=["a"] * 100))
    files = files_below(tmp_path)
    source = pa.table({"id": pa.array(range(50, 150), pa.int64()), "v": [*["b"] * 99, None]})
    with pytest.raises(SchemaMismatch, match="required column 'v'"):
        table.merge(
            source, on=["id"], mode=mode, engine="spark"
        ).when_matched().update_all().when_not_matched().insert_all().execute()
    assert files_below(tmp_path) == files
    assert table.scan("v = 'b'").count() == 0


def test_a_condition_with_subqueries(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("a.t", "id long, v long")
    table.append(numbers(6, v=list(range(6))))
    spark.range(2, 4).createOrReplaceTempView("icefield_change_ids")
    try:
        table.delete("id IN (SELECT id FROM icefield_change_ids)", engine="spark")
        table.update(
            {"v": "(SELECT max(id) FROM icefield_change_ids) * 10"},
            "EXISTS (SELECT 1 FROM icefield_change_ids i WHERE i.id + 2 = target.id)",
            engine="spark",
        )
    finally:
        spark.catalog.dropTempView("icefield_change_ids")
    assert rows_of(table) == [(0, 0), (1, 1), (4, 30), (5, 30)]
