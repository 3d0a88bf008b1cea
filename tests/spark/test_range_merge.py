"""Merges by ranges of keys: each task merges the files of one range with the source rows that belong to it."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.effort import seeds
from tests.spark.merge_paths import MergePath, take_path
from tests.spark_places import SparkPlace, changed, chosen_place

from icefield.dml.result import ChangeResult
from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.spark.change import range_merge
from icefield.spark.change.change import SparkChange
from icefield.spark.change.range_merge import RangeMerge
from icefield.table.table import Table

pytestmark = pytest.mark.spark
MODES = ("copy-on-write", "merge-on-read", "auto")


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """How merges were run: the number of groups, or "shuffle"."""
    take_path(monkeypatch, MergePath.RANGES)
    found: list[object] = []
    run, shuffle = RangeMerge.run, SparkChange.run

    def by_ranges(merge: RangeMerge) -> Any:
        found.append(len(merge._chosen[1]))
        return run(merge)

    def shuffled(change: SparkChange, *given: Any, **named: Any) -> Any:
        found.append("shuffle")
        return shuffle(change, *given, **named)

    monkeypatch.setattr(RangeMerge, "run", by_ranges)
    monkeypatch.setattr(SparkChange, "run", shuffled)
    return found


@pytest.fixture
def table(lake: Lake) -> Table:
    """Three files of ten keys each, two partitions, one row deleted."""
    return make(lake)


def make(lake: Lake, **more: Any) -> Table:
    properties = {"write.delete.mode": "merge-on-read", **more.pop("properties", {})}
    made = lake.create_table(
        "a.t", "id long, n long, p string", partition_by=["p"], format_version=3, properties=properties, **more
    )
    for first, part in ((0, "a"), (10, "a"), (20, "b")):
        made.append(pa.table({"id": range(first, first + 10), "n": [0] * 10, "p": [part] * 10}))
    made.delete("id = 11", engine="local")
    return made


def run(table: Table, spark: SparkSession, mode: str | None = None) -> ChangeResult:
    """Update rows at both ends of files, insert a deleted key and others, and delete what the source has not."""
    keys = ("-5L", "0L", "9L", "10L", "11L", "19L", "29L", "30L", "99L", "NULL")
    rows = ", ".join(f"({key}, 7L, 'b')" for key in keys)
    source = spark.sql(f"SELECT * FROM VALUES {rows} AS s(id, n, p)")
    begun = table.merge(source, "target.id = source.id", mode=mode, engine="spark")
    begun = begun.when_matched("target.id = 19").delete().when_matched().update({"n": "target.n + source.n"})
    return begun.when_not_matched().insert_all().when_not_matched_by_source("target.id = 25").delete().execute()


def check(table: Table, before: dict[int, int], done: ChangeResult) -> None:
    rows = table.scan(select=["id", "n", "_row_id"]).to_arrow().read_all().to_pylist()
    untouched = set(range(30)) - {0, 9, 10, 11, 19, 25, 29}
    assert {row["id"]: row["n"] for row in rows} == dict.fromkeys(untouched, 0) | dict.fromkeys(
        (-5, 0, 9, 10, 11, 29, 30, 99, None), 7
    )
    assert len(rows) == len(untouched) + 9
    counts = (done.rows_matched, done.rows_updated, done.rows_deleted, done.rows_inserted)
    assert counts == (5, 4, 2, 5)
    ids = {row["id"]: row["_row_id"] for row in rows}
    assert {key: ids[key] for key in before if key in ids} == {key: before[key] for key in before if key in ids}
    vectors = table.inspect("delete_files").to_arrow().read_all()["referenced_data_file"].to_pylist()
    assert len(vectors) == len(set(vectors))


def row_ids(table: Table) -> dict[int, int]:
    rows = table.scan(select=["id", "_row_id"]).to_arrow().read_all().to_pylist()
    return {row["id"]: row["_row_id"] for row in rows}


def check_that_nothing_is_left(table: Table, folder: Path) -> None:
    listed = set(table.inspect("all_files").to_arrow().read_all()["file_path"].to_pylist())
    written = {path.name for suffix in ("parquet", "puffin") for path in folder.rglob(f"*.{suffix}")}
    assert written == {location.rpartition("/")[2] for location in listed}


@pytest.mark.parametrize("mode", MODES)
def test_each_range_is_merged_alone(
    table: Table, spark: SparkSession, paths: list[object], mode: str, tmp_path: Path
) -> None:
    before = row_ids(table)
    check(table, before, run(table, spark, mode))
    assert paths == [3]
    check_that_nothing_is_left(table, tmp_path)


def test_all_of_it_may_be_one_range(table: Table, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    take_path(monkeypatch, MergePath.RANGES)
    monkeypatch.setattr(range_merge, "GROUP_BYTES", 1 << 30)
    check(table, row_ids(table), run(table, spark))


def test_without_repartition_by_id_a_task_has_several_groups(
    table: Table, spark: SparkSession, paths: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_merge, "HAS_REPARTITION_BY_ID", False)
    check(table, row_ids(table), run(table, spark))
    assert paths == [3]


def test_two_source_rows_for_one_row_are_refused_and_nothing_is_left(
    table: Table, spark: SparkSession, paths: list[object], tmp_path: Path
) -> None:
    twice = spark.sql("SELECT * FROM VALUES (3L, 1L, 'a'), (25L, 1L, 'a'), (25L, 2L, 'b') AS s(id, n, p)")
    with pytest.raises(InvalidInput, match=r"two source rows match the row of the table with the key \{'id': 25\}"):
        table.merge(twice, ["id"], engine="spark").when_matched().update_all().execute()
    assert paths == [2]
    check_that_nothing_is_left(table, tmp_path)


@pytest.mark.usefixtures("spark")
def test_a_dry_run_writes_nothing(table: Table, paths: list[object], tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 25, 99], "n": [1, 1, 1], "p": ["a", "b", "c"]})
    done = table.upsert(rows, ["id"], engine="spark", mode="auto", dry_run=True)
    assert (done.rows_updated, done.rows_inserted, paths) == (2, 1, [2])
    check_that_nothing_is_left(table, tmp_path)


REASONS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "many bytes": lambda patch: patch.setattr(range_merge, "MOST_SOURCE_BYTES", 1),
    "many rows": lambda patch: patch.setattr(range_merge, "MOST_SOURCE_ROWS", 1),
    "large files": lambda patch: patch.setattr(range_merge, "MOST_GROUP_BYTES", 1),
    "many files": lambda patch: patch.setattr(range_merge, "MOST_RANGED_FILES", 2),
    "many partitions": lambda patch: patch.setattr(range_merge, "MORE_PARTITIONS", -1),
    "shared partitions": lambda patch: patch.setattr(RangeMerge, "_keeps_files_together", lambda *_: False),
}


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.every_case
def test_what_does_not_suit_ranges_is_shuffled(
    table: Table,
    spark: SparkSession,
    paths: list[object],
    tmp_path: Path,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    REASONS[reason](monkeypatch)
    check(table, row_ids(table), run(table, spark))
    assert paths[-1] == "shuffle"
    check_that_nothing_is_left(table, tmp_path)


def test_tables_and_sessions_that_do_not_suit_ranges(lake: Lake, spark: SparkSession, paths: list[object]) -> None:
    rows = pa.table({"id": [1, 25, 99], "n": [1, 1, 1], "p": ["a", "b", "c"]})
    unsuitable: list[dict[str, Any]] = [
        {"order_by": ["n"]},
        {"properties": {"write.merge.distribution-mode": "range"}},
        {"properties": {"write.metadata.metrics.default": "none"}},
    ]
    for number, more in enumerate(unsuitable):
        table = make(lake, **more)
        assert table.upsert(rows, ["id"], engine="spark").rows_updated == 2
        assert paths == ["shuffle"] * (number + 1), more
        lake.drop_table("a.t")
    table = make(lake)
    with changed(spark, {"spark.sql.ansi.enabled": "false"}):
        table.merge(rows, ["id"], engine="spark").when_matched().update({"n": "1 / (source.n - 1)"}).execute()
    assert paths[-1] == "shuffle"
    assert table.scan("n IS NULL").count() == 2


KEYS: dict[str, Callable[[int], Any]] = {
    "int": lambda n: n - 40,
    "long": lambda n: n * 2**55 - 2**62,
    "string": lambda n: "a beginning " + chr(0x41 + n % 7) + chr(0x1F600 + n) + " and a long end",  # bounds are cut off
    "date": lambda n: dt.date(1969, 11, 1) + dt.timedelta(n),
    "timestamp": lambda n: dt.datetime(1969, 12, 31, 23, 59, 59) + dt.timedelta(microseconds=n * 50_000),
    "timestamptz": lambda n: dt.datetime(1969, 12, 31, 23, 59, tzinfo=dt.UTC) + dt.timedelta(seconds=n * 3),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("seed", seeds(1, deep=20))
def test_keys_of_every_type_find_their_rows(
    lake: Lake, spark: SparkSession, paths: list[object], kind: str, seed: int
) -> None:
    random, key_of = Random(f"{kind} {seed}"), KEYS[kind]
    table = lake.create_table("a.t", f"id {kind}, n long", format_version=random.choice((2, 3)))
    arrow = table.scan(select=["id"]).to_arrow().schema
    keys = sorted(key_of(n) for n in random.sample(range(90), 40))

    def rows(chosen: list[Any], value: int) -> pa.Table:
        return pa.table({"id": pa.array(chosen, arrow.field("id").type), "n": [value] * len(chosen)})

    for start in range(0, 40, 8):
        table.append(rows(random.sample(keys[start : start + 8], 8), 0), engine="local")
    source = sorted({*random.sample(keys, 20), *(key_of(n) for n in random.sample(range(90), 20))})
    zone = random.choice(("UTC", "America/St_Johns", "Asia/Tokyo"))
    with changed(spark, {"spark.sql.session.timeZone": zone}):
        done = table.upsert(rows(source, 1), ["id"], mode=random.choice(MODES), engine="spark")
    assert isinstance(paths[0], int)
    assert paths[0] > 1
    assert done.rows_updated == len(set(source) & set(keys))
    found = {row["id"]: row["n"] for row in table.scan().to_arrow().read_all().to_pylist()}
    assert found == dict.fromkeys(keys, 0) | dict.fromkeys(source, 1)
    assert table.count() == len(set(keys) | set(source))


@pytest.mark.skipif(chosen_place() is not SparkPlace.LOCAL, reason="the mistake is made in this process")
def test_a_row_that_goes_to_the_wrong_range_is_found(
    table: Table, spark: SparkSession, paths: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of these tests: keys at the start of a range are sent to the range before."""
    right = range_merge.group_of_key
    monkeypatch.setattr(range_merge, "group_of_key", lambda *given: right(*given).replace("<", "<="))
    before = row_ids(table)
    with pytest.raises(AssertionError):
        check(table, before, run(table, spark))
    assert paths == [3]
