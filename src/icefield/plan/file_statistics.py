"""The statistics of many files, in the shape that filters are evaluated on; each column is decoded once."""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa

from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import partition_column
from icefield.expr.bind.bound import Bound, columns_of
from icefield.expr.prune.evaluate import Statistics
from icefield.expr.prune.ordered import column_of
from icefield.expr.prune.residual import FileStatistics
from icefield.expr.prune.statistics import Counts, FieldStatistics, from_counts_and_bounds, from_partition_values
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.plan.manifest_list import spec_sources
from icefield.plan.partition.struct import partition_struct
from icefield.types.datatypes import LongType, PrimitiveType
from icefield.types.metadata_columns import LAST_UPDATED, is_partition_field, partition_field_id
from icefield.types.schema import Schema


def statistics_of_files(entries: ManifestEntries, spec: PartitionSpec, schema: Schema) -> FileStatistics:
    """Return the statistics of entries of one spec."""
    terms = spec_sources(spec, schema)
    partition = partition_statistics(entries, spec, schema)
    return FileStatistics(terms, partition, column_statistics(entries, schema), entries.num_rows)


def with_partition(statistics: FileStatistics, where: Bound, metadata: TableMetadata) -> FileStatistics:
    """Return statistics that also know the fields of the metadata column `_partition` that a filter names.

    Which fields these are is found for each filter: statistics may come from a cache, and be older than a spec.
    """
    if not any(map(is_partition_field, columns_of(where))):
        return statistics
    fields = partition_struct(metadata).fields
    ids = {partition_field_id(at): field.field_id for at, field in enumerate(fields)}

    def columns(field_id: int) -> FieldStatistics | None:
        known = ids.get(field_id)
        return statistics.columns(field_id) if known is None else statistics.partition(known)

    return replace(statistics, columns=columns)


def column_statistics(entries: ManifestEntries, schema: Schema) -> Statistics:
    """Find the statistics of a column in each file by field id; None for a column without statistics."""

    table, names = entries.table, frozenset(entries.column_names)

    def whole(name: str) -> pa.Array:
        column = table.column(name)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    @cache
    def statistics(field_id: int) -> FieldStatistics | None:
        if field_id == LAST_UPDATED.field_id and "sequence_number" in names:
            return up_to_sequence_number(whole("sequence_number"))
        known = schema.by_id.get(field_id)  # other metadata columns have neither a schema nor statistics
        kind = known.type if known else None
        if f"lower.{field_id}" not in names or not isinstance(kind, PrimitiveType):
            return None
        counts = Counts(
            values=whole(f"value_count.{field_id}"),
            nulls=whole(f"null_count.{field_id}"),
            nans=whole(f"nan_count.{field_id}"),
            records=whole("record_count"),
        )
        return from_counts_and_bounds(whole(f"lower.{field_id}"), whole(f"upper.{field_id}"), counts, kind)

    return statistics


def up_to_sequence_number(numbers: pa.Array) -> FieldStatistics:
    """Return bounds of the last-updated sequence numbers of rows: none is newer than its file.

    A row without its own number has that of its file; a row that was rewritten has an older one. (spec: Row
    Lineage)
    """
    always, never = np.ones(len(numbers), np.bool_), np.zeros(len(numbers), np.bool_)
    unknown = column_of(pa.nulls(len(numbers), pa.int64()), LongType())
    return FieldStatistics(unknown, column_of(numbers, LongType()), always, never, always, exact=False)


def partition_statistics(entries: ManifestEntries, spec: PartitionSpec, schema: Schema) -> Statistics:
    """Find the value of a partition field in each file by field id; None for a field that manifests lack."""
    kinds = {s.field_id: s.transform.result_type(s.source_type) for s in spec_sources(spec, schema)}

    @cache
    def statistics(field_id: int) -> FieldStatistics | None:
        name = partition_column(field_id)
        if name not in entries or field_id not in kinds:
            return None
        return from_partition_values(entries[name].combine_chunks(), kinds[field_id])

    return statistics
