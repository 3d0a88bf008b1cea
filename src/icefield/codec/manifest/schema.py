"""The contents of a manifest: its fields with their ids per format version, as Arrow columns and as an Avro schema.

(spec: Manifests, Manifest Entry Fields, Data File Fields.) The Avro records have the names that Iceberg Java gives
them, because some readers depend on them.
"""

import json
from collections.abc import Sequence
from functools import cache

import pyarrow as pa

from icefield.codec.avro.arrow import arrow_type
from icefield.codec.avro.program import Path
from icefield.codec.avro.schema import ROOT_ID, Record, Value
from icefield.codec.manifest.known_fields import Known, field_json
from icefield.codec.manifest.partition import partition_json, partition_record
from icefield.types.datatypes import NestedField

EXISTING, ADDED, DELETED = 0, 1, 2
DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
PARQUET, PUFFIN = "PARQUET", "PUFFIN"

DATA_FILE_ID, PARTITION_ID = 2, 102
PARTITION_PREFIX = "partition."
_PARTITION_HERE = "the type of the partition"

COUNTS, BOUNDS = pa.map_(pa.int32(), pa.int64()), pa.map_(pa.int32(), pa.binary())
LONGS, INTS = pa.list_(pa.int64()), pa.list_(pa.int32())


# In the order of Iceberg Java; data_file follows the entry's fields, the partition the file format.
ENTRY_FIELDS = (
    Known(0, "status", pa.int32(), required=(1, 2, 3)),
    Known(1, "snapshot_id", pa.int64(), required=(1,), optional=(2, 3)),
    Known(3, "sequence_number", pa.int64(), optional=(2, 3)),
    Known(4, "file_sequence_number", pa.int64(), optional=(2, 3)),
)
DATA_FILE_FIELDS = (
    Known(134, "content", pa.int32(), required=(2, 3)),
    Known(100, "file_path", pa.string(), required=(1, 2, 3)),
    Known(101, "file_format", pa.string(), required=(1, 2, 3)),
    Known(103, "record_count", pa.int64(), required=(1, 2, 3)),
    Known(104, "file_size_in_bytes", pa.int64(), required=(1, 2, 3)),
    Known(105, "block_size_in_bytes", pa.int64(), required=(1,)),
    Known(108, "column_sizes", COUNTS, optional=(1, 2, 3), parts=(117, 118)),
    Known(109, "value_counts", COUNTS, optional=(1, 2, 3), parts=(119, 120)),
    Known(110, "null_value_counts", COUNTS, optional=(1, 2, 3), parts=(121, 122)),
    Known(137, "nan_value_counts", COUNTS, optional=(1, 2, 3), parts=(138, 139)),
    Known(125, "lower_bounds", BOUNDS, optional=(1, 2, 3), parts=(126, 127)),
    Known(128, "upper_bounds", BOUNDS, optional=(1, 2, 3), parts=(129, 130)),
    Known(131, "key_metadata", pa.binary(), optional=(1, 2, 3)),
    Known(132, "split_offsets", LONGS, optional=(1, 2, 3), parts=(133,)),
    Known(135, "equality_ids", INTS, optional=(2, 3), parts=(136,)),
    Known(140, "sort_order_id", pa.int32(), optional=(1, 2, 3)),
    Known(142, "first_row_id", pa.int64(), optional=(3,)),
    Known(143, "referenced_data_file", pa.string(), optional=(2, 3)),
    Known(144, "content_offset", pa.int64(), optional=(3,)),
    Known(145, "content_size_in_bytes", pa.int64(), optional=(3,)),
)

PATHS: dict[str, Path] = {f.name: (ROOT_ID, f.field_id) for f in ENTRY_FIELDS} | {
    f.name: (DATA_FILE_ID, f.field_id) for f in DATA_FILE_FIELDS
}
KINDS: dict[str, pa.DataType] = {f.name: f.kind for f in (*ENTRY_FIELDS, *DATA_FILE_FIELDS)}
# Some writers omit the ids; then fields are matched by the names in the spec.
NAMES: dict[tuple[int, str], int] = {(path[0], name): path[1] for name, path in PATHS.items()} | {
    (ROOT_ID, "data_file"): DATA_FILE_ID,
    (DATA_FILE_ID, "partition"): PARTITION_ID,
}


def data_file_arrow_schema(partition: Sequence[NestedField] = ()) -> pa.Schema:
    """Return the Arrow schema of data files and delete files, one column per partition field."""
    return pa.schema(_data_file_columns(partition_record(partition)))


def entry_arrow_schema(partition: Sequence[NestedField] = ()) -> pa.Schema:
    """Return the Arrow schema of manifest entries, as decoded for ALL and as taken by `encode_manifest`."""
    entry = [pa.field(f.name, f.kind) for f in ENTRY_FIELDS]
    return pa.schema([*entry, *_data_file_columns(partition_record(partition))])


def partition_column(field_id: int) -> str:
    """Return the name of a partition field's column."""
    return f"{PARTITION_PREFIX}{field_id}"


def entry_schema_json(version: int, partition: Record) -> str:
    """Render the Avro schema of a manifest."""
    before, after = _around_partition(version)
    return before + _render(partition_json(partition)) + after


@cache
def _around_partition(version: int) -> tuple[str, str]:
    """Render the schema but for the type of the partition: what is before it, and what is after it."""
    data_file = [field_json(f, version) for f in DATA_FILE_FIELDS if f.is_in(version)]
    after = 1 + next(i for i, f in enumerate(data_file) if f["name"] == "file_format")
    data_file.insert(after, {"name": "partition", "type": _PARTITION_HERE, "field-id": PARTITION_ID})
    entry = [field_json(f, version) for f in ENTRY_FIELDS if f.is_in(version)]
    record = {"type": "record", "name": "r2", "fields": data_file}
    entry.append({"name": "data_file", "type": record, "field-id": DATA_FILE_ID})
    rendered = _render({"type": "record", "name": "manifest_entry", "fields": entry})
    before, _, rest = rendered.partition(_render(_PARTITION_HERE))
    return before, rest


def _render(schema: object) -> str:
    return json.dumps(schema, separators=(",", ":"))


def _data_file_columns(partition: Record) -> list[pa.Field]:
    columns: list[pa.Field] = []
    for known in DATA_FILE_FIELDS:
        if known.name != "block_size_in_bytes":
            columns.append(pa.field(known.name, known.kind))
        if known.name == "file_format":
            columns += [
                pa.field(partition_column(f.field_id), arrow_type(f.node))
                for f in partition.fields
                if isinstance(f.node, Value) and f.field_id is not None
            ]
    return columns
