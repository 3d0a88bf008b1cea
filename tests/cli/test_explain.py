"""icefield explain: the metrics and the reason for one file, as text, as a tree and as JSON."""

from tests.cli.conftest import Icefield

LATER = "ts >= '2026-01-06'"


def first_file(orders: Icefield) -> str:
    files = orders("files", "shop.orders", "--json").json
    return str(next(row["file-path"] for row in files if row["partition"] == "ts_day=2026-01-05"))


def test_why_names_what_ruled_the_file_out(orders: Icefield) -> None:
    whole = first_file(orders)
    lines = orders("explain", "shop.orders", "--where", LATER, "--why", whole.rsplit("/", 1)[1]).out.splitlines()
    assert lines[0] == whole
    assert lines[1].startswith("  not read: by its partition no row can match ts >= TIMESTAMP '2026-01-06")


def test_why_as_json(orders: Icefield) -> None:
    value = orders("explain", "shop.orders", "--where", LATER, "--why", first_file(orders), "--json").json
    assert value["ruled-out-by"] == "partition"
    assert [p["pass"] for p in value["conditions"][0]["passes"]] == ["manifest", "partition", "statistics"]


def test_the_funnel_as_a_tree(orders: Icefield) -> None:
    lines = orders("explain", "shop.orders", "--where", LATER, "--tree").out.splitlines()
    assert "├── 3 files" in lines
    assert "│   ├── 1 pruned by partition" in lines


def test_why_as_a_tree(orders: Icefield) -> None:
    out = orders("explain", "shop.orders", "--where", LATER, "--why", first_file(orders), "--tree").out
    assert "│   ├── by partition, no row can match for ts_day >= DATE '2026-01-06': ts_day=2026-01-05" in out


def test_an_unknown_file_is_the_users_fault(orders: Icefield) -> None:
    ran = orders("explain", "shop.orders", "--why", "nothing.parquet")
    assert ran.code == 1
    assert "no data file 'nothing.parquet'" in ran.err
