"""Parquet files that others wrote become part of a table where they lie."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield
from icefield.codec.json.name_mapping import PROPERTY
from icefield.errors import AlreadyExists, ConcurrentChange, CorruptFile, InvalidInput, LocationRefused, SchemaMismatch
from icefield.lake import Lake
from icefield.table.table import Table

SCHEMA = "id long, name string, day date"
DAY = datetime.date(2026, 1, 1)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory of another program that the lake may read."""
    folder = tmp_path / "others"
    folder.mkdir()
    return folder


@pytest.fixture
def lake(tmp_path: Path, outside: Path) -> Iterator[Lake]:
    with icefield.connect(tmp_path / "lake", roots=[outside], durable=False) as opened:
        yield opened


def write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, **options)
    return path


def people(first: int, last: int, day: datetime.date = DAY) -> list[dict[str, Any]]:
    return [{"id": i, "name": f"n{i}", "day": day} for i in range(first, last)]


def rows_of(table: Table, where: str | None = None) -> list[dict[str, Any]]:
    return sorted(table.scan(where=where).to_arrow().read_all().to_pylist(), key=str)


def test_files_without_ids_are_read_by_name_and_pruned_by_their_footers(lake: Lake, outside: Path) -> None:
    table = lake.create_table("t.people", SCHEMA)
    files = [write(outside / f"{i}.parquet", people(i * 10, i * 10 + 10)) for i in range(3)]
    table.add_files(files)
    assert rows_of(table) == sorted(people(0, 30), key=str)
    assert PROPERTY in table.properties
    assert table.scan(where="id = 15").files().num_rows == 1
    assert rows_of(table, "name = 'n15'") == people(15, 16)
    assert table.count() == 30


def test_a_directory_stands_for_its_parquet_files(lake: Lake, outside: Path) -> None:
    table = lake.create_table("t.people", SCHEMA)
    write(outside / "in" / "a.parquet", people(0, 1))
    write(outside / "in" / "deeper" / "b.parquet", people(1, 2))
    write(outside / "in" / "_temporary" / "c.parquet", people(2, 3))
    (outside / "in" / "_SUCCESS").touch()
    table.add_files(outside / "in")
    assert rows_of(table) == people(0, 2)
    with pytest.raises(InvalidInput, match="no Parquet files"):
        table.add_files(outside / "nowhere")


def test_a_rename_keeps_names_of_old_and_a_readded_name_shows_nothing_of_old(lake: Lake, outside: Path) -> None:
    table = lake.create_table("t.people", SCHEMA)
    table.add_files(write(outside / "a.parquet", people(0, 1)))
    with table.evolve() as change:
        change.rename_column("name", "title")
        change.drop_column("day")
    with table.evolve() as change:
        change.add_column("day", "date")
        change.add_column("name", "string")
    assert rows_of(table) == [{"id": 0, "title": "n0", "day": None, "name": None}]
    with pytest.raises(SchemaMismatch, match="'day' is not in the table"):
        table.add_files(write(outside / "b.parquet", people(1, 2)))


def test_partition_values_come_from_the_path_and_need_not_be_in_the_file(lake: Lake, outside: Path) -> None:
    table = lake.create_table("t.people", SCHEMA, partition_by=["day", "name"])
    for name in ("a", "__HIVE_DEFAULT_PARTITION__", "x%2Fy"):
        write(outside / "day=2026-01-01" / f"name={name}" / "f.parquet", [{"id": 1}])
    table.add_files(outside)
    assert rows_of(table) == [{"id": 1, "name": n, "day": DAY} for n in ("a", "x/y", None)]
    assert rows_of(table, "name = 'x/y'") == [{"id": 1, "name": "x/y", "day": DAY}]
    assert rows_of(table, "name IS NULL AND day = DATE '2026-01-01'") == [{"id": 1, "name": None, "day": DAY}]
    assert table.scan(where="name = 'a'").count() == 1


def test_partition_values_are_proved_by_statistics(lake: Lake, outside: Path) -> None:
    table = lake.create_table("t.people", SCHEMA, partition_by=["month(day)", "truncate(1, name)"])
    days = [{"id": 1, "name": "n1", "day": DAY}, {"id": 2, "name": "n2", "day": DAY.replace(day=31)}]
    table.add_files(write(outside / "a.parquet", days))
    assert table.scan(where="day < DATE '2026-01-01'").files().num_rows == 0
    (file,) = table.scan().files().to_pylist()
    assert file["partition"] == "day_month=2026-01/name_trunc=n"
    both = [*people(0, 1), {"id": 2, "name": "n2", "day": DAY.replace(month=2)}]
    with pytest.raises(InvalidInput, match="cannot determine partition 'day_month'.*runs from"):
        table.add_files(write(outside / "b.parquet", both))
    nulls = [*people(0, 1), {"id": 2, "name": "n2", "day": None}]
    with pytest.raises(InvalidInput, match="and nulls"):
        table.add_files(write(outside / "c.parquet", nulls))


def test_a_bucket_is_proved_only_by_one_value(lake: Lake, outside: Path) -> None:
    table = lake.create_table("t.people", SCHEMA, partition_by=["bucket(4, id)"])
    table.add_files(write(outside / "a.parquet", people(7, 8)))
    assert table.scan(where="id = 7").files().num_rows == 1
    with pytest.raises(InvalidInput, match="id_bucket"):
        table.add_files(write(outside / "b.parquet", people(7, 9)))


def test_partition_values_can_be_said_but_not_against_the_footer(lake: Lake, outside: Path) -> None:
    table = lake.create_table("t.people", SCHEMA, partition_by=["day"])
    bare = write(outside / "a.parquet", [{"id": 1, "name": "x"}])
    table.add_files(bare, partition={"day": DAY})
    assert rows_of(table) == [{"id": 1, "name": "x", "day": DAY}]
    with pytest.raises(InvalidInput, match="does not belong to partition"):
        table.add_files(write(outside / "b.parquet", people(0, 1)), partition={"day": "2026-01-02"})
    with pytest.raises(InvalidInput, match="no partition field 'dya'"):
        table.add_files(bare, partition={"dya": DAY})
    with pytest.raises(InvalidInput, match="is not a valid date"):
        table.add_files(write(outside / "c.parquet", [{"id": 1}]), partition={"day": "soon"})


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        (pa.schema([("id", pa.string())]), "'id' is string, but the table has long"),
        (pa.schema([("id", pa.int64()), ("more", pa.int64())]), "'more' is not in the table"),
        (pa.schema([("name", pa.string())]), "required column 'id' is missing"),
        (pa.schema([("id", pa.int64()), ("at", pa.timestamp("ns"))]), "'at' is timestamp"),
        (pa.schema([("id", pa.int64()), ("s", pa.struct([("y", pa.int32())]))]), "'s.y' is not in the table"),
        (pa.schema([("id", pa.int64()), ("s", pa.list_(pa.int32()))]), "'s' is list"),
    ],
)
def test_unfit_schemas_are_refused_and_change_nothing(lake: Lake, outside: Path, schema: pa.Schema, fault: str) -> None:
    table = lake.create_table("t.strict", "id long not null, name string, at timestamp, s struct<x int>")
    file = write(outside / "a.parquet", [], schema, version="2.6")
    before = table.metadata_location
    with pytest.raises(SchemaMismatch, match=fault):
        table.add_files(file)
    assert table.metadata_location == before
    assert file.exists()


def test_a_required_column_may_not_hold_nulls(lake: Lake, outside: Path) -> None:
    table = lake.create_table("t.strict", "id long not null")
    table.add_files(write(outside / "a.parquet", [{"id": 1}]))
    with pytest.raises(SchemaMismatch, match="may hold nulls"):
        table.add_files(write(outside / "b.parquet", [{"id": None}], pa.schema([("id", pa.int64())])))
    with pytest.raises(SchemaMismatch, match="may hold nulls"):
        table.add_files(write(outside / "c.parquet", [{"id": 1}], write_statistics=False))


def test_narrower_types_are_taken_and_widened_when_read(lake: Lake, outside: Path) -> None:
    table = lake.create_table("t.wide", "id long, f double, at timestamptz, l list<long>")
    kinds = [("id", pa.int32()), ("f", pa.float32()), ("at", pa.timestamp("ms", "UTC")), ("l", pa.list_(pa.int32()))]
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    row = {"id": 5, "f": 0.5, "at": moment, "l": [1]}
    table.add_files(write(outside / "a.parquet", [row], pa.schema(kinds)))
    assert rows_of(table) == [row]
    assert rows_of(table, "id = 5 AND f = 0.5") == [row]
    assert rows_of(table, "at = TIMESTAMP '2026-01-01 00:00:00+00:00'") == [row]
    assert table.scan(where="id > 5").files().num_rows == 0


def test_files_outside_the_roots_are_refused(lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("t.people", SCHEMA)
    file = write(tmp_path / "elsewhere" / "a.parquet", people(0, 1))
    with pytest.raises(LocationRefused):
        table.add_files(file)
    assert table.count() == 0


def test_a_file_cannot_be_added_twice(lake: Lake, outside: Path) -> None:
    table = lake.create_table("t.people", SCHEMA)
    file = write(outside / "a.parquet", people(0, 1))
    table.add_files(file)
    with pytest.raises(AlreadyExists, match="already in the table"):
        table.add_files(file)
    other = write(outside / "b.parquet", people(1, 2))
    with pytest.raises(AlreadyExists, match="already in the table"):
        table.add_files([other, other])


def test_what_is_no_parquet_is_named(lake: Lake, outside: Path) -> None:
    table = lake.create_table("t.people", SCHEMA)
    (outside / "a.parquet").write_bytes(b"not at all")
    with pytest.raises(CorruptFile, match=r"a\.parquet"):
        table.add_files(outside / "a.parquet")


def test_a_commit_that_fails_leaves_the_files_of_others(
    lake: Lake, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("t.people", SCHEMA)
    file = write(outside / "a.parquet", people(0, 1))

    def fail(*_: object) -> None:
        raise ConcurrentChange("not now")

    monkeypatch.setattr(lake.catalog, "swap", fail)
    with pytest.raises(ConcurrentChange):
        table.add_files(file)
    assert file.exists()


def test_files_that_carry_ids_need_no_mapping(lake: Lake) -> None:
    source = lake.create_table("t.source", SCHEMA, properties={"gc.enabled": "false"})
    source.append(pa.Table.from_pylist(people(0, 3)))
    copy = lake.create_table("t.copy", SCHEMA)
    copy.add_files([f["file_path"] for f in source.scan().files().to_pylist()])
    assert rows_of(copy) == people(0, 3)
    assert PROPERTY not in copy.properties


@pytest.mark.spark
def test_spark_reads_files_of_others(lake: Lake, outside: Path, spark: Any) -> None:
    table = lake.create_table("t.people", SCHEMA, partition_by=["day"])
    write(outside / "day=2026-01-01" / "f.parquet", [{"id": 1, "name": "a"}, {"id": 2, "name": None}])
    table.add_files(outside)
    table.append(pa.Table.from_pylist(people(5, 6)))
    rows = table.scan(where="id < 6").to_spark()
    assert sorted(tuple(r) for r in rows.select("id", "name", "day").collect()) == [
        (1, "a", DAY),
        (2, None, DAY),
        (5, "n5", DAY),
    ]
    assert rows.where("day = DATE '2026-01-01' AND name IS NULL").count() == 1


@pytest.mark.parametrize("change", ["renamed", "other unit", "without ids", "none"])
def test_a_name_of_icefield_is_refused_on_a_file_with_other_columns(lake: Lake, outside: Path, change: str) -> None:
    """Spark would look columns up, and compare their values, as the name says."""
    schema = "id long, x int, y int, at timestamp"
    source = lake.create_table("t.source", schema)
    moments = [datetime.datetime(2026, 1, 1, 0, 0, 0, 1500)]
    source.append(pa.table({"id": [1], "x": pa.array([2], pa.int32()), "y": pa.array([3], pa.int32()), "at": moments}))
    own = Path(source.scan().files()["file_path"][0].as_py().removeprefix("file://"))
    rows = pq.read_table(own)
    if change == "renamed":
        rows = rows.rename_columns(["id", "y", "x", "at"])
    if change == "without ids":
        rows = rows.replace_schema_metadata(None).cast(pa.schema([f.remove_metadata() for f in rows.schema]))
    unit = "ms" if change == "other unit" else "us"
    pq.write_table(rows, outside / own.name, coerce_timestamps=unit, allow_truncated_timestamps=True)
    table = lake.create_table("t.copy", schema)
    if change == "none":
        table.add_files([outside / own.name])
        assert table.count() == 1
        return
    with pytest.raises(SchemaMismatch, match="is named like a file written by Icefield") as caught:
        table.add_files([outside / own.name])
    assert "Rename it" in (caught.value.hint or "")
    (outside / own.name).rename(outside / "copy.parquet")
    table.add_files([outside / "copy.parquet"])
    assert table.count() == 1
