"""Find rows by several columns at once, vectorised: null equals null, NaN equals NaN, -0.0 is not 0.0.

That is the equality of partition values and of equality deletes. (spec: Scan Planning, note 3; Equality Delete Files)
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.types.datatypes import MAX_DECIMAL_PRECISION

NOT_FOUND = -1
Codes = npt.NDArray[np.int64]


class KeyIndex:
    """Numbers the distinct rows of some columns, and finds rows of other tables among them."""

    def __init__(self, columns: Sequence[pa.Array], rows: int) -> None:
        self._values: list[pa.Array] = []
        self._steps: list[pa.Array] = []
        codes = np.zeros(rows, np.int64)
        for column in map(_comparable, columns):
            values = column.unique()
            combined = pa.array(codes * len(values) + _positions(column, values))
            step = combined.unique()
            self._values.append(values)
            self._steps.append(step)
            codes = _positions(combined, step)
        self.codes: Codes = codes

    def find(self, columns: Sequence[pa.Array], rows: int) -> Codes:
        """Return the number of each row, or NOT_FOUND; a column may be narrower than the one the index was made of."""
        codes = np.zeros(rows, np.int64)
        for column, values, step in zip(columns, self._values, self._steps, strict=True):
            found = _positions(_comparable(column).cast(values.type), values)
            combined = pa.array(codes * len(values) + found, mask=(codes < 0) | (found < 0))
            codes = _positions(combined, step)
        return codes


def _positions(column: pa.Array, values: pa.Array) -> Codes:
    positions = pc.index_in(column, value_set=values)
    return pc.fill_null(positions, NOT_FOUND).to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _comparable(column: pa.Array) -> pa.Array:
    """Return the column in the widest type of its sort, so that a column that was widened since compares as before."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return column.storage
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_decimal(kind):
        return column.cast(pa.decimal128(MAX_DECIMAL_PRECISION, kind.scale))
    if pa.types.is_floating(kind):
        wide = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(wide), float("nan"), wide).view(pa.int64())
    return column
