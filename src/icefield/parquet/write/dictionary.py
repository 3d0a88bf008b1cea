"""Choose the columns of a file to write with a dictionary: those with repeated values.

Arrow writes every column with a dictionary as long as it is small enough. For values that hardly repeat that is wasted
work, and the indices make the file larger. So a sample of a file's first rows is checked. Checking all of them would
take longer than writing them.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefield.parquet.nan_columns import column_at, parquet_path
from icefield.types.datatypes import BooleanType
from icefield.types.schema import Leaf, Schema

SLICES, SLICE_ROWS = 8, 1024
LEAST_REPEATS = 2  # the indices are then no larger than the values


def columns_with_dictionary(rows: pa.Table, schema: Schema, most_bytes: int, wishes: Mapping[str, bool]) -> list[str]:
    """Return the Parquet paths of columns to write with a dictionary of limited size.

    wishes: the choices that are already made, by path.
    """
    return list(_chosen(rows, schema, most_bytes, wishes))


def _chosen(rows: pa.Table, schema: Schema, most_bytes: int, wishes: Mapping[str, bool]) -> Iterator[str]:
    for leaf in schema.leaves:
        path = parquet_path(leaf)
        if wishes[path] if path in wishes else leaf.repeated or _repeats(rows, leaf, most_bytes):
            yield path


def _repeats(rows: pa.Table, leaf: Leaf, most_bytes: int) -> bool:
    if isinstance(leaf.type, BooleanType):
        return False
    sample = _sample(column_at(rows, leaf.path))
    present = len(sample) - sample.null_count
    if not present:
        return False
    share = present / len(sample)
    distinct = pc.count_distinct(sample, mode="only_valid").as_py()
    expected = distinct if len(sample) == rows.num_rows else _expected_distinct(present, distinct)
    fits = expected * sample.nbytes / present <= most_bytes
    return bool(fits and expected * LEAST_REPEATS <= rows.num_rows * share)


def _sample(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return all values of a short column, else a sample of slices."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if len(column) <= SLICES * SLICE_ROWS:
        return column
    step = (len(column) - SLICE_ROWS) // (SLICES - 1)
    slices = (column.slice(start * step, SLICE_ROWS) for start in range(SLICES))
    return pa.chunked_array([chunk for part in slices for chunk in part.chunks], column.type)


def _expected_distinct(sampled: int, distinct: int) -> float:
    """Estimate the number of distinct values from the duplicates in a sample."""
    twice = sampled - distinct
    if twice * 2 >= sampled:
        return distinct
    return sampled * sampled / (2 * twice) if twice else float("inf")
