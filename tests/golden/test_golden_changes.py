"""Golden tables are changed by every verb, in every mode: the rows are right, and who could read them still can."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable
from tests.golden.changing import change, keys_of, open_copy, rows_of
from tests.golden.expected import Expected
from tests.golden.reading import EXPECTED
from tests.golden.test_golden import REFUSED
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.normal import normal_rows

from icefield.engine.choose import EngineName
from icefield.errors import Unsupported
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema

VERBS = ("delete", "update", "merge", "upsert")
MODES = ("copy-on-write", "merge-on-read", "auto")
# Without rows, and without a column of integers that tells rows apart.
WITHOUT_KEYS = ("java_emptied", "java_empty", "java_geospatial")
CASES = [
    pytest.param(expected, verb, mode, id=f"{expected['name']}-{verb}-{mode}")
    for expected, verb, mode in product(EXPECTED, VERBS, MODES)
    if expected["name"] not in (*REFUSED, *WITHOUT_KEYS) and (mode != "merge-on-read" or expected["format_version"] > 1)
]


@pytest.fixture(scope="module")
def duckdb_reader() -> Iterator[DuckDBReader]:
    with DuckDBReader() as reader:
        yield reader


@pytest.mark.parametrize(("expected", "verb", "mode"), CASES)
def test_a_change_on_the_local_engine(
    expected: Expected, verb: str, mode: str, tmp_path: Path, duckdb_reader: DuckDBReader
) -> None:
    _check(expected, verb, mode, "local", tmp_path, duckdb_reader)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("expected", "verb", "mode"), CASES)
def test_a_change_on_spark(
    expected: Expected, verb: str, mode: str, tmp_path: Path, duckdb_reader: DuckDBReader
) -> None:
    _check(expected, verb, mode, "spark", tmp_path, duckdb_reader)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("where", ["id > 0", "id = 1"])
def test_rows_that_cannot_be_read_are_not_changed(name: str, where: str, tmp_path: Path) -> None:
    (expected,) = (e for e in EXPECTED if e["name"] == name)
    lake, table = open_copy(expected, tmp_path / "lake")
    with lake:
        before = table.snapshots()
        with pytest.raises(Unsupported, match="icefield reads Parquet"):
            table.update({"id": "id + 1"}, where)
        assert table.snapshots() == before


def _check(expected: Expected, verb: str, mode: str, engine: EngineName, directory: Path, duckdb: DuckDBReader) -> None:
    lake, table = open_copy(expected, directory / "lake")
    with lake:
        able = [read for read in (_read_by_pyiceberg, duckdb.read) if _reads(read, table)]
        change(table, verb, keys_of(table), mode, engine)
        assert [read for read in able if not _reads(read, table)] == []


def _reads(read: Any, table: Table) -> bool:
    """Return whether another engine reads the rows of a table."""
    try:
        found = read(table.metadata_location)
    except Exception:  # whatever another engine makes of what it does not know
        return False
    return bool(normal_rows(found, arrow_schema(table.schema)) == rows_of(table))


def _read_by_pyiceberg(location: str) -> Any:
    return StaticTable.from_metadata(location).scan().to_arrow()
