"""Filters on the metadata column `_partition` prune files, in all specs of a table, and lose no row."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

from icefield.lake import Lake
from icefield.table.table import Table

SECOND = date(2026, 1, 2)
CONDITIONS: dict[str, Callable[[int, str | None, date | None], bool]] = {
    "_partition.kind = 'k1'": lambda number, kind, day: kind == "k1",
    "_partition.kind IN ('k0', 'k2')": lambda number, kind, day: kind in ("k0", "k2"),
    "_partition.kind IS NULL": lambda number, kind, day: kind is None,
    "_partition.kind IS NOT NULL AND _partition.ts_day > DATE '2026-01-02'": lambda number, kind, day: (
        kind is not None and day is not None and day > SECOND
    ),
    "_partition.ts_day = DATE '2026-01-02'": lambda number, kind, day: day == SECOND,
    "NOT (_partition.ts_day < DATE '2026-01-02')": lambda number, kind, day: day is not None and day >= SECOND,
    "_partition.kind = 'k1' OR id < 3": lambda number, kind, day: kind == "k1" or number < 3,
    "_partition.kind <=> 'k1' AND NOT id <=> 5": lambda number, kind, day: kind == "k1" and number != 5,
    "_partition.kind LIKE 'k%' AND _partition.kind != 'k0'": lambda number, kind, day: kind in ("k1", "k2"),
}


@pytest.fixture
def table(lake: Lake) -> Table:
    """Rows of three specs: by kind, by kind and day, by day alone; each append has one file for each partition."""
    table = lake.create_table("a.t", "id int, kind string, ts timestamptz", partition_by=["kind"])
    table.append(rows(0))
    with table.evolve() as change:
        change.add_partition_field("day(ts)")
    table.append(rows(100))
    with table.evolve() as change:
        change.drop_partition_field("kind")
    table.append(rows(200))
    return table


def rows(first: int) -> pa.Table:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array(range(first, first + 12), pa.int32()),
            "kind": [None if at % 4 == 3 else f"k{at % 4}" for at in range(12)],
            "ts": [start + timedelta(days=at % 3) for at in range(12)],
        }
    )


def test_files_are_pruned_and_rows_are_those_of_all_files(table: Table) -> None:
    columns = ["id", "_partition"]
    everything = {row["id"]: row for row in table.scan(select=columns).to_arrow().read_all().to_pylist()}
    assert len(everything) == 36
    found = {}
    for condition, holds in CONDITIONS.items():
        scan = table.scan(condition, select=columns)
        ids = {row["id"] for row in scan.to_arrow().read_all().to_pylist()}
        assert ids == {number for number, row in everything.items() if holds(number, *row["_partition"].values())}, (
            condition
        )
        assert scan.count() == len(ids)
        found[condition] = scan.files().num_rows
    total = table.scan().files().num_rows
    assert all(count < total for count in found.values()), found
