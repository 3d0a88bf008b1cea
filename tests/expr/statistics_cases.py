"""True statistics of given rows, as a writer would store them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from tests.expr.cases import Row, is_nan, is_ordinary, sort_key

from icefield.expr.bind.bound import Reference
from icefield.expr.prune.statistics import Counts, FieldStatistics, from_counts_and_bounds
from icefield.types.datatypes import PrimitiveType, Value
from icefield.types.values.binary import encode_value, truncate_lower, truncate_upper


@dataclass(frozen=True)
class Writer:
    """How a writer stores statistics: how long strings may be, and what it leaves out."""

    text_length: int = 16
    nulls: bool = True
    nans: bool = True
    values: bool = True
    bounds: bool = True


def column_statistics(files: Sequence[Sequence[Row]], column: Reference, writer: Writer) -> FieldStatistics:
    """Compute what the writer knows of one column in each file."""
    values = [[row[column.field_id] for row in rows] for rows in files]
    bounds = [_bounds(file, column.type, writer) for file in values]
    counts = Counts(
        values=_longs([len(file) if writer.values else None for file in values]),
        nulls=_longs([file.count(None) if writer.nulls else None for file in values]),
        nans=_longs([sum(map(is_nan, file)) if writer.nans else None for file in values]),
        records=_longs([len(file) for file in values]),
    )
    lower, upper = (pa.array([b[side] for b in bounds], pa.binary()) for side in (0, 1))
    return from_counts_and_bounds(lower, upper, counts, column.type)


def _longs(numbers: list[int | None]) -> pa.Array:
    return pa.array(numbers, pa.int64())


def _bounds(values: Sequence[Value | None], kind: PrimitiveType, writer: Writer) -> tuple[bytes | None, bytes | None]:
    ordinary = sorted((v for v in values if v is not None and is_ordinary(v)), key=sort_key)
    if not ordinary or not writer.bounds:
        return None, None
    low: Value = ordinary[0]
    high: Value | None = ordinary[-1]
    if isinstance(low, str | bytes):
        low = truncate_lower(low, writer.text_length)
    if isinstance(high, str | bytes):
        high = truncate_upper(high, writer.text_length)
    return encode_value(low, kind), None if high is None else encode_value(high, kind)
