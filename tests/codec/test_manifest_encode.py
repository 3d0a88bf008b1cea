"""What encode_manifest writes: the schema that other engines know, and no manifest that would be wrong."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from tests.codec.cases import LOCATION, entry, header, table

from icefield.codec.avro.container import parse_header
from icefield.codec.manifest.columns import ALL
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.partition import avro_name, decimal_bytes
from icefield.codec.manifest.rows import ManifestEntries
from icefield.errors import InvalidInput
from icefield.types.datatypes import DecimalType, FixedType, IntegerType, ListType, NestedField, UUIDType

NUMBERS = {"sequence_number": 1, "file_sequence_number": 1}


def avro_schema(version: int, partition: Any = ()) -> dict[str, Any]:
    rows = table([entry(snapshot_id=1)], partition)
    data = encode_manifest(ManifestEntries.trusted(rows), header(version, partition=partition), partition, LOCATION)
    schema: dict[str, Any] = json.loads(parse_header(data, LOCATION).schema)
    return schema


def names(record: dict[str, Any]) -> list[tuple[str, int]]:
    return [(f["name"], f["field-id"]) for f in record["fields"]]


V2_DATA_FILE = [
    ("content", 134), ("file_path", 100), ("file_format", 101), ("partition", 102), ("record_count", 103),
    ("file_size_in_bytes", 104), ("column_sizes", 108), ("value_counts", 109), ("null_value_counts", 110),
    ("nan_value_counts", 137), ("lower_bounds", 125), ("upper_bounds", 128), ("key_metadata", 131),
    ("split_offsets", 132), ("equality_ids", 135), ("sort_order_id", 140), ("referenced_data_file", 143),
]  # fmt: skip


def test_the_v2_schema_is_that_of_the_reference_implementation() -> None:
    schema = avro_schema(2)
    assert schema["name"] == "manifest_entry"
    assert names(schema) == [
        ("status", 0), ("snapshot_id", 1), ("sequence_number", 3), ("file_sequence_number", 4), ("data_file", 2)
    ]  # fmt: skip
    data_file = schema["fields"][4]["type"]
    assert data_file["name"] == "r2"
    assert names(data_file) == V2_DATA_FILE
    fields = {f["name"]: f["type"] for f in data_file["fields"]}
    assert fields["content"] == "int"
    assert fields["partition"] == {"type": "record", "name": "r102", "fields": []}
    assert fields["lower_bounds"] == [
        "null",
        {
            "type": "array",
            "items": {
                "type": "record",
                "name": "k126_v127",
                "fields": [
                    {"name": "key", "type": "int", "field-id": 126},
                    {"name": "value", "type": "bytes", "field-id": 127},
                ],
            },
            "logicalType": "map",
        },
    ]
    assert fields["split_offsets"] == ["null", {"type": "array", "items": "long", "element-id": 133}]


def test_v1_and_v3_have_their_own_fields() -> None:
    v1, v3 = avro_schema(1), avro_schema(3)
    assert names(v1)[:-1] == [("status", 0), ("snapshot_id", 1)]
    v1_file = names(v1["fields"][-1]["type"])
    assert ("block_size_in_bytes", 105) in v1_file
    assert {"content", "equality_ids", "referenced_data_file"}.isdisjoint(name for name, _ in v1_file)
    v3_file = names(v3["fields"][-1]["type"])
    assert v3_file[-4:] == [
        ("first_row_id", 142), ("referenced_data_file", 143), ("content_offset", 144), ("content_size_in_bytes", 145)
    ]  # fmt: skip


def test_named_types_are_defined_once_and_fields_have_their_own_names() -> None:
    partition = [
        NestedField(1000, "a.b", DecimalType(10, 2)),
        NestedField(1001, "b", DecimalType(10, 2)),
        NestedField(1002, "u", UUIDType()),
        NestedField(1003, "f", FixedType(16)),
    ]
    record = next(f for f in avro_schema(2, partition)["fields"][-1]["type"]["fields"] if f["name"] == "partition")
    first, second, third, fourth = record["type"]["fields"]
    decimal = {
        "type": "fixed",
        "name": "decimal_10_2",
        "size": 5,
        "logicalType": "decimal",
        "precision": 10,
        "scale": 2,
    }
    assert first == {
        "name": "a_x2Eb",
        "type": ["null", decimal],
        "default": None,
        "iceberg-field-name": "a.b",
        "field-id": 1000,
    }
    assert second["type"] == ["null", "decimal_10_2"]
    assert third["type"][1]["name"] == "uuid_fixed"
    assert fourth["type"][1] == {"type": "fixed", "name": "fixed_16", "size": 16}


@pytest.mark.parametrize(
    ("name", "avro"),
    [("a", "a"), ("_1", "_1"), ("1a", "_1a"), ("a.b", "a_x2Eb"), ("ä1", "_xE41"), ("a b-c", "a_x20b_x2Dc"),
     ("☃", "_x2603"), ("🧊", "_xD83E_xDDCA"), ("%", "_x25"), ("9", "_9")],
)  # fmt: skip
def test_names_are_escaped_as_the_reference_implementation_does(name: str, avro: str) -> None:
    assert avro_name(name) == avro


def test_names_that_become_one_are_refused() -> None:
    with pytest.raises(InvalidInput, match="same name in Avro"):
        avro_schema(2, [NestedField(1000, "a.b", IntegerType()), NestedField(1001, "a_x2Eb", IntegerType())])


@pytest.mark.parametrize(("digits", "size"), [(1, 1), (2, 1), (3, 2), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16)])
def test_decimals_take_the_fewest_bytes(digits: int, size: int) -> None:
    assert decimal_bytes(digits) == size


def test_fields_that_the_file_needs_are_in_its_header() -> None:
    data = encode_manifest(ManifestEntries.trusted(table([entry()])), header(2), (), LOCATION)
    metadata = parse_header(data, LOCATION).metadata
    assert {k: v for k, v in metadata.items() if k != "avro.schema"} == {
        "avro.codec": b"deflate",
        "schema": header().schema_json.encode(),
        "schema-id": b"0",
        "partition-spec": b"[]",
        "partition-spec-id": b"0",
        "format-version": b"2",
        "content": b"data",
    }


def test_v1_writes_the_block_size_that_nobody_reads() -> None:
    data = encode_manifest(ManifestEntries.trusted(table([entry(snapshot_id=1)])), header(1), (), LOCATION)
    rows: list[Any] = list(fastavro.reader(io.BytesIO(data)))
    assert rows[0]["data_file"]["block_size_in_bytes"] == 67108864


@pytest.mark.parametrize(
    ("version", "row", "why"),
    [
        (2, entry(file_path=None), "required field 'file_path'"),
        (2, entry(content=None), "required field 'content'"),
        (1, entry(), "required field 'snapshot_id'"),
        (1, entry(snapshot_id=1, content=1), "cannot write content"),
        (1, entry(snapshot_id=1, equality_ids=[1]), "cannot write equality_ids"),
        (2, entry(content_offset=4), "cannot write content_offset"),
        (2, entry(first_row_id=4), "cannot write first_row_id"),
        (2, entry(status=0), "without their sequence_number"),
        (3, entry(status=2, sequence_number=1), "without their file_sequence_number"),
        (4, entry(), "format version 4"),
    ],
)
def test_entries_that_would_be_wrong_are_refused(version: int, row: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        encode_manifest(ManifestEntries.trusted(table([row])), header(version), (), LOCATION)


def test_columns_of_another_type_are_refused() -> None:
    rows = table([entry()])
    for column, why in (("status", "without a status"), ("record_count", "'record_count' as int64")):
        wrong = rows.set_column(rows.column_names.index(column), column, pa.array(["added"]))
        with pytest.raises(InvalidInput, match=why):
            encode_manifest(ManifestEntries.trusted(wrong), header(), (), LOCATION)


def test_partition_values_that_are_no_single_values_are_refused() -> None:
    nested = [NestedField(1000, "p", ListType(1, IntegerType()))]
    with pytest.raises(InvalidInput, match="partition value of type list"):
        encode_manifest(ManifestEntries.trusted(table([entry()])), header(), nested, LOCATION)


def test_columns_may_be_left_out_sliced_chunked_or_narrower() -> None:
    partition = [NestedField(1000, "p", UUIDType())]
    columns = ("status", "content", "file_path", "file_format", "record_count", "file_size_in_bytes", "split_offsets")
    rows = [entry(record_count=i, split_offsets=[i, i], **{"partition.1000": bytes([i] * 16)}) for i in range(6)]
    whole = table(rows, partition).select([*columns, "partition.1000"])
    uuids = whole["partition.1000"].cast(pa.uuid())
    whole = whole.set_column(whole.num_columns - 1, "partition.1000", uuids)
    whole = whole.set_column(0, "status", whole["status"].cast(pa.int8()))
    parts = pa.concat_tables([whole.slice(1, 2), whole.slice(4)])
    decoded = decode_manifest(
        encode_manifest(ManifestEntries.trusted(parts), header(partition=partition), partition, LOCATION), LOCATION, ALL
    )
    assert decoded["record_count"].to_pylist() == [1, 2, 4, 5]
    assert decoded["split_offsets"].to_pylist() == [[i, i] for i in (1, 2, 4, 5)]
    assert decoded["partition.1000"].to_pylist() == [bytes([i] * 16) for i in (1, 2, 4, 5)]


def test_formats_are_written_in_capitals() -> None:
    data = encode_manifest(ManifestEntries.trusted(table([entry(file_format="parquet")])), header(), (), LOCATION)
    assert decode_manifest(data, LOCATION)["file_format"].to_pylist() == ["PARQUET"]


def test_lists_under_null_are_not_written() -> None:
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 3], pa.int32()), pa.array([1, 2, 3]), mask=pa.array([True, False])
    )
    rows = table([entry(), entry()])
    rows = rows.set_column(rows.column_names.index("split_offsets"), "split_offsets", hidden)
    decoded = decode_manifest(encode_manifest(ManifestEntries.trusted(rows), header(), (), LOCATION), LOCATION, ALL)
    assert decoded["split_offsets"].to_pylist() == [None, [3]]
