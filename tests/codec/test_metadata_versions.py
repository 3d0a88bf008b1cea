"""metadata.json of every format version: what each leaves out, what each must have, and Iceberg Java's own files."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyiceberg.table.metadata import TableMetadataUtil

from icefield.codec.json.keys import deflate_json
from icefield.codec.json.metadata import decode_metadata, encode_metadata
from icefield.errors import CorruptFile, Unsupported
from icefield.model.apply import apply
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN, Snapshot, SnapshotRef
from icefield.model.updates import AddSnapshot, SetProperties, SetSnapshotRef, UpgradeFormatVersion
from icefield.types.text import parse_schema

AT = "s3://bucket/t/metadata/v1.metadata.json"
REFERENCE = Path(__file__).parent / "metadata_files"
PLAIN = TableMetadata(uuid.UUID(int=7), "s3://bucket/t", 3000, 1, (parse_schema("id long"),), 0)
FIELD = {"id": 1, "name": "x", "required": True, "type": "long"}
# The least that a v1 file may say: no uuid, no lists of schemas, specs and orders, no ids of partition fields.
OLDEST: dict[str, Any] = {
    "format-version": 1,
    "location": "s3://bucket/t/",
    "last-updated-ms": 1000,
    "last-column-id": 1,
    "schema": {"type": "struct", "fields": [FIELD]},
    "partition-spec": [
        {"name": "x", "transform": "identity", "source-id": 1},
        {"name": "x_bucket", "transform": "bucket[4]", "source-id": 1},
    ],
    "current-snapshot-id": 41,
    "snapshots": [
        {"snapshot-id": 41, "timestamp-ms": 900, "manifests": ["s3://bucket/m0.avro", "s3://bucket/m1.avro"]}
    ],
}


def read(keys: dict[str, Any]) -> TableMetadata:
    return decode_metadata(json.dumps(keys).encode(), AT)


def written(metadata: TableMetadata) -> dict[str, Any]:
    keys: dict[str, Any] = json.loads(encode_metadata(metadata))
    return keys


def without(keys: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if key not in names}


# Version 1.


def test_the_least_that_version_1_says_is_read_with_the_defaults_of_the_spec() -> None:
    table = read(OLDEST)
    assert (table.format_version, table.last_sequence_number, table.next_row_id) == (1, 0, 0)
    assert (table.current_schema_id, [s.schema_id for s in table.schemas]) == (0, [0])
    assert [(f.field_id, f.name) for f in table.spec.fields] == [(1000, "x"), (1001, "x_bucket")]
    assert (table.default_spec_id, table.last_partition_id) == (0, 1001)
    assert table.sort_order.is_unsorted
    assert table.refs == {MAIN: SnapshotRef(41)}
    assert table.current_snapshot == Snapshot(41, 0, 900, "", manifests=("s3://bucket/m0.avro", "s3://bucket/m1.avro"))
    assert not table.unknown


def test_a_table_without_a_uuid_has_the_same_one_whoever_reads_it_and_keeps_it() -> None:
    first, second = read(OLDEST), read(OLDEST | {"last-updated-ms": 2000, "location": "s3://bucket/t"})
    assert first.table_uuid == second.table_uuid
    assert read(OLDEST | {"location": "s3://bucket/u"}).table_uuid != first.table_uuid
    moved = decode_metadata(encode_metadata(replace(first, location="s3://bucket/u")), AT)
    assert moved.table_uuid == first.table_uuid


def test_null_stands_for_absent_in_version_1() -> None:
    nothing = dict.fromkeys(("table-uuid", "schemas", "partition-specs", "last-partition-id", "sort-orders"))
    assert read(OLDEST | nothing) == read(OLDEST)


def test_lists_beside_the_old_keys_count() -> None:
    wide = {"type": "struct", "schema-id": 3, "fields": [FIELD, FIELD | {"id": 2, "name": "y"}]}
    specs = [{"spec-id": 5, "fields": [{"name": "x", "transform": "identity", "source-id": 1}]}]
    table = read(OLDEST | {"schemas": [wide], "current-schema-id": 3, "partition-specs": specs, "default-spec-id": 5})
    assert [f.name for f in table.schema.fields] == ["x", "y"]
    assert [(f.field_id, f.name) for f in table.spec.fields] == [(1000, "x")]
    assert table.last_partition_id == 1000


def test_a_sequence_number_has_no_place_in_version_1() -> None:
    table = read(OLDEST | {"last-sequence-number": 7, "next-row-id": 9})
    assert (table.last_sequence_number, table.next_row_id) == (0, 0)
    assert not {"last-sequence-number", "next-row-id"} & written(table).keys()


def test_version_1_is_written_for_readers_of_both_ages() -> None:
    table = read(OLDEST)
    keys = written(table)
    assert keys["schema"] == {"type": "struct", "schema-id": 0, "fields": [FIELD]}
    assert keys["schemas"] == [keys["schema"]]
    assert keys["partition-spec"] == keys["partition-specs"][0]["fields"]
    assert [f["field-id"] for f in keys["partition-spec"]] == [1000, 1001]
    assert "last-sequence-number" not in keys
    assert keys["snapshots"] == OLDEST["snapshots"]
    assert decode_metadata(encode_metadata(table), AT) == table


def test_a_new_snapshot_of_version_1_has_no_sequence_number() -> None:
    table = apply(read(OLDEST), [AddSnapshot(Snapshot(42, 0, 2000, "s3://bucket/l", 41))], 2000)
    assert written(table)["snapshots"][1] == {
        "snapshot-id": 42,
        "timestamp-ms": 2000,
        "parent-snapshot-id": 41,
        "manifest-list": "s3://bucket/l",
    }


def test_of_a_manifest_list_and_a_list_of_manifests_the_former_counts() -> None:
    both = OLDEST["snapshots"][0] | {"manifest-list": "s3://bucket/l"}
    found = read(OLDEST | {"snapshots": [both]}).current_snapshot
    assert found
    assert (found.manifest_list, found.manifests) == ("s3://bucket/l", ())


@pytest.mark.parametrize("key", ["location", "last-updated-ms", "last-column-id", "schema", "partition-spec"])
def test_what_version_1_requires_is_named_when_it_is_missing(key: str) -> None:
    with pytest.raises(CorruptFile, match=f"'{key}' is missing"):
        read(without(OLDEST, key))


@pytest.mark.parametrize(
    "change",
    [
        {"partition-spec": {}},
        {"partition-spec": [1]},
        {"partition-spec": [{"name": "x"}]},
        {"partition-spec": [{"name": "x", "transform": "identity", "source-id": 1, "field-id": "a"}]},
        {"partition-spec": [*OLDEST["partition-spec"], OLDEST["partition-spec"][0] | {"field-id": 1000}]},
        {"partition-specs": [{"spec-id": 0, "fields": {}}], "default-spec-id": 0},
        {"partition-specs": [], "default-spec-id": 0},
        {"schema": []},
        {"schema": {"type": "struct", "fields": [FIELD], "schema-id": "x"}},
        {"schemas": [OLDEST["schema"]]},
        {"sort-orders": []},
        {"snapshots": [{"snapshot-id": 41, "timestamp-ms": 900}]},
        {"snapshots": [{"snapshot-id": 41, "timestamp-ms": 900, "manifests": [1]}]},
        {"location": 3},
        {"table-uuid": "12"},
    ],
    ids=str,
)
def test_a_broken_file_of_version_1_is_corrupt(change: dict[str, Any]) -> None:
    with pytest.raises(CorruptFile):
        list(read(OLDEST | change).snapshots)


# Version 2.


def test_keys_that_version_2_replaced_are_dropped_before_they_grow_stale() -> None:
    old = {"schema": OLDEST["schema"], "partition-spec": [], "next-row-id": 8}
    table = read(written(PLAIN) | old)
    assert table == PLAIN
    assert not old.keys() & written(table).keys()


def test_ids_of_partition_fields_are_required_from_version_2_on() -> None:
    specs = [{"spec-id": 0, "fields": [{"name": "x", "transform": "identity", "source-id": 1}]}]
    with pytest.raises(CorruptFile, match="field-id"):
        read(written(PLAIN) | {"partition-specs": specs})


@pytest.mark.parametrize("version", [2, 3])
def test_snapshots_of_an_upgraded_table_are_carried_as_they_were(version: int) -> None:
    table = apply(read(OLDEST), [UpgradeFormatVersion(version)], 5000)
    keys = written(table)
    assert keys["snapshots"] == OLDEST["snapshots"]
    assert (keys["format-version"], keys["last-sequence-number"], keys.get("next-row-id")) == (
        version,
        0,
        0 if version == 3 else None,
    )
    assert not {"schema", "partition-spec"} & keys.keys()
    assert decode_metadata(encode_metadata(table), AT) == table


# Version 3.

V3 = replace(PLAIN, format_version=3, next_row_id=70, last_sequence_number=4)


def test_row_ids_are_kept_in_version_3() -> None:
    made = Snapshot(42, 5, 3000, "s3://bucket/l", first_row_id=70, added_rows=30, key_id="k1")
    table = apply(V3, [AddSnapshot(made), SetSnapshotRef(MAIN, SnapshotRef(42))], 3000)
    keys = written(table)
    assert keys["next-row-id"] == 100
    assert {"first-row-id": 70, "added-rows": 30, "key-id": "k1"}.items() <= keys["snapshots"][0].items()
    back = decode_metadata(encode_metadata(table), AT)
    assert back == table
    assert back.current_snapshot == made


def test_version_3_must_say_which_row_id_is_next() -> None:
    with pytest.raises(CorruptFile, match="'next-row-id' is missing"):
        read(without(written(V3), "next-row-id"))


@pytest.mark.parametrize("value", [-1, "1", 1.5, None, 1 << 63])
def test_a_next_row_id_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(CorruptFile):
        read(written(V3) | {"next-row-id": value})


def test_what_icefield_does_not_change_survives_in_every_version() -> None:
    odd = {
        "encryption-keys": b'[{"key-id":"k", "encrypted-key-metadata": "aWNl" }]',
        "statistics": b'[{"snapshot-id":41, "x": 1.50}]',
        "partition-statistics": b'[{"snapshot-id":41}]',
        "zz-new": b'{"a" : null}',
        "zz-null": b"null",
    }
    for base in (read(OLDEST), PLAIN, V3):
        tail = b"".join(b',"%s":%s' % (key.encode(), raw) for key, raw in odd.items())
        data = encode_metadata(base)[:-1] + tail + b"}"
        changed = apply(decode_metadata(data, AT), [SetProperties({"a": "b"}), UpgradeFormatVersion(3)], 9000)
        raw = msgspec.json.decode(encode_metadata(changed), type=dict[str, msgspec.Raw])
        assert {key: bytes(raw[key]) for key in odd} == odd


# Files written by other engines.

VALID = ["V1Valid", "V2Valid", "V2ValidMinimal", "V3ValidMinimal", "StatisticsFiles", "PartitionStatisticsFiles"]
INVALID = {
    "V1MissingSchemaType": "type",
    "V2CurrentSchemaNotFound": "last-partition-id' is missing",  # its schema is missing too
    "V2MissingLastPartitionId": "last-partition-id' is missing",
    "V2MissingPartitionSpecs": "default-spec-id' is missing",
    "V2MissingSchemas": "current-schema-id' is missing",
    "V2MissingSortOrder": "default-sort-order-id' is missing",
}


def reference(name: str) -> bytes:
    return (REFERENCE / f"TableMetadata{name}.json").read_bytes()


@pytest.mark.parametrize("name", VALID)
def test_the_references_files_are_read_and_nothing_is_lost(name: str) -> None:
    data = reference(name)
    table = decode_metadata(data, AT)
    list(table.snapshots)
    asked, found = json.loads(data), written(table)
    defaults = ({"refs": {"main"}}, {"current-snapshot-id": -1})
    for key, value in asked.items():
        if key == "schema":
            assert found[key] == value | {"schema-id": 0}
        elif {key: value} not in defaults and key != "schemas":
            assert found[key] == value, key
    assert decode_metadata(encode_metadata(table), AT) == table


@pytest.mark.parametrize(("name", "why"), INVALID.items())
def test_what_the_reference_refuses_is_corrupt(name: str, why: str) -> None:
    with pytest.raises(CorruptFile, match=why):
        decode_metadata(reference(name), AT)


def test_the_references_version_of_the_future_is_unsupported() -> None:
    version = json.loads(reference("UnsupportedVersion"))["format-version"]
    with pytest.raises(Unsupported, match=f"format version {version};"):
        decode_metadata(reference("UnsupportedVersion"), AT)


def upgraded(metadata: TableMetadata) -> Sequence[TableMetadata]:
    """The same table at every version that it can come to."""
    return [
        apply(metadata, [UpgradeFormatVersion(version)], metadata.last_updated_ms)
        for version in range(metadata.format_version, 4)
    ]


# PyIceberg knows only two sorts of statistics, and refuses a file that names others.
@pytest.mark.parametrize("name", [name for name in VALID if name != "StatisticsFiles"])
def test_pyiceberg_parses_every_version_of_it(name: str) -> None:
    for table in upgraded(decode_metadata(reference(name), AT)):
        theirs = TableMetadataUtil.parse_raw(encode_metadata(table).decode())
        assert theirs.format_version == table.format_version
        assert theirs.table_uuid == table.table_uuid
        assert [s.snapshot_id for s in theirs.snapshots] == [s.snapshot_id for s in table.snapshots]
        assert [f.name for f in theirs.schema().fields] == [f.name for f in table.schema.fields]
        assert [f.field_id for f in theirs.spec().fields] == [f.field_id for f in table.spec.fields]


def test_pyiceberg_parses_carried_snapshots_that_have_no_sequence_number() -> None:
    old = OLDEST | {"snapshots": [{"snapshot-id": 41, "timestamp-ms": 900, "manifest-list": "s3://bucket/l"}]}
    for table in upgraded(read(old)):
        theirs = TableMetadataUtil.parse_raw(encode_metadata(table).decode())
        assert theirs.snapshots[0].manifest_list == "s3://bucket/l"
        assert theirs.snapshots[0].sequence_number in (0, None)


def test_compressed_metadata_is_read_back_and_has_no_time_in_it() -> None:
    data = encode_metadata(V3)
    assert decode_metadata(deflate_json(data), AT) == V3
    assert deflate_json(data) == deflate_json(bytes(data))
    assert deflate_json(data)[4:8] == bytes(4)  # where gzip puts its time
