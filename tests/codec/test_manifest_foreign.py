"""Manifests of other writers: other field orders and names, missing ids, unknown fields, other unions and arrays."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icefield.codec.manifest import decode_manifest
from icefield.codec.manifest_columns import ALL, PLAN
from icefield.codec.manifest_encode import encode_manifest
from icefield.codec.manifest_partition import partition_record
from icefield.codec.manifest_schema import entry_schema_json
from icefield.errors import CorruptFile
from icefield.types.datatypes import BooleanType, DoubleType, LongType, NestedField, StringType
from tests.codec.avro_writer import AvroWriter
from tests.codec.cases import COUNTS, INTS, LOCATION, TEXTS, entries, entry, header, plain, table

pytestmark = pytest.mark.usefixtures("engine")

EFFORT = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

PARTITION = (
    NestedField(1000, "p1000", LongType()),
    NestedField(1001, "p1001", StringType()),
    NestedField(1002, "p1002", BooleanType()),
    NestedField(1003, "p1003", DoubleType()),
)
VALUES = (COUNTS, TEXTS, st.booleans(), st.floats(allow_nan=False))

# Fields that the spec does not have, each with a value to write.
STRANGE: list[tuple[Any, Any]] = [
    ("string", "strange"),
    (["null", {"type": "array", "items": ["null", "double"]}], [1.5, None]),
    ({"type": "map", "values": {"type": "array", "items": "bytes"}}, {"k": [b"1", b"22"], "": []}),
    ({"type": "record", "name": "strange", "fields": [{"name": "x", "type": "float"}, {"name": "y", "type": "null"}]},
     {"x": 2.0, "y": None}),
    ({"type": "enum", "name": "colours", "symbols": ["red", "green"]}, 1),
    (["long", "null"], None),
    ({"type": "fixed", "name": "three", "size": 3}, b"abc"),
    ({"type": "array", "items": {"type": "array", "items": {"type": "map", "values": "boolean"}}}, [[{"t": True}], []]),
]


def avro_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries as an Avro writer takes them."""
    made = []
    for row in rows:
        flat = {
            name: [{"key": k, "value": v} for k, v in value] if name.endswith(("counts", "sizes", "bounds")) and value is not None else value
            for name, value in row.items()
        }
        partition = {f.name: row[f"partition.{f.field_id}"] for f in PARTITION}
        made.append(flat | {"data_file": flat | {"partition": partition}})
    return made
