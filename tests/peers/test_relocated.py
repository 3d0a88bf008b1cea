"""PyIceberg and DuckDB read a lake that was relocated."""

from pathlib import Path

import pytest
from pyiceberg.table import StaticTable
from tests.peers.duckdb_reader import DuckDBReader
from tests.test_relocate import contents, fill

import icefield


@pytest.fixture(scope="module")
def relocated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("relocated")
    with icefield.connect(folder / "old") as lake:
        fill(lake)
    (folder / "old").rename(folder / "new")
    with icefield.connect(folder / "new") as lake:
        lake.relocate()
    return folder / "new"


@pytest.mark.parametrize("name", ["a.v1", "a.v3"])  # PyIceberg reads no equality deletes, which a.v2 has
def test_pyiceberg_reads_it(relocated: Path, name: str) -> None:
    with icefield.connect(relocated) as lake:
        table = StaticTable.from_metadata(lake.table(name).metadata_location)
        assert sorted(table.scan().to_arrow().column("id").to_pylist()) == contents(lake)[name][-1]


@pytest.mark.parametrize("name", ["a.v1", "a.v2", "a.v3"])
def test_duckdb_reads_it(relocated: Path, name: str) -> None:
    with icefield.connect(relocated) as lake, DuckDBReader() as reader:
        rows = reader.read(lake.table(name).metadata_location)
        assert sorted(rows.column("id").to_pylist()) == contents(lake)[name][-1]
