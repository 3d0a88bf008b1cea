"""icefield views, view, create-view, drop-view."""

from pathlib import Path

import pytest
from tests.cli.conftest import Icefield, answer

import icefield as package


@pytest.fixture
def recent(orders: Icefield, tmp_path: Path) -> Icefield:
    """A lake with a table and a view of it."""
    with package.connect(tmp_path / "lake") as lake:
        lake.create_view("shop.recent", "SELECT id\nFROM orders", schema="id long", properties={"comment": "new"})
    return orders


def test_views_are_listed_apart_from_tables(recent: Icefield, tmp_path: Path) -> None:
    assert recent("views").out == "shop.recent\n"
    assert recent("tables").out == "shop.orders\n"
    assert recent("views", "shop", "--json").json == {"lake": f"file://{tmp_path}/lake", "views": ["shop.recent"]}


def test_a_lake_without_views_says_so(orders: Icefield) -> None:
    assert (orders("views").out, orders("views").err) == ("", "There are no views.\n")


def test_view_shows_query_and_columns(recent: Icefield) -> None:
    shown = recent("view", "shop.recent").out
    for part in ("shop.recent\n", "query (spark)\n", "  SELECT id\n", "  FROM orders\n", "  id  long", "comment  new"):
        assert part in shown
    value = recent("view", "shop.recent", "--json").json
    assert value["sql"] == {"spark": "SELECT id\nFROM orders"}
    assert value["columns"] == [{"name": "id", "type": "long", "doc": None}]
    assert value["default-namespace"] == "shop"
    assert [entry["version-id"] for entry in value["history"]] == [1]


def test_the_wrong_kind_is_the_users_fault(recent: Icefield) -> None:
    assert recent("view", "shop.orders").err == "error: shop.orders is a table, not a view\n"
    assert recent("describe", "shop.recent").err.startswith("error: shop.recent is a view, not a table\n")
    assert recent("drop-view", "shop.orders", "--yes").code == 1
    assert recent("drop", "shop.recent", "--yes").code == 1
    assert recent("views").out == "shop.recent\n"


def test_drop_view_is_planned_asked_for_and_done(recent: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "n\n")
    planned = recent("drop-view", "shop.recent", "--dry-run", "--json").json
    assert planned["dropped"] is False
    assert recent("drop-view", "shop.recent").code == 1
    assert recent("views").out == "shop.recent\n"
    assert recent("drop-view", "shop.recent", "--yes", "--json").json == {**planned, "dropped": True}
    assert recent("views").out == ""
    assert Path(planned["metadata-file"].removeprefix("file://")).exists()


@pytest.mark.spark
def test_create_view_makes_and_replaces(orders: Icefield, spark: object) -> None:
    made = orders("create-view", "shop.named", "SELECT id, name FROM orders WHERE name IS NOT NULL")
    assert (made.code, made.out) == (0, "created shop.named: id, name\n")
    again = orders("create-view", "shop.named", "SELECT id FROM orders", "--json")
    assert (again.code, again.err) == (1, "error: the name shop.named is already used by a view\n")
    assert (
        orders("create-view", "shop.named", "SELECT id FROM orders", "--replace", "--json").json["view"] == "shop.named"
    )
    elsewhere = orders("create-view", "web.all", "SELECT * FROM orders", "--default-namespace", "shop")
    assert elsewhere.out == "created web.all: id, ts, name\n"


def test_create_view_with_columns_needs_no_spark(orders: Icefield) -> None:
    made = orders("create-view", "shop.few", "SELECT id FROM orders", "--schema", "id long", "--property", "owner=ada")
    assert (made.code, made.out) == (0, "created shop.few: id\n")
    assert orders("view", "shop.few", "--json").json["properties"]["owner"] == "ada"
