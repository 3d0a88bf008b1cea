"""The order in which rows are rewritten: a sort order, or clustering by several columns at once.

Rows are clustered along a Hilbert curve through the ranks of their values. A file then holds a small range of each
column, so that a filter on any of them reads few files. Ranks, not values: the values of a column are split at sampled
quantiles, so that neither outliers nor long common prefixes take up the bits of the curve.

Nulls have the lowest rank, and NaN the highest, apart from all other values.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidInput
from icefield.model.hilbert import CURVE_BITS, curve_positions
from icefield.model.sort_order import Direction, NullOrder, SortField, SortOrder
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
        if pa.types.is_int64(keys.type):
            return self._ranks_of_numbers(keys, schema)
        values = keys.dictionary_encode()
        own = np.searchsorted(_comparable(self.bounds), _comparable(values.dictionary), "right") + 1
        indices = pc.fill_null(values.indices, 0).to_numpy(zero_copy_only=False)
        ranks = own[indices] if len(own) else np.zeros(len(keys), np.int64)
        return np.where(keys.is_null().to_numpy(zero_copy_only=False), 0, ranks).astype(np.int64)

    def _ranks_of_numbers(self, keys: pa.Array, schema: Schema) -> Longs:
        values = pc.fill_null(keys, 0).to_numpy(zero_copy_only=False)
        ranks = np.searchsorted(_comparable(self.bounds), values, "right") + 1
        if isinstance(schema.by_id[self.field_id].type, FloatType | DoubleType):
            ranks += values == _NAN_KEY.as_py()
        return np.where(keys.is_null().to_numpy(zero_copy_only=False), 0, ranks).astype(np.int64)


@dataclass(frozen=True)
class RowOrder:
    """An order for rows; picklable. sort: a sort order. cluster: the columns to cluster by, instead."""

    sort: SortOrder
    cluster: tuple[RankedColumn, ...] = ()

    def curve_positions(self, rows: pa.RecordBatch, schema: Schema) -> Longs:
        """Return the position of each row on the curve."""
        return curve_positions([column.ranks(rows, schema) for column in self.cluster])

    def columns(self, schema: Schema) -> list[str]:
        """Return the top-level columns that have the keys."""
        sources = (column.field_id for column in self.cluster) if self.cluster else self._sources(schema)
        return list(dict.fromkeys(schema.paths[field_id][0] for field_id in sources))

    def is_known(self, schema: Schema) -> bool:
        """Return whether the values of all fields of the sort order can be computed."""
        return tuple(known_fields(self.sort, schema)) == self.sort.fields

    def _sources(self, schema: Schema) -> Iterator[int]:
        return (field.source_id for field in known_fields(self.sort, schema))

    def sorted(self, rows: pa.Table, schema: Schema) -> pa.Table:
        """Return rows in this order; rows that are equal in it keep theirs. Raises InvalidInput for too much text."""
        order = self.indices(rows, schema)
        return rows if order is None else _taken(rows, order)

    def indices(self, rows: pa.Table, schema: Schema) -> pa.Array | None:
        """Return the positions of rows in this order; None if they are in it as they are."""
        batches = rows.to_batches()
        if not batches:
            return None
        if self.cluster:
            positions = np.concatenate([self.curve_positions(batch, schema) for batch in batches])
            return pa.array(np.argsort(positions, kind="stable"))
        by = [(f"n{at}", f"k{at}", field) for at, field in enumerate(known_fields(self.sort, schema))]
        if not by:
            return None
        keys = [
            key for null, value, field in by for key in ((null, "ascending"), (value, _DIRECTIONS[field.direction]))
        ]
        table = pa.Table.from_batches(
            pa.record_batch(
                [key for *_, field in by for key in keys_of(batch, field, schema)], names=[n for n, _ in keys]
            )
            for batch in batches
        )
        # The last key makes the sort stable.
        table = table.append_column("row", pa.array(np.arange(rows.num_rows)))
        return pc.sort_indices(table, [*keys, ("row", "ascending")])


def keys_of(batch: pa.RecordBatch, field: SortField, schema: Schema) -> tuple[pa.Array, pa.Array]:
    """Return the keys of a field: where nulls go is one of its own, because Arrow has one choice for all keys."""
    kind = schema.by_id[field.source_id].type
    assert isinstance(kind, PrimitiveType)
    values = field.transform.apply(column_at(batch, schema.paths[field.source_id]), kind)
    key = sort_keys(values, field.transform.result_type(kind))
    is_null = key.is_null()
    return is_null if field.null_order is NullOrder.LAST else pc.invert(is_null), key


def _taken(rows: pa.Table, order: pa.Array) -> pa.Table:
    try:
        return rows.take(order)
    except pa.ArrowInvalid as error:  # its offsets have 32 bits
        raise InvalidInput(
            f"cannot put {rows.num_rows:,} rows of a partition in order in this process: a column is above 2 GiB",
            hint="Use engine='spark', or a filter that selects fewer files",
        ) from error


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


_DIRECTIONS = {Direction.ASC: "ascending", Direction.DESC: "descending"}
_NAN_KEY = sort_keys(pa.array([float("nan")]), DoubleType())[0]
