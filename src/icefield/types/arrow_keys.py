"""Find rows by several columns at once, vectorised: null equals null, NaN equals NaN, -0.0 is not 0.0.

That is the equality of partition values and of equality deletes. (spec: Scan Planning, note 3; Equality Delete Files)
`encode_keys` encodes each row as one binary value; two values are equal if and only if the rows are:

    (null, "x")   ->  ff ff ff ff | 01 00 00 00 'x'
    ("null", "x") ->  04 00 00 00 'null' | 01 00 00 00 'x'
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.types.datatypes import MAX_DECIMAL_PRECISION

NOT_FOUND = -1
NULL_LENGTH = -1
LONG_BYTES, DECIMAL_BYTES = 8, 16
Codes = npt.NDArray[np.int64]


class KeyIndex:
    """Numbers the distinct rows of some columns, and looks up rows of other tables among them."""

    def __init__(self, columns: Sequence[pa.Array], rows: int) -> None:
        self._values: list[pa.Array] = []
        # The distinct pairs of a number of the columns before and a value; the first column needs none.
        self._steps: list[pa.Array | None] = []
        codes: Codes | None = None
        for column in map(comparable, columns):
            values, found = _numbered(column)
            step = None
            if codes is not None:
                step, found = _numbered(pa.array(codes * len(values) + found))
            self._values.append(values)
            self._steps.append(step)
            codes = found
        self.codes: Codes = np.zeros(rows, np.int64) if codes is None else codes

    def find(self, columns: Sequence[pa.Array], rows: int) -> Codes:
        """Return the number of each row, or NOT_FOUND; a column may be narrower than in the index."""
        codes = np.zeros(rows, np.int64)
        for column, values, step in zip(columns, self._values, self._steps, strict=True):
            found = _positions(comparable(column).cast(values.type), values)
            if step is not None:
                combined = pa.array(codes * len(values) + found, mask=(codes < 0) | (found < 0))
                found = _positions(combined, step)
            codes = found
        return codes


def comparable(column: pa.Array) -> pa.Array:
    """Return the column in the widest type it can be promoted to, so that promoted columns compare as before."""
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


def encode_keys(columns: Sequence[pa.Array], rows: int) -> pa.Array:
    """Return the values of each row as one binary key, which does not change when a column's type is promoted."""
    parts: list[pa.Array] = []
    for column in columns:
        values = _as_bytes(comparable(column))
        lengths = pc.fill_null(pc.binary_length(values), NULL_LENGTH)
        # Each value has a length prefix: without it ("x", "yz") would equal ("xy", "z"), and null would equal "".
        parts += [lengths.view(pa.binary(4)).cast(pa.binary()), values]
    if not parts:
        return pa.repeat(pa.scalar(b"", pa.binary()), rows)
    nothing = pa.scalar(b"", pa.binary())
    return pc.binary_join_element_wise(*parts, nothing, null_handling="replace", null_replacement=b"")


def _as_bytes(column: pa.Array) -> pa.Array:
    """Return comparable values as binary: numbers and times by their bits."""
    kind, types = column.type, pa.types
    if types.is_boolean(kind) or types.is_date32(kind):
        column = column.cast(pa.int32()).cast(pa.int64())
    if types.is_decimal(kind):
        column = column.view(pa.binary(DECIMAL_BYTES))
    elif types.is_integer(column.type) or types.is_temporal(kind):
        column = column.view(pa.binary(LONG_BYTES))
    return column.cast(pa.binary())


def _numbered(column: pa.Array) -> tuple[pa.Array, Codes]:
    """Return the distinct values in order, and the number of each value."""
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)


def _positions(column: pa.Array, values: pa.Array) -> Codes:
    positions = pc.index_in(column, value_set=values)
    return pc.fill_null(positions, NOT_FOUND).to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]
