"""How large a table's metadata file becomes: compression by size, and a bound on the number of snapshots."""

import gzip
import json
import uuid
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest

import icefield
from icefield.ambient import SeededAmbient
from icefield.codec.json.metadata import decode_metadata, encode_metadata
from icefield.commit.action import WriteContext
from icefield.commit.operations.tables import COMPRESSED_FROM_BYTES, write_metadata
from icefield.lake import Lake
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN, MetadataLogEntry, Snapshot, SnapshotLogEntry, SnapshotRef, Snapshots
from icefield.table.table import Table

CODEC = "write.metadata.compression-codec"
MOST = "icefield.history.max-snapshots"


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:", ambient=SeededAmbient(16))


def with_history(lake: Lake, snapshots: int, properties: Mapping[str, str]) -> TableMetadata:
    """Return the metadata of a table after so many appends, with ids and names as random as they are in reality."""
    base = lake.create_table("a.t", "id long, name string", properties=properties).metadata
    folder, ambient = f"{base.location}/metadata", SeededAmbient(7)
    made: list[Snapshot] = []
    for number in range(1, snapshots + 1):
        snapshot_id = ambient.random_uuid().int >> 66
        totals = {"data-files": number, "delete-files": 0, "records": 10 * number, "files-size": 820 * number}
        totals |= {"position-deletes": 0, "equality-deletes": 0}
        summary = {"operation": "append", "added-data-files": "1", "added-records": "10"}
        summary |= {"added-files-size": str(800 + snapshot_id % 40), "changed-partition-count": "1"}
        made.append(
            Snapshot(
                snapshot_id=snapshot_id,
                sequence_number=number,
                timestamp_ms=base.last_updated_ms + number * 977,
                manifest_list=f"{folder}/snap-{snapshot_id}-{number}-{ambient.random_uuid()}.avro",
                parent_snapshot_id=made[-1].snapshot_id if made else None,
                schema_id=0,
                summary=summary | {f"total-{key}": str(value) for key, value in totals.items()},
            )
        )
    log = [f"{folder}/{number:05d}-{ambient.random_uuid()}.metadata.json" for number in range(min(snapshots, 100))]
    return replace(
        base,
        last_sequence_number=snapshots,
        snapshots=Snapshots(tuple(made)),
        snapshot_log=tuple(SnapshotLogEntry(s.timestamp_ms, s.snapshot_id) for s in made),
        metadata_log=tuple(MetadataLogEntry(base.last_updated_ms + at, name) for at, name in enumerate(log)),
        refs={MAIN: SnapshotRef(made[-1].snapshot_id)},
        current_snapshot_id=made[-1].snapshot_id,
    )


@pytest.mark.parametrize("snapshots", [2, 60])
@pytest.mark.parametrize("codec", [None, "none", "gzip"])
def test_a_metadata_file_is_compressed_as_the_table_says_or_if_it_is_large(
    lake: Lake, codec: str | None, snapshots: int
) -> None:
    metadata = with_history(lake, snapshots, {} if codec is None else {CODEC: codec})
    plain = encode_metadata(metadata)
    location = write_metadata(metadata, f"00001-{uuid.UUID(int=1)}", WriteContext.of(lake.backend))
    data = lake.store.read(location)
    if codec == "gzip" or (codec is None and len(plain) >= COMPRESSED_FROM_BYTES):
        # (spec: Naming for GZIP compressed Metadata JSON files)
        assert location.endswith(f"/00001-{uuid.UUID(int=1)}.gz.metadata.json")
        assert gzip.decompress(data) == plain
        assert len(data) < len(plain) / 2
    else:
        assert location.endswith(f"/00001-{uuid.UUID(int=1)}.metadata.json")
        assert data == plain
    assert decode_metadata(data, location) == metadata


def test_the_two_histories_are_on_either_side_of_the_limit(lake: Lake) -> None:
    small, large = (len(encode_metadata(with_history(_fresh(), n, {}))) for n in (2, 60))
    assert small < COMPRESSED_FROM_BYTES <= large


@pytest.mark.parametrize(("snapshots", "most_bytes"), [(48, 8_000), (100, 16_000), (1_000, 100_000)])
def test_the_size_of_a_history(lake: Lake, snapshots: int, most_bytes: int) -> None:
    metadata = with_history(lake, snapshots, {})
    location = write_metadata(metadata, "00001-x", WriteContext.of(lake.backend))
    assert lake.store.size(location) <= most_bytes


def test_commits_go_on_where_the_name_changes(lake: Lake) -> None:
    table = lake.create_table("a.t", "id long")
    suffixes = []
    for number in range(40):
        table.append(pa.table({"id": [number]}))
        suffixes.append(table.metadata_location.partition(".")[2])
    assert set(suffixes) == {"metadata.json", "gz.metadata.json"}
    assert suffixes == sorted(suffixes, reverse=True), "it stays compressed once it is large"
    numbers = [table.metadata_location.rsplit("/", 1)[-1].partition("-")[0]]
    assert numbers == ["00040"]
    table.set_properties({CODEC: "none"})
    assert json.loads(lake.store.read(table.metadata_location))["format-version"] == 2
    assert lake.table("a.t").count() == 40


@pytest.mark.parametrize("name", ["00001-x.metadata.json.gz", "00001-x.gz.metadata.json", "00001-x.metadata.json"])
def test_a_compressed_file_is_read_under_any_name(lake: Lake, name: str) -> None:
    table = lake.create_table("a.t", "id long", properties={CODEC: "gzip"})
    table.append(pa.table({"id": [1, 2]}))
    location = f"{table.location}/metadata/{name}"
    lake.store.put_new(location, lake.store.read(table.metadata_location))
    lake.drop_table("a.t")
    assert lake.register_table("a.u", location).count() == 2
    lake.table("a.u").append(pa.table({"id": [3]}))
    assert lake.table("a.u").count() == 3


def appended(lake: Lake, properties: Mapping[str, str], appends: int = 6) -> Table:
    table = lake.create_table("a.t", "id long", properties=properties)
    for number in range(appends):
        table.append(pa.table({"id": [number]}))
    return table


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all()["id"].to_pylist())


def test_a_commit_keeps_as_many_snapshots_as_the_table_says(lake: Lake) -> None:
    table = appended(lake, {MOST: "3"})
    assert [s.sequence_number for s in table.snapshots()] == [4, 5, 6]
    assert len(table.metadata.snapshot_log) == 3
    assert ids_of(table) == list(range(6))
    assert table.scan(as_of=next(iter(table.snapshots())).snapshot_id).count() == 4


@pytest.mark.parametrize("properties", [{}, {MOST: "3", "gc.enabled": "false"}, {MOST: "6"}])
def test_no_snapshot_goes_without_need(lake: Lake, properties: Mapping[str, str]) -> None:
    assert len(appended(lake, properties).metadata.snapshots) == 6


def test_a_commit_without_a_snapshot_removes_none(lake: Lake) -> None:
    table = appended(lake, {})
    table.set_properties({MOST: "2"})
    assert len(table.metadata.snapshots) == 6
    table.append(pa.table({"id": [6]}))
    assert len(table.metadata.snapshots) == 2


def test_tags_and_branches_keep_what_they_say(lake: Lake) -> None:
    table = appended(lake, {})
    all_ids = [s.snapshot_id for s in table.snapshots()]
    table.create_tag("first", at=all_ids[0])
    table.create_branch("kept", at=all_ids[3], min_snapshots_to_keep=3)
    table.create_branch("young", at=all_ids[4], max_snapshot_age_ms=1)
    table.set_properties({MOST: "1"})
    table.append(pa.table({"id": [6]}))
    left = [s.snapshot_id for s in table.snapshots()]
    assert left[:-1] == [all_ids[0], *all_ids[1:4], all_ids[4]]
    assert left[-1] == table.metadata.current_snapshot_id


def test_what_a_rollback_left_behind_stays(lake: Lake) -> None:
    table = appended(lake, {MOST: "4"}, 4)
    undone = table.metadata.current_snapshot_id
    table.rollback(list(table.snapshots())[-2].snapshot_id)
    table.append(pa.table({"id": [9]}))
    table.append(pa.table({"id": [10]}))
    assert undone in [s.snapshot_id for s in table.snapshots()]


def test_each_branch_has_its_own_bound(lake: Lake) -> None:
    table = appended(lake, {MOST: "2"})
    table.create_branch("b")
    for number in range(4):
        table.at("b").append(pa.table({"id": [10 + number]}))
    main, branch = table.metadata.refs[MAIN].snapshot_id, table.metadata.refs["b"].snapshot_id
    assert len(table.metadata.snapshots) == 4
    assert [len(list(table.metadata.ancestors(table.metadata.snapshot_by_id(each)))) for each in (main, branch)] == [
        2,
        2,
    ]


def test_keys_and_rows_outlive_what_is_removed(lake: Lake) -> None:
    table = lake.create_table("a.t", "id long", properties={MOST: "1"})
    for number in range(4):
        table.append(pa.table({"id": [number]}), idempotency_key=f"k{number}")
    assert table.append(pa.table({"id": [0]}), idempotency_key="k0") is None
    assert ids_of(table) == [0, 1, 2, 3]


def test_a_transaction_trims_each_table(lake: Lake) -> None:
    appended(lake, {MOST: "2"})
    lake.create_table("a.u", "id long", properties={MOST: "1"}).append(pa.table({"id": [1]}))
    with lake.transaction() as tx:
        tx.table("a.t").append(pa.table({"id": [7]}))
        tx.table("a.u").append(pa.table({"id": [7]}))
    assert [len(lake.table(name).metadata.snapshots) for name in ("a.t", "a.u")] == [2, 1]


def _fresh() -> Lake:
    return icefield.connect("memory:", ambient=SeededAmbient(16))
