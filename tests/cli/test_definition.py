"""icefield create (its options), properties, rename, set-location, namespaces, statistics."""

from pathlib import Path

import pytest
from tests.cli.conftest import Icefield, answer


def test_properties_are_shown_set_and_removed(orders: Icefield) -> None:
    assert orders("properties", "shop.orders").err == "shop.orders has no properties.\n"
    done = orders("properties", "shop.orders", "--set", "owner=ada", "--set", "team=x=y", "--json")
    assert done.json == {"name": "shop.orders", "properties": {"owner": "ada", "team": "x=y"}}
    planned = orders("properties", "shop.orders", "--unset", "team", "--dry-run", "--json").json
    assert planned["properties"] == {"owner": "ada"}
    assert orders("properties", "shop.orders").out.split() == ["owner", "ada", "team", "x=y"]
    orders("properties", "shop.orders", "--unset", "team")
    assert orders("properties", "shop.orders").out.split() == ["owner", "ada"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--unset", "none"), "shop.orders has no property none"),
        (("--set", "write.parqet.page-row-limit=1"), "parqet"),
        (("--set", "a=1", "--unset", "a"), "both set and removed"),
    ],
)
def test_wrong_properties_are_refused(orders: Icefield, arguments: tuple[str, ...], why: str) -> None:
    ran = orders("properties", "shop.orders", *arguments)
    assert (ran.code, why in ran.err) == (1, True)
    assert orders("properties", "shop.orders").out == ""


def test_tables_are_renamed(orders: Icefield) -> None:
    assert orders("rename", "shop.orders", "shop.sales", "--json").json == {
        "kind": "table",
        "from": "shop.orders",
        "to": "shop.sales",
    }
    assert orders("count", "shop.sales").out == "4\n"
    assert "no table shop.orders" in orders("rename", "shop.orders", "shop.x").err


def test_new_files_go_to_another_location(orders: Icefield, tmp_path: Path) -> None:
    place = f"file://{tmp_path}/lake/elsewhere"
    assert orders("set-location", "shop.orders", place, "--json").json["to"] == place
    assert orders("ingest", "shop.orders", "rows.jsonl").code == 0
    assert list((tmp_path / "lake" / "elsewhere").rglob("*.parquet"))
    assert orders("set-location", "shop.orders", "file:///etc").code == 1


def test_namespaces_are_created_described_and_dropped(orders: Icefield) -> None:
    assert orders("create-namespace", "web", "--property", "owner=ada").out == "created web\n"
    assert orders("create-namespace", "web").code == 1
    assert orders("create-namespace", "web", "--if-not-exists").code == 0
    assert orders("namespaces", "--json").json["namespaces"] == ["shop", "web"]
    assert orders("namespace", "web", "--set", "team=x", "--unset", "owner", "--json").json == {
        "namespace": "web",
        "properties": {"team": "x"},
    }
    assert orders("drop-namespace", "web", "--dry-run").out == "would drop web\n"
    assert orders("drop-namespace", "web", "--yes").out == "dropped web\n"
    refused = orders("drop-namespace", "shop", "--yes")
    assert (refused.code, "namespace shop is not empty: it has shop.orders" in refused.err) == (1, True)
    assert orders("namespaces").out == "shop\n"


def test_statistics_are_computed_listed_and_removed(orders: Icefield) -> None:
    assert orders("statistics", "shop.orders").err == "shop.orders has no statistics.\n"
    assert "name (3 distinct)" in orders("statistics", "shop.orders", "--compute", "--column", "name").out
    found = orders("statistics", "shop.orders", "--partitions", "--json").json
    assert (len(found["statistics"]), len(found["partition-statistics"])) == (1, 1)
    snapshot = found["statistics"][0]["snapshot-id"]
    assert orders("statistics", "shop.orders", "--remove").code == 1
    assert orders("statistics", "shop.orders", "--remove", "--snapshot", snapshot).code == 0
    assert orders("statistics", "shop.orders", "--json").json["statistics"] == []


def test_a_table_is_created_like_another_or_if_there_is_none(orders: Icefield) -> None:
    assert orders("create", "shop.copy", "--like", "shop.orders", "--property", "owner=ada").code == 0
    copied, original = (orders("describe", f"shop.{name}", "--json").json for name in ("copy", "orders"))
    assert (copied["columns"], copied["partition-by"]) == (original["columns"], original["partition-by"])
    assert "there is already a table shop.copy" in orders("create", "shop.copy", "id int", "--if-not-exists").out
    assert orders("create", "shop.copy", "id int").code == 1
    assert orders("create", "shop.x").err.startswith("error: a new table needs SCHEMA or --like, and not both")
    assert orders("create", "shop.x", "--like", "shop.orders", "--order-by", "id").code == 1
    assert orders("create", "shop.new", "id int", "--dry-run").out == "would create shop.new\n"
    assert orders("create", "shop.new", "id lung", "--dry-run").code == 1
    assert orders("tables").out == "shop.copy\nshop.orders\n"


def test_a_replacement_asks(orders: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "n\n")
    assert orders("create", "shop.orders", "id int", "--replace").code == 1
    assert orders("count", "shop.orders").out == "4\n"
    assert orders("create", "shop.orders", "id int", "--replace", "--yes").out.startswith("replaced shop.orders at ")
    assert orders("count", "shop.orders").out == "0\n"


def test_a_question_without_a_terminal_is_refused_at_once(orders: Icefield) -> None:
    ran = orders("drop", "shop.orders")
    assert ran.code == 1
    assert ran.err.splitlines()[-2:] == [
        "error: nothing was dropped: it was not confirmed, and there is no terminal to ask",
        "hint: Give --yes",
    ]
