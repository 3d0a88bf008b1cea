"""Histories that other engines got wrong, with UPDATE, MERGE and upsert of either engine: see tests/test_known_bugs.py.

Each test has all verbs on the local engine, and one on Spark; `make deep` has them all on both.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.commit.racing import files_of, race, reachable
from tests.effort import DEEP

import icefield
from icefield import lit
from icefield.catalog.commit_queue.queue import NO_QUEUE
from icefield.commit.actions.rewrite import RewriteFiles
from icefield.commit.snapshot.manifest_filter import remove_files
from icefield.commit.validate.read_set import ReadSet
from icefield.engine.choose import EngineName
from icefield.errors import ConcurrentChange
from icefield.expr.bind.bound import TRUE
from icefield.lake import Lake
from icefield.plan.plan import plan_added_files
from icefield.table.table import Table

ROWS = [(1, "a", 0), (2, "a", 0), (3, "a", 0), (4, "a", 0), (11, "b", 0), (12, "b", 0)]
UPDATED = sorted([*(row for row in ROWS if row[0] != 2), (2, "a", 7)])


@dataclass(frozen=True)
class Writer:
    """A verb on an engine, for a table of a format version."""

    verb: str
    version: int
    engine: EngineName

    def __str__(self) -> str:
        return f"{self.verb}-v{self.version}-{self.engine}"

    def table(self, lake: Lake, mode: str = "merge-on-read") -> Table:
        """Create a table with one data file for each partition."""
        modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
        made = lake.create_table(
            "t.t", "id long, p string, n long", partition_by=["p"], properties=modes, format_version=self.version
        )
        made.append(rows(*ROWS))
        return made

    def change(self, table: Table) -> object:
        """Set n of row 2 in partition a to 7."""
        where, given = "id = 2 AND p = 'a'", rows((2, "a", 7))
        match self.verb:
            case "update":
                return table.update({"n": 7}, where, engine=self.engine)
            case "merge":
                on = "target.id = source.id AND target.p = 'a'"
                begun = table.merge(given, on, engine=self.engine)
                return begun.when_matched().update({"n": "source.n"}).when_not_matched().insert_all().execute()
            case _:
                return table.upsert(given, ["id", "p"], engine=self.engine)

    def delete(self, table: Table) -> object:
        """Delete that row."""
        return table.delete("id = 2", engine=self.engine)


VERBS = ("update", "merge", "upsert")
ON_LOCAL = [Writer(verb, version, "local") for verb in VERBS for version in (2, 3)]


def writers(on_spark: str) -> pytest.MarkDecorator:
    """Return the cases of a test. on_spark: the verb that Spark has in `make test`."""
    chosen = [Writer(verb, version, "spark") for verb in VERBS for version in (2, 3)]
    chosen = chosen if DEEP else [Writer(on_spark, 3, "spark")]
    marked = [pytest.param(w, marks=pytest.mark.spark, id=str(w)) for w in chosen]
    return pytest.mark.parametrize("writer", [*(pytest.param(w, id=str(w)) for w in ON_LOCAL), *marked])


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A lake on disk, whose writers do not wait for each other: a rival commits amid a commit."""
    with icefield.connect(tmp_path / "lake", durable=False) as made:
        yield Lake(replace(made.backend, queue=NO_QUEUE), made.warehouse)


@pytest.fixture(autouse=True)
def session(request: pytest.FixtureRequest) -> None:
    """The session of the cases that have one."""
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("spark")


def rows(*given: tuple[int, str, int]) -> pa.Table:
    return pa.table({name: [row[at] for row in given] for at, name in enumerate(("id", "p", "n"))})


def rows_of(table: Table) -> list[tuple[int, str, int]]:
    return sorted((row["id"], row["p"], row["n"]) for row in table.scan().to_arrow().read_all().to_pylist())


@writers("update")
@pytest.mark.parametrize("first", ["change", "delete"])
def test_r01_a_change_and_a_delete_of_one_row_do_not_both_land(lake: Lake, writer: Writer, first: str) -> None:
    table, rival = writer.table(lake), lake.table("t.t")
    mine, other = (writer.change, writer.delete) if first == "change" else (writer.delete, writer.change)
    with pytest.raises(ConcurrentChange):
        race(lake, lambda: other(rival), lambda: mine(table))
    assert rows_of(table) == ([row for row in ROWS if row[0] != 2] if first == "change" else UPDATED)
    assert files_of(lake) >= reachable(table)


@pytest.mark.parametrize("verb", VERBS)
def test_r01_goes_red_without_the_guard(lake: Lake, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(verb, 3, "local")
    table = writer.table(lake)
    monkeypatch.setattr(np, "intersect1d", lambda *_: np.zeros(0))
    race(lake, lambda: writer.delete(lake.table("t.t")), lambda: writer.change(table))
    assert rows_of(table) == UPDATED, "a row that was deleted survives as its update"


@writers("merge")
def test_r02_rows_that_change_while_files_are_compacted_stay_changed(lake: Lake, writer: Writer) -> None:
    table = writer.table(lake)
    table.append(rows((5, "a", 0)))
    race(lake, lambda: writer.change(lake.table("t.t")), lambda: table.compact(engine=writer.engine))
    assert rows_of(table) == sorted([*UPDATED, (5, "a", 0)])


@pytest.mark.parametrize("verb", VERBS)
def test_r02_goes_red_without_the_guard(lake: Lake, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(verb, 3, "local")
    table = writer.table(lake)
    table.append(rows((5, "a", 0)))
    monkeypatch.setattr(RewriteFiles, "_moved_positions", lambda *_: {})
    race(lake, lambda: writer.change(lake.table("t.t")), table.compact)
    assert {(2, "a", 0), (2, "a", 7)} <= set(rows_of(table)), "the old row comes back beside the new one"


@writers("upsert")
def test_r03_positions_in_a_file_that_compaction_removed_are_found_in_the_new_one(lake: Lake, writer: Writer) -> None:
    table = writer.table(lake)
    table.append(rows((5, "a", 0)))
    race(lake, lambda: lake.table("t.t").compact(), lambda: writer.change(table))
    assert rows_of(table) == sorted([*UPDATED, (5, "a", 0)])


@pytest.mark.parametrize("verb", VERBS)
def test_r03_goes_red_without_the_guard(lake: Lake, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(verb, 3, "local")
    table = writer.table(lake)
    table.append(rows((5, "a", 0)))
    monkeypatch.setattr(ReadSet, "is_disturbed", lambda *_: False)
    monkeypatch.setattr("icefield.commit.actions.row_delta.find_lost_files", lambda *_: None)
    race(lake, lambda: lake.table("t.t").compact(), lambda: writer.change(table))
    assert {(2, "a", 0), (2, "a", 7)} <= set(rows_of(table)), "the delete landed and took nothing"


@writers("merge")
def test_r05_a_file_that_was_removed_concurrently_does_not_come_back(lake: Lake, writer: Writer) -> None:
    table = writer.table(lake, "copy-on-write")
    with pytest.raises(ConcurrentChange):
        race(lake, lambda: lake.table("t.t").delete("p = 'a'"), lambda: writer.change(table))
    assert rows_of(table) == [row for row in ROWS if row[1] == "b"]


@pytest.mark.parametrize("verb", VERBS)
def test_r05_without_the_guard_removed_rows_come_back(lake: Lake, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(verb, 3, "local")
    table = writer.table(lake, "copy-on-write")
    monkeypatch.setattr(
        "icefield.commit.actions.snapshot_update.remove_files",
        lambda *given: replace(remove_files(*given), missing=set()),
    )
    monkeypatch.setattr(ReadSet, "check_deleted_rows", lambda *_: None)
    race(lake, lambda: lake.table("t.t").delete("p = 'a'"), lambda: writer.change(table))
    assert (1, "a", 0) in rows_of(table)


@writers("update")
def test_r20_rows_that_come_with_deletes_are_not_deleted_by_them(lake: Lake, writer: Writer) -> None:
    table = writer.table(lake)
    writer.change(table)
    head = table.metadata.current_snapshot
    assert head is not None
    assert head.summary["added-position-deletes"] == "1"
    assert rows_of(table) == UPDATED
    table.upsert(rows((2, "a", 8)), ["id", "p"], mode="equality", engine=writer.engine)
    assert rows_of(table) == sorted([*(row for row in ROWS if row[0] != 2), (2, "a", 8)])


@writers("merge")
def test_r21_an_append_to_another_partition_is_no_conflict(lake: Lake, writer: Writer) -> None:
    table = writer.table(lake)
    race(lake, lambda: lake.table("t.t").append(rows((2, "b", 0))), lambda: writer.change(table))
    assert rows_of(table) == sorted([*UPDATED, (2, "b", 0)])


@pytest.mark.parametrize("verb", VERBS)
def test_r21_goes_red_without_the_guard(lake: Lake, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(verb, 3, "local")
    table = writer.table(lake)
    monkeypatch.setattr(
        "icefield.commit.validate.read_set.plan_added_files",
        lambda store, base, snapshot, plan: plan_added_files(store, base, snapshot, replace(plan, where=TRUE)),
    )
    monkeypatch.setattr(ReadSet, "_holds_read_rows", lambda *_: True)
    with pytest.raises(ConcurrentChange, match="concurrently added rows"):
        race(lake, lambda: lake.table("t.t").append(rows((2, "b", 0))), lambda: writer.change(table))


Move = Callable[[Table, EngineName], object]
MOVES: dict[str, Move] = {
    "update": lambda table, engine: table.update({"p": lit("b")}, "id = 2", engine=engine),
    "merge": lambda table, engine: (
        table.merge(rows((2, "b", 0)), ["id"], engine=engine).when_matched().update_all().execute()
    ),
    "upsert": lambda table, engine: table.upsert(rows((2, "b", 0)), ["id"], engine=engine),
}


@writers("upsert")
def test_r26_the_delete_of_a_row_that_moves_has_the_partition_of_its_data_file(lake: Lake, writer: Writer) -> None:
    table = writer.table(lake)
    MOVES[writer.verb](table, writer.engine)
    assert rows_of(table) == sorted([*(row for row in ROWS if row[0] != 2), (2, "b", 0)])
    deletes = table.inspect("delete_files").to_arrow().read_all()
    assert deletes["partition"].to_pylist() == [{"p": "a"}]
