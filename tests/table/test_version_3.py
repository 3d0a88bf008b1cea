"""What format version 3 brings, from append to scan: defaults, new types, lineage."""

import datetime
import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield
from icefield.errors import InvalidInput, SchemaMismatch, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.datatypes import EMPTY_STRUCT

POINT = struct.pack("<BIdd", 1, 1, 1.0, 2.0)
LINEAGE = ["_row_id", "_last_updated_sequence_number"]


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


def rows_of(table: Table, select: list[str] | None = None, where: str | None = None) -> list[dict[str, Any]]:
    return sorted(table.scan(where=where, select=select).to_arrow().read_all().to_pylist(), key=str)


# Defaults.


def test_old_rows_have_the_initial_default_and_new_rows_the_write_default(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long", format_version=3)
    table.append(pa.table({"id": [1]}))
    with table.evolve() as change:
        change.add_column("n", "int", default=7, required=True)
        change.add_column("day", "date", default="2026-01-01")
        change.add_column("s", "string", default="old")
    with table.evolve() as change:
        change.set_default("s", "new")
    table.append(pa.table({"id": [2]}))
    table.append(pa.table({"id": [3], "s": pa.array([None], pa.string())}))
    day = datetime.date(2026, 1, 1)
    assert rows_of(table) == [
        {"id": 1, "n": 7, "day": day, "s": "old"},
        {"id": 2, "n": 7, "day": day, "s": "new"},
        {"id": 3, "n": 7, "day": day, "s": None},
    ]
    assert [r["id"] for r in rows_of(table, where="s = 'old' OR s IS NULL")] == [1, 3]
    assert [r["id"] for r in rows_of(table, where="n <> 7")] == []


def test_a_struct_may_default_to_the_defaults_of_its_fields(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long", format_version=3)
    table.append(pa.table({"id": [1]}))
    with table.evolve() as change:
        change.add_column("p", "struct<x int>", default={})
        change.add_column("p.y", "int", default=5)
    table.append(pa.table({"id": [2]}))
    assert rows_of(table) == [{"id": i, "p": {"x": None, "y": 5}} for i in (1, 2)]
    assert table.schema.find_field("p").initial_default == EMPTY_STRUCT


@pytest.mark.parametrize(
    ("kind", "default"), [("int", "seven"), ("int", 1 << 40), ("list<int>", [1]), ("date", 1.5), ("variant", "x")]
)
def test_unfit_defaults_are_refused(lake: Lake, kind: str, default: object) -> None:
    table = lake.create_table("t.t", "id long", format_version=3)
    with pytest.raises(InvalidInput, match="'c'"), table.evolve() as change:
        change.add_column("c", kind, default=default)


def test_defaults_need_version_3(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long")
    with pytest.raises(InvalidInput, match="version 3"), table.evolve() as change:
        change.add_column("n", "int", default=7)
    table.upgrade_format_version()
    with table.evolve() as change:
        change.add_column("n", "int", default=7)
    assert table.schema.find_field("n").write_default == 7


# Types.


def test_dates_become_timestamps_with_bounds_and_defaults(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, d date", partition_by=["month(d)"], format_version=3)
    table.append(pa.table({"id": [1, 2], "d": [datetime.date(2026, 1, 1), datetime.date(1969, 12, 31)]}))
    with table.evolve() as change:
        change.update_column_type("d", "timestamp")
    noon = datetime.datetime(2026, 1, 2, 12)
    table.append(pa.table({"id": [3], "d": [noon]}))
    assert [r["d"] for r in rows_of(table)] == [
        datetime.datetime(2026, 1, 1),
        datetime.datetime(1969, 12, 31),
        noon,
    ]
    assert [r["id"] for r in rows_of(table, where="d >= TIMESTAMP '2026-01-01 00:00:00'")] == [1, 3]
    assert table.scan(where="d < TIMESTAMP '1970-01-01 00:00:00'").files().num_rows == 1
    assert table.scan(where="d > TIMESTAMP '2026-01-01 00:00:00'").files().num_rows == 1


def test_a_date_that_files_are_partitioned_by_stays_a_date(lake: Lake) -> None:
    table = lake.create_table("t.t", "d date", partition_by=["d"], format_version=3)
    with pytest.raises(InvalidInput, match="partitioned by identity"), table.evolve() as change:
        change.update_column_type("d", "timestamp")
    with table.evolve() as change:
        change.drop_partition_field("d")
    with pytest.raises(InvalidInput, match="partitioned by identity"), table.evolve() as change:
        change.update_column_type("d", "timestamp")


def test_nanoseconds_are_kept(lake: Lake) -> None:
    table = lake.create_table("t.t", "a timestamp_ns, b timestamptz_ns", partition_by=["hour(a)"], format_version=3)
    nanos = pa.array([1_700_000_000_123_456_789, None])
    rows = {"a": nanos.cast(pa.timestamp("ns")), "b": nanos.cast(pa.timestamp("ns", "UTC"))}
    table.append(pa.table(rows))
    read = table.scan(where="a = TIMESTAMP '2023-11-14 22:13:20.123456789'").to_arrow().read_all()
    assert read.column("b").cast(pa.int64()).to_pylist() == [1_700_000_000_123_456_789]
    table.append(pa.table({"a": [datetime.datetime(2026, 1, 1)]}))
    with pytest.raises(SchemaMismatch):
        table.append(pa.table({"a": pa.array([datetime.datetime(9999, 1, 1)], pa.timestamp("us"))}))


def test_unknown_columns_hold_nulls_and_stand_in_no_file(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, u unknown, s struct<u unknown, x int>", format_version=3)
    table.append(pa.table({"id": [1], "u": pa.nulls(1), "s": pa.array([{"x": 3}], pa.struct([("x", pa.int32())]))}))
    assert rows_of(table) == [{"id": 1, "u": None, "s": {"u": None, "x": 3}}]
    (path,) = table.scan().files()["file_path"].to_pylist()
    assert pq.read_schema(lake.store.open_input(path)).names == ["id", "s"]
    with pytest.raises(SchemaMismatch):
        table.append(pa.table({"id": [1], "u": [1]}))
    with table.evolve() as change:
        change.update_column_type("u", "string")
    table.append(pa.table({"id": [2], "u": ["now"]}))
    assert [r["u"] for r in rows_of(table)] == [None, "now"]


@pytest.mark.parametrize(
    ("kind", "logical"),
    [
        ("geometry", "Geometry(crs=)"),
        ("geometry(srid:3857)", "Geometry(crs=srid:3857)"),
        ("geography", "Geography(crs=, algorithm=spherical)"),
        ("geography(srid:4326)", "Geography(crs=srid:4326, algorithm=spherical)"),
    ],
)
def test_shapes_are_stored_with_their_parquet_type(lake: Lake, kind: str, logical: str) -> None:
    table = lake.create_table("t.t", f"id long, g {kind}", format_version=3)
    table.append(pa.table({"id": [1, 2], "g": pa.array([POINT, None], pa.binary())}))
    assert rows_of(table) == [{"id": 1, "g": POINT}, {"id": 2, "g": None}]
    assert [r["id"] for r in rows_of(table, where="g IS NULL")] == [2]
    (path,) = table.scan().files()["file_path"].to_pylist()
    column = pq.ParquetFile(lake.store.open_input(path)).schema.column(1)
    assert str(column.logical_type) == logical


@pytest.mark.parametrize(
    "schema", ["v variant", "s struct<g geometry>", "l list<unknown>", "g geography(srid:4326, karney)"]
)
def test_what_cannot_be_stored_is_refused_on_write_and_never_on_load(lake: Lake, schema: str) -> None:
    table = lake.create_table("t.t", f"id long, {schema}", format_version=3)
    assert lake.table("t.t").count() == 0
    with pytest.raises(Unsupported, match="cannot write rows of this table"):
        table.append(pa.table({"id": [1]}))
    assert table.snapshots() == []


# Lineage.


def test_lineage_is_carried_through_an_overwrite(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, p string", partition_by=["p"], format_version=3)
    table.append(pa.table({"id": [1, 2, 3], "p": ["a", "a", "b"]}))
    before = {r["id"]: r["_row_id"] for r in rows_of(table, ["id", *LINEAGE])}
    table.overwrite(pa.table({"id": [4], "p": ["a"]}), where="id = 2", check_rows=False)
    after = {r["id"]: (r["_row_id"], r["_last_updated_sequence_number"]) for r in rows_of(table, ["id", *LINEAGE])}
    assert after == {1: (before[1], 1), 3: (before[3], 1), 4: (after[4][0], 2)}
    assert len({row_id for row_id, _ in after.values()}) == 3
    assert max(row_id for row_id, _ in after.values()) < table.metadata.next_row_id


def test_rows_from_before_an_upgrade_get_ids_with_the_next_commit(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long", format_version=1)
    table.append(pa.table({"id": [1, 2]}))
    table.upgrade_format_version(2)
    table.append(pa.table({"id": [3]}))
    table.upgrade_format_version(3)
    assert {r["_row_id"] for r in rows_of(table, ["id", *LINEAGE])} == {None}
    table.append(pa.table({"id": [4]}))
    ids = {r["id"]: r["_row_id"] for r in rows_of(table, ["id", *LINEAGE])}
    assert sorted(ids.values()) == [0, 1, 2, 3]
    table.append(pa.table({"id": [5]}))
    assert {r["id"]: r["_row_id"] for r in rows_of(table, ["id", *LINEAGE])} == {**ids, 5: 4}


def test_rows_can_be_found_by_their_id(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long", format_version=3)
    table.append(pa.table({"id": [10, 20, 30]}))
    assert rows_of(table, ["id"], "_row_id = 1") == [{"id": 20}]
    assert rows_of(table, ["id", "_pos"], "_pos > 1") == [{"id": 30, "_pos": 2}]


def test_a_column_of_the_table_hides_a_metadata_column(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, _pos string")
    table.append(pa.table({"id": [1], "_pos": ["mine"]}))
    assert rows_of(table, ["_pos", "_spec_id"]) == [{"_pos": "mine", "_spec_id": 0}]
    with pytest.raises(SchemaMismatch, match="_row_id"):
        table.append(pa.table({"id": [1], "_row_id": [1]}))
