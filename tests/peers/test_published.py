"""Branches that were published, rebased, picked from and reverted: PyIceberg and DuckDB see all refs and their rows."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.histories_of_branches import KINDS, make_history, pairs

import icefield


@pytest.mark.every_case
@pytest.mark.parametrize(("version", "mode"), KINDS)
def test_pyiceberg_reads_every_branch_and_tag(version: int, mode: str, tmp_path: Path) -> None:
    table, expected = make_history(icefield.connect(tmp_path, durable=False), "t.t", version, mode)
    peer = StaticTable.from_metadata(table.metadata_location)
    assert {name: str(ref.snapshot_ref_type.value) for name, ref in peer.refs().items()} == {
        name: "tag" if name == "first" else "branch" for name in expected
    }
    for name, rows in expected.items():
        found = peer.snapshot_by_name(name)
        assert found is not None
        assert pairs(peer.scan(snapshot_id=found.snapshot_id).to_arrow()) == rows, name
        assert pairs(table.scan(as_of=name).to_arrow().read_all()) == rows, name
    assert pairs(peer.scan().to_arrow()) == expected["main"]


@pytest.mark.every_case
@pytest.mark.parametrize(("version", "mode"), KINDS)
def test_duckdb_reads_every_branch_and_tag(
    version: int, mode: str, tmp_path: Path, duckdb_reader: DuckDBReader
) -> None:
    table, expected = make_history(icefield.connect(tmp_path, durable=False), "t.t", version, mode)
    for name, rows in expected.items():
        snapshot_id = table.refs()[name].snapshot_id
        assert pairs(duckdb_reader.read(table.metadata_location, snapshot_id=snapshot_id)) == rows, name
    assert pairs(duckdb_reader.read(table.metadata_location)) == expected["main"]


@pytest.mark.spark
@pytest.mark.parametrize(("version", "mode"), KINDS)
def test_our_reader_on_spark_reads_every_branch_and_tag(version: int, mode: str, tmp_path: Path, spark: Any) -> None:
    lake = icefield.connect(tmp_path, durable=False).use(spark)
    table, expected = make_history(lake, "t.t", version, mode)
    for name, rows in expected.items():
        found = table.scan(as_of=name).to_spark().orderBy("id").collect()
        assert [tuple(row) for row in found] == rows, name
