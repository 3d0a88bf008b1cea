"""Statistics of a column's values in many files at once.

They come from three sources: the column statistics of data files, their partition values (lower == upper == the
value), and the partition summaries of manifests. `icefield.expr.prune.evaluate` evaluates filters on them.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.expr.prune.bounds import decode_bounds
from icefield.expr.prune.ordered import Bools, OrderedColumn, column_of
from icefield.types.datatypes import BinaryType, FixedType, PrimitiveType, StringType
from icefield.types.sort_keys import FLOATS


@dataclass(frozen=True)
class FieldStatistics:
    """Statistics of one column in each of N files.

    The bounds are of ordinary values, neither null nor NaN. `exact` means that equal bounds prove a single value.
    """

    lower: OrderedColumn
    upper: OrderedColumn
    may_be_null: Bools
    may_be_nan: Bools
    may_be_value: Bools
    exact: bool

    def at(self, chosen: Bools) -> "FieldStatistics":
        """Return the statistics of the chosen files."""
        return FieldStatistics(
            lower=self.lower.at(chosen),
            upper=self.upper.at(chosen),
            may_be_null=self.may_be_null[chosen],
            may_be_nan=self.may_be_nan[chosen],
            may_be_value=self.may_be_value[chosen],
            exact=self.exact,
        )


@dataclass(frozen=True)
class Counts:
    """The counts of one column in each of N files; null or negative means unknown."""

    values: pa.Array
    nulls: pa.Array
    nans: pa.Array
    records: pa.Array


def from_counts_and_bounds(lower: pa.Array, upper: pa.Array, counts: Counts, kind: PrimitiveType) -> FieldStatistics:
    """Build statistics from the metrics of data files, with bounds as bytes, null if missing."""
    records, values = _count(counts.records), _count(counts.values)
    # A column outside lists and maps has one value per row.
    values = np.where(values < 0, records, values)
    nulls = _count(counts.nulls)
    nans = _count(counts.nans) if isinstance(kind, FLOATS) else np.zeros_like(nulls)
    filled = records != 0
    low, high = decode_bounds(lower, upper, kind)
    return FieldStatistics(
        lower=low,
        upper=high,
        may_be_null=filled & (nulls != 0),
        may_be_nan=filled & (nans != 0),
        may_be_value=filled & ~((values >= 0) & (np.maximum(nulls, 0) + np.maximum(nans, 0) >= values)),
        # Writers truncate long strings and bytes, and not all of them round the upper bound up as they must.
        exact=not isinstance(kind, StringType | BinaryType | FixedType),
    )


def from_partition_values(values: pa.Array, kind: PrimitiveType) -> FieldStatistics:
    """Build statistics from partition values: all rows of a file have the same one."""
    column = column_of(values, kind)
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    return FieldStatistics(
        lower=column,
        upper=column,
        may_be_null=is_null,
        may_be_nan=~is_null & ~column.known,
        may_be_value=column.known,
        exact=True,
    )


def from_summaries(
    contains_null: pa.Array, contains_nan: pa.Array, lower: pa.Array, upper: pa.Array, kind: PrimitiveType
) -> FieldStatistics:
    """Build statistics of a partition field from the summaries in a manifest list.

    According to the spec, a summary without bounds means no ordinary values. Some writers also omit bounds that they
    cannot write, so a missing bound proves nothing here.
    """
    low, high = decode_bounds(lower, upper, kind)
    may_be_null = pc.fill_null(contains_null, fill_value=True).to_numpy(zero_copy_only=False)
    may_be_nan = np.zeros_like(may_be_null)
    if isinstance(kind, FLOATS):
        may_be_nan = pc.fill_null(contains_nan, fill_value=True).to_numpy(zero_copy_only=False)
    return FieldStatistics(low, high, may_be_null, may_be_nan, np.ones_like(may_be_null), exact=True)


def _count(array: pa.Array) -> npt.NDArray[np.int64]:
    if array.null_count == len(array):
        return np.full(len(array), -1)
    whole = pc.fill_null(array, -1) if array.null_count else array
    return whole.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)  # type: ignore[no-any-return]
