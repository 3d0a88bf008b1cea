"""The partition values of selected files, from the manifests that list them; and as a constant column."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import partition_column
from icefield.errors import Unsupported
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.parquet.read.task import FileTask
from icefield.plan.entries_of_files import INHERITED, load_entries_of_files
from icefield.plan.partition.struct import partition_struct
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles
from icefield.types.arrow import arrow_type, python_values
from icefield.types.datatypes import NestedField, PrimitiveType, StructType, Type, Value
from icefield.types.metadata_columns import PARTITION_ID, with_metadata_columns
from icefield.types.schema import Schema


def readable_schema(metadata: TableMetadata, schema: Schema) -> Schema:
    """Return all columns that can be read from a version: its own, and metadata columns."""
    return with_metadata_columns(schema, partition_fields(metadata))


def partition_fields(metadata: TableMetadata) -> tuple[NestedField, ...]:
    """Return the fields of the column `_partition`; none if specs contradict each other."""
    try:
        return partition_struct(metadata).fields
    except Unsupported:
        return ()


def load_partition_values(
    context: ReadContext, metadata: TableMetadata, plan: ScanPlan, files: PlannedFiles
) -> Iterator[tuple[PartitionSpec, ManifestEntries]]:
    """Yield planned files, each batch of one spec, as their locations and one column per partition field."""
    for spec, entries in load_entries_of_files(context, metadata, plan, files, ManifestColumns(INHERITED)):
        yield spec, entries.select(["file_path", *(partition_column(f.field_id) for f in spec.fields)])


def load_partitions(
    context: ReadContext, metadata: TableMetadata, plan: ScanPlan, files: PlannedFiles
) -> pa.StructArray:
    """Return the partition of each file, as one struct for all specs, in the files' order. Raises Unsupported."""
    struct = partition_struct(metadata)
    kind = arrow_type(StructType(struct.fields))
    listed = list(load_partition_values(context, metadata, plan, files))
    paths = pa.chunked_array([entries.file_path.combine_chunks() for _, entries in listed], pa.string())
    values = pa.chunked_array([struct.array(entries, struct.fields) for _, entries in listed], kind)
    indices = pc.index_in(files.file_path.combine_chunks(), value_set=paths)
    if indices.null_count:
        # Appended files whose manifests were merged since.
        raise Unsupported(
            f"cannot determine _partition for {indices.null_count} file(s): their manifests no longer exist",
            hint="Select the columns that the table is partitioned by",
        )
    return values.combine_chunks().take(indices)


def open_tasks(
    context: ReadContext, metadata: TableMetadata, plan: ScanPlan, files: PlannedFiles, wanted: Schema
) -> Iterator[FileTask]:
    """Yield what a reader needs to know about files of a plan to read the wanted columns."""
    tasks = plan.tasks(files)
    if PARTITION_ID not in wanted.by_id or files.num_rows == 0:
        yield from tasks
        return
    fields = partition_struct(metadata).fields
    columns = load_partitions(context, metadata, plan, files).flatten()
    rows = zip(*(_values(column, f.type) for column, f in zip(columns, fields, strict=True)), strict=True)
    for task, values in zip(tasks, rows, strict=True):
        yield replace(task, partition=dict(zip((f.name for f in fields), values, strict=True)))


def _values(column: pa.Array, kind: Type) -> list[Value | None]:
    assert isinstance(kind, PrimitiveType), "partition values are primitive"
    return python_values(column, kind)
