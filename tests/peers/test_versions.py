"""Tables of ours in every format version, upgraded ones among them, as PyIceberg reads them."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.pyiceberg_catalog import open_pyiceberg
from tests.peers.test_metadata_json import _path, _without_empty

from icefield.codec.json.metadata_owner import ENTRY_KEY
from icefield.lake import Lake
from icefield.table.table import Table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "day": pa.array([f"d{i % 3}" for i in ids])})


def make(lake: Lake, version: int, **properties: str) -> Table:
    table = lake.create_table(
        "a.t", "id long, day string", partition_by=["day"], properties=properties, format_version=version
    )
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5))
    table.overwrite(rows(7), where="day = 'd1'", check_rows=False)
    return table


def ids_of(table: Table, **scan: Any) -> list[int]:
    read = StaticTable.from_metadata(table.metadata_location).scan(**scan).to_arrow()
    return sorted(read["id"].to_pylist())


def parsed(table: Table) -> TableMetadata:
    return TableMetadataUtil.parse_raw(_path(table.metadata_location).read_text())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_a_table_of_any_version(lake: Lake, version: int) -> None:
    table = make(lake, version)
    assert parsed(table).format_version == version
    assert ids_of(table) == [2, 3, 5, 7]
    assert ids_of(table, row_filter="day = 'd2'") == [2, 5]
    assert [len(ids_of(table, snapshot_id=s.snapshot_id)) for s in table.snapshots()] == [3, 5, 4]


# PyIceberg parses version 3 but does not print it.
@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_loses_nothing_of_our_metadata(lake: Lake, version: int) -> None:
    table = make(lake, version)
    text = _path(table.metadata_location).read_text()
    ours, theirs = (_without_empty(json.loads(t)) for t in (text, parsed(table).model_dump_json()))
    assert ours.pop(ENTRY_KEY), "our own key, which others leave out"
    if version == 1:
        # PyIceberg gives v1 snapshots no sequence number, and prints the current schema where it is asked to.
        for snapshot in theirs["snapshots"]:
            snapshot.pop("sequence-number", None)
    assert theirs == ours


@pytest.mark.parametrize("stops", [(2,), (3,), (2, 3)])
def test_pyiceberg_reads_an_upgraded_table(lake: Lake, stops: tuple[int, ...]) -> None:
    table = make(lake, 1)
    expected = [2, 3, 5, 7]
    for version in stops:
        table.upgrade_format_version(version)
        assert ids_of(table) == sorted(expected)
        table.append(rows(10 * version))
        expected.append(10 * version)
        assert ids_of(table) == sorted(expected)
        assert parsed(table).format_version == version


def test_pyiceberg_reads_compressed_metadata(lake: Lake) -> None:
    table = make(lake, 2, **{"write.metadata.compression-codec": "gzip"})
    assert table.metadata_location.endswith(".gz.metadata.json")
    assert ids_of(table) == [2, 3, 5, 7]


def test_peers_read_and_write_a_table_that_was_compressed_for_its_size(
    lake: Lake, duckdb_reader: DuckDBReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    table = make(lake, 2)
    for number in range(30):
        table.append(rows(100 + number))
    assert table.metadata_location.endswith(".gz.metadata.json")
    expected = sorted(table.scan().to_arrow().read_all()["id"].to_pylist())
    assert ids_of(table) == expected
    assert sorted(duckdb_reader.read(table.metadata_location)["id"].to_pylist()) == expected
    assert sorted(pl.scan_iceberg(table.metadata_location).collect()["id"].to_list()) == expected
    catalog = open_pyiceberg(tmp_path / "lake")
    try:
        catalog.load_table("a.t").append(rows(500).cast(catalog.load_table("a.t").schema().as_arrow()))
    finally:
        catalog.close()
    table.append(rows(501))
    assert ids_of(table) == [*expected, 500, 501]
    assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [*expected, 500, 501]
