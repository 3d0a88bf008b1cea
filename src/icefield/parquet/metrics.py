"""Statistics of a data file, from its Parquet footer. (spec: Field-level Metrics and Statistics)

The footer holds sizes, counts and exact minima and maxima; NaN counts are not in it and come from the writer.
Which statistics a column gets is the table's choice: none, counts, truncate(n) or full.
Counts and bounds are kept for columns that are not inside a list or map: only those can prune a file.
"""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from icefield.errors import InvalidInput
from icefield.parquet.nan_columns import NaNColumn
from icefield.properties import METRICS_COLUMN_PREFIX, METRICS_DEFAULT
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    PrimitiveType,
    StringType,
    UUIDType,
    Value,
)
from icefield.types.schema import Leaf, Schema
from icefield.types.single_value import encode_value, truncate_lower, truncate_upper

_TRUNCATE = re.compile(r"truncate\((\d+)\)")


@dataclass(frozen=True)
class MetricsMode:
    """How much a column's statistics say; `width` None keeps bounds whole."""

    counts: bool
    bounds: bool
    width: int | None = None


NO_METRICS = MetricsMode(counts=False, bounds=False)


@dataclass
class FileMetrics:
    """Statistics by field id, as a manifest entry holds them."""

    column_sizes: dict[int, int] = field(default_factory=dict)
    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    nan_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, bytes] = field(default_factory=dict)
    upper_bounds: dict[int, bytes] = field(default_factory=dict)
    split_offsets: list[int] = field(default_factory=list)


def parse_metrics_mode(text: str) -> MetricsMode:
    """Parse none, counts, truncate(n) or full."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    found = _TRUNCATE.fullmatch(word)
    if found and int(found[1]) > 0:
        return MetricsMode(counts=True, bounds=True, width=int(found[1]))
    raise InvalidInput(f"metrics mode {text!r} is unknown", hint="Use none, counts, truncate(16) or full")


def metrics_modes(schema: Schema, properties: Mapping[str, str]) -> dict[int, MetricsMode]:
    """Return the mode of each primitive column, by field id."""
    default = parse_metrics_mode(METRICS_DEFAULT.read(properties))
    modes: dict[int, MetricsMode] = {}
    for leaf in schema.leaves:
        text = properties.get(METRICS_COLUMN_PREFIX + leaf.dotted)
        modes[leaf.field.field_id] = default if text is None else parse_metrics_mode(text)
    return modes


def footer_metrics(
    footer: pq.FileMetaData,
    schema: Schema,
    modes: Mapping[int, MetricsMode],
    nan_counts: Mapping[int, int],
    nan_columns: Mapping[int, NaNColumn],
) -> FileMetrics:
    """Collect what a manifest entry says about a file that was written with this schema.

    nan_columns: the columns of which the footer says nothing, because they hold NaN.
    """
    metrics = FileMetrics()
    bounds: dict[int, _Bounds] = {}
    for index in range(footer.num_row_groups):
        group = footer.row_group(index)
        metrics.split_offsets.append(_start_of(group.column(0)))
        # By place and not by path: a column named `a.b` has the path of the field b of a struct a.
        for position, leaf in enumerate(schema.leaves):
            _add_chunk(metrics, bounds, group.column(position), leaf, modes[leaf.field.field_id])
    for field_id, column in nan_columns.items():
        if modes[field_id].counts:
            metrics.null_value_counts[field_id] = column.nulls
        if field_id in bounds:
            bounds[field_id] = _Bounds(bounds[field_id].type, column.lower, column.upper)
    for field_id, found in bounds.items():
        _add_bounds(metrics, field_id, found, modes[field_id])
    for field_id, count in nan_counts.items():
        if modes[field_id].counts:
            metrics.nan_value_counts[field_id] = count
    return metrics


@dataclass
class _Bounds:
    type: PrimitiveType
    lower: Value | None = None
    upper: Value | None = None
    known: bool = True


def _add_chunk(metrics: FileMetrics, bounds: dict[int, _Bounds], chunk: Any, leaf: Leaf, mode: MetricsMode) -> None:
    field_id = leaf.field.field_id
    _increase(metrics.column_sizes, field_id, chunk.total_compressed_size)
    if not mode.counts or leaf.repeated:
        return
    _increase(metrics.value_counts, field_id, chunk.num_values)
    statistics = chunk.statistics
    if statistics is not None and statistics.has_null_count:
        _increase(metrics.null_value_counts, field_id, statistics.null_count)
    if mode.bounds:
        _widen(bounds.setdefault(field_id, _Bounds(leaf.type)), chunk, statistics)


def _widen(bounds: _Bounds, chunk: Any, statistics: Any) -> None:
    if statistics is None or not statistics.has_min_max:
        # Only a chunk of nulls and NaNs may lack bounds without making the file's bounds unknown.
        all_null = statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values
        all_nan = isinstance(bounds.type, FloatType | DoubleType)
        bounds.known = bounds.known and (all_null or all_nan)
        return
    try:
        lower, upper = _value(statistics, "min", bounds.type), _value(statistics, "max", bounds.type)
    except UnicodeDecodeError:  # Arrow does not look whether texts are UTF-8, and such a bound could not be cut
        bounds.known = False
        return
    bounds.lower = lower if bounds.lower is None else min(bounds.lower, lower)
    bounds.upper = upper if bounds.upper is None else max(bounds.upper, upper)


def _add_bounds(metrics: FileMetrics, field_id: int, bounds: _Bounds, mode: MetricsMode) -> None:
    if not bounds.known or bounds.lower is None or bounds.upper is None:
        return
    lower: Value | None = bounds.lower
    upper: Value | None = bounds.upper
    if mode.width is not None and isinstance(bounds.type, StringType | BinaryType):
        lower = truncate_lower(bounds.lower, mode.width)  # type: ignore[arg-type]
        upper = truncate_upper(bounds.upper, mode.width)  # type: ignore[arg-type]
    if lower is not None:
        metrics.lower_bounds[field_id] = encode_value(lower, bounds.type)
    if upper is not None:
        metrics.upper_bounds[field_id] = encode_value(upper, bounds.type)


def _value(statistics: Any, side: str, kind: PrimitiveType) -> Value:
    """Take a minimum or maximum in its in-memory form; the physical one, which no calendar can overflow."""
    if isinstance(kind, DecimalType | BooleanType):
        typed: Decimal | bool = getattr(statistics, side)
        return typed
    raw: Any = getattr(statistics, f"{side}_raw")
    if isinstance(kind, StringType):
        return bytes(raw).decode()
    if isinstance(kind, UUIDType):
        return uuid.UUID(bytes=bytes(raw))
    if isinstance(kind, FixedType | BinaryType):
        return bytes(raw)
    number: int | float = raw
    return number


def _increase(counts: dict[int, int], field_id: int, by: int) -> None:
    counts[field_id] = counts.get(field_id, 0) + by


def _start_of(chunk: Any) -> int:
    dictionary: int | None = chunk.dictionary_page_offset
    data: int = chunk.data_page_offset
    return data if dictionary is None or dictionary <= 0 else min(dictionary, data)


_WORDS = {
    "none": NO_METRICS,
    "counts": MetricsMode(counts=True, bounds=False),
    "full": MetricsMode(counts=True, bounds=True),
}
