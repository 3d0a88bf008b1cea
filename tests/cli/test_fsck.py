"""icefield fsck."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.cli.conftest import Icefield, answer

import icefield as library


@pytest.fixture
def lost_tag(orders: Icefield, tmp_path: Path) -> Icefield:
    """A table with a tag of no snapshot."""
    with library.connect(tmp_path / "lake") as lake:
        location = Path(lake.table("shop.orders").metadata_location.removeprefix("file://"))
    document: dict[str, Any] = json.loads(location.read_text())
    document["refs"]["lost"] = {"snapshot-id": 1, "type": "tag"}
    location.write_text(json.dumps(document))
    return orders


def test_a_healthy_lake(orders: Icefield) -> None:
    done = orders("fsck")
    assert (done.code, done.out) == (0, "shop.orders: healthy (1 snapshots, 1 manifests, 3 files)\n")
    document = orders("fsck", "shop.orders", "--deep", "--json").json
    assert document["healthy"] is True
    assert document["tables"][0]["files"] == 3
    assert document["tables"][0]["findings"] == []
    assert orders("fsck", "--repair", "--json").json["tables"][0]["dry-run"] is False


def test_a_lake_without_tables(icefield: Icefield) -> None:
    icefield("create", "a.t", "id long")
    icefield("drop", "a.t", "--yes")
    assert icefield("fsck").out == "there are no tables\n"


def test_findings_are_data_and_an_exit_code(orders: Icefield, tmp_path: Path) -> None:
    gone = sorted((tmp_path / "lake").rglob("*.parquet"))[0]
    gone.unlink()
    done = orders("fsck", "--json")
    assert done.code == 1
    (finding,) = done.json["tables"][0]["findings"]
    assert finding["check"] == "missing-files"
    assert finding["location"].endswith(gone.name)
    assert finding["harmless"] is False


def test_a_repair_shows_asks_and_repairs(lost_tag: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "n\n")
    shown = lost_tag("fsck", "--repair", "--dry-run")
    assert (shown.code, "would repair: drop 'lost'" in shown.out) == (1, True)
    refused = lost_tag("fsck", "--repair")
    assert (refused.code, "not confirmed" in refused.err, "lost" in lost_tag("fsck").out) == (1, True, True)
    done = lost_tag("fsck", "--repair", "--yes", "--json")
    (repair,) = done.json["tables"][0]["repairs"]
    assert repair == {"check": "refs", "action": "drop 'lost', which points at no snapshot"}
    assert lost_tag("fsck").code == 0


def test_a_missing_data_file_is_dropped_by_name(orders: Icefield, tmp_path: Path) -> None:
    gone = sorted((tmp_path / "lake").rglob("*.parquet"))[0]
    gone.unlink()
    location = orders("fsck", "--json").json["tables"][0]["findings"][0]["location"]
    assert "for one table" in orders("fsck", "--repair", "--drop-file", location).err
    assert "are for repairs" in orders("fsck", "shop.orders", "--drop-file", location).err
    refused = orders("fsck", "shop.orders", "--repair", "--yes", "--drop-file", "nonsense")
    assert (refused.code, "not a missing file" in refused.err) == (1, True)
    orders("fsck", "shop.orders", "--repair", "--yes", "--drop-file", location)
    assert len(orders("query", "shop.orders", "--json").json) in (2, 3)


def test_tables_that_are_changed_together(icefield: Icefield, tmp_path: Path) -> None:
    for name in ("a.orders", "a.lines"):
        icefield("create", name, "id long")
    with library.connect(tmp_path / "lake") as lake:
        lake.table("a.orders").append(pa.table({"id": [1]}), idempotency_key="batch-17")
    done = icefield("fsck", "a.orders", "a.lines", "--together")
    assert (done.code, "half-changed: a.lines lacks" in done.out) == (1, True)
    assert icefield("fsck", "a.orders", "a.lines").code == 0


def test_a_missing_table_is_named(orders: Icefield) -> None:
    refused = orders("fsck", "shop.none")
    assert (refused.code, "shop.none" in refused.err) == (1, True)


@pytest.mark.slow
def test_the_page_does_what_it_shows_twice(check_page: Callable[..., None]) -> None:
    check_page("fsck.md")
