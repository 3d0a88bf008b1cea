"""The SQL catalog in a SQLite file, shared by many processes.

Writers wait for the file's single write lock (BEGIN IMMEDIATE), so transactions are serializable; with the write-ahead
log, readers never wait. Icefield does the waiting, not SQLite: SQLite's pauses grow to 100 ms and are unfair to those
who wait longest, ours are short and jittered. A commit is synced before it is acknowledged, unless `durable` is False.

Never open the file in any other way in the same process (not even to read its first bytes): by the rules of POSIX,
closing any descriptor of it drops SQLite's locks.

Errors: any failure before COMMIT is sent, and a COMMIT refused because the file is locked or read-only or the disk is
full, is a CatalogError and changed nothing. Any other failure of COMMIT is a CommitStateUnknown: the commit record may
be in the log, where the next process that recovers it will find it.
"""

import os
import sqlite3
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from icefield.ambient import Ambient, SystemAmbient
from icefield.catalog.missing import refuse_tables
from icefield.catalog.sql.catalog import SCHEMA, SqlCatalog
from icefield.catalog.sql.connections import Connections
from icefield.catalog.sql.database import Result, Rows, Session, Value
from icefield.catalog.sql.sqlite_errors import SQLITE_ERRORS, explain, is_busy, is_read_only, is_rolled_back, read_only
from icefield.catalog.sql.sqlite_read_only import is_unwritable, read_unwritable
from icefield.errors import CatalogError, CommitStateUnknown

_FIRST_PAUSE_S = 0.0005
_LONGEST_PAUSE_S = 0.01
_WAL_PATIENCE_S = 5.0


@dataclass(frozen=True)
class SqliteSettings:
    """How to use the file.

    durable: sync every commit; with False a power failure may lose the last commits, each as a whole.
    create: create the file and its tables if they are missing.
    warehouse: a local directory; a catalog is not created while it contains tables, see `catalog.missing`.
    busy_timeout_s: how long to wait for other processes.
    """

    durable: bool = True
    create: bool = True
    warehouse: Path | None = None
    busy_timeout_s: float = 60.0


def open_sqlite_catalog(
    path: str | Path, *, name: str = "default", settings: SqliteSettings | None = None, ambient: Ambient | None = None
) -> SqlCatalog:
    """Return the catalog `name` in a SQLite file, which is opened on first use."""
    return SqlCatalog(SqliteDatabase(path, SCHEMA, settings=settings, ambient=ambient), name)


class SqliteDatabase:
    """Transactions on a SQLite file; `schema` maps each required table to its CREATE TABLE IF NOT EXISTS.

    The first of them distinguishes a catalog from other files.
    """

    def __init__(
        self,
        path: str | Path,
        schema: Mapping[str, str],
        *,
        settings: SqliteSettings | None = None,
        ambient: Ambient | None = None,
    ) -> None:
        self._path = Path(path).absolute()
        self.identity = f"sqlite:{self._path.resolve()}"
        self._schema = schema
        self._settings = settings or SqliteSettings()
        self._ambient = ambient or SystemAmbient()
        self._connections = Connections(self._open, (sqlite3.Error,))
        self._file: os.stat_result | None = None

    def read(self, work: Callable[[Session], Result]) -> Result:
        def run() -> Result:
            with self._connections.borrow() as connection:
                self._check_same_file()
                connection.execute("BEGIN")
                try:
                    return work(SqliteSession(connection))
                finally:
                    _roll_back(connection)

        with self._explained():
            if is_unwritable(self._path):
                return self._while_busy(lambda: read_unwritable(self._path, self._on_catalog(work)))
            return self._while_busy(run)

    def write(self, work: Callable[[Session], Result]) -> Result:
        if is_unwritable(self._path):
            raise read_only(self._path)
        with self._explained(), self._connections.borrow() as connection:
            self._check_same_file()
            self._while_busy(lambda: connection.execute("BEGIN IMMEDIATE"))
            try:
                result = work(SqliteSession(connection))
            except BaseException:
                _roll_back(connection)
                raise
            self._commit(connection)
            return result

    def close(self) -> None:
        self._connections.close()

    def send_commit(self, connection: sqlite3.Connection) -> None:
        """Send COMMIT; the only place after which an outcome can be unknown."""
        connection.execute("COMMIT")

    def _on_catalog(self, work: Callable[[Session], Result]) -> Callable[[sqlite3.Connection], Result]:
        def run(connection: sqlite3.Connection) -> Result:
            found = _tables_in(connection)
            if missing := [table for table in self._schema if table not in found]:
                raise CatalogError(f"{self._path} is not a catalog: missing tables: {', '.join(missing)}")
            return work(SqliteSession(connection))

        return run

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            self._while_busy(lambda: self.send_commit(connection))
        except SQLITE_ERRORS as error:
            if is_rolled_back(error, in_transaction=connection.in_transaction):
                _roll_back(connection)
                raise
            raise CommitStateUnknown(
                f"the commit to {self._path} failed after it was sent: {error}",
                hint="It may have been committed: check the table before retrying, and delete nothing",
            ) from error

    def _while_busy(self, action: Callable[[], Result], patience_s: float | None = None) -> Result:
        patience_s = self._settings.busy_timeout_s if patience_s is None else patience_s
        deadline = self._ambient.monotonic() + patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or self._ambient.monotonic() >= deadline:
                    raise
            self._ambient.sleep(self._ambient.uniform(0, pause_s))
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except SQLITE_ERRORS as error:
            raise explain(error, self._path, self._settings.busy_timeout_s) from error

    def _open(self) -> sqlite3.Connection:
        mode = "rwc" if self._settings.create else "rw"
        uri = f"file:{urllib.parse.quote(str(self._path))}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=0)
        try:
            self._while_busy(lambda: self._prepare(connection))
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # EXTRA is FULL with a write-ahead log; without one it also syncs the directory.
        connection.execute(f"PRAGMA synchronous = {'EXTRA' if self._settings.durable else 'NORMAL'}")
        if self._file is None:
            self._check_is_catalog(connection)
            self._use_write_ahead_log(connection)
            self._create_missing_tables(connection)
            self._file = self._path.stat()

    def _check_is_catalog(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that lost its catalog, before anything in it is changed."""
        size = self._path.stat().st_size
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        # SQLite takes a file that was truncated within its first page for an empty one. It may truncate one itself, to
        # roll back a transaction that a crash left open, so the size is checked again.
        if pages == 0 and size and self._path.stat().st_size:
            raise CatalogError(
                f"the catalog {self._path} is corrupt: it was truncated to {size} bytes",
                hint="Restore it from a backup, or remove it and start an empty one with create=True",
            )
        mark = next(iter(self._schema))
        # For a new file, this was checked when the lake was connected.
        if size and self._settings.warehouse is not None:
            why = f"{self._path} is not a catalog: missing tables: {mark}"
            refuse_tables(self._settings.warehouse, why, lambda: mark in _tables_in(connection))

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]:
            return
        try:
            # SQLite does not wait for this by itself, and needs exclusive access for a moment.
            self._while_busy(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchall(), _WAL_PATIENCE_S)
        except sqlite3.OperationalError as error:
            # Correct without it too, only slower: readers and writers then wait for each other.
            if not is_busy(error) and not is_read_only(error):
                raise

    def _create_missing_tables(self, connection: sqlite3.Connection) -> None:
        found = _tables_in(connection)
        missing = [table for table in self._schema if table not in found]
        if not missing:
            return
        if not self._settings.create:
            raise CatalogError(f"{self._path} is not a catalog: missing tables: {', '.join(missing)}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            for table in missing:
                connection.execute(self._schema[table])
            connection.execute("COMMIT")
        finally:
            _roll_back(connection)

    def _check_same_file(self) -> None:
        """Refuse to commit into a file that the next process to open the catalog would not find."""
        try:
            same = self._file is not None and os.path.samestat(self._path.stat(), self._file)
        except OSError:
            same = False
        if not same:
            raise CatalogError(f"{self._path} was replaced or removed while it was open", hint="Open the catalog again")


class SqliteSession:
    """An open transaction on a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Rows:
        cursor = self._connection.execute(statement, values)
        found = cursor.fetchall()
        columns = tuple(column[0] for column in cursor.description or ())
        return Rows(columns, found, cursor.rowcount)


def _tables_in(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _roll_back(connection: sqlite3.Connection) -> None:
    # After some errors, such as a full disk, SQLite has already rolled back.
    if connection.in_transaction:
        connection.execute("ROLLBACK")
