"""The writers of the demo."""

from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

import icefield
from icefield.catalog.catalog import Catalog
from icefield.cli.demo_orders import SCHEMA, arrow_orders
from icefield.cli.demo_race import (
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


def test_lost_races_are_counted(lake: Lake) -> None:
    counting = CountingCatalog(lake.catalog)
    rows = pa.table({"id": [1]})
    other = lake.create_table("a.b", "id long")
    stubborn = Lake(cast(Catalog, counting), lake.store, lake.warehouse, lake.ambient).table("a.b")

    class Meddler:
        """Rows that let another writer commit while they are read, before this one's commit loads the table."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return rows.__arrow_c_stream__(requested_schema)

    original = counting._catalog.swap
    raced = [False]

    def swap_after_another(changes: object) -> None:
        if not raced[0]:
            raced[0] = True
            other.append(rows)
        original(changes)  # type: ignore[arg-type]

    assert stubborn.append(Meddler()) is not None
    assert counting.lost_races == 0
    counting._catalog = cast(Catalog, _Swapping(counting._catalog, swap_after_another))
    assert stubborn.append(rows) is not None
    assert counting.lost_races == 1
    assert other.count() == 3
