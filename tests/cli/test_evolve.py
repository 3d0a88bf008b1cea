"""icefield evolve: each step as a command, dry runs, and refusals that change nothing."""

import pytest
from tests.cli.conftest import Icefield, answer


def columns(icefield: Icefield) -> dict[str, str]:
    return {c["name"]: c["type"] for c in icefield("describe", "shop.orders", "--json").json["columns"]}


def test_columns_are_added_renamed_moved_widened_and_dropped(orders: Icefield) -> None:
    steps = [
        ("add", "shop.orders", "qty", "int", "--after", "id", "--doc", "how many"),
        ("widen", "shop.orders", "qty", "long"),
        ("rename", "shop.orders", "qty", "quantity"),
        ("move", "shop.orders", "quantity", "--first"),
        ("alter", "shop.orders", "id", "--optional", "--doc", "the number"),
        ("union", "shop.orders", "id long, note string"),
        ("drop", "shop.orders", "name", "--yes"),
    ]
    for step in steps:
        assert orders("evolve", *step).code == 0, step
    assert columns(orders) == {"quantity": "long", "id": "long", "ts": "timestamptz", "note": "string"}
    (number,) = [c for c in orders("describe", "shop.orders", "--json").json["columns"] if c["name"] == "id"]
    assert (number["required"], number["doc"]) == (False, "the number")


def test_layout_and_key_are_changed(orders: Icefield) -> None:
    changed = orders("evolve", "partition", "shop.orders", "--drop", "ts_day", "--add", "bucket(4, id)", "--json").json
    assert (changed["changed"], changed["partition-by"]) == (True, ["bucket(4, id)"])
    assert orders("evolve", "order", "shop.orders", "ts desc", "id", "--json").json["order-by"] == [
        "ts desc nulls last",
        "id asc nulls first",
    ]
    assert orders("evolve", "partition", "shop.orders", "--rename", "id_bucket=shard").code == 0
    assert orders("evolve", "key", "shop.orders", "id").code == 0
    assert orders("evolve", "key", "shop.orders", "id", "--drop").code == 0
    described = orders("describe", "shop.orders", "--json").json
    assert [field["name"] for field in described["partition-by"]] == ["shard"]


def test_a_default_is_read_as_the_type_of_the_column(orders: Icefield) -> None:
    orders("upgrade", "shop.orders", "--yes")
    assert orders("evolve", "add", "shop.orders", "qty", "int", "--default", "7", "--required").code == 0
    assert orders("query", "shop.orders", "--where", "id = 1", "--select", "qty", "--json").json == [{"qty": 7}]
    refused = orders("evolve", "alter", "shop.orders", "qty", "--default", "many")
    assert (refused.code, "'many' is not a value of type int" in refused.err) == (1, True)


def test_a_dry_run_shows_the_result_and_changes_nothing(orders: Icefield) -> None:
    before = orders("describe", "shop.orders").out
    planned = orders("evolve", "add", "shop.orders", "note", "string", "--dry-run", "--json").json
    assert (planned["changed"], [c["name"] for c in planned["columns"]]) == (False, ["id", "ts", "name", "note"])
    assert orders("evolve", "drop", "shop.orders", "name", "--dry-run").out.startswith("would change shop.orders\n")
    assert orders("describe", "shop.orders").out == before


def test_a_drop_asks(orders: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "n\n")
    ran = orders("evolve", "drop", "shop.orders", "name")
    assert (ran.code, "nothing was changed: it was not confirmed" in ran.err) == (1, True)
    assert "name" in columns(orders)


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (("add", "shop.orders", "id", "int"), "id"),
        (("add", "shop.orders", "x", "lung"), "unknown type 'lung'"),
        (("rename", "shop.orders", "nom", "x"), "nom"),
        (("widen", "shop.orders", "id", "int"), "id"),
        (("drop", "shop.orders", "ts", "--yes"), "cannot drop the source of partition field"),
        (("drop", "shop.orders", "ts", "--dry-run"), "cannot drop the source of partition field"),
        (("move", "shop.orders", "id"), "no new position"),
        (("alter", "shop.orders", "id"), "nothing to change"),
        (("partition", "shop.orders"), "nothing to change"),
        (("partition", "shop.orders", "--rename", "x"), "--rename has no old or no new name"),
        (("order", "shop.orders", "nom"), "nom"),
        (("add", "shop.none", "x", "int"), "no table shop.none"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(orders: Icefield, step: tuple[str, ...], why: str) -> None:
    before = orders("describe", "shop.orders").out
    ran = orders("evolve", *step)
    assert (ran.code, ran.out) == (1, "")
    assert why in ran.err
    assert orders("describe", "shop.orders").out == before
