"""icefield add-files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Icefield


@pytest.fixture
def others(tmp_path: Path) -> Path:
    folder = tmp_path / "others"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), folder / "a.parquet")
    return folder


def test_files_of_others_are_taken_in_where_they_lie(icefield: Icefield, others: Path) -> None:
    icefield("create", "a.t", "id long, day string", "--partition-by", "day")
    added = icefield("add-files", "a.t", str(others), "--partition", "day=mon", "--root", str(others), "--json")
    assert (added.code, added.json["rows"], added.json["data-files"]) == (0, 2, 1)
    rows = icefield("query", "a.t", "--root", str(others), "--json")
    assert [row["day"] for row in rows.json] == ["mon", "mon"]


def test_files_outside_the_roots_are_refused(icefield: Icefield, others: Path) -> None:
    icefield("create", "a.t", "id long")
    refused = icefield("add-files", "a.t", str(others / "a.parquet"))
    assert refused.code == 1
    assert "error: " in refused.err


def test_roots_may_stand_in_the_environment(icefield: Icefield, others: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEFIELD_ROOTS", str(others))
    icefield("create", "a.t", "id long")
    assert "added 1 file with 2 rows to a.t" in icefield("add-files", "a.t", str(others / "a.parquet")).out


def test_a_partition_that_cannot_be_read_is_named(icefield: Icefield, others: Path) -> None:
    icefield("create", "a.t", "id long")
    refused = icefield("add-files", "a.t", str(others), "--partition", "day")
    assert (refused.code, "--partition has no key or no =" in refused.err) == (1, True)
