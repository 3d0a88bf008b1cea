"""icefield inspect."""

from tests.cli.conftest import Icefield


def test_rows_of_a_metadata_table_are_shown(orders: Icefield) -> None:
    ran = orders("inspect", "shop.orders", "files", "--select", "record_count,partition", "--where", "record_count > 1")
    header, *lines = ran.out.splitlines()
    assert header.split() == ["record_count", "partition"]
    assert lines == ['           2  {"ts_day": "2026-01-05"}']


def test_as_json_all_rows_come_with_the_names_of_the_columns(orders: Icefield) -> None:
    found = orders("inspect", "shop.orders", "partitions", "--json").json
    assert sorted((row["partition"]["ts_day"], row["record_count"]) for row in found) == [
        ("2026-01-05", 2),
        ("2026-01-06", 1),
        ("2026-01-07", 1),
    ]
    assert orders("inspect", "shop.orders", "delete_files", "--json").json == []


def test_a_limit_cuts_and_says_so(orders: Icefield) -> None:
    ran = orders("inspect", "shop.orders", "data_files", "--select", "spec_id", "--limit", "2")
    assert len(ran.out.splitlines()) == 3
    assert "first 2 rows" in ran.err
    assert len(orders("inspect", "shop.orders", "files", "--limit", "1", "--json").json) == 1


def test_an_older_version_is_looked_at(orders: Icefield) -> None:
    (first,) = orders("snapshots", "shop.orders", "--json").json
    orders("ingest", "shop.orders", "rows.jsonl")
    assert len(orders("inspect", "shop.orders", "files", "--json").json) == 6
    assert len(orders("inspect", "shop.orders", "files", "--json", "--as-of", first["snapshot-id"]).json) == 3


def test_an_unknown_name_is_the_user_s_fault(orders: Icefield) -> None:
    ran = orders("inspect", "shop.orders", "fils")
    assert ran.code == 1
    assert "unknown metadata table 'fils'" in ran.err
    assert "Did you mean 'files'?" in ran.err
