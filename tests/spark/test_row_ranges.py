"""Ranges of rows in an order: they follow each other in it, and are of about the same size."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from tests.effort import seeds
from tests.engine.test_row_order import SCHEMA, some_rows

from icefield.model.sort_order import UNSORTED, parse_order_by
from icefield.parquet.write.row_order import RowOrder, column_keys, rank_column
from icefield.spark.write import row_ranges
from icefield.spark.write.row_ranges import RowRanges
from icefield.types.text import parse_schema

TABLE = parse_schema(SCHEMA)
TERMS = (
    ["x"],
    ["x desc nulls first", "s"],
    ["b", "p desc", "s desc nulls first", "id"],
    ["d desc", "t"],
    ["bucket(4, s)", "day(t) desc", "x asc nulls last"],
    ["s nulls last"],
    ["truncate(3, s)", "d desc"],
)
CLUSTERED = (["x", "y"], ["s", "b"], ["d", "t", "id"])


def order_of(rows: pa.Table, given: list[str]) -> RowOrder:
    if given in TERMS:
        return RowOrder(parse_order_by(given, TABLE))
    (batch,) = rows.combine_chunks().to_batches()
    ids = [TABLE.ids_by_path[(name,)] for name in given]
    return RowOrder(UNSORTED, tuple(rank_column(i, column_keys(batch, TABLE, i), len(ids)) for i in ids))


def divide(rows: pa.Table, order: RowOrder, rng: Random, count: int) -> tuple[RowRanges, list[int]]:
    """Cut a sample of rows, and return the range of each row, in the order."""
    chosen = sorted(rng.sample(range(rows.num_rows), rows.num_rows // 4))
    sample = rows.take(pa.array(chosen)).select(order.columns(TABLE))
    ranges = RowRanges.of_sample(order, TABLE, sample, np.full(len(chosen), 4), count)
    numbers = np.concatenate([ranges.numbers(batch) for batch in rows.to_batches(max_chunksize=rng.randint(1, 400))])
    found = order.indices(rows, TABLE)
    assert found is not None
    return ranges, numbers[found.to_numpy()].tolist()


@pytest.mark.parametrize("given", [*TERMS, *CLUSTERED], ids="-".join)
@pytest.mark.parametrize("seed", seeds(2, deep=40))
def test_ranges_follow_each_other(given: list[str], seed: int) -> None:
    rng = Random(seed)
    rows = some_rows(800, seed)
    ranges, numbers = divide(rows, order_of(rows, given), rng, 9)
    assert (numbers, ranges.count) == (sorted(numbers), 9)
    assert np.bincount(numbers).max() < 3 * 800 / 9


def test_rows_with_one_place_in_the_order_stay_together() -> None:
    rows = some_rows(400)
    order = RowOrder(parse_order_by(["b"], TABLE))
    ranges, numbers = divide(rows, order, Random(1), 8)
    assert len(set(numbers)) == 2
    sample = rows.select(["b"])
    assert 0.4 < ranges.largest_share(sample, np.ones(400, np.int64)) < 0.6


def test_fields_beyond_what_fits_into_a_number_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_ranges, "MOST_NUMBERS", 100)
    rows = some_rows(400)
    _, numbers = divide(rows, RowOrder(parse_order_by(["p", "s", "id"], TABLE)), Random(1), 8)
    assert numbers == sorted(numbers)


def test_without_a_sample_there_is_one_range() -> None:
    rows = some_rows(10)
    order = RowOrder(parse_order_by(["x"], TABLE))
    ranges = RowRanges.of_sample(order, TABLE, rows.slice(0, 0).select(["x"]), np.zeros(0, np.int64), 5)
    assert (ranges.count, ranges.numbers(rows.to_batches()[0]).tolist()) == (1, [0] * 10)
    assert ranges.largest_share(rows.slice(0, 0), np.zeros(0, np.int64)) == 1.0
