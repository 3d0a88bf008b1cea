"""Connections across forks and threads. The guard is shown to be needed: without it an acknowledged commit is lost."""

import gc
import os
import sqlite3
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from icefield.catalog.sql.connections import Connections
from icefield.errors import CatalogError, CommitConflict

WORKER = Path(__file__).with_name("fork_worker.py")


def run_scenario(name: str, place: Path | str) -> str:
    command = [sys.executable, str(WORKER), name, str(place)]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=60).stdout.strip()


@pytest.mark.slow
def test_what_a_forked_child_commits_is_there_after_the_parent_closed(tmp_path: Path, postgres_url: str) -> None:
    assert run_scenario("guarded", tmp_path / "c.db") == "2"
    assert run_scenario("guarded", postgres_url) == "2"


def test_without_the_guard_an_acknowledged_commit_of_a_forked_child_is_lost(tmp_path: Path) -> None:
    assert run_scenario("unguarded", tmp_path / "c.db") == "1"


def test_a_child_forked_behind_the_guards_back_refuses_to_work(tmp_path: Path, postgres_url: str) -> None:
    assert "this process was forked while the catalog was in use" in run_scenario("unhooked", tmp_path / "c.db")
    assert "this process was forked while the catalog was in use" in run_scenario("unhooked", postgres_url)


@pytest.mark.slow
def test_a_fork_waits_for_the_transactions_of_other_threads(tmp_path: Path, postgres_url: str) -> None:
    assert run_scenario("busy", tmp_path / "c.db") == "2"
    assert run_scenario("busy", postgres_url) == "2"


class Opened:
    """A pool on a memory database that counts its openings."""

    def __init__(self) -> None:
        self.opened: list[sqlite3.Connection] = []
        self.pool = Connections(self._open, (sqlite3.Error,))

    def _open(self) -> sqlite3.Connection:
        self.opened.append(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False))
        return self.opened[-1]


def is_closed(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return True
    return False


def test_a_connection_is_used_again_but_never_by_two_at_once() -> None:
    opened = Opened()
    for _ in range(3):
        with opened.pool.borrow():
            pass
    assert len(opened.opened) == 1
    with opened.pool.borrow() as first, opened.pool.borrow() as second:
        assert first is not second
    opened.pool.close()
    assert all(is_closed(connection) for connection in opened.opened)


def test_a_connection_on_which_sqlite_failed_is_not_used_again() -> None:
    opened = Opened()
    with pytest.raises(sqlite3.OperationalError), opened.pool.borrow() as connection:
        connection.execute("nonsense")
    assert is_closed(opened.opened[0])
    with pytest.raises(CommitConflict), opened.pool.borrow():
        raise CommitConflict("not SQLite's fault")
    assert not is_closed(opened.opened[1])
    opened.pool.close()


def test_a_connection_that_is_lent_when_the_pool_closes_is_closed_on_return() -> None:
    opened = Opened()
    with opened.pool.borrow() as connection:
        opened.pool.close()
        assert not is_closed(connection)
    assert is_closed(connection)
    with pytest.raises(CatalogError, match="was closed"), opened.pool.borrow():
        pass


def test_a_forgotten_pool_closes_its_connections() -> None:
    opened = Opened()
    with opened.pool.borrow():
        pass
    reference = weakref.ref(opened.pool)
    del opened.pool
    gc.collect()
    assert reference() is None
    assert is_closed(opened.opened[0])


def test_a_failed_opening_does_not_hold_up_a_fork() -> None:
    def fail() -> sqlite3.Connection:
        raise sqlite3.OperationalError("no")

    pool = Connections(fail, (sqlite3.Error,))

    def borrow() -> None:
        with pytest.raises(sqlite3.Error), pool.borrow():
            pass

    thread = threading.Thread(target=borrow)
    thread.start()
    thread.join()
    pool.close_before_fork()
    pool.reopen_after_fork()
    assert pool._process == os.getpid()
