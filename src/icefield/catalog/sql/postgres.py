"""The SQL catalog in a PostgreSQL database, shared by many machines.

Writers run SERIALIZABLE and readers on one snapshot (REPEATABLE READ), so that everything that `sql.catalog` checks
before it writes is still true when it commits. A transaction that loses to a concurrent one gets an error from the
server and is run again here; it then finds that the pointer has moved. Clients with weaker isolation (PyIceberg,
Iceberg's JDBC catalog) move pointers by conditional updates of one row, which the server serializes with ours.

Sessions have no state: settings are local to the transaction, and no statement is prepared (another client may add a
column, and there may be a connection pooler in between).

Errors: any failure before COMMIT is sent, and a COMMIT that the server refuses with an error (not serializable, a full
disk, a constraint), changed nothing. A connection that is lost before COMMIT is reopened once; after that it is a
CatalogError. Any other failure of COMMIT is a CommitStateUnknown: the server may have made it durable before it died,
or before its response was lost.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from icefield.ambient import Ambient, SystemAmbient
from icefield.catalog.sql.catalog import SCHEMA, SqlCatalog
from icefield.catalog.sql.connections import Connections
from icefield.catalog.sql.database import Result, Session
from icefield.catalog.sql.postgres_connection import PostgresConnection, PostgresTarget, open_connection, parse_target
from icefield.catalog.sql.postgres_errors import (
    POSTGRES_ERRORS,
    explain,
    explain_unopened,
    is_contended,
    is_created_meanwhile,
    is_lost,
    is_rolled_back,
    text_of_error,
)
from icefield.errors import CatalogError, CommitStateUnknown
from icefield.secrets import without_secrets

_FIRST_PAUSE_S = 0.0005
_LONGEST_PAUSE_S = 0.05
_MOST_MEETINGS = 5
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# A sequential scan counts as a read of every row, so that any two concurrent swaps would conflict: measured on small
# tables with statistics, 8 processes, each on its own table, made 330 swaps a second, and 1,400 with the index.
_WRITE = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE; SET LOCAL enable_seqscan = off"


@dataclass(frozen=True)
class PostgresSettings:
    """How to use the database.

    durable: use the server's setting for when a commit is acknowledged; False does not wait for its disk.
    create: create the tables if they are missing.
    busy_timeout_s: how long to wait for other clients.
    """

    durable: bool = True
    create: bool = True
    busy_timeout_s: float = 60.0


def open_postgres_catalog(
    url: str, *, name: str = "default", settings: PostgresSettings | None = None, ambient: Ambient | None = None
) -> SqlCatalog:
    """Return the catalog `name` in a PostgreSQL database; it connects on first use."""
    return SqlCatalog(PostgresDatabase(url, SCHEMA, settings=settings, ambient=ambient), name)


class PostgresDatabase:
    """Transactions on a PostgreSQL database; `schema` maps each required table to its CREATE TABLE."""

    def __init__(
        self,
        url: str,
        schema: Mapping[str, str],
        *,
        settings: PostgresSettings | None = None,
        ambient: Ambient | None = None,
    ) -> None:
        self._target: PostgresTarget = parse_target(url)
        place = {key: self._target.parameters.get(key) for key in ("host", "port", "dbname", "options")}
        self.identity = f"postgresql:{place}"
        self._schema = schema
        self._settings = settings or PostgresSettings()
        self._ambient = ambient or SystemAmbient()
        # A refused statement leaves the connection usable; a lost connection is recognised by its state.
        self._connections = Connections(self._open, failures=())
        self._prepared = False

    def read(self, work: Callable[[Session], Result]) -> Result:
        def run() -> Result:
            with self._connections.borrow() as connection, self._transaction(connection, _READ):
                result = work(connection)
                connection.rollback()
                return result

        return self._run(run)

    def write(self, work: Callable[[Session], Result]) -> Result:
        def run() -> Result:
            with self._connections.borrow() as connection, self._transaction(connection, _WRITE):
                result = work(connection)
                self._commit(connection)
                return result

        return self._run(run)

    def close(self) -> None:
        self._connections.close()

    def send_commit(self, connection: PostgresConnection) -> str:
        """Send COMMIT and return the server's command tag; the only place after which a response can be lost."""
        return connection.command("COMMIT")

    @contextmanager
    def _transaction(self, connection: PostgresConnection, begin: str) -> Iterator[None]:
        # Only digits and fixed words, all in one message.
        patience = f"SET LOCAL lock_timeout = {max(1, int(self._settings.busy_timeout_s * 1000))}"
        relaxed = () if self._settings.durable else ("SET LOCAL synchronous_commit = off",)
        connection.command("; ".join((begin, patience, *relaxed)))
        try:
            yield
        except BaseException:
            connection.rollback()
            raise

    def _commit(self, connection: PostgresConnection) -> None:
        try:
            answer = self.send_commit(connection)
        except psycopg.Error as error:
            if is_rolled_back(error):
                raise
            raise CommitStateUnknown(
                f"the commit to {self._target.label} failed after it was sent: {text_of_error(error)}",
                hint="It may have been committed: check the table before retrying, and delete nothing",
            ) from error
        # The server responds so, without an error, if an earlier statement failed.
        if answer != "COMMIT":
            raise CatalogError(f"{self._target.label} rolled the commit back")

    def _run(self, action: Callable[[], Result]) -> Result:
        with without_secrets(self._target.secrets):
            return self._run_patiently(action)

    def _run_patiently(self, action: Callable[[], Result]) -> Result:
        """Run a transaction until it does not conflict, and again if its connection was lost."""
        deadline = self._ambient.monotonic() + self._settings.busy_timeout_s
        pause_s, lost = _FIRST_PAUSE_S, False
        while True:
            try:
                return action()
            except POSTGRES_ERRORS as error:
                if is_lost(error) and not lost:
                    # After a restart of the server all idle connections are lost too. No COMMIT was sent.
                    lost = True
                    self._connections.close_idle()
                elif not is_contended(error) or self._ambient.monotonic() >= deadline:
                    raise explain(error, self._target.label, self._settings.busy_timeout_s) from error
            self._ambient.sleep(self._ambient.uniform(0, pause_s))
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _open(self) -> PostgresConnection:
        try:
            connection = open_connection(self._target)
        except POSTGRES_ERRORS as error:
            raise explain_unopened(error, self._target.label) from error
        try:
            if not self._prepared:
                self._create_missing_tables(connection)
                self._prepared = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _create_missing_tables(self, connection: PostgresConnection) -> None:
        meetings = 0
        while missing := [table for table in self._schema if not _is_there(connection, table)]:
            if not self._settings.create:
                raise CatalogError(f"{self._target.label} is not a catalog: missing tables: {', '.join(missing)}")
            try:
                connection.execute(self._schema[missing[0]])
            except psycopg.Error as error:
                # IF NOT EXISTS does not prevent a conflict of two concurrent creators; the loser checks again.
                meetings += 1
                if not is_created_meanwhile(error) or meetings > _MOST_MEETINGS:
                    raise


def _is_there(connection: PostgresConnection, table: str) -> bool:
    return connection.execute("SELECT to_regclass(?)", (table,)).values != [(None,)]
