"""What only SQLite can get wrong: outcomes, waiting, files that are not what they should be."""

import pickle
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from icefield.ambient import SeededAmbient
from icefield.catalog.catalog import PointerSwap
from icefield.catalog.sql.catalog import SCHEMA, SqlCatalog
from icefield.catalog.sql.database import Result, Rows, Session, Value
from icefield.catalog.sql.sqlite import SqliteDatabase, SqliteSettings, open_sqlite_catalog
from icefield.catalog.sql.sqlite_errors import explain
from icefield.errors import AlreadyExists, CatalogError, CommitConflict, CommitStateUnknown, NoSuchTable, Unsupported
from icefield.model.names import TableName, parse_table_name

WORKER = Path(__file__).with_name("failing_worker.py")
T, U = parse_table_name("a.t"), parse_table_name("a.u")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(open_sqlite_catalog(tmp_path / "c.db")) as catalog:
        catalog.create_namespace(("a",))
        catalog.swap([PointerSwap(T, None, "0"), PointerSwap(U, None, "u")])
    return tmp_path / "c.db"


@pytest.fixture
def catalog(path: Path) -> Iterator[SqlCatalog]:
    with closing(open_sqlite_catalog(path)) as catalog:
        yield catalog


def query(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


class LosesReply(SqliteDatabase):
    """The commit lands, and the answer is lost."""

    def send_commit(self, connection: sqlite3.Connection) -> None:
        super().send_commit(connection)
        raise sqlite3.OperationalError("disk I/O error")


class LosesCommit(SqliteDatabase):
    """The commit never reaches the file, and nobody can tell."""

    def send_commit(self, connection: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")


@pytest.mark.parametrize(("database", "landed"), [(LosesReply, True), (LosesCommit, False)])
def test_r16_a_lost_reply_is_an_unknown_outcome_whatever_happened(
    path: Path, catalog: SqlCatalog, database: type[SqliteDatabase], landed: bool
) -> None:
    with closing(SqlCatalog(database(path, SCHEMA), "default")) as unlucky:
        changes: tuple[Callable[[], None], ...] = (
            lambda: unlucky.swap([PointerSwap(T, "0", "1")]),
            lambda: unlucky.rename_table(U, parse_table_name("a.v")),
            lambda: unlucky.create_namespace(("b",)),
        )
        for change in changes:
            with pytest.raises(CommitStateUnknown) as unknown:
                change()
            assert (unknown.value.retryable, unknown.value.cleanable) == (False, False)
        assert catalog.pointer(T) == ("1" if landed else "0")
        assert unlucky.pointer(T) == catalog.pointer(T)
    # The unlucky one left no lock behind.
    catalog.swap([PointerSwap(T, catalog.pointer(T), "2")])


def test_r16_a_commit_that_runs_out_of_room_is_unknown_and_the_next_one_works(path: Path, catalog: SqlCatalog) -> None:
    answer = run_failing("full", path)
    assert "CommitStateUnknown" in answer
    assert catalog.pointer(T) == "0"
    catalog.swap([PointerSwap(T, "0", "1")])


class NothingChanges:
    """A session whose database takes every change and makes none."""

    def __init__(self, session: Session, claimed: int = 0) -> None:
        self._session = session
        self._claimed = claimed

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Rows:
        if statement.startswith("SELECT"):
            return self._session.execute(statement, values)
        return Rows((), [], self._claimed)


class BoastfulDatabase(SqliteDatabase):
    """Changes nothing and says that it did, as if nobody counted the rows."""

    def write(self, work: Callable[[Session], Result]) -> Result:
        return super().write(lambda session: work(NothingChanges(session, claimed=1)))


class ForgetfulDatabase(SqliteDatabase):
    def write(self, work: Callable[[Session], Result]) -> Result:
        return super().write(lambda session: work(NothingChanges(session)))


def test_r23_a_change_that_changed_no_row_is_never_reported_as_success(path: Path) -> None:
    with closing(SqlCatalog(ForgetfulDatabase(path, SCHEMA), "default")) as forgetful:
        changes: tuple[Callable[[], None], ...] = (
            lambda: forgetful.swap([PointerSwap(T, "0", "1")]),
            lambda: forgetful.swap([PointerSwap(T, "0", None)]),
            lambda: forgetful.swap([PointerSwap(parse_table_name("a.new"), None, "n")]),
            lambda: forgetful.rename_table(T, parse_table_name("a.new")),
            lambda: forgetful.create_namespace(("b",)),
            lambda: forgetful.update_namespace_properties(("a",), [], {"k": "v"}),
        )
        for change in changes:
            with pytest.raises(CommitConflict):
                change()


def test_r23_without_the_guard_a_change_that_was_not_made_is_success(path: Path, catalog: SqlCatalog) -> None:
    with closing(SqlCatalog(BoastfulDatabase(path, SCHEMA), "default")) as boastful:
        boastful.swap([PointerSwap(T, "0", "1")])
    assert catalog.pointer(T) == "0"


def test_the_previous_pointer_is_kept_beside_the_current_one(path: Path, catalog: SqlCatalog) -> None:
    statement = (
        "SELECT metadata_location, previous_metadata_location, iceberg_type FROM iceberg_tables WHERE table_name = 't'"
    )
    assert query(path, statement) == [("0", None, "TABLE")]
    catalog.swap([PointerSwap(T, "0", "1")])
    catalog.swap([PointerSwap(T, "1", "1")])
    assert query(path, statement) == [("1", "0", "TABLE")]
    catalog.swap([PointerSwap(T, "1", "2")])
    assert query(path, statement) == [("2", "1", "TABLE")]


def test_catalogs_of_other_names_in_the_same_file_are_not_touched(path: Path, catalog: SqlCatalog) -> None:
    with closing(open_sqlite_catalog(path, name="other")) as other:
        assert other.list_namespaces() == []
        other.create_namespace(("a",))
        other.swap([PointerSwap(T, None, "other")])
        assert catalog.pointer(T) == "0"
        other.swap([PointerSwap(T, "other", None)])
        other.drop_namespace(("a",))
    assert catalog.pointer(T) == "0"


def test_views_are_no_tables_but_take_their_names(path: Path, catalog: SqlCatalog) -> None:
    query(path, "INSERT INTO iceberg_tables VALUES ('default', 'a', 'view', 'v', null, 'VIEW')")
    query(path, "INSERT INTO iceberg_tables VALUES ('default', 'a', 'old', 'o', null, null)")
    view = TableName(("a",), "view")
    assert [table.name for table in catalog.list_tables(("a",))] == ["old", "t", "u"]
    assert catalog.pointers([view, T]) == {T: "0"}
    with pytest.raises(NoSuchTable):
        catalog.pointer(view)
    with pytest.raises(NoSuchTable):
        catalog.swap([PointerSwap(view, "v", "w")])
    with pytest.raises(NoSuchTable):
        catalog.swap([PointerSwap(view, "v", None)])
    with pytest.raises(NoSuchTable):
        catalog.rename_table(view, parse_table_name("a.x"))
    with pytest.raises(AlreadyExists, match="view"):
        catalog.swap([PointerSwap(view, None, "t")])
    with pytest.raises(AlreadyExists, match="view"):
        catalog.rename_table(T, view)


def test_a_row_without_a_metadata_location_is_named(path: Path, catalog: SqlCatalog) -> None:
    query(path, "UPDATE iceberg_tables SET metadata_location = null WHERE table_name = 't'")
    with pytest.raises(CatalogError, match=r"a\.t has no metadata location"):
        catalog.pointer(T)
    with pytest.raises(CatalogError, match=r"a\.t has no metadata location"):
        catalog.swap([PointerSwap(T, "0", "1")])


def test_a_commit_is_synced_unless_told_otherwise(path: Path, catalog: SqlCatalog) -> None:
    def synchronous(catalog: SqlCatalog) -> list[tuple[Value, ...]]:
        return catalog._database.read(lambda session: session.execute("PRAGMA synchronous").values)

    assert query(path, "PRAGMA journal_mode") == [("wal",)]
    assert synchronous(catalog) == [(3,)]
    with closing(open_sqlite_catalog(path, settings=SqliteSettings(durable=False))) as fast:
        assert synchronous(fast) == [(1,)]


def test_opening_makes_nothing_and_using_makes_the_file(tmp_path: Path) -> None:
    catalog = open_sqlite_catalog(tmp_path / "new ?#%41.db")
    assert list(tmp_path.iterdir()) == []
    assert catalog.list_namespaces() == []
    assert (tmp_path / "new ?#%41.db").exists()
    catalog.close()


def test_a_closed_catalog_says_so(catalog: SqlCatalog) -> None:
    catalog.close()
    catalog.close()
    with pytest.raises(CatalogError, match="was closed"):
        catalog.pointer(T)


def test_a_writer_waits_for_another_one(path: Path, catalog: SqlCatalog) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.2, lambda: other.execute("COMMIT")).start()
        catalog.swap([PointerSwap(T, "0", "1")])
    assert catalog.pointer(T) == "1"


def test_a_lock_that_is_never_released_is_an_error_after_the_time_out(path: Path) -> None:
    settings, ambient = SqliteSettings(busy_timeout_s=30), SeededAmbient(1)
    with (
        closing(open_sqlite_catalog(path, settings=settings, ambient=ambient)) as catalog,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        assert catalog.pointer(T) == "0"
        started = ambient.monotonic()
        with pytest.raises(CatalogError, match="was locked by other connections for 30 s"):
            catalog.swap([PointerSwap(T, "0", "1")])
        assert 30 <= ambient.monotonic() - started < 31
        other.execute("ROLLBACK")
        catalog.swap([PointerSwap(T, "0", "1")])


def test_without_a_write_ahead_log_a_commit_that_readers_lock_out_is_a_clean_failure(path: Path) -> None:
    assert query(path, "PRAGMA journal_mode = DELETE") == [("delete",)]
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        # A reader keeps the file from being switched to the log, and then the commit from landing.
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM iceberg_tables").fetchall()
        with closing(open_sqlite_catalog(path, ambient=SeededAmbient(1))) as catalog:
            with pytest.raises(CatalogError, match="was locked by other connections"):
                catalog.swap([PointerSwap(T, "0", "1")])
            reader.execute("ROLLBACK")
            assert query(path, "PRAGMA journal_mode") == [("delete",)]
            assert catalog.pointer(T) == "0"
            catalog.swap([PointerSwap(T, "0", "1")])
            assert catalog.pointer(T) == "1"


def check_unusable(path: Path, message: str, *, create: bool = True) -> None:
    with closing(open_sqlite_catalog(path, settings=SqliteSettings(create=create))) as catalog:
        with pytest.raises(CatalogError, match=message):
            catalog.pointer(T)
        with pytest.raises(CatalogError, match=message):
            catalog.create_namespace(("a",))


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    check_unusable(tmp_path / "no" / "c.db", "there is no directory")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named_when_it_may_not_be_made(tmp_path: Path) -> None:
    check_unusable(tmp_path / "c.db", "there is no catalog at", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_the_tables_is_named_when_they_may_not_be_made(tmp_path: Path) -> None:
    query(tmp_path / "c.db", "CREATE TABLE other (x)")
    check_unusable(tmp_path / "c.db", "is not a catalog", create=False)


def test_a_directory_is_named(tmp_path: Path) -> None:
    check_unusable(tmp_path, "it is a directory")


def test_a_file_that_is_no_database_is_named_and_left(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_bytes(b"PAR1" * 1000)
    check_unusable(tmp_path / "c.db", "is not a SQLite database")
    assert (tmp_path / "c.db").read_bytes() == b"PAR1" * 1000


def test_a_damaged_file_whose_fault_has_no_text_is_named(tmp_path: Path) -> None:
    """SQLite quotes the name of the table that does not parse, and Python cannot decode what it quotes."""
    path = tmp_path / "c.db"
    query(path, SCHEMA["iceberg_tables"])
    path.write_bytes(path.read_bytes().replace(b"iceberg_tables", b"iceberg_tabl\xff\xff").replace(b"NULL", b"N\xffLL"))
    check_unusable(path, "is corrupt|is not a catalog|failed", create=False)


def test_a_damaged_page_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    for statement in SCHEMA.values():
        query(path, statement)
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    check_unusable(path, "is corrupt: .*Restore it from a backup", create=False)


def test_a_file_that_sqlite_finds_to_be_read_only_is_named(path: Path, catalog: SqlCatalog) -> None:
    """On some mounts only SQLite notices."""
    catalog.entries()
    opened = closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True))
    with opened as connection, pytest.raises(sqlite3.OperationalError) as raised:
        connection.execute("DELETE FROM iceberg_tables")
    assert "is read-only for this process" in str(explain(raised.value, path, 1))


def test_a_table_without_a_column_that_is_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    query(path, SCHEMA["iceberg_tables"].replace("metadata_location", "metadata_locatiom", 1))
    with (
        closing(open_sqlite_catalog(path)) as catalog,
        pytest.raises(CatalogError, match="no column metadata_location"),
    ):
        catalog.find(T)


def test_a_file_that_was_replaced_under_an_open_catalog_takes_no_more_commits(path: Path, catalog: SqlCatalog) -> None:
    catalog.pointer(T)
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)
    for _ in range(2):
        with pytest.raises(CatalogError, match="was replaced or removed"):
            catalog.swap([PointerSwap(T, "0", "1")])
    path.unlink()
    with pytest.raises(CatalogError, match="was replaced or removed"):
        catalog.pointer(T)


def run_failing(what: str, path: Path) -> str:
    command = [sys.executable, str(WORKER), what, str(path)]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=60).stdout


@pytest.fixture
def public(path: Path) -> Iterator[Path]:
    """A copy of the catalog in a directory that every user can reach."""
    directory = Path(tempfile.mkdtemp())
    copy = Path(shutil.copy(path, directory / "c.db"))
    yield copy
    directory.chmod(0o700)
    shutil.rmtree(directory)


def test_a_read_only_file_can_be_read_and_says_why_it_cannot_be_written(public: Path) -> None:
    public.chmod(0o444)
    public.parent.chmod(0o777)
    assert run_failing("read", public) == "0\n"
    assert "CatalogError" in (answer := run_failing("swap", public))
    assert "is read-only for this process. Check the mount and the permissions" in answer


def test_a_file_in_a_read_only_directory_can_be_read(public: Path) -> None:
    public.parent.chmod(0o555)
    public.chmod(0o444)
    assert run_failing("read", public) == "0\n"
    assert "CatalogError" in (answer := run_failing("swap", public))
    assert "permissions of the file and of its directory" in answer


def test_a_catalog_with_connections_is_not_pickled(tmp_path: Path) -> None:
    with closing(open_sqlite_catalog(tmp_path / "c.db")) as catalog, pytest.raises(Unsupported, match="Open it there"):
        pickle.dumps(catalog)
