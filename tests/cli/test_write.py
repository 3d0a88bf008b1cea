"""icefield append, overwrite, delete-files, appends, changed-files, min-max, count --by-partition, files --splits."""

from pathlib import Path

import pytest
from tests.cli.conftest import Icefield, answer

NEW = '{"id": 9, "ts": "2026-01-05T12:00:00Z", "name": "barbara"}\n'


def ids(icefield: Icefield, *more: str) -> list[int]:
    return sorted(row["id"] for row in icefield("query", "shop.orders", "--json", *more).json)


@pytest.fixture
def new(orders: Icefield, tmp_path: Path) -> Icefield:
    (tmp_path / "new.jsonl").write_text(NEW)
    return orders


def test_append_writes_to_a_branch_once_per_key(new: Icefield) -> None:
    new("branch", "shop.orders", "staging")
    for _ in range(2):
        assert new("append", "shop.orders", "new.jsonl", "--branch", "staging", "--key", "job-1").code == 0
    assert ids(new) == [1, 2, 3, 4]
    assert ids(new, "--as-of", "staging") == [1, 2, 3, 4, 9]


def test_append_adds_columns_that_only_the_files_have(orders: Icefield, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("id,note\n7,late\n")
    assert "column 'note' is not in the table" in orders("append", "shop.orders", "more.csv").err
    done = orders("append", "shop.orders", "more.csv", "--merge-schema", "--json")
    assert (done.code, done.json["added-records"]) == (0, 1)
    rows = orders("query", "shop.orders", "--where", "id = 7", "--select", "id,note", "--json").json
    assert rows == [{"id": 7, "note": "late"}]


def test_overwrite_replaces_what_it_says(new: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    day = ("--where", "ts >= '2026-01-05' AND ts < '2026-01-06'")
    planned = new("overwrite", "shop.orders", "new.jsonl", *day, "--dry-run")
    assert planned.out == "would replace or remove 2 rows of shop.orders\n"
    answer(monkeypatch, "n\n")
    assert new("overwrite", "shop.orders", "new.jsonl", *day).code == 1
    assert ids(new) == [1, 2, 3, 4]
    done = new("overwrite", "shop.orders", "new.jsonl", *day, "--yes", "--json").json
    assert (done["added-records"], done["deleted-records"]) == (1, 2)
    assert ids(new) == [3, 4, 9]


def test_overwrite_of_partitions_of_files_and_of_all(new: Icefield) -> None:
    assert new("overwrite", "shop.orders", "new.jsonl", "--partitions", "--yes").code == 0
    assert ids(new) == [3, 4, 9]
    (file,) = [f["file-path"] for f in new("files", "shop.orders", "--where", "id = 3", "--json").json]
    assert new("overwrite", "shop.orders", "new.jsonl", "--data-file", file, "--yes").code == 0
    assert ids(new) == [4, 9, 9]
    assert new("overwrite", "shop.orders", "new.jsonl", "--yes").code == 0
    assert ids(new) == [9]
    both = new("overwrite", "shop.orders", "new.jsonl", "--partitions", "--where", "id = 1")
    assert "exclude each other" in both.err


def test_delete_files_removes_files_by_location(new: Icefield) -> None:
    (file,) = [f["file-path"] for f in new("files", "shop.orders", "--where", "id = 3", "--json").json]
    assert "1 data file with 1 row of shop.orders" in new("delete-files", "shop.orders", file, "--dry-run").out
    assert ids(new) == [1, 2, 3, 4]
    assert new("delete-files", "shop.orders", file, "--yes").code == 0
    assert ids(new) == [1, 2, 4]
    assert "has no data file" in new("delete-files", "shop.orders", file, "--yes").err


def test_appends_and_changed_files_show_what_came_after_a_version(new: Icefield) -> None:
    new("tag", "shop.orders", "start")
    new("append", "shop.orders", "new.jsonl")
    shown = new("appends", "shop.orders", "start", "--select", "id", "--json")
    assert shown.json == [{"id": 9}]
    assert "name it as AFTER" in shown.err
    assert len(new("appends", "shop.orders", "--json").json) == 5
    (changed,) = new("changed-files", "shop.orders", "start", "--json").json
    assert (changed["change"], changed["record-count"]) == ("added", 1)
    assert new("changed-files", "shop.orders", "start").out.splitlines()[1].split()[:3] == ["added", "data", "1"]


def test_counts_of_partitions_extremes_and_splits(orders: Icefield) -> None:
    counted = orders("count", "shop.orders", "--by-partition", "--json").json
    assert sorted(row["record-count"] for row in counted) == [1, 1, 2]
    assert orders("count", "shop.orders", "--by-partition").out.splitlines()[0].split() == [
        "rows",
        "files",
        "partition",
    ]
    found = orders("min-max", "shop.orders", "id", "name", "--json").json
    assert found == [{"column": "id", "min": 1, "max": 4}, {"column": "name", "min": "ada", "max": "grace"}]
    assert orders("min-max", "shop.orders", "nom").code == 1
    (task,) = orders("files", "shop.orders", "--splits", "--json").json
    assert len(task) == 3
