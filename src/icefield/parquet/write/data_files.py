"""Written data files as columns of manifest entries, one row per file."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from icefield.codec.manifest.rows import DataFiles
from icefield.codec.manifest.schema import DATA, PARQUET, data_file_arrow_schema, partition_column
from icefield.model.partition import PartitionSpec
from icefield.parquet.metrics import FileMetrics
from icefield.types.datatypes import Type, UUIDType, Value
from icefield.types.schema import Schema

MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


@dataclass(frozen=True)
class DataFile:
    """A data file; `key` is its partition. A file without field ids is read by column names.

    sort_order_id: the order that its rows are known to have.
    """

    location: str
    key: tuple[Value | None, ...]
    record_count: int
    size_bytes: int
    metrics: FileMetrics
    has_ids: bool = True
    sort_order_id: int | None = None


def as_columns(files: Sequence[DataFile], spec: PartitionSpec, schema: Schema) -> DataFiles:
    """Return the files of one spec as columns."""
    partition = spec.columns(schema)
    columns: dict[str, Sequence[object]] = {
        "content": [DATA] * len(files),
        "file_path": [f.location for f in files],
        "file_format": [PARQUET] * len(files),
        "record_count": [f.record_count for f in files],
        "file_size_in_bytes": [f.size_bytes for f in files],
        "split_offsets": [f.metrics.split_offsets for f in files],
        "sort_order_id": [f.sort_order_id for f in files],
    }
    for name in MAPS:
        columns[name] = [list(getattr(f.metrics, name).items()) for f in files]
    for position, column in enumerate(partition):
        values = [f.key[position] for f in files]
        columns[partition_column(column.field_id)] = _partition_values(values, column.type)
    wanted = data_file_arrow_schema(partition)
    nothing = [None] * len(files)
    arrays = [pa.array(columns.get(f.name, nothing), f.type) for f in wanted]
    return DataFiles(pa.Table.from_arrays(arrays, schema=wanted))


def no_data_files(spec: PartitionSpec, schema: Schema) -> DataFiles:
    """Return the columns of a spec's files, without files."""
    return DataFiles(data_file_arrow_schema(spec.columns(schema)).empty_table())


def _partition_values(values: Sequence[Value | None], kind: Type) -> Sequence[object]:
    if isinstance(kind, UUIDType):
        return [v.bytes if isinstance(v, uuid.UUID) else None for v in values]
    return values
