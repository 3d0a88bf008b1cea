"""Tables of format versions 1, 2 and 3: made, written, read, and upgraded in place."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from tests.commit.faults import RacingCatalog, RecordingStore
from tests.commit.racing import files_of, reachable
from tests.commit.test_loop import through

from icefield.catalog.catalog import PointerSwap
from icefield.codec.avro.container import parse_header
from icefield.codec.json.metadata import encode_metadata
from icefield.codec.manifest.columns import ALL
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.header import decode_manifest_header
from icefield.codec.manifest.list import ManifestListHeader, decode_manifest_list, encode_manifest_list
from icefield.commit.actions.evolve import UpgradeTable
from icefield.commit.snapshot.manifests import COUNTS
from icefield.errors import InvalidInput, NoSuchTable, Unsupported
from icefield.lake import Lake
from icefield.model.metadata import TableMetadata, location_uuid
from icefield.model.names import parse_table_name
from icefield.model.snapshot import Snapshot, Snapshots
from icefield.storage.location import local_path
from icefield.table.table import Table

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])


def rows(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table({"id": pa.array([p[0] for p in pairs], pa.int64()), "day": pa.array([p[1] for p in pairs])})


def rows_of(table: Table, as_of: int | None = None, where: str | None = None) -> list[tuple[int, str]]:
    read = table.scan(where, as_of=as_of).to_arrow().read_all()
    return sorted(zip(read["id"].to_pylist(), read["day"].to_pylist(), strict=True))


def make(lake: Lake, version: int, **options: Any) -> Table:
    return lake.create_table("a.t", "id long, day string", partition_by=["day"], format_version=version, **options)


def written(table: Table, lake: Lake) -> dict[str, Any]:
    keys: dict[str, Any] = json.loads(lake.store.read(table.metadata_location))
    return keys


def manifests_of(lake: Lake, snapshot: Snapshot | None) -> pa.Table:
    assert snapshot
    return decode_manifest_list(lake.store.read(snapshot.manifest_list), snapshot.manifest_list)


def repoint(lake: Lake, table: Table, metadata: TableMetadata) -> None:
    """Make metadata of another writer the table's own."""
    location = table.metadata_location.replace(".metadata.json", "-other.metadata.json")
    lake.store.put_new(location, encode_metadata(metadata))
    lake.catalog.swap([PointerSwap(parse_table_name(table.name), table.metadata_location, location)])


# Making tables.


@VERSIONS
def test_a_table_of_any_version_is_written_and_read(memory_lake: Lake, version: int) -> None:
    table = make(memory_lake, version)
    assert table.metadata.format_version == version
    table.append(rows((1, "mon"), (2, "tue")))
    table.append(rows((3, "mon")))
    table.overwrite(rows((9, "mon")), where="day = 'mon' and id < 3", check_rows=False)
    assert rows_of(table) == [(2, "tue"), (3, "mon"), (9, "mon")]
    assert rows_of(table, where="day = 'tue'") == [(2, "tue")]
    assert [len(rows_of(table, s.snapshot_id)) for s in table.snapshots()] == [2, 3, 3]


def test_new_tables_are_of_version_2(memory_lake: Lake) -> None:
    assert memory_lake.create_table("a.u", "id long").metadata.format_version == 2


@pytest.mark.parametrize("version", [0, 4, -1])
def test_a_version_that_is_not_known_is_refused_and_nothing_is_made(memory_lake: Lake, version: int) -> None:
    with pytest.raises(Unsupported, match=f"format version {version}; icefield supports versions 1, 2, 3"):
        make(memory_lake, version)
    assert not memory_lake.has_table("a.t")
    assert not files_of(memory_lake)


def test_the_version_is_no_property_that_would_be_stored_and_ignored(memory_lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="format-version is not a table property"):
        make(memory_lake, 2, properties={"format-version": "3"})


@pytest.mark.parametrize("version", [1, 2])
def test_types_that_came_with_version_3_are_refused_before_it(memory_lake: Lake, version: int) -> None:
    with pytest.raises(InvalidInput, match="'at' needs format version 3"):
        memory_lake.create_table("a.u", "id long, at timestamp_ns", format_version=version)
    table = memory_lake.create_table("a.u", "id long", format_version=version)
    with pytest.raises(InvalidInput, match="'at' needs format version 3"), table.evolve() as change:
        change.add_column("at", "timestamp_ns")
    table.upgrade_format_version(3)
    with table.evolve() as change:
        change.add_column("at", "timestamp_ns")
    assert memory_lake.create_table("a.v", "at timestamp_ns", format_version=3).metadata.format_version == 3


def test_a_column_of_which_only_null_is_known_waits_for_version_3(memory_lake: Lake) -> None:
    nothing = pa.table({"id": pa.array([1, 2]), "n": pa.nulls(2)})
    with pytest.raises(InvalidInput, match="'n' has no type"):
        memory_lake.create_table("a.u", nothing.schema)
    table = memory_lake.create_table("a.u", nothing.schema, format_version=3)
    table.append(nothing)
    assert table.scan().to_arrow().read_all()["n"].null_count == 2


@VERSIONS
def test_files_say_what_their_version_demands(memory_lake: Lake, version: int) -> None:
    table = make(memory_lake, version)
    table.append(rows((1, "mon"), (2, "tue")))
    table.overwrite(rows((9, "mon")), where="day = 'mon'")
    head = table.metadata.current_snapshot
    assert head
    keys = written(table, memory_lake)
    listed = memory_lake.store.read(head.manifest_list)
    assert parse_header(listed, "").metadata["format-version"] == str(version).encode()
    assert ("schema" in keys, "partition-spec" in keys) == ((version == 1),) * 2
    assert ("last-sequence-number" in keys, "sequence-number" in keys["snapshots"][0]) == ((version > 1),) * 2
    assert ("next-row-id" in keys, "first-row-id" in keys["snapshots"][0]) == ((version > 2),) * 2
    for location in decode_manifest_list(listed, "")["manifest_path"].to_pylist():
        data = memory_lake.store.read(location)
        assert decode_manifest_header(data, location).format_version == version
        schema = json.loads(parse_header(data, location).schema)
        entry = {f["name"]: f["type"] for f in schema["fields"]}
        fields = {f["name"] for f in entry["data_file"]["fields"]}
        assert (entry["snapshot_id"] == "long", "block_size_in_bytes" in fields) == ((version == 1),) * 2
        assert ("sequence_number" in entry, "content" in fields) == ((version > 1),) * 2
        assert ("first_row_id" in fields, "content_offset" in fields) == ((version > 2),) * 2
        known = decode_manifest(data, location, ALL)["snapshot_id"]
        assert version > 1 or known.null_count == 0


# Upgrades.


def test_an_upgrade_rewrites_nothing_and_old_rows_stay_readable(memory_lake: Lake) -> None:
    table = make(memory_lake, 1)
    table.append(rows((1, "mon"), (2, "tue")))
    table.append(rows((3, "mon")))
    table.overwrite(rows((4, "tue")), where="day = 'tue'")
    before = rows_of(table)
    for version in (2, 3):
        store = RecordingStore(memory_lake.store)
        through(memory_lake, store=store).upgrade_format_version(version)
        assert [w.rsplit(".", 2)[-2:] for w in store.written] == [["metadata", "json"]]
        assert table.metadata.format_version == version
        assert rows_of(table) == sorted(before)
        table.append(rows((10 * version, "mon")))
        before.append((10 * version, "mon"))
        table.overwrite(rows((version, "wed")), where="day = 'wed'")
        before = [row for row in before if row[1] != "wed"] + [(version, "wed")]
        assert rows_of(table) == sorted(before)
    assert [s.sequence_number for s in table.snapshots()] == [0, 0, 0, 1, 2, 3, 4]
    assert [len(rows_of(table, s.snapshot_id)) for s in table.snapshots()] == [2, 3, 3, 4, 5, 6, 6]


def test_files_from_before_an_upgrade_have_sequence_number_0(memory_lake: Lake) -> None:
    table = make(memory_lake, 1)
    table.append(rows((1, "mon")))
    table.upgrade_format_version(2)
    table.append(rows((2, "mon")))
    listed = manifests_of(memory_lake, table.metadata.current_snapshot)
    assert listed["sequence_number"].to_pylist() == [1, 0]
    assert sorted(f["sequence_number"] for f in table.scan().files().to_pylist()) == [0, 1]


def test_an_upgrade_to_the_same_version_changes_nothing(memory_lake: Lake) -> None:
    table = make(memory_lake, 3)
    location = table.metadata_location
    table.upgrade_format_version()
    assert table.metadata_location == location


def test_there_is_no_way_back_and_none_beyond_what_is_known(memory_lake: Lake) -> None:
    table = make(memory_lake, 2)
    location = table.metadata_location
    with pytest.raises(InvalidInput, match="cannot downgrade a table from format version 2 to 1"):
        table.upgrade_format_version(1)
    with pytest.raises(Unsupported, match="format version 4; icefield supports versions 1, 2, 3"):
        table.upgrade_format_version(4)
    assert table.metadata_location == location
    assert files_of(memory_lake) == {location}


def test_an_upgrade_survives_a_race(memory_lake: Lake) -> None:
    table = make(memory_lake, 1)
    racing = RacingCatalog(
        memory_lake.catalog, [lambda: table.append(rows((1, "mon"))), lambda: table.upgrade_format_version(2)]
    )
    through(memory_lake, racing).upgrade_format_version(3)
    assert table.metadata.format_version == 3
    assert rows_of(table) == [(1, "mon")]
    assert UpgradeTable(3).reusable_files() == ()


def test_an_append_that_an_upgrade_overtakes_writes_no_manifest_of_version_1(memory_lake: Lake) -> None:
    table = make(memory_lake, 1)
    table.append(rows((1, "mon")))
    racing = RacingCatalog(
        memory_lake.catalog, [lambda: table.upgrade_format_version(2), lambda: table.upgrade_format_version(3)]
    )
    through(memory_lake, racing).append(rows((2, "mon")))
    assert racing.swaps == 3
    listed = manifests_of(memory_lake, table.metadata.current_snapshot)["manifest_path"].to_pylist()
    versions = [decode_manifest_header(memory_lake.store.read(path), path).format_version for path in listed]
    assert versions == [2, 1], "a manifest of version 2 needs no rewrite in version 3"
    assert sorted(f["sequence_number"] for f in table.scan().files().to_pylist()) == [0, 1]
    assert files_of(memory_lake) == reachable(table), "the manifest of version 1 is removed"


# What old writers left.


def without_manifest_lists(lake: Lake, table: Table) -> None:
    """Make every snapshot name its manifests itself, as the first writers did."""
    metadata = table.metadata
    named = [
        replace(s, manifest_list="", manifests=tuple(manifests_of(lake, s)["manifest_path"].to_pylist()), summary={})
        for s in metadata.snapshots
    ]
    repoint(lake, table, replace(metadata, snapshots=Snapshots(tuple(named))))


def without_counts(lake: Lake, table: Table) -> None:
    """Give the head a manifest list that tells no counts."""
    metadata = table.metadata
    head = metadata.current_snapshot
    listed = manifests_of(lake, head).without([*COUNTS, "partitions"])
    assert head
    location = f"{head.manifest_list}.old"
    lake.store.put_new(
        location,
        encode_manifest_list(listed, ManifestListHeader(head.snapshot_id, None, 0, 1), location),
    )
    kept = metadata.snapshots.without([head.snapshot_id])
    repoint(lake, table, replace(metadata, snapshots=kept.with_added(replace(head, manifest_list=location))))


OLD_WRITERS = pytest.mark.parametrize("make_old", [without_manifest_lists, without_counts])


def old_table(lake: Lake, make_old: Any) -> Table:
    table = make(lake, 1)
    table.append(rows((1, "mon"), (2, "tue")))
    table.append(rows((3, "wed")))
    table.overwrite(rows((4, "mon")), where="day = 'mon'")
    make_old(lake, table)
    return lake.table("a.t")


@OLD_WRITERS
def test_snapshots_of_old_writers_are_read(memory_lake: Lake, make_old: Any) -> None:
    table = old_table(memory_lake, make_old)
    assert rows_of(table) == [(2, "tue"), (3, "wed"), (4, "mon")]
    assert rows_of(table, where="day = 'wed'") == [(3, "wed")]
    assert [len(rows_of(table, s.snapshot_id)) for s in table.snapshots()] == [2, 3, 3]


@VERSIONS
@OLD_WRITERS
def test_the_next_commit_finds_out_what_old_writers_did_not_tell(
    memory_lake: Lake, make_old: Any, version: int
) -> None:
    table = old_table(memory_lake, make_old)
    table.upgrade_format_version(version)
    table.append(rows((5, "mon")))
    listed = manifests_of(memory_lake, table.metadata.current_snapshot)
    if version == 1 and make_old is without_counts:
        assert listed["added_rows_count"].to_pylist() == [1, None, None, None], "version 1 may leave counts open"
        return
    totals = {name: sum(listed[name].to_pylist()) for name in COUNTS}
    assert totals == {
        "added_files_count": 3,
        "added_rows_count": 3,
        "existing_files_count": 1,
        "existing_rows_count": 1,
        "deleted_files_count": 1,
        "deleted_rows_count": 1,
    }
    assert listed["partitions"].null_count == 0
    ids = [s.snapshot_id for s in table.snapshots()]
    assert listed["added_snapshot_id"].to_pylist() == [ids[3], ids[2], ids[2], ids[1]]
    assert rows_of(table) == [(2, "tue"), (3, "wed"), (4, "mon"), (5, "mon")]
    assert version < 3 or listed["first_row_id"].to_pylist() == [0, 1, 2, 3]


@VERSIONS
@OLD_WRITERS
def test_an_overwrite_finds_files_that_old_writers_listed(memory_lake: Lake, make_old: Any, version: int) -> None:
    table = old_table(memory_lake, make_old)
    table.upgrade_format_version(version)
    table.overwrite(rows((7, "wed")), where="day = 'wed' or id = 2")
    assert rows_of(table) == [(4, "mon"), (7, "wed")]


def test_a_table_without_a_uuid_is_the_same_when_another_writer_gives_it_one(memory_lake: Lake) -> None:
    table = make(memory_lake, 1)
    nameless = replace(table.metadata, table_uuid=location_uuid(table.location))
    repoint(memory_lake, table, nameless)
    mine, late = memory_lake.table("a.t"), memory_lake.table("a.t")
    assert mine.metadata.table_uuid == nameless.table_uuid
    racing = RacingCatalog(memory_lake.catalog, [lambda: repoint(memory_lake, mine, table_metadata)])
    table_metadata = replace(nameless, table_uuid=UUID(int=5))
    through(memory_lake, racing).append(rows((1, "mon")))
    assert (late.metadata.table_uuid, racing.swaps) == (UUID(int=5), 2)
    repoint(memory_lake, late, replace(late.metadata, table_uuid=UUID(int=6)))
    with pytest.raises(NoSuchTable, match="recreated"):
        late.refresh()


def test_an_encrypted_snapshot_is_refused_by_name(memory_lake: Lake) -> None:
    table = make(memory_lake, 3)
    table.append(rows((1, "mon")))
    metadata = table.metadata
    (head,) = metadata.snapshots
    repoint(memory_lake, table, replace(metadata, snapshots=Snapshots((replace(head, key_id="k1"),))))
    with pytest.raises(Unsupported, match=f"snapshot {head.snapshot_id} is encrypted \\(key 'k1'\\)"):
        memory_lake.table("a.t").scan().count()


# Compressed metadata.


@VERSIONS
def test_compressed_metadata_has_its_name_and_the_numbers_go_on(lake: Lake, version: int) -> None:
    table = make(lake, version, properties={"write.metadata.compression-codec": "gzip"})
    table.append(rows((1, "mon")))
    table.append(rows((2, "mon")))
    log = [*(e.metadata_file for e in table.metadata.metadata_log), table.metadata_location]
    names = [location.rsplit("/", 1)[1] for location in log]
    assert [name.partition("-")[0] for name in names] == ["00000", "00001", "00002"]
    assert all(name.endswith(".gz.metadata.json") for name in names)
    assert all(Path(local_path(location)).read_bytes().startswith(b"\x1f\x8b") for location in log)
    assert rows_of(lake.table("a.t")) == [(1, "mon"), (2, "mon")]


def test_an_unknown_compression_of_metadata_is_refused(memory_lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="one of none, gzip"):
        make(memory_lake, 2, properties={"write.metadata.compression-codec": "zstd"})
