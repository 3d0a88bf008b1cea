"""Tables with random histories are read by PyIceberg and DuckDB: as they ended, and as they were once."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from tests.histories.features import Features
from tests.histories.history import History
from tests.histories.readings import Reading, make_history, make_kept_up_history, readings
from tests.peers.duckdb_reader import DuckDBError, DuckDBReader
from tests.peers.gallery import Gallery
from tests.peers.normal import Row, normal_rows, sorted_rows

from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import (
    ListType,
    MapType,
    StructType,
    TimestampNsType,
    Type,
    UnknownType,
    UUIDType,
    children,
    walk,
)
from icefield.types.schema import Schema

Make = Callable[[Lake, str, int, Features], History]
SEEDS = (*range(12), 34, 37, 94, 116)  # the last ones have initial defaults
# PyIceberg 0.12.0 knows nanoseconds in rows, but not as partition values and defaults; nor the default `{}` of a
# struct, nor dates that became timestamps;
# and it reads no table with equality deletes.
PYICEBERG = Features(
    newer_kinds=(UnknownType(),), struct_defaults=False, dates_become_timestamps=False, deletes_by_equality=False
)
# DuckDB 1.5.5 refuses a table with a column of timestamptz_ns or unknown, or with the default `{}` of a struct.
DUCKDB = Features(newer_kinds=(TimestampNsType(),), struct_defaults=False)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", [make_history, make_kept_up_history])
def test_pyiceberg_reads_what_a_history_left(make: Make, seed: int, gallery: Gallery) -> None:
    for reading in readings(make(gallery.lake, "pyiceberg", seed, PYICEBERG)):
        table = StaticTable.from_metadata(reading.table.metadata_location)
        if not reading.rows and _has_uuids_inside(reading):
            continue  # PyIceberg asks Arrow for an empty table, which Arrow cannot make of these
        rows = table.scan(snapshot_id=reading.snapshot_id).to_arrow()
        assert rows.column_names == reading.names
        found = normal_rows(rows, arrow_schema(Schema(reading.fields)))
        assert _without_null_lists(found, reading) == _without_null_lists(reading.rows, reading)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", [make_history, make_kept_up_history])
def test_duckdb_reads_what_a_history_left(make: Make, seed: int, gallery: Gallery, duckdb_reader: DuckDBReader) -> None:
    for reading in readings(make(gallery.lake, "duckdb", seed, DUCKDB)):
        if not _is_older_than_its_table(reading) and not _lost_a_source(reading.table):
            location = reading.table.metadata_location
            assert reading.shows(duckdb_reader.read(location, snapshot_id=reading.snapshot_id))


def test_pyiceberg_does_not_know_what_is_left_out(gallery: Gallery) -> None:
    dates = _table_of_dates(gallery, "dates_for_pyiceberg")
    with pytest.raises(AttributeError, match="tz"):
        StaticTable.from_metadata(dates.metadata_location).scan().to_arrow()
    defaults = gallery.lake.create_table("histories.defaults_for_pyiceberg", "id long", format_version=3)
    for kind, default in (("struct<x: int>", {}), ("timestamp_ns", 0)):
        with defaults.evolve() as change:
            change.add_column(f"c{len(defaults.schema.fields)}", kind, default=default)
        with pytest.raises(TypeError, match="Cannot deserialize"):
            StaticTable.from_metadata(defaults.metadata_location)


def test_duckdb_reads_dates_that_became_timestamps(gallery: Gallery, duckdb_reader: DuckDBReader) -> None:
    table = _table_of_dates(gallery, "dates_for_duckdb")
    assert duckdb_reader.read(table.metadata_location)["day"].to_pylist() == [dt.datetime(2020, 1, 2)]


@pytest.mark.parametrize("column", ["timestamptz_ns", "unknown", "struct<x: int>"])
def test_duckdb_does_not_know_what_is_left_out(column: str, gallery: Gallery, duckdb_reader: DuckDBReader) -> None:
    table = gallery.lake.create_table(f"histories.without_{column[:6]}", "id long", format_version=3)
    table.append(pa.table({"id": [1]}))
    with table.evolve() as change:
        change.add_column("c", column, default={} if column.startswith("struct") else None)
    with pytest.raises(DuckDBError, match="Unrecognized primitive type|failed to parse"):
        duckdb_reader.read(table.metadata_location)


def test_duckdb_refuses_a_manifest_list_that_is_older_than_its_table(
    gallery: Gallery, duckdb_reader: DuckDBReader
) -> None:
    table = gallery.lake.create_table("histories.upgraded", "id long", format_version=1)
    table.append(pa.table({"id": [1]}))
    table.upgrade_format_version(2)
    with pytest.raises(DuckDBError, match="sequence_number"):
        duckdb_reader.read(table.metadata_location)


def test_duckdb_dies_of_a_partition_field_whose_column_was_dropped(
    gallery: Gallery, duckdb_reader: DuckDBReader
) -> None:
    table = gallery.lake.create_table("histories.lost_source", "id long, d int", partition_by=["d"])
    table.append(pa.table({"id": [1], "d": pa.array([1], pa.int32())}))
    for drop in ("drop_partition_field", "drop_column"):
        with table.evolve() as change:
            getattr(change, drop)("d")
    with pytest.raises(DuckDBError, match="died"):
        duckdb_reader.read(table.metadata_location)


def _lost_a_source(table: Table) -> bool:
    metadata = table.metadata
    sources = {source for spec in metadata.specs for field in spec.fields for source in field.source_ids}
    return not sources <= metadata.schema.by_id.keys()


def _has_uuids_inside(reading: Reading) -> bool:
    return any(isinstance(f.type, UUIDType) for field in reading.fields for _, f in walk(field.type))


def _table_of_dates(gallery: Gallery, name: str) -> Table:
    table = gallery.lake.create_table(f"histories.{name}", "day date", format_version=3)
    table.append(pa.table({"day": [dt.date(2020, 1, 2)]}))
    with table.evolve() as change:
        change.update_column_type("day", "timestamp")
    return table


def _is_older_than_its_table(reading: Reading) -> bool:
    """DuckDB refuses a manifest list of version 1 in a table that was upgraded since."""
    metadata = reading.table.metadata
    snapshot = metadata.current_snapshot
    if reading.snapshot_id is not None:
        snapshot = metadata.snapshot_by_id(reading.snapshot_id)
    assert snapshot
    return metadata.format_version > 1 and snapshot.sequence_number == 0


def _without_null_lists(rows: list[Row], reading: Reading) -> list[Row]:
    """PyIceberg reads a null list or map of structs as an empty one."""
    kinds = [field.type for field in reading.fields]
    return sorted_rows(tuple(map(_emptied, row, kinds)) for row in rows)


def _emptied(value: Any, kind: Type) -> Any:
    of_structs = isinstance(kind, ListType | MapType) and any(isinstance(f.type, StructType) for _, f in walk(kind))
    if value is None:
        return () if of_structs else None
    inner = [field.type for field in children(kind)]
    match kind:
        case StructType():
            return tuple(map(_emptied, value, inner))
        case ListType():
            return tuple(_emptied(each, inner[0]) for each in value)
        case MapType():
            return tuple((key, _emptied(each, inner[1])) for key, each in value)
        case _:
            return value
