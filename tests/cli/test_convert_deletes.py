"""icefield convert-deletes."""

from pathlib import Path

import pyarrow as pa
from tests.cli.conftest import Icefield

import icefield as library


def test_equality_deletes_become_position_deletes(icefield: Icefield, tmp_path: Path) -> None:
    icefield("create", "a.t", "id long, n long")
    assert "a.t has no equality deletes to convert" in icefield("convert-deletes", "a.t").out
    with library.connect(tmp_path / "lake") as lake:
        table = lake.table("a.t")
        table.append(pa.table({"id": [1, 2], "n": [0, 0]}))
        table.upsert(pa.table({"id": [2], "n": [7]}), on=["id"], mode="equality")
        before = table.metadata_location
        planned = icefield("convert-deletes", "a.t", "--dry-run", "--json")
        would = icefield("convert-deletes", "a.t", "--dry-run").out
        assert would.startswith("would replace 1 equality delete file of a.t by 1 position in 1 delete file")
        assert lake.table("a.t").metadata_location == before
    done = icefield("convert-deletes", "a.t", "--json")
    assert done.code == 0
    same = ("table", "snapshot-id", "is-dry-run")
    counts, expected = ({key: n for key, n in each.json.items() if key not in same} for each in (done, planned))
    assert counts == expected
    assert (planned.json["is-dry-run"], planned.json["snapshot-id"]) == (True, None)
    assert counts == {
        "removed-equality-delete-files": 1,
        "removed-delete-files": 1,
        "added-delete-files": 1,
        "added-position-deletes": 1,
    }
    assert sorted(row["n"] for row in icefield("query", "a.t", "--json").json) == [0, 7]
    again = icefield("convert-deletes", "a.t", "--where", "id = 1", "--json")
    assert (again.code, again.json["snapshot-id"]) == (0, None)


def test_a_missing_table_is_named(icefield: Icefield) -> None:
    icefield("create", "a.t", "id long")
    refused = icefield("convert-deletes", "a.none")
    assert (refused.code, "a.none" in refused.err) == (1, True)


def test_an_upsert_by_equality_deletes(icefield: Icefield, tmp_path: Path) -> None:
    icefield("create", "a.t", "id long, n long")
    for number, value in enumerate((0, 7)):
        (tmp_path / f"{number}.jsonl").write_text(f'{{"id": 1, "n": {value}}}\n')
    for number in (0, 1):
        done = icefield("upsert", "a.t", f"{number}.jsonl", "--on", "id", "--mode", "equality", "--json")
        assert (done.code, done.json["mode"], done.json["delete-files-added"]) == (0, "equality", 1)
    assert [row["n"] for row in icefield("query", "a.t", "--json").json] == [7]
    assert icefield("delete", "a.t", "--where", "id = 1", "--mode", "equality", "--yes").code == 1
