"""Check rows against a sort order as they are written, so that a file never records an order that it does not have.

order: day(ts) desc nulls last, name
rows:  (day 5, 'b')  (day 5, 'c')  (day 4, 'a')  (null, 'a')    holds
       (day 5, 'b')  (day 5, 'a')                               does not
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.model.sort_order import Direction, NullOrder, SortField, SortOrder
from icefield.parquet.nan_columns import column_at
from icefield.types.arrays import Mask
from icefield.types.datatypes import PrimitiveType
from icefield.types.schema import Schema
from icefield.types.sort_keys import has_negative_nan, sort_keys
from icefield.types.transforms import Unknown


@dataclass
class OrderCheck:
    """Whether the rows of one file are sorted so far."""

    schema: Schema
    order: SortOrder
    holds: bool = True
    _last: list[pa.Array] = field(default_factory=list)

    def add(self, rows: pa.RecordBatch) -> None:
        """Add the next rows, at least one."""
        if not self.holds or self.order.is_unsorted:
            return
        keys: list[pa.Array] = []
        for by in self.order.fields:
            kind = self.schema.by_id[by.source_id].type
            assert isinstance(kind, PrimitiveType)
            result = by.transform.result_type(kind)
            values = by.transform.apply(column_at(rows, self.schema.paths[by.source_id]), kind)
            if has_negative_nan(values, result):
                self.holds = False
                return
            keys.append(sort_keys(values, result))
        before = self._last or [key.slice(0, 1) for key in keys]
        self.holds = _are_ordered([pa.concat_arrays(pair) for pair in zip(before, keys, strict=True)], self.order)
        self._last = [key.slice(len(key) - 1) for key in keys]


def known_fields(order: SortOrder, schema: Schema) -> Iterator[SortField]:
    """Yield the fields of an order, up to the first whose values cannot be computed."""
    values = {leaf.field.field_id for leaf in schema.leaves if not leaf.repeated}
    for by in order.fields:
        if isinstance(by.transform, Unknown) or by.other_source_ids or by.source_id not in values:
            return
        yield by


def _are_ordered(keys: list[pa.Array], order: SortOrder) -> bool:
    tied: Mask = np.ones(len(keys[0]) - 1, np.bool_)
    for key, by in zip(keys, order.fields, strict=True):
        one, other = key.slice(0, len(key) - 1), key.slice(1)
        if by.direction is Direction.DESC:
            one, other = other, one
        if np.any(tied & _true(pc.greater(one, other))):
            return False
        null, null_next = _true(key.slice(0, len(key) - 1).is_null()), _true(key.slice(1).is_null())
        misplaced = null_next & ~null if by.null_order is NullOrder.FIRST else null & ~null_next
        if np.any(tied & misplaced):
            return False
        tied &= _true(pc.equal(one, other)) | (null & null_next)
    return True


def _true(mask: pa.Array) -> Mask:
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
