"""icefield explain, files, count."""

from tests.cli.conftest import Icefield

LATER = "ts >= '2026-01-06'"


def test_explain_shows_what_was_pruned_by_what(orders: Icefield) -> None:
    lines = orders("explain", "shop.orders", "--where", LATER, "--select", "id").out.splitlines()
    assert lines[0].startswith("scan of shop.orders at snapshot ")
    assert lines[2] == "  columns    id"
    assert lines[4] == "  files      3 in all, pruned: 0 with their manifests, 1 by partition, 0 by statistics"


def test_explain_as_json(orders: Icefield) -> None:
    value = orders("explain", "shop.orders", "--where", LATER, "--json").json
    assert (value["files"], value["files-pruned-by-partition"], value["files-read"]) == (3, 1, 2)
    assert isinstance(value["snapshot-id"], str)


def test_files_are_shown_below_the_table_and_whole_in_json(orders: Icefield) -> None:
    header, *lines = orders("files", "shop.orders", "--where", LATER).out.splitlines()
    assert header.split() == ["rows", "size", "partition", "file"]
    assert [line.split()[0] for line in lines] == ["1", "1"]
    assert all(line.split()[-1].startswith("data/ts_day=2026-01-0") for line in lines)
    whole = orders("files", "shop.orders", "--where", LATER, "--json").json
    assert [row["partition"] for row in whole] == ["ts_day=2026-01-06", "ts_day=2026-01-07"]
    assert all(row["file-path"].startswith("file:///") for row in whole)


def test_count_is_a_bare_number_on_stdout(orders: Icefield) -> None:
    assert orders("count", "shop.orders").out == "4\n"
    assert orders("count", "shop.orders", "--where", "name = 'ada'").out == "1\n"
    (snapshot,) = orders("snapshots", "shop.orders", "--json").json
    expected = {"table": "shop.orders", "snapshot-id": snapshot["snapshot-id"], "count": 2}
    assert orders("count", "shop.orders", "--where", LATER, "--json").json == expected


def test_every_way_to_name_a_version_reads_it(orders: Icefield) -> None:
    (first,) = orders("snapshots", "shop.orders", "--json").json
    orders("ingest", "shop.orders", "rows.jsonl")
    for version in (first["snapshot-id"], first["committed-at"]):
        assert orders("count", "shop.orders", "--as-of", version).out == "4\n"
        assert len(orders("files", "shop.orders", "--as-of", version, "--json").json) == 3
    assert orders("count", "shop.orders", "--as-of", "main").out == "8\n"
