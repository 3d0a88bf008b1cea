"""A disk that is full: a small file system of its own, where a mount is allowed, and databases that may not grow."""

import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icefield
from icefield.catalog.catalog import PointerSwap
from icefield.catalog.sql.catalog import SCHEMA, SqlCatalog
from icefield.catalog.sql.sqlite import SqliteDatabase, open_sqlite_catalog
from icefield.catalog.sql.sqlite_errors import is_rolled_back
from icefield.catalog.sql.sqlite_read_only import read_unwritable
from icefield.cli.demo import command
from icefield.cli.demo.orders import SCHEMA as SCHEMA_OF_ORDERS
from icefield.cli.demo.race import ArrowProcess, Task, race
from icefield.cli.main import run
from icefield.errors import CatalogError, CommitError, CommitStateUnknown, IcefieldError, StorageError
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.storage.local import LocalStore
from icefield.table.table import Table

T = parse_table_name("a.t")


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all().column("id").to_pylist())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "icefield-test", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path, *, leave: int) -> Path:
    """Take all room but some bytes, to the page."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
        file.truncate(max(0, file.tell() - leave))
    return ballast


def files(lake: Lake) -> set[str]:
    return {
        f.location
        for f in lake.store.list(lake.warehouse)
        if "/catalog." not in f.location and "/ballast" not in f.location
    }


@pytest.mark.parametrize("leave", range(0, 36 * 1024, 4096))
def test_an_append_to_a_full_disk_leaves_nothing_and_works_once_there_is_room(small_disk: Path, leave: int) -> None:
    with icefield.connect(small_disk, durable=False) as lake:
        table = lake.create_table("a.t", "id long")
        table.append(rows(1))
        before = files(lake)
        ballast = fill(small_disk, leave=leave)
        landed, outcomes = 0, list[type[IcefieldError]]()
        for number in range(3):
            try:
                table.append(rows(number))
                landed += 1
                before = files(lake)
            except IcefieldError as error:
                outcomes.append(type(error))
                assert files(lake) == before
        assert CommitStateUnknown not in outcomes
        ballast.unlink()
        table.append(rows(9))
        assert len(ids(lake.table("a.t"))) == landed + 2


class FillsUp(SqliteDatabase):
    """Fills the disk right before COMMIT, so that the log has no room for it."""

    disk: Path

    def send_commit(self, connection: sqlite3.Connection) -> None:
        fill(self.disk, leave=0)
        super().send_commit(connection)


def test_a_commit_that_finds_the_disk_full_certainly_did_not_happen(small_disk: Path) -> None:
    path = small_disk / "c.db"
    with closing(open_sqlite_catalog(path)) as catalog:
        catalog.create_namespace(("a",))
        catalog.swap([PointerSwap(T, None, "0")])
    database = FillsUp(path, SCHEMA)
    database.disk = small_disk
    with closing(SqlCatalog(database, "default")) as full:
        with pytest.raises(CatalogError, match="disk of the catalog .* is full") as error:
            full.swap([PointerSwap(T, "0", "1" * 500)])
        assert error.value.cleanable
        (small_disk / "ballast").unlink()
    with closing(open_sqlite_catalog(path)) as catalog:
        assert catalog.pointer(T) == "0"
        catalog.swap([PointerSwap(T, "0", "2")])
        assert catalog.pointer(T) == "2"


def test_a_database_that_may_not_grow_is_an_error_and_nothing_else(tmp_path: Path) -> None:
    class Bounded(SqliteDatabase):
        def _open(self) -> sqlite3.Connection:
            connection = super()._open()
            connection.execute("PRAGMA max_page_count = 6")
            return connection

    with closing(SqlCatalog(Bounded(tmp_path / "c.db", SCHEMA), "default")) as catalog:
        catalog.create_namespace(("a",))
        for landed in range(1000):
            try:
                catalog.swap([PointerSwap(parse_table_name(f"a.t{landed}"), None, "x" * 400)])
            except CatalogError as error:
                assert "is full" in str(error)  # noqa: PT017 - which of them fails depends on the page size
                break
        assert len(catalog.list_tables(("a",))) == landed


@pytest.mark.parametrize(
    ("code", "in_transaction", "certain"),
    [
        (sqlite3.SQLITE_FULL, False, True),
        (sqlite3.SQLITE_READONLY, False, True),
        (sqlite3.SQLITE_BUSY, True, True),
        (sqlite3.SQLITE_BUSY, False, False),
        (sqlite3.SQLITE_LOCKED, True, True),
        (sqlite3.SQLITE_IOERR, False, False),
        (sqlite3.SQLITE_IOERR_FSYNC, False, False),
        (sqlite3.SQLITE_IOERR_WRITE, False, False),
        (sqlite3.SQLITE_CORRUPT, False, False),
        (sqlite3.SQLITE_NOMEM, False, False),
    ],
)
def test_which_failures_of_commit_are_certain(code: int, in_transaction: bool, certain: bool) -> None:
    error = sqlite3.OperationalError("said so")
    error.sqlite_errorcode = code
    assert is_rolled_back(error, in_transaction=in_transaction) is certain


@pytest.fixture
def full_temporary_files(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let temporary files lie on a disk that is full."""
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    fill(small_disk, leave=0)
    return small_disk


def test_a_full_disk_is_named_with_what_to_do(small_disk: Path) -> None:
    fill(small_disk, leave=0)
    with pytest.raises(StorageError, match="No space left on device") as error:
        LocalStore().put_new(f"file://{small_disk}/x", b"x" * 5000)
    assert error.value.hint == "Free some space and run it again"


def test_no_catalog_is_made_on_a_disk_without_room(small_disk: Path) -> None:
    # SQLite has room for the database here, and none for the index of its log.
    fill(small_disk, leave=12 * 1024)
    with pytest.raises(CatalogError, match="the disk of the catalog .* is full"):
        icefield.connect(small_disk / "lake").create_table("a.t", "id long")


def test_a_copy_of_the_catalog_needs_room_for_temporary_files(tmp_path: Path, full_temporary_files: Path) -> None:
    path = tmp_path / "c.db"
    with closing(open_sqlite_catalog(path)) as catalog:
        catalog.create_namespace(("a",))
        shutil.copyfile(path, tmp_path / "crashed.db")
        shutil.copyfile(f"{path}-wal", tmp_path / "crashed.db-wal")
    with pytest.raises(CatalogError, match="cannot copy the catalog .*No space left on device"):
        read_unwritable(tmp_path / "crashed.db", lambda connection: None)
    assert [p.name for p in full_temporary_files.iterdir()] == ["ballast"]


@pytest.mark.spark
def test_the_list_of_files_for_spark_needs_room_for_temporary_files(
    lake: Lake, spark: SparkSession, full_temporary_files: Path
) -> None:
    table = lake.create_table("a.t", "id long")
    table.append(rows(1))
    with pytest.raises(StorageError, match="No space left on device"):
        table.scan().to_spark()


@pytest.fixture
def orders(small_disk: Path) -> Task:
    """A table of the demo, with a little room on its disk."""
    with icefield.connect(small_disk, durable=False) as lake:
        lake.create_table("shop.orders", SCHEMA_OF_ORDERS)
    fill(small_disk, leave=80 * 1024)
    return Task("writer-1", str(small_disk), "shop.orders", 30_000, ((0, 15_000), (15_000, 30_000)))


@pytest.mark.slow
def test_a_process_of_the_demo_tells_of_a_full_disk_in_one_line(
    orders: Task, capfd: pytest.CaptureFixture[str]
) -> None:
    stopped = pytest.raises(CommitError, match="the process writer-1 stopped: cannot write .*No space left on device")
    with ArrowProcess(orders) as process, stopped as error:
        list(process.landed())
    assert error.value.hint == "Free some space and run it again"
    assert capfd.readouterr().err == ""


@pytest.mark.spark
def test_a_thread_of_the_demo_tells_of_a_full_disk_in_one_line(
    orders: Task, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(StorageError, match="cannot write .*No space left on device"):
        list(race(spark, [orders], []))
    assert capfd.readouterr().err == ""


def test_the_command_line_does_not_take_a_full_disk_for_a_bug_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        with Path("/dev/full").open("wb", buffering=0) as device:
            device.write(b"x")

    monkeypatch.setattr(command, "make_fresh", full)
    assert run(["demo"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: a disk is full: [Errno 28] No space left on device",
        "hint: Free some space and run it again",
    ]
