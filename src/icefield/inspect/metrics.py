"""Readable file statistics: a struct for each column, with bounds of the column's type.

Bounds are as written: those of strings may be truncated, and one that does not decode is null.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.rows import ManifestEntries
from icefield.types.arrow import arrow_array, arrow_type, struct_array
from icefield.types.datatypes import (
    BinaryType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Value,
)
from icefield.types.schema import Leaf, Schema
from icefield.types.values.binary import decode_value

READABLE_METRICS = "readable_metrics"
# The name of each statistic here, and its columns in manifests.
COLUMN_SIZE, LOWER_BOUND, UPPER_BOUND = "column_size", "lower_bound", "upper_bound"
STORED = {
    COLUMN_SIZE: "column_size",
    "value_count": "value_count",
    "null_value_count": "null_count",
    "nan_value_count": "nan_count",
    LOWER_BOUND: "lower",
    UPPER_BOUND: "upper",
}
BOUNDS = (LOWER_BOUND, UPPER_BOUND)
# Types whose bounds are fixed-width values in Arrow's representation.
WIDTHS: dict[type[PrimitiveType], int] = {
    IntegerType: 4,
    DateType: 4,
    FloatType: 4,
    LongType: 8,
    DoubleType: 8,
    TimeType: 8,
    TimestampType: 8,
    TimestamptzType: 8,
    TimestampNsType: 8,
    TimestamptzNsType: 8,
}


@dataclass(frozen=True)
class ReadableMetrics:
    """The statistics of a schema's primitive columns, by their dotted names."""

    leaves: dict[str, Leaf]

    @property
    def column(self) -> tuple[NestedField, ...]:
        """The metrics as a column, or nothing for a schema without primitive columns."""
        fields = tuple(NestedField(0, name, _metrics_of(leaf)) for name, leaf in self.leaves.items())
        return (NestedField(0, READABLE_METRICS, StructType(fields)),) if fields else ()

    def wanted(self, fields: Iterable[NestedField], want: ManifestColumns) -> ManifestColumns:
        """Return the manifest columns to decode for these fields."""
        sorts = {(self.leaves[f.name].field.field_id, inner.name) for f in fields for inner in _inner(f)}
        bounds = {i for i, name in sorts if name in BOUNDS}
        sizes = {i for i, name in sorts if name == COLUMN_SIZE}
        counts = {i for i, name in sorts if name.endswith("value_count")}
        return replace(want, bounds=tuple(bounds), sizes=tuple(sizes), counts=tuple(counts))

    def array(self, entries: ManifestEntries, wanted: Sequence[NestedField]) -> pa.StructArray:
        """Return the metrics of some columns, for each entry."""
        return struct_array(wanted, (self._column(entries, f) for f in wanted))

    def _column(self, entries: ManifestEntries, field: NestedField) -> pa.StructArray:
        leaf = self.leaves[field.name]
        arrays = []
        for inner in _inner(field):
            stored = entries[f"{STORED[inner.name]}.{leaf.field.field_id}"].combine_chunks()
            arrays.append(readable_bounds(stored, leaf.type) if inner.name in BOUNDS else stored)
        return struct_array(_inner(field), arrays)


def readable_metrics(schema: Schema) -> ReadableMetrics:
    """Return the metrics of a schema's columns, ordered by name, as in Iceberg Java."""
    return ReadableMetrics({leaf.dotted: leaf for leaf in sorted(schema.leaves, key=lambda leaf: leaf.dotted)})


def readable_bounds(bounds: pa.Array, kind: PrimitiveType) -> pa.Array:
    """Decode a column of bounds to the Arrow type of the values."""
    target, width = arrow_type(kind), WIDTHS.get(type(kind))
    if isinstance(kind, BinaryType):
        return bounds
    if width and _all_of_width(bounds, width):
        return bounds.cast(pa.binary(width)).view(target)
    encoded = bounds.dictionary_encode()
    if pa.types.is_null(target):
        return pa.nulls(len(bounds))
    values = [_decoded(data, kind) for data in encoded.dictionary.to_pylist()]
    return arrow_array(values, kind).take(encoded.indices)


def _all_of_width(bounds: pa.Array, width: int) -> bool:
    """Return whether all bounds have the type's current width; bounds written before it was widened do not."""
    ends = pc.min_max(pc.binary_length(bounds))
    return ends["min"].as_py() in (None, width) and ends["max"].as_py() in (None, width)


def _decoded(data: bytes, kind: PrimitiveType) -> Value | None:
    try:
        return decode_value(data, kind)
    except ValueError:
        return None


def _metrics_of(leaf: Leaf) -> StructType:
    return StructType(tuple(NestedField(0, n, leaf.type if n in BOUNDS else LongType()) for n in STORED))


def _inner(field: NestedField) -> tuple[NestedField, ...]:
    assert isinstance(field.type, StructType)
    return field.type.fields
