"""icefield snapshots, history."""

from tests.cli.conftest import Icefield

from icefield.cli.snapshot_facts import summary_number
from icefield.model.snapshot import Snapshot


def test_snapshots_lists_every_version_with_its_numbers(orders: Icefield) -> None:
    orders("ingest", "shop.orders", "rows.jsonl")
    first, second = orders("snapshots", "shop.orders", "--json").json
    assert second["parent-snapshot-id"] == first["snapshot-id"]
    assert (first["refs"], second["refs"]) == ([], ["main"])
    header, *lines = orders("snapshots", "shop.orders").out.splitlines()
    assert header.split()[:4] == ["snapshot", "parent", "committed", "operation"]
    assert lines[0].split() == [first["snapshot-id"], "-", first["committed-at"], "append", "4", "0", "4", "3"]
    assert lines[1].split()[-5:] == ["4", "0", "8", "6", "main"]


def test_history_says_what_was_current_and_from_when_on(orders: Icefield) -> None:
    (entry,) = orders("history", "shop.orders", "--json").json
    (snapshot,) = orders("snapshots", "shop.orders", "--json").json
    assert entry == {
        "made-current-at": snapshot["committed-at"],
        "snapshot-id": snapshot["snapshot-id"],
        "operation": "append",
        "is-current-ancestor": True,
    }
    _, line = orders("history", "shop.orders").out.splitlines()
    assert line.split() == [entry["made-current-at"], entry["snapshot-id"], "append", "yes"]


def test_a_table_that_was_never_written_has_no_versions(icefield: Icefield) -> None:
    icefield("create", "a.b", "id long")
    for command in ("snapshots", "history"):
        assert icefield(command, "a.b", "--json").json == []
        output = icefield(command, "a.b")
        assert (output.code, output.out, output.err) == (0, "", "a.b has no snapshots.\n")


def test_numbers_that_other_writers_left_out_or_garbled_are_unknown() -> None:
    snapshot = Snapshot(1, 1, 0, "file:///x", summary={"total-records": "12", "added-records": "many"})
    assert summary_number(snapshot, "total-records") == 12
    assert summary_number(snapshot, "added-records") is None
    assert summary_number(snapshot, "total-data-files") is None
