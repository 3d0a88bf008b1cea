"""Lanes in a PostgreSQL server, for writers on any machine; see `lane` for what a lane is.

A turn is a transaction that holds an advisory lock: the server queues in order of arrival, and frees the lock when the
transaction ends or its connection dies. Whoever
sleeps in their turn is put out by the server, and whoever waited too long, or cannot connect, goes on without a turn,
and does not try for the next few either.

Behind a pooler that lends connections by transaction (PgBouncer) there are no turns: each writer that waits would hold
one of its few connections, and whoever has the turn could not get one to commit with.

The threads of one process queue among themselves first, so that a process has one connection here for each table that
it writes to.
"""

import hashlib
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from icefield.catalog.sql.connections import Connections
from icefield.catalog.sql.postgres_connection import PostgresConnection, open_connection, parse_target
from icefield.catalog.sql.postgres_errors import POSTGRES_ERRORS
from icefield.errors import CatalogError
from icefield.model.names import TableName

PATIENCE_S = 10.0  # for how long to wait for a turn before going on without
LONGEST_SLOT_S = 2.0  # for how long one turn may last before the server passes it
SLOTS_WITHOUT = 20  # after one that was not to be had


class PostgresQueue:
    """Lanes beside a catalog in the same database.

    To be made after the catalog: pools are closed before a fork in the reverse order, and whoever has a turn still
    needs the catalog's.
    """

    def __init__(self, url: str, catalog: str) -> None:
        target = parse_target(url)
        self._catalog = catalog
        self._connections: Connections[PostgresConnection] = Connections(
            lambda: open_connection(target), POSTGRES_ERRORS
        )
        self._turns_without = 0
        # By process too: a lock that a thread held when the process was forked is never let go in the child.
        self._threads: defaultdict[tuple[int, TableName], threading.Lock] = defaultdict(threading.Lock)

    @contextmanager
    def slot(self, table: TableName) -> Iterator[None]:
        with ExitStack() as held:
            if self._queue_in_process(table, held):
                self._queue_at_server(table, held)
            yield

    def close(self) -> None:
        self._connections.close()

    def _queue_in_process(self, table: TableName, held: ExitStack) -> bool:
        lock = self._threads[os.getpid(), table]
        if not lock.acquire(timeout=PATIENCE_S):
            return False
        held.callback(lock.release)
        return True

    def _queue_at_server(self, table: TableName, held: ExitStack) -> None:
        if self._turns_without:
            self._turns_without -= 1
            return
        try:
            # What fails gives its connection back at once, and not only when the commit is done.
            with ExitStack() as slot:
                connection = slot.enter_context(self._borrowed())
                if connection.is_pooled:
                    self._turns_without = SLOTS_WITHOUT
                    return
                connection.command(_begin())
                connection.execute("SELECT pg_advisory_xact_lock(?)", (queue_key(self._catalog, table),))
                held.push(slot.pop_all())
        except (*POSTGRES_ERRORS, CatalogError):
            self._turns_without = SLOTS_WITHOUT

    @contextmanager
    def _borrowed(self) -> Iterator[PostgresConnection]:
        with self._connections.borrow() as connection:
            try:
                yield connection
            finally:
                connection.rollback()


def queue_key(catalog: str, table: TableName) -> int:
    """Return the number of a table's lock; two tables that share one only wait for each other."""
    digest = hashlib.sha256(f"icefield lane {catalog}\0{table}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _begin() -> str:
    # Digits and fixed words only. READ COMMITTED holds no snapshot between statements, so that nothing is kept alive.
    return (
        "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; "
        f"SET LOCAL lock_timeout = {int(PATIENCE_S * 1000)}; "
        f"SET LOCAL idle_in_transaction_session_timeout = {int(LONGEST_SLOT_S * 1000)}"
    )
