"""Manifest lists: what is encoded is decoded, by us and by others; splicing is the same as rewriting."""

import io
import json
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.codec.avro_writer import AvroWriter, container
from tests.codec.cases import LOCATION, manifest_row
from tests.effort import effort

from icefield.codec.avro.compression import CODECS
from icefield.codec.avro.container import BLOCK_BYTES, iterate_blocks, parse_header
from icefield.codec.manifest.list import (
    ManifestListHeader,
    decode_manifest_list,
    encode_manifest_list,
    is_spliceable,
    partition_summaries,
    splice_manifest_list,
)
from icefield.codec.manifest.list_schema import FIELDS, MANIFEST_LIST_ARROW_SCHEMA, list_schema_json
from icefield.codec.manifest.rows import Manifests
from icefield.errors import CorruptFile, InvalidInput

pytestmark = pytest.mark.usefixtures("engine")

EFFORT = settings(effort(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
HEADERS = {
    1: ManifestListHeader(1, None, 0, 1),
    2: ManifestListHeader(2, 1, 5, 2),
    3: ManifestListHeader(3, 2, 6, 3, first_row_id=1000),
}


def make_rows(seed: int, version: int, count: int | None = None) -> pa.Table:
    rng = Random(seed)
    rows = [manifest_row(rng) for _ in range(rng.randint(0, 5) if count is None else count)]
    for row in rows:
        if version < 3:
            row["first_row_id"] = None
        elif row["content"] == 0 and row["first_row_id"] is None:
            row["first_row_id"] = rng.getrandbits(20)
        if version < 2:
            row |= {"content": 0, "sequence_number": 0, "min_sequence_number": 0}
    return pa.Table.from_pylist(rows, MANIFEST_LIST_ARROW_SCHEMA)


SEEDS = st.integers(0, 2**32)


@EFFORT
@given(SEEDS, st.integers(1, 3), st.sampled_from(CODECS))
def test_decode_gives_back_what_was_encoded(seed: int, version: int, codec: str) -> None:
    rows = make_rows(seed, version)
    data = encode_manifest_list(Manifests.trusted(rows), HEADERS[version], LOCATION, codec)
    assert decode_manifest_list(data, LOCATION).table.equals(rows)


@EFFORT
@given(SEEDS, st.integers(1, 3))
def test_every_value_is_what_fastavro_reads(seed: int, version: int) -> None:
    rows = make_rows(seed, version)
    read = list(fastavro.reader(io.BytesIO(encode_manifest_list(Manifests.trusted(rows), HEADERS[version], LOCATION))))
    names = [known.name for known in FIELDS if known.is_in(version)]
    assert read == rows.select(names).to_pylist()


@EFFORT
@given(SEEDS, st.integers(1, 3), st.integers(1, 2), st.booleans())
def test_any_layout_gives_the_same_table(seed: int, version: int, run: int, sized: bool) -> None:
    rows, rng = make_rows(seed, version), Random(seed)
    schema = json.loads(list_schema_json(version))
    for field in schema["fields"]:
        if rng.random() < 0.5:
            field.pop("field-id")
        else:
            field |= {"was": field["name"], "name": f"n{field['field-id']}"}
        if isinstance(field["type"], list) and rng.random() < 0.5:
            field["type"].reverse()
    summary = next(f for f in schema["fields"] if f.get("was", f["name"]) == "partitions")["type"]
    items = next(t for t in summary if t != "null")["items"]
    rng.shuffle(items["fields"])
    rng.shuffle(schema["fields"])
    data = AvroWriter(run, sized).file(schema, rows.to_pylist(), {})
    assert decode_manifest_list(data, LOCATION).table.equals(rows)


def test_v1_lists_have_defaults_and_may_lack_counts() -> None:
    needed = ("manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id")
    schema = json.loads(list_schema_json(1))
    schema["fields"] = [f for f in schema["fields"] if f["name"] in (*needed, "added_files_count")]
    schema["fields"][-1] |= {"name": "added_data_files_count"}
    row: dict[str, Any] = {"manifest_path": "m", "manifest_length": 9, "partition_spec_id": 0, "added_snapshot_id": 4}
    data = AvroWriter().file(schema, [row | {"added_data_files_count": None}], {})
    (decoded,) = decode_manifest_list(data, LOCATION).to_pylist()
    assert decoded == dict.fromkeys(MANIFEST_LIST_ARROW_SCHEMA.names) | row | {
        "content": 0,
        "sequence_number": 0,
        "min_sequence_number": 0,
    }


def test_the_old_names_of_counts_are_known_without_ids() -> None:
    schema = json.loads(list_schema_json(1).replace("_files_count", "_data_files_count"))
    for field in schema["fields"]:
        field.pop("field-id")
    row: dict[str, Any] = {f["name"]: None for f in schema["fields"]} | {"deleted_data_files_count": 3}
    row |= {"manifest_path": "m", "manifest_length": 9, "partition_spec_id": 0, "added_snapshot_id": 4}
    decoded = decode_manifest_list(AvroWriter().file(schema, [row], {}), LOCATION)
    assert decoded["deleted_files_count"].to_pylist() == [3]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_header_has_the_keys_of_the_reference_implementation(version: int) -> None:
    data = encode_manifest_list(Manifests.trusted(make_rows(0, version)), HEADERS[version], LOCATION)
    metadata = {k: v.decode() for k, v in parse_header(data, LOCATION).metadata.items() if not k.startswith("avro")}
    expected = {
        1: {"snapshot-id": "1", "parent-snapshot-id": "null", "format-version": "1"},
        2: {"snapshot-id": "2", "parent-snapshot-id": "1", "sequence-number": "5", "format-version": "2"},
        3: {
            "snapshot-id": "3",
            "parent-snapshot-id": "2",
            "sequence-number": "6",
            "first-row-id": "1000",
            "format-version": "3",
        },
    }
    assert metadata == expected[version]


def test_the_schema_is_that_of_the_reference_implementation() -> None:
    schema = json.loads(list_schema_json(2))
    assert schema["name"] == "manifest_file"
    assert [f["field-id"] for f in schema["fields"]] == [
        500, 501, 502, 517, 515, 516, 503, 504, 505, 506, 512, 513, 514, 507, 519
    ]  # fmt: skip
    partitions = schema["fields"][13]["type"][1]
    assert (partitions["element-id"], partitions["items"]["name"]) == (508, "r508")
    assert [(f["name"], f["field-id"], f["type"]) for f in partitions["items"]["fields"]] == [
        ("contains_null", 509, "boolean"),
        ("contains_nan", 518, ["null", "boolean"]),
        ("lower_bound", 510, ["null", "bytes"]),
        ("upper_bound", 511, ["null", "bytes"]),
    ]


@EFFORT
@given(SEEDS, SEEDS, st.integers(1, 3), st.sampled_from(CODECS))
def test_splicing_puts_new_rows_before_old_ones(seed: int, other: int, version: int, codec: str) -> None:
    old, new = make_rows(seed, version), make_rows(other, version)
    previous = encode_manifest_list(Manifests.trusted(old), HEADERS[version], "old", codec)
    data = splice_manifest_list(previous, "old", Manifests.trusted(new), HEADERS[version], "new")
    assert decode_manifest_list(data, "new").table.equals(pa.concat_tables([new, old]))
    header = parse_header(data, "new")
    assert header.codec == codec
    assert header.metadata["snapshot-id"] == str(version).encode()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_only_a_list_of_the_same_version_and_layout_can_be_spliced(version: int) -> None:
    for other in (1, 2, 3):
        data = encode_manifest_list(Manifests.trusted(make_rows(1, other, 2)), HEADERS[other], LOCATION)
        assert is_spliceable(data, LOCATION, version) == (other == version)
    schema = json.loads(list_schema_json(version))
    foreign = AvroWriter().file(schema | {"doc": "of another writer"}, make_rows(1, version, 2).to_pylist(), {})
    assert not is_spliceable(foreign, LOCATION, version)


def test_many_splices_do_not_leave_many_blocks() -> None:
    rows = make_rows(1, 2, 3)
    data, expected = encode_manifest_list(Manifests.trusted(rows), HEADERS[2], LOCATION), [rows]
    for seed in range(40):
        new = make_rows(seed, 2, 1)
        data = splice_manifest_list(data, LOCATION, Manifests.trusted(new), HEADERS[2], LOCATION)
        expected.insert(0, new)
    assert decode_manifest_list(data, LOCATION).table.equals(pa.concat_tables(expected))
    assert len(list(iterate_blocks(data, parse_header(data, LOCATION), LOCATION))) == 1


def test_full_blocks_are_copied_as_they_are() -> None:
    rows = make_rows(1, 2, 2)
    long_path = pa.array(["x" * BLOCK_BYTES, "y" * BLOCK_BYTES])
    previous = encode_manifest_list(
        Manifests.trusted(rows.set_column(0, "manifest_path", long_path)), HEADERS[2], LOCATION
    )
    header = parse_header(previous, LOCATION)
    data = splice_manifest_list(previous, LOCATION, Manifests.trusted(rows), HEADERS[2], LOCATION)
    assert data.endswith(previous[header.end :])
    assert decode_manifest_list(data, LOCATION).num_rows == 4


def test_splicing_onto_a_damaged_list_is_refused() -> None:
    previous = encode_manifest_list(Manifests.trusted(make_rows(1, 2, 3)), HEADERS[2], "old", "deflate")
    for damaged in (
        previous[:-1],
        previous[:-30] + b"\xff" * 14 + previous[-16:],
        previous.replace(b"deflate", b"deflute"),
    ):
        with pytest.raises(CorruptFile) as error:
            splice_manifest_list(damaged, "old", Manifests.trusted(make_rows(2, 2, 1)), HEADERS[2], "new")
        assert error.value.location == "old"


def test_summaries_of_one_field_are_columns() -> None:
    def summary(**values: Any) -> dict[str, Any]:
        return {"contains_null": False, "contains_nan": None, "lower_bound": None, "upper_bound": None} | values

    base = make_rows(1, 2, 4).drop_columns(["partitions"])
    column = pa.array(
        [[summary(lower_bound=b"a"), summary(contains_null=True)], None, [summary(upper_bound=b"z")], []],
        MANIFEST_LIST_ARROW_SCHEMA.field("partitions").type,
    )
    rows = base.append_column("partitions", column)
    first, second = partition_summaries(Manifests.trusted(rows), 0), partition_summaries(Manifests.trusted(rows), 1)
    assert first["lower_bound"].to_pylist() == [b"a", None, None, None]
    assert first["upper_bound"].to_pylist() == [None, None, b"z", None]
    assert first["contains_null"].to_pylist() == [False, None, False, None]
    assert second["contains_null"].to_pylist() == [True, None, None, None]
    sliced = partition_summaries(Manifests.trusted(rows.slice(2)), 0)
    assert sliced["upper_bound"].to_pylist() == [b"z", None]


@pytest.mark.parametrize("name", ["manifest_path", "sequence_number", "added_files_count"])
def test_rows_that_would_be_wrong_are_refused(name: str) -> None:
    rows = make_rows(3, 2, 2)
    index = rows.column_names.index(name)
    empty = rows.set_column(index, name, pa.nulls(2, MANIFEST_LIST_ARROW_SCHEMA.field(name).type))
    with pytest.raises(InvalidInput, match=name):
        encode_manifest_list(Manifests.trusted(empty), HEADERS[2], LOCATION)
    with pytest.raises(InvalidInput, match="format version 9"):
        encode_manifest_list(Manifests.trusted(rows), ManifestListHeader(1, None, 1, 9), LOCATION)


def test_a_list_of_version_1_takes_no_manifest_of_delete_files() -> None:
    rows = make_rows(3, 1, 1)
    deletes = rows.set_column(rows.column_names.index("content"), "content", pa.array([1], pa.int32()))
    with pytest.raises(InvalidInput, match="delete files to a list of format version 1"):
        encode_manifest_list(Manifests.trusted(deletes), HEADERS[1], LOCATION)


def test_a_list_of_version_3_gives_every_data_manifest_its_first_row_id() -> None:
    rows = make_rows(3, 2, 2).drop_columns(["content", "first_row_id"])
    contents = [pa.array(values, pa.int32()) for values in ([1, 1], [1, 0])]
    deletes, mixed = (rows.append_column("content", content) for content in contents)
    decoded = decode_manifest_list(encode_manifest_list(Manifests.trusted(deletes), HEADERS[3], LOCATION), LOCATION)
    assert decoded["first_row_id"].null_count == 2
    with pytest.raises(InvalidInput, match="without its first_row_id"):
        encode_manifest_list(Manifests.trusted(mixed), HEADERS[3], LOCATION)


def test_a_list_without_paths_is_corrupt() -> None:
    schema = json.loads(list_schema_json(2))
    schema["fields"] = [f for f in schema["fields"] if f["name"] != "manifest_path"]
    row = make_rows(3, 2, 1).to_pylist()[0]
    with pytest.raises(CorruptFile, match="no manifest_path"):
        decode_manifest_list(AvroWriter().file(schema, [row], {}), LOCATION)
    partitions = next(f for f in schema["fields"] if f["name"] == "partitions")
    partitions["type"] = [{"type": "null"}, "string"]
    with pytest.raises(CorruptFile, match="not an array"):
        decode_manifest_list(container(json.dumps(schema), []), LOCATION)
