"""icefield compact, rewrite-manifests."""

from pathlib import Path

import pyarrow as pa
from tests.cli.conftest import Icefield

import icefield as library


def fill(tmp_path: Path, appends: int = 5) -> None:
    with library.connect(tmp_path / "lake") as lake:
        table = lake.table("a.t")
        for number in range(appends):
            table.append(pa.table({"id": [number], "p": ["x"]}))


def test_compact_shows_its_plan_and_what_it_did(icefield: Icefield, tmp_path: Path) -> None:
    icefield("create", "a.t", "id long, p string", "--partition-by", "p")
    assert "nothing to compact: 0 files, all good" in icefield("compact", "a.t").out
    fill(tmp_path)
    plan = icefield("compact", "a.t", "--dry-run")
    assert (plan.code, "compact (dry run): 5 of 5 files to rewrite" in plan.out, "p=x" in plan.out) == (0, True, True)
    asked = icefield("compact", "a.t", "--dry-run", "--json").json
    done = icefield("compact", "a.t", "--json")
    assert (done.code, done.json.keys()) == (0, asked.keys())
    assert (asked["snapshot-ids"], asked["groups"], asked["reasons"]) == ([], 1, {"few bytes": 5})
    assert (done.json["files-removed"], done.json["files-added"], len(done.json["snapshot-ids"])) == (5, 1, 1)
    assert "compacting a.t" in done.err
    assert icefield("count", "a.t").out.strip() == "5"
    assert "nothing to compact: 1 file, all good" in icefield("compact", "a.t").out


def test_compact_takes_a_filter_options_and_columns(icefield: Icefield, tmp_path: Path) -> None:
    icefield("create", "a.t", "id long, p string")
    fill(tmp_path)
    none = icefield("compact", "a.t", "--where", "id > 100", "--json")
    assert (none.code, none.json["files"], none.json["is-dry-run"]) == (0, 0, False)
    clustered = icefield("compact", "a.t", "--cluster-by", "id, p", "--json")
    assert (clustered.json["strategy"], clustered.json["files-added"]) == ("cluster", 1)
    refused = icefield("compact", "a.t", "--option", "min-input-files=1")
    assert (refused.code, "at least 2" in refused.err) == (1, True)
    refused = icefield("compact", "a.t", "--option", "files=1")
    assert (refused.code, "There are: commit-size-bytes, delete-ratio" in refused.err) == (1, True)
    ordered = icefield("compact", "a.t", "--order-by", "p", "--order-by", "bucket(16, id) desc", "--json")
    assert (ordered.code, ordered.json["strategy"]) == (0, "sort")
    refused = icefield("compact", "a.t", "--order-by", "nothing")
    assert (refused.code, "nothing" in refused.err) == (1, True)
    refused = icefield("compact", "a.t", "--strategy", "sort")
    assert (refused.code, "no sort order" in refused.err) == (1, True)


def test_manifests_are_rewritten(icefield: Icefield, tmp_path: Path) -> None:
    icefield("create", "a.t", "id long, p string")
    assert "the manifests of a.t are good" in icefield("rewrite-manifests", "a.t").out
    fill(tmp_path)
    files = sorted((tmp_path / "lake").rglob("*"))
    assert "would replace 5 manifests of a.t by 1; 0 kept" in icefield("rewrite-manifests", "a.t", "--dry-run").out
    assert sorted((tmp_path / "lake").rglob("*")) == files
    done = icefield("rewrite-manifests", "a.t", "--json").json
    assert (done["manifests-replaced"], done["manifests-created"], done["is-dry-run"]) == (5, 1, False)
    assert icefield("rewrite-manifests", "a.t", "--json").json["snapshot-id"] is None
