"""Statistics of a snapshot, computed and set: distinct values of columns, and counts of partitions.

Files are written to the table's metadata directory, and removed if the commit certainly failed. (spec: Table
Statistics, Partition Statistics) Raises InvalidInput, StorageError, CommitConflict, CommitStateUnknown.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefield.codec.puffin.puffin import Blob, encode_puffin, footer_size
from icefield.codec.puffin.theta_sketch import THETA_SKETCH, ThetaSketch
from icefield.commit.actions.statistics import SetStatisticsFile
from icefield.commit.loop import OwnFiles
from icefield.commit.open_write import OpenWrite
from icefield.dml.head import TableHead
from icefield.errors import InvalidInput
from icefield.leases.folder import metadata_folder
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.model.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from icefield.plan.partition.struct import partition_struct
from icefield.storage.location import join_location
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import IntegerType, LongType, NestedField, PrimitiveType, StructType
from icefield.types.schema import Schema

NDV = "ndv"
# The columns of a partition statistics file after the partition and its spec. (spec: Partition Statistics File)
_COUNTS = (
    NestedField(3, "data_record_count", LongType(), required=True),
    NestedField(4, "data_file_count", IntegerType(), required=True),
    NestedField(5, "total_data_file_size_in_bytes", LongType(), required=True),
    NestedField(6, "position_delete_record_count", LongType()),
    NestedField(7, "position_delete_file_count", IntegerType()),
    NestedField(8, "equality_delete_record_count", LongType()),
    NestedField(9, "equality_delete_file_count", IntegerType()),
    NestedField(10, "total_record_count", LongType()),
    NestedField(11, "last_updated_at", LongType()),
    NestedField(12, "last_updated_snapshot_id", LongType()),
)
_VECTORS = NestedField(13, "dv_count", IntegerType(), required=True)


def measured_columns(schema: Schema, names: Sequence[str] | None) -> list[int]:
    """Return the ids of columns with single values; by default of all that are not inside another one."""
    if names is None:
        return [field.field_id for field in schema.fields if isinstance(field.type, PrimitiveType)]
    found = [schema.find_field(name) for name in names]
    for name, field in zip(names, found, strict=True):
        if not isinstance(field.type, PrimitiveType) or field.field_id in schema.repeated_ids:
            raise InvalidInput(f"column {name!r} has no single values")
    return list(dict.fromkeys(field.field_id for field in found))


def write_statistics(head: TableHead, snapshot: Snapshot, sketches: Mapping[int, ThetaSketch]) -> StatisticsFile:
    """Set the statistics file of a snapshot: a sketch of the values of each column, by field id."""
    blobs = [_blob(snapshot, field_id, sketch) for field_id, sketch in sketches.items()]
    data, _ = encode_puffin(blobs)
    described = tuple(
        BlobMetadata(b.type, b.snapshot_id, b.sequence_number, tuple(b.fields), dict(b.properties)) for b in blobs
    )
    metadata = head.load().metadata
    name = f"{snapshot.snapshot_id}-{head.backend.ambient.random_uuid()}.stats"
    location = join_location(metadata_folder(metadata), name)
    size = footer_size(data, location)
    file = StatisticsFile(snapshot.snapshot_id, location, len(data), size, described)
    _set(head, metadata, file, data)
    return file


def write_partition_statistics(
    head: TableHead, snapshot: Snapshot, partitions: pa.Table, vectors: pa.Table
) -> PartitionStatisticsFile:
    """Set the partition statistics file of a snapshot.

    partitions: the rows of the metadata table. vectors: the partition of each deletion vector.
    """
    metadata = head.load().metadata
    sink = pa.BufferOutputStream()
    pq.write_table(_partition_rows(metadata, partitions, vectors), sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    name = f"partition-stats-{snapshot.snapshot_id}-{head.backend.ambient.random_uuid()}.parquet"
    location = join_location(metadata_folder(metadata), name)
    file = PartitionStatisticsFile(snapshot.snapshot_id, location, len(data))
    _set(head, metadata, file, data)
    return file


def _blob(snapshot: Snapshot, field_id: int, sketch: ThetaSketch) -> Blob:
    count = {NDV: str(round(sketch.estimate))}
    number = snapshot.sequence_number
    return Blob(THETA_SKETCH, sketch.encode(), (field_id,), snapshot.snapshot_id, number, "zstd", count)


def _partition_rows(metadata: TableMetadata, partitions: pa.Table, vectors: pa.Table) -> pa.Table:
    """Return the rows of the file, in the order of partitions, nulls first."""
    fields = tuple(sorted(partition_struct(metadata).fields, key=lambda field: field.field_id))
    schema = Schema(
        (
            NestedField(1, "partition", StructType(fields), required=True),
            NestedField(2, "spec_id", IntegerType(), required=True),
            *_COUNTS,
            *((_VECTORS,) if metadata.has_row_ids else ()),
        )
    )
    counted = Counter(_key(row) for row in vectors.to_pylist())
    rows = [_partition_row(row, counted[_key(row)]) for row in partitions.to_pylist()]
    table = pa.Table.from_pylist(rows, arrow_schema(schema)).combine_chunks()
    parts = [pc.struct_field(table["partition"], at) for at in range(len(fields))]
    # Where nulls go is a key of its own, because pyarrow's option for it differs between versions.
    keys = {f"{at}{end}": key for at, part in enumerate(parts) for end, key in (("n", part.is_valid()), ("v", part))}
    order = pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys])
    return table.take(order)


def _key(row: Mapping[str, Any]) -> tuple[object, ...]:
    return (row["spec_id"], *row["partition"].values())


def _partition_row(row: Mapping[str, Any], vectors: int) -> dict[str, object]:
    files = row["position_delete_file_count"] - vectors
    has_delete_files = files > 0 or row["equality_delete_file_count"] > 0
    moment = row["last_updated_at"]
    return {
        **row,
        "data_record_count": row["record_count"],
        "data_file_count": row["file_count"],
        "position_delete_file_count": files,
        "dv_count": vectors,
        # Delete files may name a row twice, or none: only reading would tell.
        "total_record_count": None if has_delete_files else row["record_count"] - row["position_delete_record_count"],
        "last_updated_at": None if moment is None else round(moment.timestamp() * 1000),
    }


def _set(head: TableHead, metadata: TableMetadata, file: StatisticsFile | PartitionStatisticsFile, data: bytes) -> None:
    write = OpenWrite(head.backend)
    try:
        write.protect(head.committed(metadata), adds=[file.statistics_path])
        head.backend.store.put_new(file.statistics_path, data)
        head.commit([SetStatisticsFile(file)], OwnFiles([file.statistics_path], metadata, write=write))
    except BaseException:
        write.close()
        raise
