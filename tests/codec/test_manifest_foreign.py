"""Manifests of other writers: other field orders and names, missing ids, unknown fields, other unions and arrays."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.codec.avro_writer import AvroWriter, container
from tests.codec.cases import LOCATION, VALUES, Manifest, entry, header, manifests
from tests.effort import effort

from icefield.codec.manifest.columns import ALL, PLAN
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.partition import partition_record
from icefield.codec.manifest.schema import entry_schema_json
from icefield.errors import CorruptFile
from icefield.types.datatypes import NestedField

pytestmark = pytest.mark.usefixtures("engine")

EFFORT = settings(effort(120), suppress_health_check=[HealthCheck.function_scoped_fixture])

# One partition field of each type whose values Avro and Arrow have alike.
ALIKE = [
    (NestedField(1000 + i, f"p{1000 + i}", kind), draw)
    for i, (kind, draw) in enumerate(
        v for v in VALUES if str(v[0]) in ("boolean", "long", "string", "double", "fixed[5]")
    )
]
# Fields that the spec does not have, each with a value to write.
STRANGE: list[tuple[Any, Any]] = [
    ("string", "strange"),
    (["null", {"type": "array", "items": ["null", "double"]}], [1.5, None]),
    ({"type": "map", "values": {"type": "array", "items": "bytes"}}, {"k": [b"1", b"22"], "": []}),
    ({"type": "record", "name": "NAME", "fields": [{"name": "x", "type": "float"}, {"name": "y", "type": "null"}]},
     {"x": 2.0, "y": None}),
    ({"type": "enum", "name": "NAME", "symbols": ["red", "green"]}, 1),
    (["long", "null"], None),
    ({"type": "fixed", "name": "NAME", "size": 3}, b"abc"),
    ({"type": "array", "items": {"type": "array", "items": {"type": "map", "values": "boolean"}}}, [[{"t": True}], []]),
]  # fmt: skip


def avro_row(made: Manifest, row: dict[str, Any]) -> dict[str, Any]:
    """An entry as an Avro writer takes it."""
    flat = {name: row.get(name) for name in ALL.fields} | {f"strange{i}": value for i, (_, value) in enumerate(STRANGE)}
    for name, value in flat.items():
        if name.endswith(("counts", "sizes", "bounds")) and value is not None:
            flat[name] = [{"key": k, "value": v} for k, v in value]
    partition = {f.name: row[f"partition.{f.field_id}"] for f in made.partition}
    return flat | {"data_file": flat | {"partition": partition}}


def mangle(record: dict[str, Any], rng: Random, *, keep_ids: bool) -> None:
    """Change a record's schema so that the rows' bytes change but not what they say."""
    for field in record["fields"]:
        field["was"] = field["name"]
        if keep_ids:
            field["name"] = f"n{rng.randrange(10**9)}"
        else:
            field.pop("field-id")
        if isinstance(field["type"], list) and rng.random() < 0.5:
            field["type"].reverse()
            field.pop("default")
        elif isinstance(field["type"], dict) and field["type"]["type"] == "record":
            mangle(field["type"], rng, keep_ids=keep_ids)
    if record["name"] != "r102":
        for index in rng.sample(range(len(STRANGE)), 2):
            named = json.loads(json.dumps(STRANGE[index][0]).replace("NAME", f"x{rng.randrange(10**9)}"))
            field = {"name": f"s{rng.randrange(10**9)}", "was": f"strange{index}", "type": named}
            record["fields"].append(field | ({"field-id": 9000 + index} if rng.random() < 0.5 else {}))
    rng.shuffle(record["fields"])


@EFFORT
@given(manifests(2, ALIKE), st.integers(0, 2**32), st.integers(1, 3), st.booleans(), st.booleans())
def test_any_layout_gives_the_same_table(made: Manifest, seed: int, run: int, sized: bool, keep_ids: bool) -> None:
    schema = json.loads(entry_schema_json(2, partition_record(made.partition)))
    mangle(schema, Random(seed), keep_ids=keep_ids)
    metadata = header(2, partition=made.partition).metadata()
    data = AvroWriter(run, sized).file(schema, [avro_row(made, row) for row in made.rows], metadata)
    expected = made.table
    assert decode_manifest(data, LOCATION, ALL).select(expected.column_names).table.equals(expected)
    one = decode_manifest(data, LOCATION, PLAN.with_statistics([3]))
    assert one["lower.3"].to_pylist() == [dict(row["lower_bounds"] or ()).get(3) for row in made.rows]


def test_v1_of_the_reference_implementation_has_nulls_for_what_v1_lacks() -> None:
    schema = json.loads(entry_schema_json(1, partition_record(())))
    row = dict.fromkeys(ALL.fields) | entry(snapshot_id=7)
    row |= {"data_file": row | {"partition": {}, "block_size_in_bytes": 67108864}}
    decoded = decode_manifest(AvroWriter().file(schema, [row], {}), LOCATION, ALL)
    absent = ("content", "sequence_number", "file_sequence_number", "equality_ids", "first_row_id")
    assert [decoded[name].to_pylist() for name in absent] == [[None]] * len(absent)
    assert decoded["snapshot_id"].to_pylist() == [7]


@pytest.mark.parametrize("missing", ["status", "file_path", "file_format", "record_count", "file_size_in_bytes"])
def test_an_entry_without_what_every_version_requires_is_corrupt(missing: str) -> None:
    schema = json.loads(entry_schema_json(2, partition_record(())))
    for record in (schema, schema["fields"][-1]["type"]):
        record["fields"] = [f for f in record["fields"] if f["name"] != missing]
    row = dict.fromkeys(ALL.fields) | entry()
    data = AvroWriter().file(schema, [row | {"data_file": row | {"partition": {}}}], {})
    with pytest.raises(CorruptFile, match=f"no {missing}"):
        decode_manifest(data, LOCATION)


def test_only_status_and_data_file_are_enough() -> None:
    schema = json.loads(entry_schema_json(2, partition_record(())))
    schema["fields"] = [f for f in schema["fields"] if f["name"] in ("status", "data_file")]
    row = dict.fromkeys(ALL.fields) | entry()
    decoded = decode_manifest(AvroWriter().file(schema, [row | {"data_file": row | {"partition": {}}}], {}), LOCATION)
    assert decoded["sequence_number"].to_pylist() == [None]
    assert decoded["file_path"].to_pylist() == ["s3://lake/data/0.parquet"]


def test_decimals_as_bytes_of_any_length_are_read() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    schema = json.loads(entry_schema_json(2, partition_record(())))
    partition = next(f for f in schema["fields"][-1]["type"]["fields"] if f["name"] == "partition")
    partition["type"]["fields"] = [{"name": "d", "type": ["null", decimal], "field-id": 1000}]
    row = dict.fromkeys(ALL.fields) | entry()
    blobs = [b"\x00", b"\xff", b"\xff\x85", b"\x00\x00\x7f\xff\xff\xff", None]
    rows = [row | {"data_file": row | {"partition": {"d": blob}}} for blob in blobs]
    decoded = decode_manifest(AvroWriter().file(schema, rows, {}), LOCATION)
    assert [str(v) for v in decoded["partition.1000"].to_pylist()] == ["0.00", "-0.01", "-1.23", "21474836.47", "None"]


def test_values_of_maps_may_be_optional() -> None:
    schema = json.loads(entry_schema_json(2, partition_record(())))
    fields = {f["name"]: f for f in schema["fields"][-1]["type"]["fields"]}
    for name in ("lower_bounds", "value_counts"):
        value = fields[name]["type"][1]["items"]["fields"][1]
        value["type"] = [value["type"], "null"]
    row: dict[str, Any] = dict.fromkeys(ALL.fields) | entry()
    bounds: list[Any] = [{"key": 1, "value": None}, {"key": 2, "value": b"x"}]
    counts: list[Any] = [{"key": 2, "value": 5}, {"key": 1, "value": None}]
    data_file: dict[str, Any] = {**row, "partition": {}, "lower_bounds": bounds, "value_counts": counts}
    data = AvroWriter().file(schema, [row | {"data_file": data_file}], {})
    decoded = decode_manifest(data, LOCATION, PLAN.with_statistics([1, 2]))
    assert [decoded[f"lower.{i}"].to_pylist() for i in (1, 2)] == [[None], [b"x"]]
    assert [decoded[f"value_count.{i}"].to_pylist() for i in (1, 2)] == [[None], [5]]
    assert decode_manifest(data, LOCATION, ALL)["lower_bounds"].to_pylist() == [[(1, None), (2, b"x")]]


@pytest.mark.parametrize(
    ("field", "kind", "why"),
    [
        ("lower_bounds", {"type": "map", "values": "bytes"}, "not a map"),
        ("lower_bounds", {"type": "array", "items": "bytes"}, "not a map"),
        ("file_path", "long", "holds long, expected string"),
        ("record_count", "string", "holds string, expected int64"),
        ("record_count", ["null", "long", "string"], "union"),
        ("record_count", "unheard", "does not define"),
        ("split_offsets", {"type": "array", "items": "null"}, "no bytes"),
    ],
)
def test_types_that_make_no_sense_are_corrupt(field: str, kind: Any, why: str) -> None:
    schema = json.loads(entry_schema_json(2, partition_record(())))
    for each in schema["fields"][-1]["type"]["fields"]:
        if each["name"] == field:
            each["type"] = kind
    with pytest.raises(CorruptFile, match=why):
        decode_manifest(
            container(json.dumps(schema), []), LOCATION, PLAN.with_statistics([1]) if "bounds" in field else ALL
        )


@pytest.mark.parametrize("text", ["", "[]", '"int"', "{", "[" * 100_000, '{"type":"record","name":"a"}', "1"])
def test_schemas_that_are_none_are_corrupt(text: str) -> None:
    with pytest.raises(CorruptFile):
        decode_manifest(container(text, []), LOCATION)


def test_schemas_that_never_end_are_corrupt() -> None:
    itself = {"type": "record", "name": "a", "fields": [{"name": "x", "type": ["null", "a"]}]}
    twice: Any = {"type": "record", "name": "z", "fields": [{"name": "x", "type": "int"}]}
    for depth in range(14):
        fields = [{"name": "l", "type": twice}, {"name": "r", "type": twice["name"]}]
        twice = {"type": "record", "name": f"r{depth}", "fields": fields}
    for schema in (itself, twice):
        with pytest.raises(CorruptFile, match="nested too deeply or too large"):
            decode_manifest(container(json.dumps(schema), []), LOCATION)


def test_a_block_with_more_rows_than_bytes_is_refused_before_memory_is_taken() -> None:
    schema = entry_schema_json(2, partition_record(()))
    with pytest.raises(CorruptFile, match="more rows than its size allows"):
        decode_manifest(container(schema, [(2**62, b"abc")]), LOCATION)
