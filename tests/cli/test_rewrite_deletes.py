"""icefield rewrite-deletes."""

from pathlib import Path

import pyarrow as pa
from tests.cli.conftest import Icefield

import icefield as library


def test_position_deletes_are_rewritten(icefield: Icefield, tmp_path: Path) -> None:
    icefield("create", "a.t", "id long")
    assert "a.t has no deletes to rewrite: 0 delete files, all good" in icefield("rewrite-deletes", "a.t").out
    with library.connect(tmp_path / "lake") as lake:
        table = lake.table("a.t")
        table.append(pa.table({"id": [1, 2, 3]}))
        for number in (1, 2):
            table.delete(f"id = {number}", mode="merge-on-read")
        table.append(pa.table({"id": [4, 5]}))
        table.delete("id = 4", mode="merge-on-read")
    planned = icefield("rewrite-deletes", "a.t", "--dry-run")
    assert "rewrite deletes (dry run): 2 of" in planned.out
    done = icefield("rewrite-deletes", "a.t", "--json").json
    assert (done["files-to-rewrite"], done["is-dry-run"], len(done["snapshot-ids"])) == (2, False, 1)
    assert sorted(row["id"] for row in icefield("query", "a.t", "--json").json) == [3, 5]
    again = icefield("rewrite-deletes", "a.t", "--where", "id = 3", "--convert-equality", "--json")
    assert (again.code, again.json["snapshot-ids"]) == (0, [])
    refused = icefield("rewrite-deletes", "a.none")
    assert (refused.code, "a.none" in refused.err) == (1, True)
