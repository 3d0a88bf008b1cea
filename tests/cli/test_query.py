"""icefield query."""

import csv
import io
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Icefield


def test_rows_as_a_table(orders: Icefield) -> None:
    assert orders("query", "shop.orders", "--select", "name,id", "--where", "id < 4").out == (
        "name   id\nada     1\ngrace   2\nNULL    3\n"
    )


def test_a_table_shows_twenty_rows_and_says_that_there_are_more(orders: Icefield, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("id\n" + "\n".join(map(str, range(100))) + "\n")
    orders("ingest", "shop.orders", "more.csv")
    ran = orders("query", "shop.orders")
    assert len(ran.out.splitlines()) == 1 + 20
    assert ran.err == "These are the first 20 rows; --limit 0 gives all.\n"
    everything = orders("query", "shop.orders", "--limit", "0")
    assert (len(everything.out.splitlines()), everything.err) == (1 + 104, "")


@pytest.mark.parametrize(("limit", "cut"), [("3", True), ("4", False), ("5", False)])
def test_a_limit_is_only_mentioned_when_it_cut(orders: Icefield, limit: str, cut: bool) -> None:
    ran = orders("query", "shop.orders", "--limit", limit)
    assert len(ran.out.splitlines()) == 1 + min(4, int(limit))
    assert ("first 3 rows" in ran.err) is cut


def test_rows_as_csv_are_all_rows(orders: Icefield) -> None:
    rows = list(csv.reader(io.StringIO(orders("query", "shop.orders", "--format", "csv").out)))
    assert rows[0] == ["id", "ts", "name"]
    assert rows[3] == ["3", "2026-01-06T08:00:00+00:00", ""]
    assert len(rows) == 5


@pytest.mark.parametrize("option", [("--json",), ("--format", "json")])
def test_rows_as_json_stand_one_per_line(orders: Icefield, option: tuple[str, ...]) -> None:
    ran = orders("query", "shop.orders", "--where", "id <= 2", "--select", "id,name", *option)
    assert ran.json == [{"id": 1, "name": "ada"}, {"id": 2, "name": "grace"}]
    assert [json.loads(line.rstrip(",")) for line in ran.out.splitlines()[1:-1]] == ran.json


def test_no_row_is_valid_in_every_format(orders: Icefield) -> None:
    nothing = ("query", "shop.orders", "--where", "id > 100", "--select", "id")
    assert orders(*nothing).out == "id\n"
    assert orders(*nothing, "--format", "csv").out == "id\n"
    assert orders(*nothing, "--json").json == []


def test_values_cannot_steer_the_terminal(orders: Icefield, tmp_path: Path) -> None:
    (tmp_path / "evil.jsonl").write_text(json.dumps({"id": 9, "name": "\x1b[31mred\nnext"}) + "\n")
    orders("ingest", "shop.orders", "evil.jsonl")
    shown = orders("query", "shop.orders", "--where", "id = 9", "--select", "name").out
    assert shown == "name\n\\x1b[31mred\\nnext\n"
    assert orders("query", "shop.orders", "--where", "id = 9", "--json").json[0]["name"] == "\x1b[31mred\nnext"


def test_an_earlier_version_is_read_with_its_rows(orders: Icefield) -> None:
    (first,) = orders("snapshots", "shop.orders", "--json").json
    orders("ingest", "shop.orders", "rows.jsonl")
    assert len(orders("query", "shop.orders", "--as-of", first["snapshot-id"], "--json").json) == 4
    assert len(orders("query", "shop.orders", "--json").json) == 8
