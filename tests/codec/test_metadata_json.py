"""metadata.json: what goes in comes out, what is not ours is carried as it was, and nothing hostile gets through."""

import gzip
import json
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as PyIcebergSchema
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import DecimalType, ListType, LongType, MapType, NestedField, StringType, StructType, TimestampType
from tests.codec.metadata_cases import tables
from tests.effort import effort

from icefield.codec.json.metadata import decode_metadata, encode_metadata
from icefield.codec.json.snapshots import StoredSnapshot
from icefield.errors import CorruptFile, Unsupported
from icefield.model.apply import apply
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN, Snapshot, SnapshotRef
from icefield.model.updates import AddSnapshot, SetProperties, SetSnapshotRef
from icefield.types.text import parse_schema

pytestmark = pytest.mark.every_case

AT = "s3://bucket/t/metadata/00001.metadata.json"
PLAIN = TableMetadata(uuid.UUID(int=7), "s3://bucket/t", 3000, 1, (parse_schema("id long"),), 0)
# Odd blanks, an order of keys and keys that are nobody's: all of it must come back as it is.
ODD_SNAPSHOT = (
    b'{"timestamp-ms":  2000,\n\t"snapshot-id": 41, "sequence-number" :1, "manifest-list":"s3:\\/\\/b/l\\u00e9", '
    b'"summary": {"operation":"append", "n":"1"}, "key-id":"k", "extra": {"deep": [1.50, 1e3, null]}}'
)


def document(**changes: Any) -> dict[str, Any]:
    """The JSON of a table with something under every key; a change of None takes its key away."""
    keys: dict[str, Any] = json.loads(encode_metadata(PLAIN))
    keys |= {
        "current-snapshot-id": 42,
        "last-sequence-number": 2,
        "snapshots": [
            json.loads(ODD_SNAPSHOT),
            {
                "snapshot-id": 42,
                "parent-snapshot-id": 41,
                "sequence-number": 2,
                "timestamp-ms": 3000,
                "manifest-list": "s3://b/m",
                "summary": {"operation": "append"},
                "schema-id": 0,
            },
        ],
        "refs": {
            "main": {"snapshot-id": 42, "type": "branch", "min-snapshots-to-keep": 3, "max-snapshot-age-ms": 5},
            "q1": {"snapshot-id": 41, "type": "tag", "max-ref-age-ms": 9},
        },
        "snapshot-log": [{"timestamp-ms": 2000, "snapshot-id": 41}, {"timestamp-ms": 3000, "snapshot-id": 42}],
        "metadata-log": [{"timestamp-ms": 1000, "metadata-file": "s3://b/0.json"}],
        "properties": {"a": "b"},
        "statistics": [{"snapshot-id": 41, "statistics-path": "s3://b/s.puffin"}],
    }
    for key, value in changes.items():
        name = key.replace("_", "-")
        if value is None:
            del keys[name]
        else:
            keys[name] = value
    return keys


def encoded(**changes: Any) -> bytes:
    return json.dumps(document(**changes)).encode()


def load_all(data: bytes) -> None:
    """Decode everything that is in the file, the snapshots too."""
    list(decode_metadata(data, AT).snapshots)


# Round trips.


@effort(40)
@given(tables())
def test_metadata_survives_json(table: TableMetadata) -> None:
    data = encode_metadata(table)
    back = decode_metadata(data, AT)
    assert back == table
    assert encode_metadata(back) == data


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_every_key_of_the_file_is_taken(compress: Any) -> None:
    table = decode_metadata(compress(encoded()), AT)
    assert (table.current_snapshot_id, table.last_sequence_number, table.last_updated_ms) == (42, 2, 3000)
    assert table.refs[MAIN] == SnapshotRef(42, min_snapshots_to_keep=3, max_snapshot_age_ms=5)
    assert table.refs["q1"].max_ref_age_ms == 9
    assert [e.snapshot_id for e in table.snapshot_log] == [41, 42]
    assert table.metadata_log[0].metadata_file == "s3://b/0.json"
    assert table.current_snapshot == Snapshot(42, 2, 3000, "s3://b/m", 41, 0, {"operation": "append"})
    assert table.snapshot_by_id(41).manifest_list == "s3://b/lé"
    assert [e.snapshot_id for e in table.statistics] == [41]
    assert not table.unknown


def test_unknown_keys_survive_byte_for_byte() -> None:
    odd = b' {"b" : 1.50,\n "a":[1e3 , null, "\\u00e9/\\/"]}'
    data = encoded(statistics=None)[:-1] + b', "zz-new":' + odd + b"}"
    again = encode_metadata(apply(decode_metadata(data, AT), [SetProperties({"c": "d"})], 4000))
    raw = msgspec.json.decode(again, type=dict[str, msgspec.Raw])
    assert bytes(raw["zz-new"]) == odd.strip()


def test_a_snapshot_is_written_back_as_the_bytes_it_came_as() -> None:
    data = encoded(snapshots=[1], refs={}, current_snapshot_id=-1).replace(b"[1]", b"[" + ODD_SNAPSHOT + b"]")
    table = decode_metadata(data, AT)
    new = Snapshot(77, 9, 9000, "s3://b/n")
    changed = apply(table, [AddSnapshot(new), SetSnapshotRef(MAIN, SnapshotRef(77))], 9000)
    assert changed.snapshot_by_id(41).summary == {"operation": "append", "n": "1"}  # decoding it changes nothing
    written = encode_metadata(changed)
    assert b"[" + ODD_SNAPSHOT + b',{"snapshot-id":77,' in written
    assert decode_metadata(written, AT).current_snapshot == new


def test_a_thousand_snapshots_are_carried_undecoded(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = [
        {"snapshot-id": 10**18 + i, "timestamp-ms": i, "sequence-number": i, "manifest-list": f"l{i}", "x": i / 7}
        for i in range(1000)
    ]
    head = 10**18 + 999
    data = encoded(snapshots=snapshots, current_snapshot_id=head, refs={})
    table = decode_metadata(data, AT)
    loads: list[StoredSnapshot] = []
    original = StoredSnapshot.load

    def counted(stored: StoredSnapshot) -> Snapshot:
        loads.append(stored)
        return original(stored)

    monkeypatch.setattr(StoredSnapshot, "load", counted)
    new = Snapshot(5 * 10**18, 1000, 9000, "n", head)
    changed = apply(table, [AddSnapshot(new), SetSnapshotRef(MAIN, SnapshotRef(new.snapshot_id))], 9000)
    written = encode_metadata(changed)
    assert not loads
    assert all(isinstance(entry, StoredSnapshot) for entry in table.snapshots.entries)
    before = msgspec.json.decode(data, type=dict[str, msgspec.Raw])["snapshots"]
    after = msgspec.json.decode(written, type=dict[str, msgspec.Raw])["snapshots"]
    assert bytes(after).startswith(
        b",".join(bytes(r) for r in msgspec.json.decode(before, type=list[msgspec.Raw]))[:-1], 1
    )
    assert changed.snapshot_by_id(10**18 + 500).timestamp_ms == 500
    assert len(loads) == 1


def test_a_stored_snapshot_never_denies_its_own_id() -> None:
    for made in (1, 42, -1, (1 << 63) - 1, 0):
        raw = json.dumps({"snapshot-id": made, "timestamp-ms": 1, "manifest-list": "x"}).encode()
        stored = StoredSnapshot(msgspec.Raw(raw), AT)
        assert stored.load().snapshot_id == made
        assert stored.snapshot_id == made
        assert stored.holds(str(made).encode())
    assert not StoredSnapshot(msgspec.Raw(ODD_SNAPSHOT), AT).holds(b"9999")


def test_optional_keys_may_be_missing_or_null() -> None:
    for key in ("properties", "snapshots", "snapshot-log", "metadata-log", "refs"):
        for spelled in (b"", f', "{key}": null'.encode()):
            keys = document(current_snapshot_id=None, refs=None, snapshots=None)
            keys.pop(key, None)
            table = decode_metadata(json.dumps(keys).encode()[:-1] + spelled + b"}", AT)
            assert key not in table.unknown
            assert not len(getattr(table, key.replace("-", "_")))


@pytest.mark.parametrize("spelled", ["-1", "null"])
def test_a_table_without_snapshots_says_so_in_two_ways(spelled: str) -> None:
    data = encoded(snapshots=[], refs={}, current_snapshot_id="?").replace(b'"?"', spelled.encode())
    assert decode_metadata(data, AT).current_snapshot is None
    assert b"current-snapshot-id" not in encode_metadata(decode_metadata(data, AT))


def test_main_is_there_even_where_the_refs_leave_it_out() -> None:
    for data in (encoded(refs={}), encoded(refs=None)):
        assert decode_metadata(data, AT).refs == {MAIN: SnapshotRef(42)}


def test_a_trailing_slash_of_the_location_is_dropped() -> None:
    assert decode_metadata(encoded(location="s3://bucket/t//"), AT).location == "s3://bucket/t"


# Other versions.


@pytest.mark.parametrize("version", [0, 4, -1, 2147483647])
def test_other_versions_are_refused_with_the_version_and_the_file(version: int) -> None:
    with pytest.raises(Unsupported, match=rf"{AT} has format version {version}; icefield supports versions 1, 2, 3"):
        decode_metadata(encoded(format_version=version), AT)
    with pytest.raises(Unsupported):  # also when nothing else is as in version 2
        decode_metadata(json.dumps({"format-version": version}).encode(), AT)


@pytest.mark.parametrize("version", ["2", 2.5, True, [2], {"v": 2}, 1 << 70])
def test_what_is_no_version_is_corrupt(version: object) -> None:
    with pytest.raises(CorruptFile, match="not valid table metadata"):
        decode_metadata(encoded(format_version=version), AT)


# PyIceberg.


@pytest.fixture(scope="module")
def written_by_pyiceberg(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    place = StructType(NestedField(21, "city", StringType(), required=True), NestedField(22, "zip", LongType()))
    schema = PyIcebergSchema(
        NestedField(1, "id", LongType(), required=True, doc="the key"),
        NestedField(2, "ts", TimestampType()),
        NestedField(3, "price", DecimalType(10, 2)),
        NestedField(4, "tags", ListType(11, StringType(), element_required=True)),
        NestedField(5, "props", MapType(12, StringType(), 13, place, value_required=False)),
        identifier_field_ids=[1],
    )
    spec = PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "ts_day"), PartitionField(1, 1001, BucketTransform(16), "id_bucket")
    )
    order = SortOrder(SortField(1, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST))
    catalog = InMemoryCatalog("c", warehouse=f"file://{tmp_path_factory.mktemp('warehouse')}")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", schema, partition_spec=spec, sort_order=order, properties={"a": "ü"})
    with table.update_schema() as update:
        update.add_column("note", StringType(), doc="free text")
    empty = table.schema().as_arrow().empty_table()
    table.append(empty)
    table.append(empty)
    table.manage_snapshots().create_tag(table.metadata.snapshots[0].snapshot_id, "q1", max_ref_age_ms=10).commit()
    return Path(table.metadata_location.removeprefix("file://")).read_bytes()


def test_metadata_of_pyiceberg_is_read_and_means_the_same_when_written_back(written_by_pyiceberg: bytes) -> None:
    ours = decode_metadata(written_by_pyiceberg, AT)
    theirs = TableMetadataUtil.parse_raw(written_by_pyiceberg.decode())
    assert [f.name for f in ours.schema.fields] == ["id", "ts", "price", "tags", "props", "note"]
    assert str(ours.spec) == "[ts_day: day(2), id_bucket: bucket[16](1)]"
    assert [s.snapshot_id for s in ours.snapshots] == [s.snapshot_id for s in theirs.snapshots]
    assert ours.refs["q1"].max_ref_age_ms == 10
    assert ours.refs[MAIN].snapshot_id == ours.current_snapshot_id == theirs.current_snapshot_id
    back = TableMetadataUtil.parse_raw(encode_metadata(ours).decode())
    # Whether a summary or a log is compared as an object or as its text does not matter: the dumps must be equal.
    assert json.loads(back.model_dump_json()) == json.loads(theirs.model_dump_json())
    assert back == theirs


def test_pyiceberg_reads_what_was_changed_here(written_by_pyiceberg: bytes) -> None:
    base = decode_metadata(written_by_pyiceberg, AT)
    new = Snapshot(99, base.last_sequence_number + 1, base.last_updated_ms + 1, "s3://b/n", base.current_snapshot_id, 1)
    changed = apply(base, [AddSnapshot(new), SetSnapshotRef(MAIN, SnapshotRef(99))], base.last_updated_ms + 5)
    theirs = TableMetadataUtil.parse_raw(encode_metadata(changed).decode())
    assert theirs.current_snapshot_id == 99
    assert theirs.last_updated_ms == base.last_updated_ms + 5
    snapshot = theirs.snapshot_by_id(99)
    assert snapshot
    assert (snapshot.sequence_number, snapshot.manifest_list) == (new.sequence_number, "s3://b/n")


# Hostile files.

BROKEN = {
    "nothing": b"",
    "blank": b"  \n",
    "not json": b"<html>404</html>",
    "a number": b"3",
    "null": b"null",
    "a list": b"[]",
    "a text": b'"metadata"',
    "an empty object": b"{}",
    "cut": encoded()[:-1],
    "cut in half": encoded()[:300],
    "two documents": encoded() * 2,
    "a byte order mark": b"\xef\xbb\xbf" + encoded(),
    "utf-16": encoded().decode().encode("utf-16"),
    "latin-1": encoded(location="é").replace(b"\\u00e9", b"\xe9"),
    "latin-1 key": encoded().replace(b'"properties"', b'"propert\xe9s"'),
    "not a number": encoded(last_updated_ms="?").replace(b'"?"', b"NaN"),
    "infinite": encoded(last_updated_ms="?").replace(b'"?"', b"Infinity"),
    "huge exponent": encoded(last_updated_ms="?").replace(b'"?"', b"1e999"),
    "5000 digits": encoded(last_updated_ms="?").replace(b'"?"', b"9" * 5000),
    "deep": encoded(properties="?").replace(b'"?"', b"[" * 100_000 + b"]" * 100_000),
    "deep unknown": encoded(statistics="?").replace(b'"?"', b"[" * 100_000 + b"]" * 100_000),
    "deep objects": b'{"a":' * 100_000,
    "cut gzip": gzip.compress(encoded())[:-9],
    "only the magic of gzip": b"\x1f\x8b",
    "damaged gzip": gzip.compress(encoded())[:20] + b"\0" * 40,
    "trailing garbage after gzip": gzip.compress(encoded()) + b"garbage",
    "gzip of garbage": gzip.compress(b"\0" * 100),
    "current schema missing": encoded(current_schema_id=5),
    "no schema": encoded(schemas=[]),
    "default spec missing": encoded(default_spec_id=5),
    "default order missing": encoded(default_sort_order_id=5),
    "current snapshot missing": encoded(current_snapshot_id=43, refs={}),
    "main elsewhere": encoded(current_snapshot_id=41),
    "main without a current snapshot": encoded(current_snapshot_id=None),
    "no uuid": encoded(table_uuid="12"),
    "snapshot without manifests": encoded(snapshots=[{"snapshot-id": 40, "timestamp-ms": 1}, *document()["snapshots"]]),
    "broken snapshot": encoded(snapshots=[{"snapshot-id": 42}]),
    "snapshot is not an object": encoded(snapshots=[42]),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_no_metadata_is_corrupt_and_named(data: bytes) -> None:
    with pytest.raises(CorruptFile) as caught:
        load_all(data)
    assert caught.value.location == AT
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("key", [k for k in document() if k not in ("refs", "properties", "statistics")])
def test_a_missing_key_is_named(key: str) -> None:
    keys = document()
    del keys[key]
    optional = ("snapshot-log", "metadata-log")
    if key in optional:
        load_all(json.dumps(keys).encode())
        return
    with pytest.raises(CorruptFile, match=f"'{key}' is missing|current snapshot"):
        load_all(json.dumps(keys).encode())


OTHERS: list[Any] = [True, 1.5, "x", "", -1, 1 << 40, 1 << 70, [], {}, ["x"], {"x": 1}, [None], {"x": None}, [[]]]


def is_like(old: Any, new: Any) -> bool:
    """Whether a value may stand for another by its kind alone."""
    if isinstance(old, bool) or isinstance(new, bool):
        return type(old) is type(new)
    if isinstance(old, list | dict):
        return type(old) is type(new) and not new
    return type(old) is type(new)


@pytest.mark.parametrize("key", list(document()))
def test_a_wrong_type_under_any_key_is_refused(key: str) -> None:
    for other in OTHERS:
        data = json.dumps(document() | {key: other}).encode()
        if is_like(document()[key], other):
            continue
        with pytest.raises((CorruptFile, Unsupported)):
            load_all(data)


def test_of_a_key_that_stands_twice_the_last_counts() -> None:
    data = encoded()[:-1] + b', "location": "s3://other"}'
    assert decode_metadata(data, AT).location == "s3://other"
    assert encode_metadata(decode_metadata(data, AT)).count(b'"location"') == 1
