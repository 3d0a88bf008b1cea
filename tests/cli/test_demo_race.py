"""The writers of the demo."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

import icefield
from icefield.backend import Backend
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.cli.demo.orders import SCHEMA, arrow_orders
from icefield.cli.demo.race import (
    SLICES,
    ArrowProcess,
    CountingCatalog,
    Task,
    append_slices,
    arrow_processes,
    race,
    share_out,
)
from icefield.errors import CommitError
from icefield.lake import Lake

pytestmark = pytest.mark.slow

TOTAL = 1_200


@pytest.fixture
def task(tmp_path: Path) -> Task:
    with icefield.connect(tmp_path / "lake", durable=False) as lake:
        lake.create_table("shop.orders", SCHEMA, partition_by=["day(ts)"])
    return Task("arrow-1", str(tmp_path / "lake"), "shop.orders", TOTAL, ((0, 500), (500, TOTAL)))


def order_ids(task: Task) -> list[int]:
    with icefield.connect(task.lake) as lake:
        rows = lake.table(task.table).scan(select=["order_id"]).to_arrow().read_all()
    return sorted(rows.column("order_id").to_pylist())


@pytest.mark.parametrize("total", [SLICES, 1_000, 300_000])
def test_every_order_is_dealt_out_once(total: int) -> None:
    tasks = share_out("lake", "shop.orders", total)
    assert [t.writer for t in tasks] == ["arrow-1", "arrow-2", "arrow-3", "spark-1", "spark-2"]
    slices = sorted(s for t in tasks for s in t.slices)
    assert len(slices) == SLICES
    assert [slices[0][0], *(stop for _, stop in slices)] == [*(start for start, _ in slices), total]


def test_a_writer_tells_of_each_commit(task: Task) -> None:
    landed = list(append_slices(task, lambda start, stop: arrow_orders(start, stop, TOTAL)))
    assert [(c.writer, c.rows, c.lost_races) for c in landed] == [("arrow-1", 500, 0), ("arrow-1", 700, 0)]
    with icefield.connect(task.lake) as lake:
        assert [s.snapshot_id for s in lake.table(task.table).snapshots()] == [c.snapshot_id for c in landed]


class Overtaken:
    """A catalog in which another writer commits just before the first swap."""

    def __init__(self, catalog: Catalog, overtake: Callable[[], object]) -> None:
        self._catalog = catalog
        self._overtake: Callable[[], object] | None = overtake

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        overtake, self._overtake = self._overtake, None
        if overtake is not None:
            overtake()
        self._catalog.swap(changes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)


def test_lost_races_are_counted_and_cost_no_row(lake: Lake) -> None:
    rows = pa.table({"id": [1]})
    other = lake.create_table("a.b", "id long")
    overtaken = Overtaken(lake.catalog, lambda: other.append(rows))
    counting = CountingCatalog(cast(Catalog, overtaken))
    table = Lake(Backend(cast(Catalog, counting), lake.store, lake.ambient), lake.warehouse).table("a.b")
    for _ in range(2):
        assert table.append(rows) is not None
    assert counting.lost_races == 1
    assert other.count() == 3


def test_processes_wait_until_they_are_let_go(task: Task) -> None:
    half = replace(task, slices=task.slices[:1])
    rest = replace(task, writer="arrow-2", slices=task.slices[1:])
    with arrow_processes([half, rest]) as processes:
        assert order_ids(task) == []
        landed = list(race(None, [], processes))
    assert sorted((c.writer, c.rows) for c in landed) == [("arrow-1", 500), ("arrow-2", 700)]
    assert order_ids(task) == list(range(TOTAL))


def test_a_writer_that_fails_is_named_with_its_reason(task: Task, capfd: pytest.CaptureFixture[str]) -> None:
    stopped = pytest.raises(CommitError, match="the process arrow-1 stopped: no table shop.none")
    with ArrowProcess(replace(task, table="shop.none")) as process, stopped:
        list(process.landed())
    assert capfd.readouterr().err == ""


def test_a_writer_that_dies_is_named(task: Task) -> None:
    stopped = pytest.raises(CommitError, match="the process arrow-1 stopped with exit code 1")
    with ArrowProcess(replace(task, slices=(("x", "y"),))) as process, stopped:  # type: ignore[arg-type]
        list(process.landed())
