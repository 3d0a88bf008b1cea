"""Golden tables are changed by every verb, in every mode: the rows are right, and who could read them still can."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from tests.golden.changing import change, check_change, keys_of, open_copy
from tests.golden.expected import Expected
from tests.golden.reading import EXPECTED
from tests.golden.test_golden import REFUSED
from tests.peers.duckdb_reader import DuckDBReader

from icefield.errors import SchemaMismatch, Unsupported

pytestmark = pytest.mark.slow
VERBS = ("delete", "update", "merge", "upsert")
MODES = ("copy-on-write", "merge-on-read", "auto")
# Without rows, and without a column of integers that tells rows apart.
WITHOUT_KEYS = ("java_emptied", "java_empty", "java_geospatial")
# Arrow's Parquet writer has no variants: rows can be deleted, but none can be written.
UNWRITABLE = "java_variants"


def _writes_rows(verb: str, mode: str) -> bool:
    return verb != "delete" or mode == "copy-on-write"


CASES = [
    pytest.param(expected, verb, mode, id=f"{expected['name']}-{verb}-{mode}")
    for expected, verb, mode in product(EXPECTED, VERBS, MODES)
    if expected["name"] not in (*REFUSED, *WITHOUT_KEYS)
    and not (expected["name"] == UNWRITABLE and _writes_rows(verb, mode))
    and (mode != "merge-on-read" or expected["format_version"] > 1)
]


@pytest.fixture(scope="module")
def duckdb_reader() -> Iterator[DuckDBReader]:
    with DuckDBReader() as reader:
        yield reader


@pytest.mark.parametrize(("expected", "verb", "mode"), CASES)
def test_a_change_on_the_local_engine(
    expected: Expected, verb: str, mode: str, tmp_path: Path, duckdb_reader: DuckDBReader
) -> None:
    check_change(expected, verb, mode, "local", tmp_path, duckdb_reader)


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


@pytest.mark.parametrize(("verb", "mode"), [case for case in product(VERBS, MODES) if _writes_rows(*case)])
def test_rows_that_cannot_be_written_are_not_changed(verb: str, mode: str, tmp_path: Path) -> None:
    (expected,) = (e for e in EXPECTED if e["name"] == UNWRITABLE)
    lake, table = open_copy(expected, tmp_path / "lake")
    with lake:
        before = table.snapshots()
        with pytest.raises((Unsupported, SchemaMismatch), match="variant"):
            change(table, verb, keys_of(table), mode, "local")
        assert table.snapshots() == before
