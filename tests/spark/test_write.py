"""Writing through Spark: how rows come together, what files say of their order, and what the session is like after."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icefield.errors import SchemaMismatch, StorageError
from icefield.lake import Lake
from icefield.spark.write.settings import TASK_BYTES, changed_task_bytes
from icefield.storage.location import local_path
from icefield.table.table import Table

pytestmark = pytest.mark.spark


def files(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.inspect("files").to_arrow().read_all().to_pylist()
    return found


def ids_by_file(table: Table) -> list[list[int]]:
    rows = table.scan(select=["_file", "_pos", "id"]).to_arrow().read_all().to_pylist()
    found: dict[str, list[int]] = {}
    for row in sorted(rows, key=lambda row: int(row["_pos"])):
        found.setdefault(row["_file"], []).append(row["id"])
    return list(found.values())


def data_on_disk(table: Table) -> set[Path]:
    return {path for path in Path(local_path(table.location), "data").rglob("*") if path.is_file()}


def test_rows_of_a_partition_come_together_unless_the_mode_is_none(lake: Lake, spark: SparkSession) -> None:
    frame = spark.range(0, 400, 1, 4).selectExpr("id", "id % 3 AS p")
    table = lake.create_table("s.t", "id long, p long", partition_by=["p"])
    table.append(frame)
    assert len(files(table)) == 3
    table.overwrite(frame, options={"distribution-mode": "none"})
    assert len(files(table)) == 12
    table.set_properties({"write.distribution-mode": "none"})
    table.overwrite(frame)
    assert len(files(table)) == 12
    table.overwrite(frame, options={"write.distribution-mode": "hash"})
    assert len(files(table)) == 3
    assert table.count() == 400


def test_an_ordered_table_is_cut_into_ranges(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long, x long", order_by=["x desc"])
    # Spark puts less than a megabyte together again.
    rows = spark.range(0, 400_000, 1, 4).selectExpr("id", "hash(id) % 1000 AS x")
    table.append(rows, options={"advisory-partition-size": "1000"})
    found = table.scan(select=["_file", "_pos", "x"]).to_arrow().read_all().to_pylist()
    by_file: dict[str, list[int]] = {}
    for row in sorted(found, key=lambda row: int(row["_pos"])):
        by_file.setdefault(row["_file"], []).append(row["x"])
    assert len(by_file) > 1
    assert all(values == sorted(values, reverse=True) for values in by_file.values())
    spans = sorted((min(values), max(values)) for values in by_file.values())
    assert all(before[1] < after[0] for before, after in pairwise(spans))


def test_partitions_are_cut_into_ranges_on_demand(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long, p long", partition_by=["p"], order_by=["id"])
    table.append(spark.range(0, 400, 1, 4).selectExpr("id", "id % 3 AS p"), options={"distribution-mode": "range"})
    assert all(ids == sorted(ids) and len({i % 3 for i in ids}) == 1 for ids in ids_by_file(table))
    assert table.count() == 400


def test_files_say_that_they_are_sorted_where_they_are(lake: Lake, spark: SparkSession) -> None:
    frame = spark.range(0, 100, 1, 2).selectExpr("id", "cast(id AS double) AS d")
    ordered = lake.create_table("s.a", "id long, d double", order_by=["d desc"])
    ordered.append(frame, options={"distribution-mode": "none"})
    assert {f["sort_order_id"] for f in files(ordered)} == {ordered.metadata.default_sort_order_id} != {0}
    unordered = lake.create_table("s.c", "id long, d double")
    unordered.append(frame)
    ordered.overwrite(ordered.scan().to_arrow().read_all())  # Arrow rows are written as they come
    assert {f["sort_order_id"] for table in (unordered, ordered) for f in files(table)} <= {None, 0}


def test_a_session_has_its_settings_again_after_a_write(lake: Lake, spark: SparkSession) -> None:
    spark.conf.unset(TASK_BYTES)
    before = spark.conf.get(TASK_BYTES)
    table = lake.create_table("s.t", "id long")
    table.append(spark.range(5))
    assert spark.conf.get(TASK_BYTES) == before
    with pytest.raises(PySparkException):
        table.append(spark.range(5).selectExpr("cast(raise_error('no') AS bigint) AS id"))
    assert spark.conf.get(TASK_BYTES) == before


def test_writes_that_overlap_leave_the_settings_as_they_were(spark: SparkSession) -> None:
    before = spark.conf.get(TASK_BYTES)
    one, other = changed_task_bytes(spark, 5), changed_task_bytes(spark, 6)
    one.__enter__()
    other.__enter__()
    assert spark.conf.get(TASK_BYTES) == "6b"
    one.__exit__(None, None, None)
    other.__exit__(None, None, None)
    assert spark.conf.get(TASK_BYTES) == before


def test_a_setting_that_the_user_made_is_there_again(spark: SparkSession) -> None:
    before = spark.conf.get(TASK_BYTES)
    spark.conf.set(TASK_BYTES, "123b")
    try:
        with changed_task_bytes(spark, 5):
            assert spark.conf.get(TASK_BYTES) == "5b"
        assert spark.conf.get(TASK_BYTES) == "123b"
    finally:
        spark.conf.set(TASK_BYTES, before or "64MB")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["name"], "required column 'id' is missing"),
        (["id", "name", "1 AS more"], "column 'more' is not in the table"),
        (["cast(id AS string) AS id", "name"], "column 'id' is string, but the table has long"),
        (["id", "named_struct('x', 1) AS name"], "column 'name' is struct"),
        (["if(id = 3, NULL, id) AS id", "name"], "required column 'id' holds 1 null"),
    ],
)
def test_rows_that_do_not_fit_are_refused_in_clear_words(
    lake: Lake, spark: SparkSession, columns: list[str], said: str
) -> None:
    table = lake.create_table("s.t", "id long not null, name string")
    frame = spark.range(10).selectExpr("id", "'n' AS name").selectExpr(*columns)
    with pytest.raises(SchemaMismatch, match=said):
        table.append(frame)
    with pytest.raises(SchemaMismatch, match=said):
        table.append(frame.toArrow())
    assert not data_on_disk(table)


def test_a_schema_is_merged_with_the_rows_in_one_commit(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id int not null, name string")
    table.append(spark.range(2).selectExpr("cast(id AS int) AS id", "'n' AS name"))
    before = table.metadata_location
    table.append(spark.range(2, 4).selectExpr("id", "named_struct('x', id) AS deep"), merge_schema=True)
    assert [entry.metadata_file for entry in table.metadata.metadata_log][-1] == before
    assert sorted(map(str, table.scan().to_spark().collect())) == [
        "Row(id=0, name='n', deep=None)",
        "Row(id=1, name='n', deep=None)",
        "Row(id=2, name=None, deep=Row(x=2))",
        "Row(id=3, name=None, deep=Row(x=3))",
    ]
    assert table.schema.find_field("id").required


def test_options_of_parquet_reach_the_tasks(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long")
    frame = spark.range(0, 300_000, 1, 1)
    table.append(frame, options={"target-file-size-bytes": "100000", "compression-codec": "uncompressed"})
    sizes = [f["file_size_in_bytes"] for f in files(table)]
    assert 20 < len(sizes) < 32
    assert sum(75_000 <= size <= 125_000 for size in sizes) >= len(sizes) - 1


def test_a_store_that_cannot_be_written_is_told_in_one_line(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("a.t", "id long")
    data = Path(local_path(table.location)) / "data"
    data.write_text("a file where a directory should be")
    with pytest.raises(StorageError, match=r"^cannot write file:.*[Nn]ot a directory") as caught:
        table.append(spark.range(3))
    assert "Traceback" not in str(caught.value)
    data.unlink()
    assert table.append(spark.range(3)) is not None
    assert table.count() == 3
