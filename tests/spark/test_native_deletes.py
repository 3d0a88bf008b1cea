"""Deletes in Spark's own reader: the rows are those that the Arrow reader gives, and no Python runs on them."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.equality_deletes import delete_keys
from tests.spark_places import explained

from icefield.lake import Lake
from icefield.spark.read import native_deletes
from icefield.spark.read.file_names import INNER_ROW_NUMBER
from icefield.table.scan import TableScan
from icefield.table.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("generated_code")]
IN_PLACE = {"write.delete.mode": "merge-on-read"}
EVERYTHING = ["id", "p", "name", "_file", "_pos", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"]


def is_native(frame: DataFrame) -> bool:
    text = explained(frame)
    return "FileScan parquet" in text and "MapInArrow" not in text


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(str(tuple(row.asDict(recursive=True).values())) for row in frame.collect())


def arrow_rows(scan: TableScan) -> list[str]:
    return sorted(str(tuple(row.values())) for row in scan.to_arrow().read_all().to_pylist())


def check(table: Table, where: str | None = None, select: list[str] | None = None) -> int:
    scan = table.scan(where, select=select)
    frame = scan.to_spark()
    assert is_native(frame)
    assert rows_of(frame) == arrow_rows(scan)
    return int(frame.count())


@pytest.fixture(params=[2, 3], ids=["position-deletes", "vectors"])
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    made = lake.create_table(
        "a.t", "id long, p int, name string", partition_by=["p"], properties=IN_PLACE, format_version=request.param
    )
    for first in range(0, 300, 100):
        ids = range(first, first + 100)
        columns = {"id": ids, "p": pa.array([i % 3 for i in ids], pa.int32()), "name": [f"n{i % 7}" for i in ids]}
        made.append(pa.table(columns))
    return made


def test_deleted_positions_are_gone(table: Table, spark: SparkSession) -> None:
    table.delete("id IN (0, 1, 2, 63, 64, 65, 127, 128, 299)")
    assert check(table) == 291
    assert check(table, "id < 70 AND name = 'n1'") == 8
    assert check(table, "p = 0", select=["name"]) > 0
    table.delete("id < 50 AND name = 'n2'")
    table.append(pa.table({"id": [1000], "p": pa.array([0], pa.int32()), "name": ["new"]}))
    assert check(table) == table.count()


def test_metadata_columns_come_from_the_place_of_a_row(table: Table, spark: SparkSession) -> None:
    assert check(table, select=EVERYTHING) == 300
    table.delete("id IN (5, 6, 200)")
    assert check(table, select=EVERYTHING) == 297
    assert check(table, "_pos < 5 AND _partition.p = 1", select=["id", "_pos"]) == 15
    file = table.scan().files()["file_path"][0].as_py()
    assert check(table, f"_file = '{file}'", select=["id", "_file"]) in (32, 33, 34)


def test_deleted_rows_can_be_asked_for(table: Table, spark: SparkSession) -> None:
    table.delete("id IN (5, 6, 200)")
    assert check(table, select=["id", "_deleted"]) == 300
    assert table.scan(select=["id", "_deleted"]).count() == 300
    assert check(table, "_deleted", select=["id"]) == 3
    assert table.scan("_deleted").count() == 3
    assert table.scan("NOT _deleted").count() == 297


def test_columns_that_nobody_looks_at_are_no_hindrance(table: Table, spark: SparkSession) -> None:
    # Spark refuses the cheap number of a row beside the whole of `_metadata`, which is there if no part of it is used.
    table.delete("id IN (5, 6, 200)")
    for column, left in (("_deleted", 300), ("_file", 297), ("_row_id", 297)):
        frame = table.scan(select=["id", column, "_pos"]).to_spark()
        assert len(frame.select("id", "_pos").collect()) == left, column
        assert frame.where("_pos < 1000").select("id").count() == left, column
        assert table.scan("_pos = 3", select=["id", column]).to_spark().select("id").count() == 9, column
    assert table.scan("_pos = 3", select=["id"]).to_spark().count() == 9


def test_a_large_bitmap_is_shared_out_among_scans(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.delete("id IN (5, 6, 105, 110, 200, 201)")
    monkeypatch.setattr(native_deletes, "MOST_WORDS", 2)
    assert check(table, select=["id", "_pos", "_file"]) == 294
    monkeypatch.setattr(native_deletes, "MOST_SCANS", 1)
    frame = table.scan().to_spark()
    assert not is_native(frame)
    assert rows_of(frame) == arrow_rows(table.scan())


def test_overwrite_keeps_deleted_rows_deleted(table: Table, spark: SparkSession) -> None:
    table.delete("id IN (5, 6, 200)")
    table.overwrite(table.scan("id < 0").to_spark(), where="id >= 250")
    assert check(table) == 247


def test_a_column_of_ours_may_be_called_anything(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("a.odd", "`_metadata` long, icefield_row long, icefield_file string", properties=IN_PLACE)
    table.append(pa.table({"_metadata": [1, 2, 3], "icefield_row": [7, 8, 9], "icefield_file": ["a", "b", "c"]}))
    table.delete("icefield_row = 8")
    assert check(table) == 2
    assert check(table, select=["_pos", "icefield_row", "_metadata"]) == 2


def test_a_column_may_be_called_as_spark_calls_the_number_of_a_row(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("a.odd", f"id long, {INNER_ROW_NUMBER} long", properties=IN_PLACE)
    table.append(pa.table({"id": [1, 2, 3], INNER_ROW_NUMBER: [7, 8, 9]}))
    table.delete("id = 2")
    scan = table.scan(select=["id", INNER_ROW_NUMBER, "_pos"])
    assert rows_of(scan.to_spark()) == arrow_rows(scan) == ["(1, 7, 0)", "(3, 9, 2)"]
    assert table.scan(select=["id"]).to_spark().count() == 2


@pytest.fixture
def keyed(lake: Lake) -> Table:
    """A table whose rows were deleted by key at several moments, in one partition and everywhere."""
    table = lake.create_table("a.k", "id long, p int, name string", partition_by=["p"])
    everyone = {
        "id": [1, 2, 3, 4, 5, None],
        "p": pa.array([0, 0, 1, 1, 0, 1], pa.int32()),
        "name": ["a", "b", "c", "d", "e", None],
    }
    table.append(pa.table(everyone))
    delete_keys(table, {"id": [1, 3]}, partition={"p": 0})
    table.append(pa.table({"id": [1, 3], "p": pa.array([0, 0], pa.int32()), "name": ["again", "again"]}))
    delete_keys(table, {"id": [3, None], "name": ["again", None]}, partition={"p": 0})
    delete_keys(table, {"id": [4, None], "name": ["d", None]}, partition={"p": 1})
    return table


def test_keys_are_deleted_in_their_partition_and_from_older_files(keyed: Table, spark: SparkSession) -> None:
    assert check(keyed) == len([2, 3, 5, 1])
    assert sorted(r.id for r in keyed.scan().to_spark().collect()) == [1, 2, 3, 5]
    assert check(keyed, "name = 'again'", select=["p"]) == 1
    assert check(keyed, select=EVERYTHING[:-2]) == 4


def test_keys_and_positions_are_deleted_together(keyed: Table, spark: SparkSession) -> None:
    keyed.set_properties(IN_PLACE)
    keyed.delete("id = 2")
    assert check(keyed) == 3


def test_keys_of_a_dropped_column_still_delete(keyed: Table, spark: SparkSession) -> None:
    with keyed.evolve() as change:
        change.drop_column("name")
        change.add_column("name", "long")
    assert check(keyed) == 4


@pytest.mark.parametrize("bound", ["MOST_KEYS", "MOST_KEY_FILES"])
def test_many_keys_are_left_to_tasks(keyed: Table, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(native_deletes, bound, 1)
    frame = keyed.scan().to_spark()
    assert not is_native(frame)
    assert rows_of(frame) == arrow_rows(keyed.scan())
    marked = keyed.scan(select=["id", "_deleted"])
    assert rows_of(marked.to_spark()) == arrow_rows(marked)


def test_random_deletes(lake: Lake, spark: SparkSession) -> None:
    rng = np.random.default_rng(7)
    for version in (2, 3):
        table = lake.create_table(f"a.r{version}", "id long, v int", properties=IN_PLACE, format_version=version)
        for _ in range(3):
            ids = pa.array(rng.integers(0, 10_000, 500))
            table.append(pa.table({"id": ids, "v": pa.array(rng.integers(0, 5, 500), pa.int32())}))
            chosen = ", ".join(map(str, rng.choice(ids.to_numpy(), 60)))
            table.delete(f"id IN ({chosen}) OR (v = 3 AND id < 3000)")
        assert check(table, select=["id", "v", "_pos"]) == table.count() < 1500


def test_a_partition_without_a_zone_is_the_same_in_any_session(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("a.z", "id long, at timestamp, day date", partition_by=["at", "day"], format_version=3)
    table.append(spark.sql("SELECT 1L AS id, TIMESTAMP_NTZ '2026-01-02 03:04:05' AS at, DATE '2026-01-02' AS day"))
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
        frame = table.scan(select=["id", "_partition"]).to_spark()
        assert frame.schema["_partition"].dataType["at"].dataType.typeName() == "timestamp_ntz"
        assert check(table, "_partition.at = '2026-01-02T03:04:05'", select=["id", "_partition"]) == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
