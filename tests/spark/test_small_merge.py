"""Merges of small sources: tasks find the rows that match, and this process applies the clauses."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.merge_paths import MergePath, take_path
from tests.spark_places import SparkPlace, changed, chosen_place

from icefield.dml.result import ChangeResult
from icefield.lake import Lake
from icefield.spark.change import range_merge, small_merge
from icefield.spark.change.change import SparkChange
from icefield.table.table import Table

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(chosen_place() is SparkPlace.CONNECT, reason="a client does not know the size of a source"),
]


@pytest.fixture
def table(lake: Lake) -> Table:
    """Two files of two days; one row of the first is deleted by a vector."""
    properties = {"write.merge.mode": "merge-on-read", "write.delete.mode": "merge-on-read"}
    made = lake.create_table(
        "a.t", "id long, n long, p string", partition_by=["p"], format_version=3, properties=properties
    )
    made.append(pa.table({"id": range(10), "n": [0] * 10, "p": ["a"] * 5 + ["b"] * 5}))
    made.delete("id = 1")
    return made


@pytest.fixture
def shuffles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The changes that were shuffled, as all are that are not small."""
    monkeypatch.setattr(range_merge, "MOST_RANGED_FILES", 0)
    found, run = list[str](), SparkChange.run

    def noting(change: SparkChange, *given: Any, **named: Any) -> Any:
        found.append(change.plan.settings.mode)
        return run(change, *given, **named)

    monkeypatch.setattr(SparkChange, "run", noting)
    return found


def run(table: Table, spark: SparkSession) -> ChangeResult:
    """Update one row of each file, insert the deleted row and another; a null key matches nothing."""
    rows = ", ".join(f"({key}, 7L, 'b')" for key in ("1L", "2L", "8L", "99L", "NULL"))
    source = spark.sql(f"SELECT * FROM VALUES {rows} AS s(id, n, p)")
    begun = table.merge(source, "target.id = source.id").when_matched().update({"n": "target.n + source.n"})
    return begun.when_not_matched().insert_all().execute()


def check(table: Table, before: dict[int, int], done: ChangeResult) -> None:
    rows = table.scan(select=["id", "n", "_row_id"]).to_arrow().read_all().to_pylist()
    found = {row["id"]: row["n"] for row in rows}
    assert found == dict.fromkeys((0, 3, 4, 5, 6, 7, 9), 0) | dict.fromkeys((1, 2, 8, 99, None), 7)
    assert (done.rows_matched, done.rows_updated, done.rows_inserted) == (2, 2, 3)
    ids = {row["id"]: row["_row_id"] for row in rows}
    assert {key: ids[key] for key in before} == before
    vectors = table.inspect("delete_files").to_arrow().read_all()["referenced_data_file"].to_pylist()
    assert len(vectors) == len(set(vectors)) == 2
    assert done.files_added == 2  # updated and inserted rows of a partition are in one file


def row_ids(table: Table) -> dict[int, int]:
    rows = table.scan(select=["id", "_row_id"]).to_arrow().read_all().to_pylist()
    return {row["id"]: row["_row_id"] for row in rows}


def test_a_small_source_is_merged_without_a_shuffle(table: Table, spark: SparkSession, shuffles: list[str]) -> None:
    before = row_ids(table)
    check(table, before, run(table, spark))
    assert not shuffles
    # Files that may be rewritten are rewritten by tasks.
    table.upsert(pa.table({"id": [3], "n": [1], "p": ["a"]}), ["id"], mode="copy-on-write", engine="spark")
    assert shuffles == ["copy-on-write"]


def test_a_small_source_that_matches_too_much_is_shuffled(
    table: Table, spark: SparkSession, shuffles: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_merge, "MOST_MATCHED_BYTES_OF_GROUP", 1)
    before = row_ids(table)
    check(table, before, run(table, spark))
    assert shuffles == ["merge-on-read"]


def test_a_value_that_only_spark_evaluates_is_evaluated_by_spark(
    table: Table, spark: SparkSession, shuffles: list[str], tmp_path: Path
) -> None:
    """Whether `upper` is certain to be Spark's depends on the characters of a row."""
    rows = pa.table({"id": [2, 3, 99], "n": [1, 1, 1], "p": ["\u0264", "c", "c"]})
    begun = table.merge(rows, ["id"], engine="spark").when_matched().update({"p": "upper(source.p)"})
    assert begun.when_not_matched().insert_all().execute().rows_updated == 2
    assert table.update({"p": "upper(p)"}, "id IN (2, 99)", engine="spark").rows_updated == 2
    assert len(shuffles) == 2
    found = table.scan("id IN (3, 99)", select=["p"]).to_arrow().read_all()
    assert found["p"].to_pylist() == ["C", "C"]
    listed = set(table.inspect("all_files").to_arrow().read_all()["file_path"].to_pylist())
    written = {path.name for suffix in ("parquet", "puffin") for path in tmp_path.rglob(f"*.{suffix}")}
    assert written == {location.rpartition("/")[2] for location in listed}


def test_a_session_without_ansi_mode_evaluates_all_expressions(
    table: Table, spark: SparkSession, shuffles: list[str]
) -> None:
    rows = pa.table({"id": [2, 8], "n": [0, 1], "p": ["a", "b"]})
    with changed(spark, {"spark.sql.ansi.enabled": "false"}):
        table.merge(rows, ["id"], engine="spark").when_matched().update({"n": "1 / source.n"}).execute()
        table.update({"n": "1 / n"}, "id = 3", engine="spark")
        assert len(shuffles) == 2
        assert table.upsert(rows.select(["id", "p"]), ["id"], engine="spark").rows_updated == 2
        assert len(shuffles) == 2  # there is no expression
    found = table.scan("id IN (2, 3, 8)", select=["id", "n"]).to_arrow().read_all().sort_by("id")
    assert found["n"].to_pylist() == [None, None, 1]


@pytest.mark.usefixtures("spark")
def test_a_shuffled_merge_takes_default_as_the_small_one_does(
    table: Table, shuffles: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    take_path(monkeypatch, MergePath.SHUFFLE)
    begun = table.merge(pa.table({"id": [2, 99]}), ["id"], engine="spark").when_matched().update({"n": "DEFAULT"})
    done = begun.when_not_matched().insert({"id": "source.id", "n": " default "}).execute()
    assert (done.rows_updated, done.rows_inserted, len(shuffles)) == (1, 1, 1)
    assert table.scan("n IS NULL").count() == 2
