"""Commit queues in a PostgreSQL server, for writers on any machine; see `queue`.

A slot is a transaction that holds an advisory lock: the server grants it in the order of arrival, and releases it when
the transaction ends or its connection is lost. The server ends the transaction of a writer that idles in its slot. A
writer that waited too long, or cannot connect, commits without a slot and does not queue for the next few commits.

Behind a pooler that shares connections per transaction (PgBouncer) there is no queue: every waiting writer would occupy
one of the few connections, and the writer with the slot might not get one to commit with.

The threads of a process queue among themselves first, so that a process uses one connection for each table it writes.
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

PATIENCE_S = 10.0  # how long to wait for a slot before committing without one
LONGEST_SLOT_S = 2.0  # how long a slot may last before the server ends it
SLOTS_WITHOUT = 20  # commits without a slot after one that could not be had


class PostgresQueue:
    """Commit queues in the database of a catalog.

    Create it after the catalog: pools are closed before a fork in reverse order, and a writer with a slot still needs
    the catalog's.
    """

    def __init__(self, url: str, catalog: str) -> None:
        target = parse_target(url)
        self._catalog = catalog
        self._connections: Connections[PostgresConnection] = Connections(
            lambda: open_connection(target), POSTGRES_ERRORS
        )
        self._slots_without = 0
        # By process too: a lock that a thread held when the process was forked is never released in the child.
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
        if self._slots_without:
            self._slots_without -= 1
            return
        try:
            # On failure the connection is returned at once, not only after the commit.
            with ExitStack() as slot:
                connection = slot.enter_context(self._borrowed())
                if connection.is_pooled:
                    self._slots_without = SLOTS_WITHOUT
                    return
                connection.command(_begin())
                connection.execute("SELECT pg_advisory_xact_lock(?)", (queue_key(self._catalog, table),))
                held.push(slot.pop_all())
        except (*POSTGRES_ERRORS, CatalogError):
            self._slots_without = SLOTS_WITHOUT

    @contextmanager
    def _borrowed(self) -> Iterator[PostgresConnection]:
        with self._connections.borrow() as connection:
            try:
                yield connection
            finally:
                connection.rollback()


def queue_key(catalog: str, table: TableName) -> int:
    """Return the number of a table's lock; two tables that share one only wait for each other."""
    digest = hashlib.sha256(f"icefield queue {catalog}\0{table}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _begin() -> str:
    # Digits and fixed words only. READ COMMITTED holds no snapshot between statements, so that nothing is kept alive.
    return (
        "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; "
        f"SET LOCAL lock_timeout = {int(PATIENCE_S * 1000)}; "
        f"SET LOCAL idle_in_transaction_session_timeout = {int(LONGEST_SLOT_S * 1000)}"
    )
