"""A pool of database connections: each used by one thread at a time, and none open across a fork.

SQLite tracks the locks of a process in memory, which a forked child inherits without the locks. The child then takes no
lock of its own on a file that its parent has open (even through a new connection), and when the parent closes it, the
write-ahead log is deleted under the child: its later commits are acknowledged and lost. On a connection to a server,
parent and child would read each other's responses. So every connection is closed before the fork, once the threads that
use one are done; parent and child open new ones.

The fork hook does not cover connections of other libraries to the same database, and does not run for a fork made by C
code; in the child of such a fork, a pool that had connections refuses to work.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from icefield.errors import CatalogError, CommitStateUnknown

_MOST_IDLE = 8


class Closable(Protocol):
    """What the pool requires of a connection."""

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is or may be open, so that the connection cannot be reused."""
        ...

    def close(self) -> None: ...


Connection = TypeVar("Connection", bound=Closable)


class Connections(Generic[Connection]):
    """A pool of connections, opened by `open_connection`.

    A connection is not reused if it is returned in a transaction, or after one of `failures` or a CommitStateUnknown.
    """

    def __init__(self, open_connection: Callable[[], Connection], failures: tuple[type[Exception], ...]) -> None:
        self._open_connection = open_connection
        self._failures: tuple[type[Exception], ...] = (*failures, CommitStateUnknown)
        self._changed = threading.Condition()
        self._idle: list[Connection] = []
        self._borrowers: list[int] = []
        self._process = os.getpid()
        self._closed = False
        weakref.finalize(self, _close_all, self._idle)
        _close_before_fork(self)

    @contextmanager
    def borrow(self) -> Iterator[Connection]:
        """Lend a connection, which is reused if possible."""
        connection = self._take()
        try:
            yield connection
        except self._failures:
            self._give_back(connection, keep=False)
            raise
        except BaseException:
            self._give_back(connection, keep=not connection.in_transaction)
            raise
        self._give_back(connection, keep=not connection.in_transaction)

    def close(self) -> None:
        """Close idle connections now, and lent ones when they are returned."""
        with self._changed:
            self._closed = True
            _close_all(self._idle)

    def close_idle(self) -> None:
        """Close idle connections, so that the next borrower gets a new one."""
        with self._changed:
            _close_all(self._idle)

    def close_before_fork(self) -> None:
        """Wait for the threads that use connections, close them all, and lend none until the fork is done."""
        self._changed.acquire()
        here = threading.get_ident()
        self._changed.wait_for(lambda: all(borrower == here for borrower in self._borrowers))
        _close_all(self._idle)

    def reopen_after_fork(self) -> None:
        """Lend connections again, in the parent."""
        self._changed.release()

    def restart_in_child(self) -> None:
        """Start with an empty pool in the child, unless it inherited connections."""
        self._changed = threading.Condition()
        if not self._idle and not self._borrowers:
            self._process = os.getpid()

    def _take(self) -> Connection:
        with self._changed:
            self._check_usable()
            self._borrowers.append(threading.get_ident())
            if self._idle:
                return self._idle.pop()
        try:
            return self._open_connection()
        except BaseException:
            self._leave()
            raise

    def _give_back(self, connection: Connection, *, keep: bool) -> None:
        with self._changed:
            if keep and not self._closed and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
            else:
                connection.close()
            self._leave()

    def _leave(self) -> None:
        with self._changed:
            self._borrowers.remove(threading.get_ident())
            self._changed.notify_all()

    def _check_usable(self) -> None:
        if self._closed:
            raise CatalogError("the catalog was closed", hint="Open it again")
        if self._process != os.getpid():
            raise CatalogError("this process was forked while the catalog was in use", hint="Open it after the fork")


def _close_all(connections: list[Any]) -> None:
    while connections:
        connections.pop().close()


def _close_before_fork(pool: Connections[Any]) -> None:
    # Hooks cannot be unregistered, so they must not keep the pool alive.
    reference = weakref.ref(pool)

    def hook(move: Callable[[Connections[Any]], None]) -> Callable[[], None]:
        def run() -> None:
            if (found := reference()) is not None:
                move(found)

        return run

    os.register_at_fork(
        before=hook(Connections.close_before_fork),
        after_in_parent=hook(Connections.reopen_after_fork),
        after_in_child=hook(Connections.restart_in_child),
    )
