"""What the simulation has found, each as small as it gets."""

from typing import Any

import pyarrow as pa
import pytest
from tests.sim.actor import arrow
from tests.sim.simulation import rows_of

import icefield
from icefield.errors import ConcurrentChange
from icefield.lake import Lake
from icefield.table.table import Table


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table("s.t", "id long, n long")


def test_an_overwrite_after_an_append_in_one_transaction_meets_the_rows_of_others(lake: Lake, table: Table) -> None:
    def change() -> None:
        with lake.transaction() as transaction:
            inside = transaction.table("s.t")
            inside.append(arrow(((1, 1),)))
            inside.overwrite(arrow(((3, 3),)), where="id = 2", check_rows=False)
            table.append(arrow(((2, 2),)))

    with pytest.raises(ConcurrentChange):
        change()
    assert rows_of(table) == ((2, 2),)


def test_an_empty_table_is_compacted_to_itself(table: Table) -> None:
    assert table.compact().snapshot is None
    table.append(pa.table({"id": [1], "n": [1]}))
    table.delete("id = 1")
    assert table.compact().snapshot is None


def test_a_row_delta_that_lands_on_another_base_leaves_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table("s.d", "id long, n long", properties={"write.delete.mode": "merge-on-read"})
    table.append(arrow(((1, 1), (2, 2))))
    table.append(arrow(((3, 3),)))
    swap = lake.catalog.swap

    def let_another_rewrite_first(changes: object) -> None:
        monkeypatch.setattr(lake.catalog, "swap", swap)
        lake.table("s.d").rewrite_manifests()
        swap(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(lake.catalog, "swap", let_another_rewrite_first)
    table.delete("id = 1")
    assert rows_of(table) == ((2, 2), (3, 3))
    deletes = [f.location for f in lake.store.list(lake.warehouse) if f.location.endswith("deletes.parquet")]
    assert len(deletes) == 1


def test_a_table_that_moves_on_while_it_is_opened_is_opened_where_it_is(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = {"icefield.gc.grace-ms": "0", "icefield.gc.foreign-readers": "false"}
    short = lake.create_table(
        "s.s", "id long, n long", properties={"write.metadata.previous-versions-max": "1", **at_once}
    )
    pointer = lake.catalog.pointer

    def let_others_commit_afterwards(*names: Any) -> str:
        found = pointer(*names)
        monkeypatch.setattr(lake.catalog, "pointer", pointer)
        for number in range(2):
            short.append(arrow(((number, number),)))
        assert short.sweep().files_deleted == 1
        return found

    monkeypatch.setattr(lake.catalog, "pointer", let_others_commit_afterwards)
    assert rows_of(lake.table("s.s")) == ((0, 0), (1, 1))
