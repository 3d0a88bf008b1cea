"""icefield delete, update, upsert and merge: rows change as the library changes them, and destructive ones ask."""

from pathlib import Path

import pytest
from tests.cli.conftest import Icefield, answer


def names(orders: Icefield) -> dict[int, str | None]:
    rows = orders("query", "shop.orders", "--select", "id,name", "--json").json
    return {row["id"]: row["name"] for row in rows}


@pytest.mark.parametrize(
    ("command", "left"),
    [
        (("delete", "shop.orders", "--where", "id > 2"), {1: "ada", 2: "grace"}),
        (
            ("update", "shop.orders", "--set", "name='x'", "--set", "id=id + 10", "--where", "name IS NULL"),
            {1: "ada", 2: "grace", 13: "x", 4: "edsger"},
        ),
    ],
)
def test_what_is_destructive_has_a_dry_run_and_asks(
    orders: Icefield, command: tuple[str, ...], left: dict[int, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names(orders)
    planned = orders(*command, "--dry-run", "--json")
    assert (planned.code, planned.json["snapshot-id"], planned.json["is-dry-run"]) == (0, None, True)
    answer(monkeypatch, "n\n")
    refused = orders(*command)
    assert refused.code == 1
    assert "nothing was changed: it was not confirmed" in refused.err
    assert names(orders) == before
    done = orders(*command, "--yes", "--json")
    assert done.json["snapshot-id"] is not None
    counts = ("rows-updated", "rows-deleted")
    assert [done.json[count] for count in counts] == [planned.json[count] for count in counts]
    assert names(orders) == left
    again = orders(*command, "--yes", "--json")
    assert (again.code, again.json["snapshot-id"]) == (0, None)


def test_upsert_takes_the_columns_that_the_files_have(orders: Icefield, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n2,hopper\n")
    (tmp_path / "b.json").write_text('{"id": 9, "name": "barbara"}\n')
    done = orders("upsert", "shop.orders", "a.csv", "b.json", "--on", "id", "--mode", "merge-on-read", "--json")
    assert (done.json["rows-updated"], done.json["rows-inserted"]) == (1, 1)
    assert names(orders) == {1: "ada", 2: "hopper", 3: None, 4: "edsger", 9: "barbara"}
    kept = orders("query", "shop.orders", "--where", "id = 2", "--json").json
    assert kept[0]["ts"] is not None
    (tmp_path / "c.csv").write_text("id,ts\n2,2026-01-01T00:00:00Z\n")
    refused = orders("upsert", "shop.orders", "a.csv", "c.csv", "--on", "id")
    assert (refused.code, "c.csv has other columns than a.csv" in refused.err) == (1, True)


def test_merge_deletes_updates_and_inserts(orders: Icefield, tmp_path: Path) -> None:
    (tmp_path / "changes.csv").write_text("id,name,op\n1,,del\n2,hopper,set\n9,barbara,set\n")
    command = ("merge", "shop.orders", "changes.csv", "--on", "id", "--delete-when", "source.op = 'del'")
    refused = orders(*command, "--delete-missing")
    assert (refused.code, "nothing was changed: it was not confirmed" in refused.err) == (1, True)
    done = orders(
        *command, "--yes", "--set", "name=concat(target.name, '/', source.name)", "--delete-missing", "--json"
    )
    assert [done.json[f"rows-{what}"] for what in ("updated", "deleted", "inserted")] == [1, 3, 0]
    assert names(orders) == {2: "grace/hopper"}


def test_merge_by_a_condition_inserts(orders: Icefield, tmp_path: Path) -> None:
    (tmp_path / "changes.csv").write_text(
        "id,name,ts\n9,barbara,2026-01-05T11:00:00Z\n4,edsger d.,2026-01-05T11:00:00Z\n"
    )
    command = ("merge", "shop.orders", "changes.csv", "--condition", "target.id = source.id AND target.name = 'edsger'")
    assert orders(*command, "--update-all", "--insert-all", "--dry-run").out.startswith(
        "merge (dry run): 1 updated, 1 in"
    )
    assert orders(*command, "--update-all", "--insert-all").code == 0
    assert names(orders) == {1: "ada", 2: "grace", 3: None, 4: "edsger d.", 9: "barbara"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("delete", "shop.orders"), "delete needs a filter"),
        (("update", "shop.orders"), "update needs a new value"),
        (("update", "shop.orders", "--set", "nothing=1", "--yes"), "no column 'nothing'"),
        (("merge", "shop.orders", "a.csv", "--insert-all"), "merge needs --on or --condition"),
        (("merge", "shop.orders", "a.csv", "--on", "id"), "at least one clause"),
        (("merge", "shop.orders", "a.csv", "--on", "id", "--update-all", "--set", "name='x'"), "exclude each other"),
        (("update", "shop.orders", "--set", "name=regexp_replace(name, 'a', 'b')", "--yes"), "only Spark can evaluate"),
    ],
)
def test_what_is_missing_or_wrong_is_one_error(
    orders: Icefield, tmp_path: Path, arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another test may have left one in this process.
    monkeypatch.setattr("icefield.engine.choose.has_session", lambda _: False)
    (tmp_path / "a.csv").write_text("id,name\n2,hopper\n")
    before = names(orders)
    ran = orders(*arguments)
    assert (ran.code, message in ran.err, ran.err.count("error:")) == (1, True, 1)
    assert names(orders) == before


@pytest.mark.spark
def test_a_subquery_works_if_spark_is_chosen(orders: Icefield, spark: object) -> None:
    where = ("--where", "id > (SELECT min(id) FROM shop.orders) AND id IN (SELECT id FROM orders WHERE id = 2)")
    done = orders("delete", "shop.orders", *where, "--lake-property", "engine=spark", "--yes", "--json")
    assert (done.code, done.json["rows-deleted"]) == (0, 1)
    assert names(orders) == {1: "ada", 3: None, 4: "edsger"}


@pytest.mark.parametrize(
    "verb", [("upsert",), ("upsert", "--mode", "equality"), ("merge", "--delete-missing", "--yes")]
)
def test_a_file_may_have_no_rows(orders: Icefield, tmp_path: Path, verb: tuple[str, ...]) -> None:
    (tmp_path / "none.csv").write_text("id,ts,name\n")
    done = orders(verb[0], "shop.orders", "none.csv", "--on", "id", *verb[1:], "--json")
    assert (done.code, "error" in done.err) == (0, False)
    assert names(orders) == ({} if "merge" in verb else {1: "ada", 2: "grace", 3: None, 4: "edsger"})


@pytest.mark.every_case
@pytest.mark.parametrize("verb", ["upsert", "merge", "append", "overwrite", "ingest"])
def test_every_command_reads_files_without_names_in_the_order_of_the_table(
    orders: Icefield, tmp_path: Path, verb: str
) -> None:
    (tmp_path / "cells.csv").write_text("1,2026-01-01T00:00:00Z,new\n9,,nine\n")
    more = {"upsert": ["--on", "id"], "merge": ["--on", "id", "--update-all", "--insert-all"], "overwrite": ["--yes"]}
    done = orders(verb, "shop.orders", "cells.csv", "--no-header", *more.get(verb, []))
    assert done.code == 0
    rows = [(row["id"], row["name"]) for row in orders("query", "shop.orders", "--json").json]
    assert {(1, "new"), (9, "nine")} <= set(rows)
    assert len(rows) == {"upsert": 5, "merge": 5, "overwrite": 2}.get(verb, 6)
    refused = orders("append", "shop.orders", "cells.csv", "--no-header", "--merge-schema")
    assert (refused.code, "--merge-schema needs the names of columns" in refused.err) == (1, True)


ONCE = {
    "append": ("rows.jsonl",),
    "overwrite": ("rows.jsonl", "--yes"),
    "delete": ("--where", "id = 1", "--yes"),
    "update": ("--set", "name = 'x'", "--yes"),
    "upsert": ("new.csv", "--on", "id"),
    "merge": ("new.csv", "--on", "id", "--insert-all"),
}


@pytest.mark.every_case
@pytest.mark.parametrize("verb", ONCE)
def test_a_change_with_a_key_is_made_once(orders: Icefield, tmp_path: Path, verb: str) -> None:
    (tmp_path / "new.csv").write_text("id,ts,name\n9,,nine\n")
    for _ in range(2):
        assert orders(verb, "shop.orders", *ONCE[verb], "--key", "job-1").code == 0
    assert len(orders("snapshots", "shop.orders", "--json").json) == 2


@pytest.mark.every_case
@pytest.mark.parametrize(
    "verb", [("upsert", "--on", "id"), ("merge", "--on", "id", "--update-all", "--insert-all"), ("overwrite", "--yes")]
)
def test_new_columns_of_files_are_added_on_request(orders: Icefield, tmp_path: Path, verb: tuple[str, ...]) -> None:
    (tmp_path / "new.csv").write_text("id,ts,name,colour\n1,,ada,red\n")
    done = orders(verb[0], "shop.orders", "new.csv", *verb[1:], "--merge-schema")
    assert done.code == 0
    rows = orders("query", "shop.orders", "--where", "id = 1", "--json").json
    assert [row["colour"] for row in rows] == ["red"]


def test_a_change_is_run_again_after_a_conflict_on_request(orders: Icefield) -> None:
    done = orders("delete", "shop.orders", "--where", "id = 1", "--yes", "--retry-conflicts", "3", "--json")
    assert (done.code, done.json["rows-deleted"]) == (0, 1)
    refused = orders("delete", "shop.orders", "--where", "id = 1", "--yes", "--retry-conflicts", "-1")
    assert refused.code == 1


def test_rows_that_do_not_match_the_filter_replace_others_on_request(orders: Icefield, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,name\n7,seven\n")
    overwrite = ("overwrite", "shop.orders", "new.csv", "--where", "id = 1", "--yes")
    assert orders(*overwrite).code == 1
    assert orders(*overwrite, "--no-check-rows").code == 0
    assert names(orders) == {2: "grace", 3: None, 4: "edsger", 7: "seven"}


def test_files_of_different_types_and_repeated_options_are_refused(orders: Icefield, tmp_path: Path) -> None:
    before = names(orders)
    (tmp_path / "a.csv").write_text("id,op\n1,5\n")
    (tmp_path / "b.csv").write_text("id,op\n2,x\n")
    refused = orders("merge", "shop.orders", "a.csv", "b.csv", "--on", "id", "--delete-when", "source.op = 'x'")
    assert (refused.code, "the files have different types" in refused.err) == (1, True)
    twice = orders("update", "shop.orders", "--set", "name='a'", "--set", "name='b'", "--yes")
    assert (twice.code, "--set name=… is given twice" in twice.err) == (1, True)
    assert names(orders) == before
