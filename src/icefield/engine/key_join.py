"""Match rows of a table with source rows by their keys, as SQL's `=` does: null equals nothing, -0.0 equals 0.0.

The source is indexed once. The keys of a batch of the table are tested with a filter of hashes, and only the rows that
pass it are looked up, many at a time.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.types.arrays import Longs, Mask
from icefield.types.arrow_keys import NOT_FOUND, KeyIndex
from icefield.types.key_filter import KeyFilter

MOST_PAIRS = 1_048_576  # in memory at a time


class KeyJoin:
    """The keys of source rows. distinct: how many there are."""

    def __init__(self, columns: Sequence[pa.Array], rows: int, index: KeyIndex | None = None) -> None:
        """Take the keys. index: of those without a null, if it was made; not of floats."""
        has_key = has_no_null(columns, rows)
        chosen = np.flatnonzero(has_key)
        kept = [equal_form(column).filter(pa.array(has_key)) for column in columns]
        self._index = KeyIndex(kept, len(chosen)) if index is None else index
        self._filter = KeyFilter(kept, len(chosen))
        codes = self._index.codes
        # The source rows of each key, one key after another.
        self._counts = np.bincount(codes).astype(np.int64)
        self._starts = np.cumsum(self._counts) - self._counts
        self._rows = chosen[np.argsort(codes, kind="stable")]
        self.distinct = len(self._counts)

    def may_match(self, columns: Sequence[pa.Array], rows: int) -> Mask:
        """Return a mask of the rows of the table that may match a source row."""
        return self._filter.may_match([equal_form(column) for column in columns], rows)

    def matching(self, columns: Sequence[pa.Array], rows: int) -> Longs:
        """Return the numbers of the rows of the table that match a source row, ascending."""
        if not self.distinct:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self._index.find([equal_form(column) for column in columns], rows) != NOT_FOUND)

    def pairs(self, columns: Sequence[pa.Array], rows: int) -> Iterator[tuple[Longs, Longs]]:
        """Yield the numbers of rows of the table, ascending, and of the source rows that have the same key.

        All pairs of a row of the table are yielded together.
        """
        if not self.distinct:
            return
        codes = self._index.find([equal_form(column) for column in columns], rows)
        found = np.flatnonzero(codes != NOT_FOUND)
        counts = self._counts[codes[found]]
        ends = np.cumsum(counts)
        begin = 0
        while begin < len(found):
            done = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, done + MOST_PAIRS, "right")))
            some, many = found[begin:end], counts[begin:end]
            # The first, second, … source row of the key of each row.
            nth = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
            yield np.repeat(some, many), self._rows[np.repeat(self._starts[codes[some]], many) + nth]
            begin = end


def has_no_null(columns: Sequence[pa.Array], rows: int) -> Mask:
    """Return a mask of the rows without a null in any of the columns."""
    found = np.ones(rows, np.bool_)
    for column in columns:
        if column.null_count:
            found &= column.is_valid().to_numpy(zero_copy_only=False)
    return found


def equal_form(column: pa.Array) -> pa.Array:
    """Return the column with 0.0 for -0.0, which SQL does not distinguish."""
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column
