"""icefield branch, tag, lake-branch, lake-tag: what they print, dry runs, questions, retention."""

import shlex

import pytest
from tests.cli.conftest import Icefield, answer


def refs(icefield: Icefield) -> list[str]:
    return sorted(icefield("describe", "shop.orders", "--json").json["refs"])


def test_a_branch_is_created_kept_moved_and_dropped(orders: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    assert orders("branch", "shop.orders", "staging", "--dry-run").out == "would create branch staging\n"
    made = orders("branch", "shop.orders", "staging", "--keep-last", "3", "--json").json
    assert (made["kind"], made["action"], made["name"]) == ("branch", "created", "staging")
    assert orders("branch", "shop.orders", "staging").code == 1
    changed = orders("branch", "shop.orders", "staging", "--max-age", "30d", "--max-snapshot-age", "2h", "--json").json
    assert changed["action"] == "changed"
    (row,) = [each for each in orders("refs", "shop.orders", "--json").json if each["name"] == "staging"]
    assert 30 * 86_400_000 in row.values()
    assert 7_200_000 in row.values()
    assert orders("branch", "shop.orders", "staging", "--replace").out.startswith("moved branch staging at ")
    answer(monkeypatch, "n\n")
    assert orders("branch", "shop.orders", "staging", "--drop").code == 1
    assert refs(orders) == ["main", "staging"]
    assert orders("branch", "shop.orders", "staging", "--drop", "--yes").out == "dropped branch staging\n"
    assert refs(orders) == ["main"]


def test_a_tag_is_found_by_name_even_if_that_is_a_number(orders: Icefield) -> None:
    before = orders("count", "shop.orders", "--json").json["count"]
    snapshot_id = orders("describe", "shop.orders", "--json").json["refs"]["main"]
    orders("tag", "shop.orders", "2026")
    orders("delete", "shop.orders", "--where", "id = 1", "--yes")
    for version in ("2026", snapshot_id):
        assert orders("count", "shop.orders", "--as-of", version, "--json").json["count"] == before
    assert orders("diff", "shop.orders", "2026", "--json").json["rows"] == {"added": 0, "removed": 1}
    orders("tag", "shop.orders", "7", "--at", "2026")
    orders("rollback", "shop.orders", "7")
    assert orders("count", "shop.orders", "--json").json["count"] == before
    missing = orders("count", "shop.orders", "--as-of", "8")
    assert missing.err.startswith("error: the table has no snapshot 8 ")


def test_a_tag_is_renamed_and_what_is_missing_is_refused(orders: Icefield) -> None:
    orders("tag", "shop.orders", "q1")
    assert orders("tag", "shop.orders", "q1", "--rename", "first").out.startswith("renamed q1 to tag first at ")
    assert "has no tag q1" in orders("tag", "shop.orders", "q1", "--drop", "--yes").err
    assert orders("tag", "shop.orders", "first", "--max-age", "soon").code == 1
    assert orders("tag", "shop.orders", "first", "--drop", "--rename", "x").code == 1
    assert refs(orders) == ["first", "main"]


def test_branches_and_tags_of_all_tables(orders: Icefield) -> None:
    orders("create", "shop.stock", "id long")
    assert orders("lake-tag", "q1", "--dry-run").out == "would create q1 of shop.orders\n"  # the other one is empty
    assert orders("lake-branch", "q1", "--dry-run").out.splitlines() == [
        "would create q1 of shop.orders",
        "would create q1 of shop.stock",
    ]
    assert orders("lake-tag", "q1", "--json").json == {"name": "q1", "action": "created", "tables": ["shop.orders"]}
    assert orders("lake-tag", "q1", "--list").out == "shop.orders\n"
    assert orders("lake-branch", "work", "shop.orders").out == "created work of shop.orders\n"
    orders("append", "shop.orders", "rows.jsonl", "--branch", "work")
    assert orders("lake-branch", "work", "--publish", "--dry-run").out == "would publish work of shop.orders\n"
    assert orders("count", "shop.orders").out == "4\n"
    assert orders("lake-branch", "work", "--publish").out == "published work of shop.orders\n"
    assert orders("count", "shop.orders").out == "8\n"
    assert orders("lake-tag", "q1", "--drop").code == 1
    assert orders("lake-tag", "q1", "--drop", "--yes").out == "dropped q1 of shop.orders\n"
    assert orders("lake-branch", "work", "shop.orders", "--drop").code == 1
    assert "cannot drop tag 'work': it is a branch" in orders("lake-tag", "work", "--drop", "--yes").err
    assert refs(orders) == ["main", "work"]


COMMANDS = (
    *("{kind} shop.orders new", "{kind} shop.orders {name}", "{kind} shop.orders new --at nothing"),
    *("{kind} shop.orders {name} --replace", "{kind} shop.orders new --replace", "{kind} shop.orders main --replace"),
    *("{kind} shop.orders {name} --max-age 3d", "{kind} shop.orders {name} --max-age 0d", "{kind} shop.orders ' '"),
    *("{kind} shop.orders {name} --rename new", "{kind} shop.orders {name} --rename main"),
    *("{kind} shop.orders {name} --rename kept", "{kind} shop.orders nothing --rename new"),
    *("{kind} shop.orders {name} --drop --yes", "{kind} shop.orders main --drop --yes"),
    *("{kind} shop.orders kept --drop --yes", "{kind} shop.orders kept --rename new"),
    *("{kind} shop.orders kept --replace", "{kind} shop.stock new"),
    *("lake-{kind} new", "lake-{kind} new shop.stock", "lake-{kind} new shop.nothing", "lake-{kind} {name}"),
    *("lake-{kind} ' '", "lake-{kind} {name} --drop --yes", "lake-{kind} kept --drop --yes"),
    *("lake-{kind} main --drop --yes", "lake-{kind} nothing --drop --yes"),
)
DONE = {"created": "would create", "moved": "would move", "changed": "would change", "dropped": "would drop"}


@pytest.mark.parametrize("command", [each.replace("{kind}", kind) for each in COMMANDS for kind in ("branch", "tag")])
def test_a_dry_run_says_what_the_run_then_does_and_changes_nothing(orders: Icefield, command: str) -> None:
    orders("create", "shop.stock", "id long")
    kinds = ("branch", "tag") if "branch" in command else ("tag", "branch")
    for kind, name in zip(kinds, ("known", "other"), strict=True):
        orders(kind, "shop.orders", name)
    orders(kinds[0], "shop.orders", "kept")
    orders("properties", "shop.orders", "--set", "icefield.history.protected-refs=kept")
    for name in ("known", "other"):
        arguments = shlex.split(command.replace("{name}", name))
        before = orders("describe", "shop.orders", "--json").json
        dry = orders(*arguments, "--dry-run")
        assert orders("describe", "shop.orders", "--json").json == before
        done = orders(*arguments)
        assert (dry.code, dry.err) == (done.code, done.err)
        said = done.out.replace("renamed ", "would rename ")
        for word, would in DONE.items():
            said = said.replace(f"{word} ", f"{would} ")
        assert [line.split(" at snapshot")[0] for line in dry.out.splitlines()] == [
            line.split(" at snapshot")[0] for line in said.splitlines()
        ]
