"""Statistics of a data file, from its Parquet footer. (spec: Field-level Metrics and Statistics)

The footer has sizes, counts and exact minima and maxima; NaN counts are not in it and come from the writer.
Table properties choose the statistics of each column: none, counts, truncate(n) or full.
Columns inside lists and maps have no counts and bounds: they cannot prune a file.
"""

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow.parquet as pq

from icefield.errors import InvalidInput
from icefield.parquet.nan_columns import NaNColumn
from icefield.properties.table import MAX_INFERRED_COLUMNS, METRICS_DEFAULT, METRICS_OF_COLUMN
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DecimalType,
    FixedType,
    PrimitiveType,
    StringType,
    Type,
    UUIDType,
    Value,
    children,
)
from icefield.types.schema import Leaf, Schema
from icefield.types.values.binary import encode_value, truncate_lower, truncate_upper

Bounds = tuple[Value, Value]
_TRUNCATE = re.compile(r"truncate\((\d+)\)")


@dataclass(frozen=True)
class MetricsMode:
    """Which statistics a column has; with `width` None bounds are not truncated."""

    counts: bool
    bounds: bool
    width: int | None = None


NO_METRICS = MetricsMode(counts=False, bounds=False)


@dataclass
class FileMetrics:
    """Statistics by field id, as in a manifest entry."""

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
    inferred = _inferred_columns(schema, properties)
    modes: dict[int, MetricsMode] = {}
    for leaf in schema.leaves:
        text = properties.get(METRICS_OF_COLUMN.prefix + leaf.dotted)
        by_default = default if leaf.field.field_id in inferred else NO_METRICS
        modes[leaf.field.field_id] = by_default if text is None else parse_metrics_mode(text)
    return modes


def _inferred_columns(schema: Schema, properties: Mapping[str, str]) -> set[int]:
    """Return the columns that have statistics by default, the columns of a struct before those of nested structs."""
    leaves = [leaf.field.field_id for leaf in schema.leaves]
    limit = MAX_INFERRED_COLUMNS.read(properties)
    if limit is None or METRICS_DEFAULT.key in properties or len(leaves) <= limit:
        return set(leaves)
    return set(islice(_outer_first(schema.struct), limit))


def _outer_first(kind: Type) -> Iterator[int]:
    inside = children(kind)
    yield from (f.field_id for f in inside if isinstance(f.type, PrimitiveType))
    for each in inside:
        yield from _outer_first(each.type)


@dataclass(frozen=True)
class WriterMetrics:
    """The metrics of a file that are not in its footer.

    nan_counts: of every float column. nan_columns: those with NaN, which have no statistics in the footer.
    long_bounds: by field id and row group, for strings and binaries that are too long for the footer.
    """

    nan_counts: Mapping[int, int] = field(default_factory=dict)
    nan_columns: Mapping[int, NaNColumn] = field(default_factory=dict)
    long_bounds: Mapping[int, Mapping[int, Bounds]] = field(default_factory=dict)


def footer_metrics(
    footer: pq.FileMetaData, leaves: Sequence[Leaf], modes: Mapping[int, MetricsMode], writer_metrics: WriterMetrics
) -> FileMetrics:
    """Collect the metrics of a file for its manifest entry; `leaves` are its columns, in file order."""
    metrics = FileMetrics()
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    if not groups:
        return metrics
    metrics.split_offsets.extend(start_of(group) for group in groups)
    # By position and not by path: a column named `a.b` has the same path as the field b of a struct a.
    for position, leaf in enumerate(leaves):
        chunks = [group.column(position) for group in groups]
        field_id, mode = leaf.field.field_id, modes[leaf.field.field_id]
        metrics.column_sizes[field_id] = sum(chunk.total_compressed_size for chunk in chunks)
        if not mode.counts or leaf.repeated:
            continue
        metrics.value_counts[field_id] = sum(chunk.num_values for chunk in chunks)
        beside_nulls = writer_metrics.nan_columns.get(field_id)
        nulls = null_count(chunks) if beside_nulls is None else beside_nulls.nulls
        if nulls is not None:
            metrics.null_value_counts[field_id] = nulls
        if field_id in writer_metrics.nan_counts:
            metrics.nan_value_counts[field_id] = writer_metrics.nan_counts[field_id]
        bounds = exact_bounds(chunks, leaf, writer_metrics) if mode.bounds else None
        if bounds is not None:
            _add_bounds(metrics, leaf, bounds, mode)
    return metrics


def start_of(group: Any) -> int:
    """Return the byte offset at which a row group starts."""
    chunk = group.column(0)
    dictionary: int | None = chunk.dictionary_page_offset
    data: int = chunk.data_page_offset
    return data if dictionary is None or dictionary <= 0 else min(dictionary, data)


def exact_bounds(chunks: Sequence[Any], leaf: Leaf, writer_metrics: WriterMetrics) -> Bounds | None:
    """Return the minimum and maximum of a column, without null and NaN; None if unknown."""
    field_id = leaf.field.field_id
    if field_id in writer_metrics.nan_columns:
        column = writer_metrics.nan_columns[field_id]
        return None if column.lower is None or column.upper is None else (column.lower, column.upper)
    long_bounds = writer_metrics.long_bounds.get(field_id, {})
    found: list[Bounds] = []
    for index, chunk in enumerate(chunks):
        statistics = chunk.statistics
        if index in long_bounds:
            found.append(long_bounds[index])
        elif statistics is not None and statistics.has_min_max:
            try:
                found.append((_value(statistics, "min", leaf.type), _value(statistics, "max", leaf.type)))
            except UnicodeDecodeError:  # Arrow does not validate UTF-8, and such a bound could not be truncated
                return None
        elif not _is_all_null(chunk) and field_id not in writer_metrics.nan_counts:
            # If a chunk lacks bounds, the file's bounds are unknown, unless the chunk has only nulls and NaNs.
            return None
    if not found:
        return None
    return min(lower for lower, _ in found), max(upper for _, upper in found)


def null_count(chunks: Sequence[Any]) -> int | None:
    """Return the null count of a column; None if it is missing for any row group."""
    counts = [c.statistics.null_count for c in chunks if c.statistics is not None and c.statistics.has_null_count]
    return sum(counts) if len(counts) == len(chunks) else None


def _is_all_null(chunk: Any) -> bool:
    statistics = chunk.statistics
    return statistics is not None and statistics.has_null_count and bool(statistics.null_count == chunk.num_values)


def _add_bounds(metrics: FileMetrics, leaf: Leaf, bounds: Bounds, mode: MetricsMode) -> None:
    lower: Value | None
    upper: Value | None
    lower, upper = bounds
    if mode.width is not None and isinstance(leaf.type, StringType | BinaryType):
        lower = truncate_lower(lower, mode.width)  # type: ignore[arg-type]
        upper = truncate_upper(upper, mode.width)  # type: ignore[arg-type]
    if lower is not None:
        metrics.lower_bounds[leaf.field.field_id] = encode_value(lower, leaf.type)
    if upper is not None:
        metrics.upper_bounds[leaf.field.field_id] = encode_value(upper, leaf.type)


def _value(statistics: Any, side: str, kind: PrimitiveType) -> Value:
    """Convert a minimum or maximum to its in-memory form, from the physical value, which cannot overflow a calendar."""
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


_WORDS = {
    "none": NO_METRICS,
    "counts": MetricsMode(counts=True, bounds=False),
    "full": MetricsMode(counts=True, bounds=True),
}
