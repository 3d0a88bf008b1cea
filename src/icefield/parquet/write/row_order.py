"""The order in which rows are rewritten: a sort order, or clustering by several columns at once.

Rows are clustered along a Hilbert curve through the ranks of their values. A file then holds a small range of each
column, so that a filter on any of them reads few files. Ranks, not values: the values of a column are split at sampled
quantiles, so that neither outliers nor long common prefixes take up the bits of the curve.

Nulls have the lowest rank, and NaN the highest, apart from all other values.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.model.hilbert import CURVE_BITS, curve_positions
from icefield.model.sort_order import Direction, NullOrder, SortOrder
from icefield.parquet.nan_columns import column_at
from icefield.parquet.write.order_check import known_fields
from icefield.types.arrays import Longs
from icefield.types.datatypes import DoubleType, FloatType, PrimitiveType
from icefield.types.schema import Schema
from icefield.types.sort_keys import sort_keys


@dataclass(frozen=True)
class RankedColumn:
    """A column and the values at which it is split. bounds: distinct sort keys, ascending."""

    field_id: int
    bounds: pa.Array

    def ranks(self, rows: pa.RecordBatch, schema: Schema) -> Longs:
        """Return the rank of each row: 0 for null, then one more for each bound that it reaches, NaN last."""
        keys = column_keys(rows, schema, self.field_id)
        values = keys.dictionary_encode()
        own = np.searchsorted(_comparable(self.bounds), _comparable(values.dictionary), "right") + 1
        if isinstance(schema.by_id[self.field_id].type, FloatType | DoubleType):
            own = own + pc.equal(values.dictionary, _NAN_KEY).to_numpy(zero_copy_only=False)
        indices = pc.fill_null(values.indices, 0).to_numpy(zero_copy_only=False)
        ranks = own[indices] if len(own) else np.zeros(len(keys), np.int64)
        return np.where(keys.is_null().to_numpy(zero_copy_only=False), 0, ranks).astype(np.int64)


@dataclass(frozen=True)
class RowOrder:
    """An order for rows; picklable. sort: a sort order. cluster: the columns to cluster by, instead."""

    sort: SortOrder
    cluster: tuple[RankedColumn, ...] = ()

    def curve_positions(self, rows: pa.RecordBatch, schema: Schema) -> Longs:
        """Return the position of each row on the curve."""
        return curve_positions([column.ranks(rows, schema) for column in self.cluster])

    def sorted(self, rows: pa.Table, schema: Schema) -> pa.Table:
        """Return rows in this order; rows that are equal in it keep theirs."""
        if rows.num_rows == 0:
            return rows
        batch = rows.combine_chunks().to_batches()[0]
        if self.cluster:
            return rows.take(pa.array(np.argsort(self.curve_positions(batch, schema), kind="stable")))
        keys, by = [], []
        for at, field in enumerate(known_fields(self.sort, schema)):
            kind = schema.by_id[field.source_id].type
            assert isinstance(kind, PrimitiveType)
            values = field.transform.apply(column_at(batch, schema.paths[field.source_id]), kind)
            key = sort_keys(values, field.transform.result_type(kind))
            # Where nulls go is a key of its own: Arrow has one choice for all keys.
            is_null = key.is_null()
            is_last = field.null_order is NullOrder.LAST
            direction = "descending" if field.direction is Direction.DESC else "ascending"
            keys += [is_null if is_last else pc.invert(is_null), key]
            by += [(f"n{at}", "ascending"), (f"k{at}", direction)]
        if not keys:
            return rows
        table = pa.table(dict(zip((name for name, _ in by), keys, strict=True)))
        # The last key makes the sort stable.
        table = table.append_column("row", pa.array(np.arange(rows.num_rows)))
        return rows.take(pc.sort_indices(table, [*by, ("row", "ascending")]))


def column_keys(rows: pa.RecordBatch, schema: Schema, field_id: int) -> pa.Array:
    """Return the sort keys of a column."""
    kind = schema.by_id[field_id].type
    assert isinstance(kind, PrimitiveType)
    return sort_keys(column_at(rows, schema.paths[field_id]), kind)


def rank_column(field_id: int, sample: pa.Array, columns: int) -> RankedColumn:
    """Split a column at the quantiles of a sample of its sort keys. columns: how many there are to cluster by."""
    known = sample.drop_null()
    known = known.filter(pc.not_equal(known, _NAN_KEY)) if pa.types.is_int64(known.type) else known
    # The lowest rank is for nulls and the highest for NaN.
    most = (1 << (CURVE_BITS // columns)) - 2
    ordered = known.take(pc.sort_indices(known))
    at = np.linspace(0, max(0, len(ordered) - 1), min(most, len(ordered))).astype(np.int64)
    return RankedColumn(field_id, ordered.take(pa.array(at)).unique())


def _comparable(keys: pa.Array) -> "np.ndarray[tuple[int], np.dtype[np.generic]]":
    """Return keys as numpy compares them; bytes and decimals as objects."""
    if pa.types.is_int64(keys.type) or pa.types.is_boolean(keys.type):
        return keys.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    return np.array(keys.to_pylist(), object)


_NAN_KEY = sort_keys(pa.array([float("nan")]), DoubleType())[0]
