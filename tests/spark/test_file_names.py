"""Spark reads columns by the names that files are known to have, and skips row groups there; others it reads whole."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.foreign_files import add_file, forget_schemas, scanned_rows, stored
from tests.spark_places import SparkPlace, chosen_place, explained

from icefield.lake import Lake
from icefield.spark.read import file_names
from icefield.spark.read.file_names import Demands, Reading, group_by_names
from icefield.table.table import Table

IN_PLACE = {"write.delete.mode": "merge-on-read"}
ROWS, GROUP_ROWS = 40_000, 10_000
SMALL_GROUPS = {"write.parquet.row-group-size-bytes": "200000", **IN_PLACE}
LONG = pa.int64()
in_this_process = pytest.mark.skipif(chosen_place() is SparkPlace.CONNECT, reason="Spark Connect shows no metrics")


@pytest.fixture
def renamed(lake: Lake) -> Table:
    """Rows 0 to 9 under `x`, 10 to 19 under `y`, 20 to 29 under `z`, which it is called now."""
    table = lake.create_table("a.t", "id long, x long", properties=IN_PLACE)
    for number, name in enumerate("xyz"):
        if number:
            with table.evolve() as change:
                change.rename_column("xyz"[number - 1], name)
        ids = list(range(number * 10, number * 10 + 10))
        table.append(pa.table({"id": ids, name: ids}))
    return table


def readings(table: Table) -> list[Reading]:
    files = table.scan()._plan.files
    none = np.zeros(files.num_rows, np.bool_)
    groups = list(group_by_names(table._context.store, table.metadata, table.schema, files, Demands(none, none)))
    paths = [path for _, group in groups for path in group["file_path"].to_pylist()]
    assert sorted(paths) == sorted(files["file_path"].to_pylist())
    return [reading for reading, _ in groups]


def names(table: Table) -> list[dict[int, str]]:
    return sorted((dict(reading.names) for reading in readings(table)), key=str)


def found(table: Table, where: str) -> list[int]:
    given = table.scan(where).to_spark()
    above = table.scan().to_spark().where(where)
    ids = sorted(row.id for row in given.collect())
    assert ids == sorted(row.id for row in above.collect())
    assert ids == sorted(table.scan(where).to_arrow().read_all()["id"].to_pylist())
    return ids


@pytest.mark.spark
def test_filters_reach_parquet_under_the_name_of_the_file(renamed: Table, spark: SparkSession) -> None:
    plan = explained(renamed.scan().to_spark().where("z = 5"))
    assert all(f"EqualTo({name},5)" in plan for name in "xyz")
    assert renamed.scan().to_spark().columns == ["id", "z"]
    assert found(renamed, "z IN (5, 15, 25)") == [5, 15, 25]
    renamed.delete("z IN (5, 25)")
    assert found(renamed, "z IN (5, 15, 25)") == [15]
    renamed.overwrite(pa.table({"id": [100], "z": [100]}), where="z > 15")
    assert found(renamed, "z > 8") == [9, 10, 11, 12, 13, 14, 15, 100]


def test_every_file_has_the_names_that_it_was_written_with(renamed: Table) -> None:
    assert names(renamed) == [{1: "id", 2: "x"}, {1: "id", 2: "y"}, {1: "id", 2: "z"}]
    renamed.compact()
    assert names(renamed) == [{1: "id", 2: "z"}]


def test_names_of_schemas_that_are_gone_are_not_used(lake: Lake, renamed: Table) -> None:
    assert names(forget_schemas(lake, renamed)) == [{1: "id", 2: "z"}, {}]


@pytest.mark.spark
def test_a_name_that_was_given_away_is_used_where_it_is_right(renamed: Table, spark: SparkSession) -> None:
    with renamed.evolve() as change:
        change.add_column("x", "long")
    renamed.append(pa.table({"id": [30], "z": [30], "x": [5]}))
    assert found(renamed, "z = 5") == [5]
    assert found(renamed, "x = 5") == [30]
    assert found(renamed, "x IS NULL AND z < 2") == [0, 1]


def test_few_groups_are_made_and_no_file_is_lost(lake: Lake) -> None:
    table = lake.create_table("a.many", "id long, c0 long")
    for number in range(8):
        table.append(pa.table({"id": [number], f"c{number}": [number]}))
        with table.evolve() as change:
            change.rename_column(f"c{number}", f"c{number + 1}")
    assert 1 < len(readings(table)) <= 5


def test_names_of_others_come_from_footers(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table("a.t", "id long, x long, n int, d double, s struct<a: long>, u string")
    fields = [stored("id", LONG, 1), stored("Other", LONG, 2), stored("n", pa.int16(), 3)]
    fields += [stored("d", pa.float64(), 4), stored("s", pa.struct([stored("b", LONG, 7)]), 5)]
    columns: list[Sequence[object]] = [[1], [1], [1], [1.0], [{"b": 1}]]
    location = add_file(table, fields, columns)
    assert names(table) == [{}]
    monkeypatch.setattr(file_names, "LEAST_BYTES", 0)
    assert names(table) == [{1: "id", 2: "Other"}]
    assert readings(table)[0].known == {1, 2, 4, 6}
    monkeypatch.setattr(file_names, "MOST_FOOTERS", 0)
    assert names(table) == [{}]
    monkeypatch.undo()
    monkeypatch.setattr(file_names, "LEAST_BYTES", 0)
    table._context.store.delete(location)
    assert names(table) == [{}]  # what is missing is for the reader to say


def numbers() -> pa.Table:
    values = np.arange(ROWS)
    plain = {"id": values, "n": values, "t": [f"{n:08d}" for n in values.tolist()]}
    return pa.table(plain | {"s": pa.array([{"n": n} for n in values.tolist()])})


@pytest.mark.spark
@in_this_process
def test_row_groups_of_our_own_files_are_skipped(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("a.own", "id long, n long, t string, s struct<n: long>", properties=SMALL_GROUPS)
    table.append(numbers())
    with table.evolve() as change:
        change.rename_column("n", "m")
        change.add_column("more", "long")
    for where in ("m = 17", "t = '00000017'", "s.n = 17"):
        for frame in (table.scan().to_spark().where(where), table.scan(where).to_spark()):
            rows, scanned = scanned_rows(frame)
            assert [row.id for row in rows] == [17]
            assert scanned < ROWS / 2, where
    forgotten = forget_schemas(lake, table)
    rows, scanned = scanned_rows(forgotten.scan().to_spark().where("m = 17"))
    assert ([row.id for row in rows], scanned) == ([17], ROWS)


@pytest.mark.spark
@in_this_process
def test_row_groups_of_large_files_of_others_are_skipped(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("a.theirs", "id long, n long, m long")
    values = range(ROWS)
    fields = [stored("id", LONG, 1), stored("m", LONG, 2), stored("n", LONG, 3)]
    add_file(table, fields, [values, values, [ROWS - n for n in values]], row_group_size=GROUP_ROWS)
    for least_bytes, most_scanned in ((0, ROWS / 2), (file_names.LEAST_BYTES, ROWS)):
        monkeypatch.setattr(file_names, "LEAST_BYTES", least_bytes)
        rows, scanned = scanned_rows(table.scan().to_spark().where("n = 17"))
        assert [row.id for row in rows] == [17]
        assert scanned <= most_scanned
