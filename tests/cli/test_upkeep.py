"""icefield expire, orphans, sweep, leases, drop --purge, dropped, undrop, purge: they ask, and say what they did."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Icefield, answer

import icefield


@pytest.fixture
def lake(orders: Icefield, tmp_path: Path) -> icefield.Lake:
    lake = icefield.connect(str(tmp_path / "lake"))
    table = lake.table("shop.orders")
    table.set_properties(
        {"icefield.gc.grace-ms": "0", "icefield.gc.foreign-readers": "false", "icefield.gc.orphan-age-ms": "0"}
    )
    table.delete("id = 1")
    table.delete("id = 2")
    return lake


def test_upkeep_plans_asks_runs_and_says_if_a_table_failed(
    orders: Icefield, lake: icefield.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.table("shop.orders")
    table.set_properties(
        {"icefield.upkeep.rewrite-manifests.min-manifests": "1", "icefield.gc.orphan-age-ms": "86400000"}
    )
    planned = orders("upkeep", "plan", "--json")
    assert (planned.code, planned.json["is-dry-run"]) == (0, True)
    due = [step["step"] for step in planned.json["tables"][0]["steps"] if step["outcome"] == "planned"]
    assert due == ["rewrite-manifests", "orphans"]
    assert orders("upkeep", "run", "--dry-run").out == orders("upkeep", "plan").out
    before = table.metadata_location
    answer(monkeypatch, "n\n")
    refused = orders("upkeep", "run")
    assert (refused.code, "nothing was changed: it was not confirmed" in refused.err) == (1, True)
    assert (table.metadata_location, "rewrite-manifests" in refused.err) == (before, True)
    done = orders("upkeep", "run", "shop.orders", "--yes", "--minutes", "10", "--bytes", "0")
    assert (done.code, "orphans                1.0  done: " in done.out) == (0, True)
    assert orders("upkeep", "run").out.startswith("shop.orders: nothing is due")  # and nothing is asked
    lake.create_table("shop.lost", "id long")
    Path(lake.table("shop.lost").metadata_location.removeprefix("file://")).unlink()
    failed = orders("upkeep", "run", "--yes", "--json")
    assert (failed.code, failed.json["is-failed"]) == (1, True)
    assert {each["table"]: each["error"] is None for each in failed.json["tables"]} == {
        "shop.orders": True,
        "shop.lost": False,
    }
    wrong = orders("upkeep", "run", "--minutes", "0", "--yes")
    assert (wrong.code, "a run cannot take 0.0 minutes" in wrong.err) == (1, True)


def test_expire_asks_and_has_a_dry_run(orders: Icefield, lake: icefield.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.table("shop.orders")
    command = ("expire", "shop.orders", "--older-than", "2100-01-01T00:00:00Z")
    planned = orders(*command, "--dry-run", "--json")
    assert (planned.code, planned.json["is-dry-run"]) == (0, True)
    assert all(isinstance(each, str) for each in planned.json["snapshot-ids"])
    answer(monkeypatch, "n\n")
    refused = orders(*command)
    assert refused.code == 1
    assert "nothing was changed: it was not confirmed" in refused.err
    assert len(table.snapshots()) == len(planned.json["snapshot-ids"]) + 1
    done = orders(*command, "--yes", "--json")
    assert done.json["snapshot-ids"] == planned.json["snapshot-ids"]
    assert done.json["swept"]["files-deleted"] == planned.json["files-marked"]
    assert len(table.snapshots()) == 1
    assert orders("query", "shop.orders", "--json").code == 0


def test_expire_takes_an_age_or_a_time(orders: Icefield) -> None:
    orders("append", "shop.orders", "rows.jsonl")
    assert "would expire 0 snapshots" in orders("expire", "shop.orders", "--older-than", "1d", "--dry-run").out
    assert "would expire 1 snapshots" in orders("expire", "shop.orders", "--older-than", "0m", "--dry-run").out
    assert orders("expire", "shop.orders", "--older-than", "long ago", "--dry-run").code == 1


def test_expire_by_id(orders: Icefield, lake: icefield.Lake) -> None:
    first = lake.table("shop.orders").snapshots()[0].snapshot_id
    done = orders("expire", "shop.orders", "--snapshot", str(first), "--yes")
    assert (done.code, "expired 1 snapshots" in done.out) == (0, True)


def test_orphans_and_sweep(orders: Icefield, lake: icefield.Lake) -> None:
    table = lake.table("shop.orders")
    orphan = Path(table.location.removeprefix("file://")) / "data" / f"00000-{table.metadata.table_uuid}.parquet"
    orphan.write_bytes(b"x")
    refused = orders("orphans", "shop.orders", "--yes")
    assert (refused.code, "another engine may be writing" in refused.err) == (1, True)
    planned = orders("orphans", "shop.orders", "--unsafe", "--dry-run", "--json")
    assert planned.json["locations"] == [f"file://{orphan}"]
    assert orphan.exists()
    done = orders("orphans", "shop.orders", "--unsafe", "--yes")
    assert "marked 1 orphan files" in done.out
    assert not orphan.exists()
    swept = orders("sweep", "shop.orders", "--yes", "--json")
    assert (swept.code, swept.json["files-deleted"]) == (0, 0)
    wrong = orders("orphans", "shop.orders", "--older-than", "soon")
    assert (wrong.code, "'soon' is not an age" in wrong.err) == (1, True)


def test_leases_show_who_holds_what(orders: Icefield, lake: icefield.Lake) -> None:
    assert "Nobody holds a lease" in orders("leases", "shop.orders").err
    reader = lake.table("shop.orders").scan().to_arrow()
    (lease,) = orders("leases", "shop.orders", "--json").json
    assert (lease["kind"], len(lease["snapshot-ids"])) == ("reader", 1)
    assert lease["lease"] in orders("leases", "shop.orders").out
    orders("create", "shop.other", "id long")
    assert orders("leases", "shop.other", "--json").json == []
    assert orders("leases", "--json").json == orders("leases", "shop.orders", "shop.other", "--json").json == [lease]
    assert lease["table"] == "shop.orders"
    assert "shop.none" in orders("leases", "shop.none").err
    del reader
    assert "Nobody holds a lease on any table." in orders("leases").err
    assert orders("leases", "shop.orders", "--json").json == []


def test_a_dropped_table_is_listed_restored_and_purged(orders: Icefield, lake: icefield.Lake) -> None:
    lake.table("shop.orders").set_properties({"icefield.gc.undrop-ms": "0"})
    location = Path(lake.table("shop.orders").location.removeprefix("file://"))
    assert "There are no dropped tables" in orders("dropped").err
    done = orders("drop", "shop.orders", "--purge", "--yes")
    assert "its files are deleted when it cannot be restored" in done.out
    (found,) = orders("dropped", "--json").json
    assert (found["table"], found["purge"]) == ("shop.orders", True)
    assert "shop.orders" in orders("dropped").out
    assert "restored shop.orders" in orders("undrop", "shop.orders").out
    assert orders("drop", "shop.orders", "--purge", "--yes").code == 0
    planned = orders("purge", "--dry-run", "--json").json
    assert location.exists()
    assert orders("purge", "--yes", "--json").json[0]["files-deleted"] == planned[0]["files-deleted"] > 3
    assert not [path for path in location.rglob("*") if path.is_file()]
    assert orders("undrop", "shop.orders").code == 1


@pytest.mark.slow
def test_the_page_does_what_it_shows_twice(check_page: Callable[..., None]) -> None:
    check_page("upkeep.md")


def test_forget_asks_and_proves(orders: Icefield, lake: icefield.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("forget", "shop.orders", "--where", "id = 3", "--search", "no such text")
    assert orders("forget", "shop.orders").code == 1
    planned = orders(*command, "--dry-run", "--json").json
    assert (planned["is-dry-run"], sum(planned["rows-deleted"].values())) == (True, 1)
    answer(monkeypatch, "n\n")
    assert "nothing was changed: it was not confirmed" in orders(*command).err
    done = orders(*command, "--yes", "--json").json
    assert (done["is-finished"], done["search"]["is-clean"], done["search"]["terms"]) == (True, True, 1)
    assert 3 not in [row["id"] for row in orders("query", "shop.orders", "--json").json]
