"""icefield diff, log, refs, branch, tag, publish, rebase, cherry-pick, revert, rollback, undo."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.cli.conftest import Icefield


def count(icefield: Icefield) -> int:
    return int(icefield("count", "shop.orders", "--json").json["count"])


def write(icefield: Icefield, *numbers: int) -> None:
    Path("more.jsonl").write_text("\n".join(f'{{"id": {number}, "ts": null, "name": "x"}}' for number in numbers))
    assert icefield("ingest", "shop.orders", "more.jsonl").code == 0


def test_a_branch_is_created_compared_and_published(orders: Icefield) -> None:
    assert orders("branch", "shop.orders", "staging").code == 0
    assert orders("tag", "shop.orders", "before", "--at", "main").code == 0
    assert orders("tag", "shop.orders", "before", "--rename", "start").code == 0
    write(orders, 10, 11)
    found = orders("diff", "shop.orders", "start", "--json").json
    assert found["rows"] == {"added": 2, "removed": 0}
    assert [row["id"] for row in found["sample"]["added"]] == [10, 11]
    assert "+  10" in orders("diff", "shop.orders", "start").out
    names = {ref["name"]: (ref["ahead"], ref["behind"]) for ref in orders("refs", "shop.orders", "--json").json}
    assert names == {"main": (0, 0), "staging": (0, 1), "start": (0, 1)}
    assert orders("rebase", "shop.orders", "staging").code == 0
    assert orders("publish", "shop.orders", "staging", "--json").json["dry-run"] is False
    assert orders("branch", "shop.orders", "staging", "--drop", "--yes").code == 0
    both = orders("branch", "shop.orders", "x", "--drop", "--rename", "y")
    assert both.code == 1


def test_a_second_publish_has_nothing_to_do(orders: Icefield) -> None:
    orders("branch", "shop.orders", "staging")
    orders("append", "shop.orders", "rows.jsonl", "--branch", "staging")
    for rerun in (False, True):
        for options, did in ((("--dry-run",), "Would be at snapshot"), ((), "Now at snapshot")):
            said = orders("publish", "shop.orders", "staging", *options).out
            assert said.startswith("Nothing to do." if rerun else did)
    assert orders("publish", "shop.orders", "staging", "--json").json["snapshot"] is None


def test_a_change_is_reverted_and_the_revert_undone(orders: Icefield) -> None:
    before = count(orders)
    write(orders, 10)
    snapshot = orders("snapshots", "shop.orders", "--json").json[-1]["snapshot-id"]
    planned = orders("revert", "shop.orders", snapshot, "--dry-run").out
    assert planned.startswith("Would be at snapshot")
    assert count(orders) == before + 1
    assert orders("revert", "shop.orders", snapshot, "--message", "wrong file").code == 0
    assert count(orders) == before
    assert "revert of" in orders("log", "shop.orders").out
    assert "wrong file" in orders("log", "shop.orders", "--graph").out
    assert orders("undo", "shop.orders").code == 0
    assert count(orders) == before + 1
    assert (
        orders("rollback", "shop.orders", orders("snapshots", "shop.orders", "--json").json[0]["snapshot-id"]).code == 0
    )
    assert count(orders) == before


def test_a_line_of_the_graph_is_one_snapshot_whatever_names_and_messages_have(orders: Icefield) -> None:
    made = orders("branch", "shop.orders", "two\nlines").out.splitlines()
    assert len(made) == 1
    write(orders, 10)
    snapshot = orders("snapshots", "shop.orders", "--json").json[-1]["snapshot-id"]
    assert orders("revert", "shop.orders", snapshot, "--message", "why\n*  1 a line\tmore").code == 0
    lines = orders("log", "shop.orders", "--graph").out.splitlines()
    assert len(lines) == 3
    assert "why\\n*  1 a line\\tmore" in lines[0]
    assert "two\\nlines" in lines[2]


def test_the_log_is_a_graph_and_a_page(orders: Icefield) -> None:
    orders("branch", "shop.orders", "staging")
    write(orders, 10)
    assert orders("log", "shop.orders", "--html", "log.html").code == 0
    page = Path("log.html").read_text()
    assert page.count("<tr>") == 3
    assert "staging" in page
    first, second = orders("log", "shop.orders", "--graph").out.splitlines()
    assert first.startswith("*")
    assert "(main)" in first
    assert "(staging)" in second


def test_a_failed_check_is_reported_as_json(orders: Icefield) -> None:
    orders("branch", "shop.orders", "staging")
    failed = orders("publish", "shop.orders", "staging", "--check", "no names=name is null", "--json")
    assert failed.code == 1
    assert failed.json["failures"][0]["rows"] == 1
    assert "breaks 1 of 1 check" in failed.err


def test_two_checks_of_one_name_are_refused(orders: Icefield) -> None:
    orders("branch", "shop.orders", "staging")
    refused = orders("publish", "shop.orders", "staging", "--check", "a=id < 0", "--check", "a=id is null")
    assert (refused.code, "two checks have the name 'a'" in refused.err) == (1, True)


def test_the_log_says_who_and_why(orders: Icefield) -> None:
    write(orders, 10)
    snapshot = orders("snapshots", "shop.orders", "--json").json[-1]["snapshot-id"]
    options = ("--author", "Ada", "--message", "too early")
    made = orders("revert", "shop.orders", snapshot, *options, "--json").json["snapshot"]
    assert (made["summary"]["icefield.author"], made["summary"]["icefield.message"]) == ("Ada", "too early")
    assert "too early (Ada)" in orders("log", "shop.orders", "--graph").out


def test_a_side_that_does_not_exist_cannot_be_preferred(orders: Icefield) -> None:
    assert orders("branch", "shop.orders", "staging").code == 0
    assert orders("publish", "shop.orders", "staging", "--on-collision", "ours").code == 0
    assert orders("publish", "shop.orders", "staging", "--on-collision", "both").code == 1


def test_every_command_that_changes_rows_or_files_takes_a_branch(orders: Icefield) -> None:
    write(orders, 10, 11)
    assert orders("branch", "shop.orders", "staging").code == 0
    before = orders("query", "shop.orders", "--json").json
    Path("rows.jsonl").write_text('{"id": 10, "ts": null, "name": "new"}')
    moment = pa.array([0], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"id": [12], "ts": moment, "name": ["added"]}), "lake/added.parquet")
    changes: list[tuple[str, ...]] = [
        ("append", "rows.jsonl"),
        ("upsert", "rows.jsonl", "--on", "id", "--mode", "equality"),
        ("convert-deletes",),
        ("update", "--set", "name='later'", "--where", "id = 10", "--mode", "merge-on-read", "--yes"),
        ("rewrite-deletes",),
        ("delete", "--where", "id = 11", "--yes"),
        ("merge", "rows.jsonl", "--on", "id", "--update-all"),
        ("compact", "--option", "min-input-files=2"),
        ("rewrite-manifests",),
        ("add-files", "lake/added.parquet"),
        ("overwrite", "rows.jsonl", "--where", "id <= 10", "--yes"),
    ]
    heads = [orders("refs", "shop.orders", "--json").json]
    for command, *options in changes:
        ran = orders(command, "shop.orders", *options, "--branch", "staging")
        assert ran.code == 0, (command, ran.err)
        assert orders("query", "shop.orders", "--json").json == before, command
        heads.append(orders("refs", "shop.orders", "--json").json)
    assert len({each[0]["snapshot-id"] for each in heads}) == 1  # main
    missing = orders("delete", "shop.orders", "--where", "id = 1", "--yes", "--branch", "nowhere")
    assert (missing.code, "nowhere" in missing.err) == (1, True)


def test_collisions_are_decided_file_by_file(orders: Icefield) -> None:
    assert orders("upgrade", "shop.orders", "--yes").code == 0
    write(orders, 10, 11)
    assert orders("branch", "shop.orders", "staging").code == 0
    for branch in ("main", "staging"):
        options = ("--branch", branch, "--set", f"name='{branch}'", "--where", "id = 10", "--yes")
        assert orders("update", "shop.orders", *options).code == 0
    failed = orders("publish", "shop.orders", "staging", "--json")
    (collision,) = failed.json["collisions"]
    assert collision["columns"] == {"ours": ["name"], "theirs": ["name"]}
    refused = orders("publish", "shop.orders", "staging", "--on-collision", "ours", "--on-collision", "theirs")
    assert (refused.code, "FILE=SIDE" in refused.err) == (1, True)
    assert orders("publish", "shop.orders", "staging", "--on-collision", f"{collision['file']}=theirs").code == 0
    assert orders("query", "shop.orders", "--where", "id = 10", "--json").json[0]["name"] == "staging"


def test_the_difference_is_an_html_page_too(orders: Icefield, tmp_path: Path) -> None:
    orders("tag", "shop.orders", "before")
    orders("update", "shop.orders", "--set", "name='<b>&'", "--where", "id = 1", "--yes")
    ran = orders("diff", "shop.orders", "before", "--html", "diff.html")
    assert (ran.code, ran.out) == (0, "")
    page = (tmp_path / "diff.html").read_text()
    assert page.count("<tr><td>-</td>") == page.count("<tr><td>+</td>") == 1
    assert "<td>&lt;b&gt;&amp;</td>" in page
    assert '<td>rows</td><td class="number">1</td><td class="number">1</td>' in page
    found = orders("diff", "shop.orders", "before", "--html", "again.html", "--json").json
    assert found["partitions"] == {"ts_day=2026-01-05": {"added": 1, "removed": 1}}
    assert "<td>ts_day=2026-01-05</td>" in page
    assert "ts_day=2026-01-05  1 added, 1 removed" in orders("diff", "shop.orders", "before").out
    assert found["sample"]["added"][0]["name"] == "<b>&"


def test_rows_of_a_difference_are_shown_as_a_query_shows_them(icefield: Icefield, tmp_path: Path) -> None:
    rows = [
        {"id": 1234567, "s": "-", "b": True, "d": "1.50", "l": ["x"], "n": {"a": None}},
        {"id": 2, "s": None, "b": None, "d": None, "l": None, "n": None},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    schema = "id long, s string, b boolean, d decimal(9, 2), l list<string>, n struct<a: int>"
    assert icefield("create", "a.t", schema).code == 0
    assert icefield("ingest", "a.t", "rows.jsonl").code == 0
    assert icefield("tag", "a.t", "full").code == 0
    assert icefield("delete", "a.t", "--where", "TRUE", "--yes").code == 0
    shown = icefield("query", "a.t", "--as-of", "full").out.splitlines()[1:]
    found = icefield("diff", "a.t", "full").out.splitlines()[-2:]
    assert [line.split()[1:] for line in found] == [line.split() for line in shown]
    assert icefield("diff", "a.t", "full", "--json").json["sample"]["removed"] == rows
    icefield("diff", "a.t", "full", "--html", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert ("<td>NULL</td>" in page, "None" in page, "True" in page) == (True, False, False)
