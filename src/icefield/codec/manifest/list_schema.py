"""The contents of a manifest list: its fields with their ids per format version, in Arrow and in Avro.

(spec: Manifest Lists)
"""

import json
from functools import cache, lru_cache

import pyarrow as pa

from icefield.codec.avro.program import Program, Wanted, compile_program
from icefield.codec.avro.schema import ROOT_ID, Record, parse_schema
from icefield.codec.manifest.known_fields import Known, field_json

FIELD_SUMMARY = pa.struct(
    [
        pa.field("contains_null", pa.bool_(), nullable=False),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.binary()),
        pa.field("upper_bound", pa.binary()),
    ]
)
SUMMARY_IDS = {"contains_null": 509, "contains_nan": 518, "lower_bound": 510, "upper_bound": 511}
_PARTITIONS_ID = 507

# In the order of Iceberg Java; its v1 order differs, which does not matter to readers.
FIELDS = (
    Known(500, "manifest_path", pa.string(), required=(1, 2, 3)),
    Known(501, "manifest_length", pa.int64(), required=(1, 2, 3)),
    Known(502, "partition_spec_id", pa.int32(), required=(1, 2, 3)),
    Known(517, "content", pa.int32(), required=(2, 3)),
    Known(515, "sequence_number", pa.int64(), required=(2, 3)),
    Known(516, "min_sequence_number", pa.int64(), required=(2, 3)),
    Known(503, "added_snapshot_id", pa.int64(), required=(1, 2, 3)),
    Known(504, "added_files_count", pa.int32(), required=(2, 3), optional=(1,)),
    Known(505, "existing_files_count", pa.int32(), required=(2, 3), optional=(1,)),
    Known(506, "deleted_files_count", pa.int32(), required=(2, 3), optional=(1,)),
    Known(512, "added_rows_count", pa.int64(), required=(2, 3), optional=(1,)),
    Known(513, "existing_rows_count", pa.int64(), required=(2, 3), optional=(1,)),
    Known(514, "deleted_rows_count", pa.int64(), required=(2, 3), optional=(1,)),
    Known(507, "partitions", pa.list_(FIELD_SUMMARY), optional=(1, 2, 3), parts=(508, *SUMMARY_IDS.values())),
    Known(519, "key_metadata", pa.binary(), optional=(1, 2, 3)),
    Known(520, "first_row_id", pa.int64(), optional=(3,)),
)
MANIFEST_LIST_ARROW_SCHEMA = pa.schema([pa.field(f.name, f.kind) for f in FIELDS])

# Some writers omit the ids; older ones have other names for three counts.
_NAMES = {(ROOT_ID, f.name): f.field_id for f in FIELDS} | {
    (ROOT_ID, "added_data_files_count"): 504,
    (ROOT_ID, "existing_data_files_count"): 505,
    (ROOT_ID, "deleted_data_files_count"): 506,
}
_SUMMARY_NAMES = {(parent, name): i for name, i in SUMMARY_IDS.items() for parent in (_PARTITIONS_ID, 508)}


@cache
def list_schema_json(version: int) -> str:
    """Render the Avro schema of a manifest list."""
    fields = [field_json(f, version) for f in FIELDS if f.is_in(version)]
    return json.dumps({"type": "record", "name": "manifest_file", "fields": fields}, separators=(",", ":"))


@cache
def list_record(version: int) -> Record:
    """Return the Avro schema of a manifest list."""
    return parse_schema(list_schema_json(version).encode(), {})


@lru_cache(maxsize=64)
def list_program(schema: bytes) -> Program:
    """Compile the program that reads all columns of files with this Avro schema. Raises ValueError."""
    wanted = Wanted(values=frozenset((ROOT_ID, f.field_id) for f in FIELDS))
    return compile_program(parse_schema(schema, _NAMES | _SUMMARY_NAMES), wanted)
