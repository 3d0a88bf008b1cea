"""The chapters of the demo, each on its own in the directory of another one, with few rows."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.cli.conftest import Icefield, Ran
from tests.effort import DEEP, sample

import icefield as package
from icefield.cli.demo.accounts import FIRST_BALANCE, PAIRS, first_accounts, replay, transfers
from icefield.cli.demo.actors import actor
from icefield.cli.demo.directory import TABLES, make_fresh
from icefield.cli.demo.merge_chapter import BATCHES, WRITERS
from icefield.cli.demo.processes import Event, perform
from icefield.cli.demo.stage import require
from icefield.errors import CommitError, IcefieldError

ROWS = 1_000

Result = dict[str, Any]


def on_what_was_left(icefield: Icefield, folder: Path, *arguments: str) -> Ran:
    """Run a demo in a directory that another one has left, whole or killed; in deep runs, a second time too."""
    make_fresh(folder / "demo-lake")
    with package.connect(folder / "demo-lake", durable=False) as lake:
        for name in TABLES:
            lake.create_table(f"shop.{name}", "id long").append(pa.table({"id": [1]}))
    ran = icefield("demo", *arguments, "--rows", str(ROWS), "--json")
    assert ran.code == 0, ran.err
    assert "held an earlier demo, which was cleared" in ran.err
    assert "\x1b" not in ran.err
    if DEEP:
        again = icefield("demo", *arguments, "--rows", str(ROWS), "--json")
        assert (again.code, again.json.keys()) == (0, ran.json.keys())
    assert make_fresh(folder / "demo-lake") is True  # it can run again on what it left
    return ran


def check_merge(result: Result) -> None:
    assert (result["merges"], result["accounts"]) == (WRITERS * BATCHES, ROWS + WRITERS * BATCHES)
    assert result["reads"] > 1


def check_upkeep(result: Result) -> None:
    assert result["rows"] == ROWS
    assert result["files-on-disk"] < result["files-held"] < result["files-written"]


def check_branches(result: Result) -> None:
    assert (result["refused-rows"], result["collisions"], result["orders"]) == (1, 1, ROWS)


def check_sql(result: Result) -> None:
    assert (result["engine"], result["moves"], result["changed"]) == ("local", 12, 19)


def check_story(result: Result) -> None:
    assert (result["ingest"]["rows"], result["ingest"]["commits"]) == (ROWS, 24)
    assert result["peer"]["agrees"] is True


# A demo without a JVM, how many parts it has, and what its result must be.
DEMOS: list[tuple[tuple[str, ...], int, Callable[[Result], None]]] = [
    (("merge",), 2, check_merge),
    (("upkeep",), 2, check_upkeep),
    (("branches",), 4, check_branches),
    (("sql", "--local"), 4, check_sql),
    (("--local",), 7, check_story),
]


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize(
    ("arguments", "parts", "check"), sample(DEMOS, 2), ids=lambda case: getattr(case, "__name__", "")
)
def test_a_demo_without_a_jvm_shows_what_it_says(
    icefield: Icefield, tmp_path: Path, arguments: tuple[str, ...], parts: int, check: Callable[[Result], None]
) -> None:
    ran = on_what_was_left(icefield, tmp_path, *arguments)
    assert len(re.findall(r"^\d\. ", ran.err, re.MULTILINE)) == parts
    check(ran.json)


@pytest.mark.slow
@pytest.mark.spark
def test_sql_on_spark(icefield: Icefield, spark: object) -> None:
    ran = icefield("demo", "sql", "--rows", str(ROWS), "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["engine"], ran.json["moves"], ran.json["changed"]) == ("spark", 12, 19)


def test_an_unknown_chapter_is_refused_before_anything_is_made(icefield: Icefield, tmp_path: Path) -> None:
    ran = icefield("demo", "marge")
    assert ran.code == 1
    assert "'merge', 'upkeep', 'branches', 'sql'" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_claim_that_does_not_hold_fails_the_demo() -> None:
    with pytest.raises(IcefieldError, match="the demo found a fault: 2 balances are wrong"):
        require(len("no") > 2, "2 balances are wrong")


def test_batches_add_up_to_zero_and_open_one_account_each() -> None:
    batches = [transfers(writer, number, ROWS) for writer in range(3) for number in range(8)]
    for batch in batches:
        ids = batch.column("id").to_pylist()
        assert sum(batch.column("delta").to_pylist()) == 0
        assert len(set(ids)) == len(ids) > PAIRS
        assert sum(key >= ROWS for key in ids) == 1
    balances = replay(ROWS, batches)
    assert sum(balances.values()) == ROWS * FIRST_BALANCE
    assert len(balances) == ROWS + len(batches)
    assert sum(balances[key] != FIRST_BALANCE for key in range(ROWS)) > ROWS // 4


@pytest.mark.slow
def test_watchers_end_when_the_workers_have_and_a_failure_is_named(tmp_path: Path) -> None:
    with package.connect(tmp_path / "lake", durable=False) as lake:
        lake.create_table("shop.accounts", "id long, balance long").append(first_accounts(10))
    place = str(tmp_path / "lake")
    with (
        actor("writer", "append_orders", place, table="shop.none", slices=[], total=1) as writer,
        actor("reader", "read_total", place, table="shop.accounts", column="balance") as reader,
    ):
        seen: list[tuple[str, Event]] = []
        with pytest.raises(CommitError, match="the process writer stopped: no table shop.none"):
            seen.extend(perform([writer], [reader]))
    assert {name for name, _ in seen} <= {"reader"}
