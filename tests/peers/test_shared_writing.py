"""icefield and PyIceberg write to the same tables of one catalog: in turn, and at the same time."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.transforms import BucketTransform, DayTransform, TruncateTransform
from pyiceberg.types import LongType, StringType
from tests.peers import append_worker, evolved
from tests.peers.normal import normal_rows
from tests.peers.predicates import Predicate
from tests.peers.pyiceberg_catalog import open_pyiceberg, uri_of
from tests.peers.samples import SAMPLES
from tests.postgres import PostgresServer, running_server

import icefield
from icefield import Lake
from icefield.codec.avro.container import parse_header
from icefield.storage.location import local_path

APPENDS = 8
PAUSE_S = 0.03
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("text", pa.string()), ("at", pa.timestamp("us"))])


@pytest.fixture(scope="module")
def peer_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a lake, 100%41"


@pytest.fixture
def shared_lake(folder: Path) -> Iterator[Lake]:
    with icefield.connect(folder, durable=False) as lake:
        lake.create_namespace("shared")
        yield lake


@pytest.fixture
def theirs(folder: Path, shared_lake: Lake) -> Iterator[SqlCatalog]:
    catalog = open_pyiceberg(folder)
    yield catalog
    catalog.close()


def test_we_append_to_their_evolved_table_and_they_read_it(shared_lake: Lake, theirs: SqlCatalog) -> None:
    *_, table = evolved.evolve(theirs)
    before = table.scan().to_arrow()
    ours = shared_lake.table(evolved.NAME)
    added = evolved.rows(table, range(100, 110))
    ours.append(added)
    _check_both_read(ours, theirs, pa.concat_tables([before, added.cast(before.schema)]))


@pytest.mark.parametrize("codec", ["gzip", "zstd", "deflate", "null", "zstandard", "bzip2"])
def test_manifests_in_every_codec_of_theirs_are_read_and_written(
    codec: str, shared_lake: Lake, theirs: SqlCatalog
) -> None:
    table = theirs.create_table("shared.codec", SCHEMA, properties={"write.avro.compression-codec": codec})
    table.append(_rows(0, 3))
    ours = shared_lake.table("shared.codec")
    ours.append(_rows(3, 6))
    _check_both_read(ours, theirs, _rows(0, 6))
    locations = table.refresh().inspect.manifests()["path"].to_pylist()
    codecs = {parse_header(Path(local_path(location)).read_bytes(), location).codec for location in locations}
    assert len(locations) == 2
    assert len(codecs) == 1  # ours is compressed as theirs


def test_both_append_in_turn_while_they_evolve_the_table(shared_lake: Lake, theirs: SqlCatalog) -> None:
    ours = shared_lake.create_table("shared.turns", SCHEMA, partition_by=["text"])
    ours.append(_rows(0, 3))
    for turn in range(1, 4):
        table = theirs.load_table(ours.name)
        table.append(_rows(turn * 10, turn * 10 + 3))
        with table.update_schema() as update:
            update.add_column(f"extra_{turn}", LongType())
        ours.append(
            _rows(turn * 10 + 5, turn * 10 + 7).append_column(f"extra_{turn}", pa.array([turn, None], pa.int64()))
        )
    found = ours.scan().to_arrow().read_all()
    assert sorted(found.column("id").to_pylist()) == [
        0,
        1,
        2,
        *(t * 10 + n for t in (1, 2, 3) for n in (0, 1, 2, 5, 6)),
    ]
    assert {row["id"]: row["extra_2"] for row in found.to_pylist() if row["extra_2"] is not None} == {25: 2}
    _check_both_read(ours, theirs, theirs.load_table(ours.name).scan().to_arrow())
    assert [s.sequence_number for s in ours.snapshots()] == list(range(1, 8))


def test_they_delete_and_overwrite_what_we_wrote(shared_lake: Lake, theirs: SqlCatalog) -> None:
    ours = shared_lake.create_table("shared.changed", SCHEMA, partition_by=["text"])
    ours.append(_rows(0, 6))
    ours.append(_rows(6, 12))
    table = theirs.load_table(ours.name)
    table.delete("id = 4")
    table.overwrite(_rows(20, 22), overwrite_filter="id > 9")
    kept = [*range(4), *range(5, 10), 20, 21]
    _check_both_read(ours, theirs, pa.concat_tables([_rows(n, n + 1) for n in kept]))
    assert ours.count() == len(kept)


def test_we_overwrite_what_they_wrote(shared_lake: Lake, theirs: SqlCatalog) -> None:
    table = theirs.create_table("shared.theirs", SCHEMA)
    table.append(_rows(0, 6))
    table.append(_rows(6, 12))
    ours = shared_lake.table("shared.theirs")
    ours.overwrite(_rows(20, 22), where="id > 3 AND id < 9", check_rows=False)
    _check_both_read(ours, theirs, pa.concat_tables([_rows(0, 4), _rows(9, 12), _rows(20, 22)]))
    ours.overwrite(_rows(30, 32))
    _check_both_read(ours, theirs, _rows(30, 32))


def test_we_write_partitions_that_they_defined(shared_lake: Lake, theirs: SqlCatalog) -> None:
    table = theirs.create_table("shared.partitioned", SCHEMA)
    table.append(_rows(0, 6))
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(4), "id_bucket")
        update.add_field("at", DayTransform(), "at_day")
    ours = shared_lake.table("shared.partitioned")
    ours.append(_rows(6, 12))
    with table.refresh().update_spec() as update:
        update.remove_field("at_day")
        update.add_field("text", TruncateTransform(2), "text_start")
    ours.append(_rows(12, 18))
    _check_both_read(ours, theirs, _rows(0, 18))
    table.refresh()
    for ask in (*(Predicate("id", "=", (n,)) for n in (8, 14)), Predicate("text", "=", ("text 1",)), _at(7), _at(2)):
        found = table.scan(row_filter=ask.pyiceberg()).to_arrow().column("id").to_pylist()
        ours_found = ours.scan(where=ask.icefield()).to_arrow().read_all().column("id").to_pylist()
        assert sorted(found) == sorted(ours_found) != []


def test_appends_of_both_at_the_same_time_all_land(folder: Path, shared_lake: Lake, theirs: SqlCatalog) -> None:
    _check_race(shared_lake, theirs, uri_of(folder))


def test_appends_of_both_at_the_same_time_all_land_in_postgres(peer_server: PostgresServer, tmp_path: Path) -> None:
    url = peer_server.new_schema()
    uri = url.replace("://", "+psycopg://")
    with icefield.connect(url, warehouse=tmp_path / "lake", durable=False) as lake:
        lake.create_namespace("shared")
        theirs = SqlCatalog("icefield", uri=uri, warehouse=f"file://{tmp_path / 'lake'}")
        try:
            _check_race(lake, theirs, uri)
        finally:
            theirs.close()


def _check_race(lake: Lake, theirs: SqlCatalog, uri: str) -> None:
    """Append from this process while another one appends with PyIceberg: every row is there, once."""
    ours = lake.create_table("shared.raced", append_worker.SCHEMA)
    with _started(uri, ours.name) as worker:
        for number in range(APPENDS, 2 * APPENDS):
            ours.append(pa.Table.from_pylist([{"id": number, "by": "icefield"}], append_worker.SCHEMA))
            # PyIceberg takes no turns and waits for seconds after a conflict, so that it needs to be let in.
            time.sleep(PAUSE_S)
        assert worker.wait() == 0
    snapshots = ours.snapshots()
    assert len(snapshots) == 2 * APPENDS
    parents = [snapshot.parent_snapshot_id for snapshot in snapshots]
    assert parents == [None, *(snapshot.snapshot_id for snapshot in snapshots[:-1])]
    expected = pa.table({"id": range(2 * APPENDS), "by": ["pyiceberg"] * APPENDS + ["icefield"] * APPENDS})
    _check_both_read(ours, theirs, expected)


def test_they_make_namespaces_and_tables_that_we_list_rename_and_drop(shared_lake: Lake, theirs: SqlCatalog) -> None:
    theirs.create_namespace("made")
    theirs.create_table("made.one", SCHEMA)
    assert shared_lake.tables("made") == ["made.one"]
    shared_lake.rename_table("made.one", "made.two")
    assert theirs.list_tables("made") == [("made", "two")]
    theirs.load_table("made.two").append(_rows(0, 2))
    assert shared_lake.table("made.two").count() == 2
    shared_lake.drop_table("made.two")
    assert theirs.list_tables("made") == []
    shared_lake.drop_namespace("made")
    assert not theirs.namespace_exists("made")


def test_a_property_and_a_tag_that_they_set_survive_our_append(shared_lake: Lake, theirs: SqlCatalog) -> None:
    table = theirs.create_table("shared.kept", SCHEMA, properties={"owner": "them"})
    table.append(_rows(0, 2))
    snapshot = table.current_snapshot()
    assert snapshot
    table.manage_snapshots().create_tag(snapshot.snapshot_id, "first").commit()
    with table.update_schema() as update:
        update.add_column("documented", StringType(), doc="what it is for")
    ours = shared_lake.table("shared.kept")
    ours.append(_rows(2, 4))
    table.refresh()
    assert table.properties["owner"] == "them"
    assert table.schema().find_field("documented").doc == "what it is for"
    assert table.refs()["first"].snapshot_id == snapshot.snapshot_id
    assert ours.scan(as_of="first").count() == 2


def _check_both_read(ours: icefield.Table, theirs: SqlCatalog, expected: pa.Table) -> None:
    read = ours.scan().to_arrow().read_all()
    rows = normal_rows(expected, read.schema)
    assert normal_rows(read, read.schema) == rows
    assert normal_rows(_their_rows(theirs.load_table(ours.name)), read.schema) == rows


def _their_rows(table: PyIcebergTable) -> pa.Table:
    return table.scan().to_arrow()


def _rows(start: int, stop: int) -> pa.Table:
    made = [{"id": n, "text": None if n % 5 == 4 else f"text {n % 3}", "at": _moment(n)} for n in range(start, stop)]
    return pa.Table.from_pylist(made, SCHEMA)


def _moment(n: int) -> object:
    moments = SAMPLES["timestamp"].values
    return moments[n % len(moments)]


def _at(n: int) -> Predicate:
    return Predicate("at", "=", (_moment(n),))


@contextmanager
def _started(uri: str, table: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a process that appends with PyIceberg, and let it go once it is ready."""
    command = [sys.executable, append_worker.__file__, uri, table, "0", str(APPENDS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin
        assert worker.stdout
        assert worker.stdout.readline() == "ready\n"
        worker.stdin.write("go\n")
        worker.stdin.flush()
        yield worker


def test_they_continue_the_numbers_of_metadata_files_that_are_named_after_leases(
    shared_lake: Lake, theirs: SqlCatalog
) -> None:
    shortest = {"icefield.gc.foreign-readers": "false", "icefield.gc.grace-ms": "0", "icefield.gc.orphan-age-ms": "0"}
    ours = shared_lake.create_table(
        "shared.t", "id long", properties={**shortest, "write.metadata.previous-versions-max": "2"}
    )
    rows = pa.table({"id": [1]})
    for _ in range(3):
        ours.append(rows)
    theirs.load_table("shared.t").append(rows)
    ours.append(rows)
    assert ours.metadata_location.rpartition("/")[2].startswith("00005-")
    ours.expire_snapshots("2100-01-01")
    assert ours.fsck().is_healthy
