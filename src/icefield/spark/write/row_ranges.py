"""Ranges of rows in an order, to divide rows among tasks: every row of a range comes before those of the next.

Ranges are cut at rows of a sample. For a sort order, the rows at which they are cut, and those to divide, are numbered
field by field, by where a value is among the values of the cuts; such numbers compare as the rows do:

    cuts on (country, id)    (de, 7), (fr, 3)
    country                  .. < de < .. < fr < ..   0 to 4
    id                       .. < 3 < .. < 7 < ..     0 to 4
    (de, 9), (fr, 1)         (1, 4), (3, 0)           both are in the second range
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.model.sort_order import Direction, NullOrder, SortField
from icefield.parquet.write.order_check import known_fields
from icefield.parquet.write.row_order import RowOrder, keys_of
from icefield.types.arrays import Longs, Mask
from icefield.types.schema import Schema

MOST_NUMBERS = 1 << 62


@dataclass(frozen=True)
class RowRanges:
    """The ranges of an order; picklable. cuts: the first row of each range but the first, with the order's columns."""

    order: RowOrder
    schema: Schema
    cuts: pa.RecordBatch

    @classmethod
    def of_sample(cls, order: RowOrder, schema: Schema, rows: pa.Table, weights: Longs, count: int) -> "RowRanges":
        """Cut a sample of rows into ranges of about the same weight, at most so many. weights: of each row."""
        if not rows.num_rows:
            return cls(order, schema, _none(rows))
        found = order.indices(rows, schema)
        ordered = np.arange(rows.num_rows) if found is None else found.to_numpy()
        reached = np.cumsum(weights[ordered])
        wanted = np.arange(1, count) * (int(reached[-1]) / count)
        at = np.unique(np.minimum(np.searchsorted(reached, wanted, "right"), len(reached) - 1))
        found_rows = rows.take(pa.array(ordered[at], pa.int64())).combine_chunks().to_batches()
        return cls(order, schema, found_rows[0] if found_rows else _none(rows))

    @property
    def count(self) -> int:
        """How many ranges there are."""
        return int(self.cuts.num_rows) + 1

    def largest_share(self, rows: pa.Table, weights: Longs) -> float:
        """Return which part of a sample is in the largest range: rows with one place in the order stay together."""
        if not rows.num_rows:
            return 1.0
        numbers = np.concatenate([self.numbers(batch) for batch in rows.to_batches()])
        held = np.bincount(numbers, weights)
        return float(held.max() / held.sum())

    def numbers(self, rows: pa.RecordBatch) -> Longs:
        """Return the number of the range of each row, from 0 on."""
        if not self.cuts.num_rows:
            return np.zeros(rows.num_rows, np.int64)
        if self.order.cluster:
            cuts, own = (self.order.curve_positions(some, self.schema) for some in (self.cuts, rows))
        else:
            cuts, own = self._numbered(rows)
        return np.searchsorted(cuts, own, "right").astype(np.int64)

    def _numbered(self, rows: pa.RecordBatch) -> tuple[Longs, Longs]:
        """Return numbers of the cuts and of rows that compare as they do in the sort order."""
        cuts, own = np.zeros(self.cuts.num_rows, np.int64), np.zeros(rows.num_rows, np.int64)
        size = 1
        for field in known_fields(self.order.sort, self.schema):
            (_, at), (_, key) = (keys_of(some, field, self.schema) for some in (self.cuts, rows))
            known = at.drop_null().unique()
            known = known.take(pc.sort_indices(known))
            width = 2 * len(known) + 3
            size *= width
            if size > MOST_NUMBERS:
                break  # rows that are equal in the fields before stay together
            cuts = cuts * width + _places(known, at, field)
            own = own * width + _places(known, key, field)
        return cuts, own


def _places(known: pa.Array, keys: pa.Array, field: SortField) -> Longs:
    """Return where each key is among known ones, which ascend: at one of them, or between two; nulls first or last."""
    last = 2 * len(known)
    if pa.types.is_int64(keys.type):
        places = _between(known.to_numpy(), pc.fill_null(keys, 0).to_numpy(zero_copy_only=False))
    else:
        values = keys.dictionary_encode()
        of_values = _search(known, values.dictionary)
        indices = pc.fill_null(values.indices, 0).to_numpy(zero_copy_only=False)
        places = of_values[indices] if len(of_values) else np.zeros(len(keys), np.int64)
    if field.direction is Direction.DESC:
        places = last - places
    nulls = 0 if field.null_order is NullOrder.FIRST else last + 2
    return np.where(keys.is_null().to_numpy(zero_copy_only=False), nulls, places + 1)


def _between(known: Longs, values: Longs) -> Longs:
    less = np.searchsorted(known, values, "left")
    if not len(known):
        return 2 * less
    is_at: Mask = known[np.minimum(less, len(known) - 1)] == values
    return 2 * less + is_at


def _search(known: pa.Array, values: pa.Array) -> Longs:
    """Do as `_between` for keys that numpy does not compare: all binary searches go on together."""
    low, high = np.zeros(len(values), np.int64), np.full(len(values), len(known), np.int64)
    while (is_open := low < high).any():
        middle = (low + high) // 2
        found = pc.less(known.take(pa.array(np.minimum(middle, len(known) - 1))), values)
        is_less = found.to_numpy(zero_copy_only=False).astype(np.bool_)
        low = np.where(is_open & is_less, middle + 1, low)
        high = np.where(is_open & ~is_less, middle, high)
    if not len(known):
        return 2 * low
    found = pc.equal(known.take(pa.array(np.minimum(low, len(known) - 1))), values)
    is_at: Mask = found.to_numpy(zero_copy_only=False).astype(np.bool_)
    return 2 * low + is_at


def _none(rows: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], rows.schema)
