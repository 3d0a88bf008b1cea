"""What every engine promises: the same rows from the same verb, whichever way the table's properties ask for.

Each test runs on the local engine and on Spark's. The tables have partitions, deletes of their own, and rows of an
older schema.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.effort import DEEP

from icefield.engine.choose import EngineName
from icefield.errors import ConcurrentChange, InvalidInput, SchemaMismatch, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table

MODES = [("copy-on-write", 2), ("copy-on-write", 3), ("merge-on-read", 2), ("merge-on-read", 3)]
ON_SPARK = MODES if DEEP else [("copy-on-write", 2), ("merge-on-read", 3)]
Row = tuple[int, str | None, str | None]


class Case(NamedTuple):
    """An engine, how the table changes rows, and its format version."""

    engine: EngineName
    mode: str
    version: int


CASES = [
    *(pytest.param(("local", *mode), id=f"local-{mode[0]}-{mode[1]}") for mode in MODES),
    *(pytest.param(("spark", *mode), id=f"spark-{mode[0]}-{mode[1]}", marks=pytest.mark.spark) for mode in ON_SPARK),
]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    found = Case(*request.param)
    if found.engine == "spark":
        request.getfixturevalue("spark")
    return found


def rows(*given: Row) -> pa.Table:
    ids, names, days = zip(*given, strict=True) if given else ((), (), ())
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string()), "day": pa.array(days)})


def make(lake: Lake, mode: str, version: int) -> Table:
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "merge")}
    table = lake.create_table(
        "a.t",
        "id long not null, before string, day string",
        partition_by=["day"],
        properties=properties,
        format_version=version,
    )
    old = rows((1, "one", "a"), (2, "two", "a"), (3, None, "b"))
    table.append(old.rename_columns(["id", "before", "day"]))
    with table.evolve() as change:
        change.rename_column("before", "name")
    table.append(rows((4, "four", "a"), (5, "five", "b"), (6, "six", None)))
    table.delete("id = 2", engine="local")
    return table


def rows_of(table: Table) -> list[Row]:
    read = table.scan().to_arrow().read_all().sort_by("id")
    return [(row["id"], row["name"], row["day"]) for row in read.to_pylist()]


def ids_of(table: Table) -> list[int]:
    return [row[0] for row in rows_of(table)]


def test_delete_removes_the_rows_that_match_and_no_other(lake: Lake, case: Case) -> None:
    table = make(lake, case.mode, case.version)
    result = table.delete("name = 'one' or id = 5", engine=case.engine)
    assert (result.rows_deleted, result.snapshot is None) == (2, False)
    assert ids_of(table) == [3, 4, 6]
    assert table.delete("name = 'one'", engine=case.engine).snapshot is None
    assert table.delete("day is null", engine=case.engine).rows_deleted == 1  # a whole file, by metadata
    assert ids_of(table) == [3, 4]
    assert table.count() == 2


def test_upsert_replaces_and_adds(lake: Lake, case: Case) -> None:
    table = make(lake, case.mode, case.version)
    before = _row_ids(table)
    new = rows((1, "eins", "a"), (5, "fünf", "c"), (7, "seven", "a"), (2, "back", "b"))
    result = table.upsert(new, on=["id"], engine=case.engine)
    assert (result.rows_updated, result.rows_inserted) == (2, 2)
    expected = [
        (1, "eins", "a"),
        (2, "back", "b"),
        (3, None, "b"),
        (4, "four", "a"),
        (5, "fünf", "c"),
        (6, "six", None),
        (7, "seven", "a"),
    ]
    assert rows_of(table) == expected
    if case.version == 3:
        after = _row_ids(table)
        assert {i: after[i] for i in (1, 3, 4, 5, 6)} == {i: before[i] for i in (1, 3, 4, 5, 6)}
        assert len(set(after.values())) == len(after)
        assert after[2] != before.get(2), "a row that was deleted is not the same row again"
    # The same again changes no row, and a second pass over the same files unites with their deletes.
    table.upsert(new, on=["id"], engine=case.engine)
    assert rows_of(table) == expected


def test_upsert_keeps_what_the_rows_do_not_name(lake: Lake, case: Case) -> None:
    table = make(lake, case.mode, case.version)
    partial = pa.table({"id": pa.array([1, 5, 8], pa.int64()), "name": ["eins", None, "acht"]})
    table.upsert(partial, on=["id"], engine=case.engine)
    assert rows_of(table) == [
        (1, "eins", "a"),
        (3, None, "b"),
        (4, "four", "a"),
        (5, None, "b"),
        (6, "six", None),
        (8, "acht", None),
    ]


def test_upsert_refuses_keys_that_do_not_tell_rows_apart(lake: Lake, engine: EngineName) -> None:
    table = make(lake, "merge-on-read", 2)
    before = _files(lake), rows_of(table)
    with pytest.raises(InvalidInput, match="two rows to upsert have the key"):
        table.upsert(rows((1, "x", "a"), (1, "y", "b")), on=["id"], engine=engine)
    with pytest.raises(InvalidInput, match="no value in the key column"):
        table.upsert(rows((1, None, "a")), on=["id", "name"], engine=engine)
    with pytest.raises(InvalidInput, match="the source has no column 'id'"):
        table.upsert(rows((1, None, "a")).drop_columns("id"), on=["id"], engine=engine)
    assert (_files(lake), rows_of(table)) == before


@pytest.mark.parametrize("version", [2, 3])
def test_upsert_into_an_empty_table_adds_the_rows(lake: Lake, engine: EngineName, version: int) -> None:
    table = lake.create_table("a.empty", "id long, name string, day string", format_version=version)
    table.upsert(rows((1, "one", "a"), (2, None, "b")), on=["id"], engine=engine)
    assert rows_of(table) == [(1, "one", "a"), (2, None, "b")]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_two_rows_with_one_key_are_both_updated(lake: Lake, engine: EngineName, mode: str) -> None:
    table = make(lake, mode, 2)
    table.append(rows((1, "again", "b")))
    table.upsert(rows((1, "once", "c")), on=["id"], engine=engine)
    assert [row for row in rows_of(table) if row[0] == 1] == [(1, "once", "c"), (1, "once", "c")]


def test_a_required_column_that_new_rows_do_not_name_is_refused(lake: Lake, engine: EngineName) -> None:
    table = lake.create_table("a.required", "id long, name string not null")
    table.append(pa.table({"id": pa.array([1], pa.int64()), "name": ["one"]}))
    before = _files(lake)
    with pytest.raises(SchemaMismatch, match="required column 'name'"):
        table.upsert(pa.table({"id": pa.array([1, 2], pa.int64())}), on=["id"], engine=engine)
    assert _files(lake) == before


def test_overwrite_of_a_filter_keeps_the_rest_of_its_files(lake: Lake, case: Case) -> None:
    table = make(lake, case.mode, case.version)
    table.overwrite(rows((4, "vier", "a")), where="id = 4", engine=case.engine)
    table.overwrite(rows(), where="name = 'five'", engine=case.engine)
    assert rows_of(table) == [(1, "one", "a"), (3, None, "b"), (4, "vier", "a"), (6, "six", None)]


def test_compaction_changes_no_row(lake: Lake, case: Case) -> None:
    table = make(lake, case.mode, case.version)
    before, ids = rows_of(table), _row_ids(table)
    assert table.compact(engine=case.engine).snapshot is not None
    assert rows_of(table) == before
    assert _row_ids(table) == ids
    assert table.scan().files().num_rows == 3  # one for each partition
    assert table.compact(engine=case.engine).snapshot is None


def test_rows_that_are_deleted_during_compaction_stay_deleted(lake: Lake, engine: EngineName) -> None:
    table = make(lake, "merge-on-read", 3)
    table.append(rows((7, "seven", "a"), (8, "eight", "a")))
    _concurrently(table, lambda: lake.table("a.t").delete("id = 7", engine="local"))
    table.compact(engine=engine)
    assert ids_of(table) == [1, 3, 4, 5, 6, 8]


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_other_rows_of_one_file_both_hold(lake: Lake, engine: EngineName, version: int) -> None:
    table = make(lake, "merge-on-read", version)
    table.append(rows(*((i, "more", "z") for i in range(10, 20))))
    _concurrently(table, lambda: lake.table("a.t").delete("id = 11", engine="local"))
    table.delete("id in (12, 13)", engine=engine)
    assert [i for i in ids_of(table) if i >= 10] == [10, 14, 15, 16, 17, 18, 19]
    assert table.inspect("delete_files").to_arrow().read_all().num_rows == (3 if version == 2 else 2)


@pytest.mark.parametrize("version", [2, 3])
def test_a_row_that_two_changes_replace_is_a_conflict(lake: Lake, engine: EngineName, version: int) -> None:
    table = make(lake, "merge-on-read", version)
    before = _files(lake)
    _concurrently(table, lambda: lake.table("a.t").delete("id = 1", engine="local"))
    with pytest.raises(ConcurrentChange):
        table.upsert(rows((1, "eins", "a")), on=["id"], engine=engine)
    assert ids_of(table) == [3, 4, 5, 6]
    new = _files(lake) - before
    assert not [path for path in new if "/data/" in path and path not in _live(table)]


def test_a_table_that_is_upgraded_concurrently_gets_vectors(lake: Lake, engine: EngineName) -> None:
    table = make(lake, "merge-on-read", 2)
    table.append(rows((7, "seven", "z"), (8, "eight", "z")))
    _concurrently(table, lambda: lake.table("a.t").upgrade_format_version(3))
    table.delete("id in (1, 5, 7)", engine=engine)
    assert ids_of(table) == [3, 4, 6, 8]
    kinds = table.inspect("delete_files").to_arrow().read_all()["file_format"].to_pylist()
    assert "PUFFIN" in kinds


def test_count_and_extremes_agree_with_the_rows(lake: Lake, engine: EngineName) -> None:
    table = make(lake, "merge-on-read", 3)
    assert table.scan(where="id > 2 and name is not null").count(engine=engine) == 3
    assert table.count(engine=engine) == 5
    assert table.scan(where="id < 6").max("name", engine=engine).as_py() == "one"
    assert table.scan().min("name", engine=engine).as_py() == "five"
    assert table.scan(where="id > 1 and name <> 'two'").min("id", engine=engine).as_py() == 4
    assert table.scan(where="id > 99").max("id", engine=engine).as_py() is None
    counted = table.scan(where="name is not null").count_by_partition(engine=engine)
    assert dict(zip(counted["partition"].to_pylist(), counted["record_count"].to_pylist(), strict=True)) == {
        "day=a": 2,
        "day=b": 1,
        "day=null": 1,
    }


def test_deletes_by_position_are_not_for_version_1(lake: Lake, engine: EngineName) -> None:
    table = make(lake, "copy-on-write", 1)
    table.set_properties({"write.delete.mode": "merge-on-read"})
    with pytest.raises(Unsupported, match="version 1"):
        table.delete("name = 'one'", engine=engine)
    assert ids_of(table) == [1, 3, 4, 5, 6]


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_data_frame_is_upserted_on_spark(lake: Lake, spark: SparkSession, mode: str) -> None:
    table = make(lake, mode, 3)
    frame = spark.createDataFrame([(1, "eins", "a"), (9, "neun", "b")], "id int, name string, day string")
    assert table.upsert(frame, on=["id"]).snapshot is not None
    assert rows_of(table)[0] == (1, "eins", "a")
    assert rows_of(table)[-1] == (9, "neun", "b")
    assert table.upsert(frame.limit(0), on=["id"]).snapshot is None
    with pytest.raises(InvalidInput, match="does not accept a DataFrame"):
        table.upsert(frame, on=["id"], engine="local")


@pytest.mark.spark
def test_a_source_that_gives_other_rows_each_time_is_read_once(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("a.random", "id long, value double", properties={"write.merge.mode": "merge-on-read"})
    table.append(pa.table({"id": pa.array(range(200), pa.int64()), "value": [0.0] * 200}))
    frame = spark.sql("SELECT id, rand() AS value FROM range(400) WHERE rand() < 0.5")
    table.upsert(frame, on=["id"])
    ids = table.scan(select=["id"]).to_arrow().read_all().column("id").to_pylist()
    assert len(ids) == len(set(ids))
    assert set(range(200)) <= set(ids)


def _row_ids(table: Table) -> dict[int, int]:
    if table.refresh().format_version < 3:
        return {}
    read = table.scan(select=["id", "_row_id"]).to_arrow().read_all()
    return dict(zip(read["id"].to_pylist(), read["_row_id"].to_pylist(), strict=True))


def _files(lake: Lake) -> set[str]:
    return {file.location for file in lake.store.list(lake.warehouse) if "catalog" not in file.location}


def _live(table: Table) -> set[str]:
    names: Iterable[Any] = (table.inspect(name).to_arrow().read_all() for name in ("data_files", "delete_files"))
    return {path for found in names for path in found["file_path"].to_pylist()}


def _concurrently(table: Table, act: Any) -> None:
    """Let somebody else commit after the next plan of a handle and before its commit."""
    head: Any = table._head
    commit = head.commit

    def commit_after(*arguments: Any) -> Any:
        head.commit = commit
        act()
        return commit(*arguments)

    head.commit = commit_after
