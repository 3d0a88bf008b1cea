"""Use one catalog on both sides of a fork: `fork_worker.py <scenario> <place>`.

The place is the path of a SQLite file, or the URL of a PostgreSQL database or a ZooKeeper server.

Prints what a fresh catalog finds afterwards, where the scenario did not print something else.
"""

import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Any

from icefield.ambient import SystemAmbient
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.catalog.sql.database import Session
from icefield.catalog.sql.postgres import open_postgres_catalog
from icefield.catalog.sql.sqlite import open_sqlite_catalog
from icefield.catalog.zookeeper import open_zookeeper_catalog
from icefield.errors import CatalogError
from icefield.model.names import parse_table_name

TABLE = parse_table_name("a.t")


def open_at(place: str) -> Catalog:
    if place.startswith("zookeeper://"):
        return open_zookeeper_catalog(place, "default", SystemAmbient())
    return open_postgres_catalog(place) if place.startswith("postgresql://") else open_sqlite_catalog(place)


def move(catalog: Catalog, before: str, after: str) -> None:
    catalog.swap([PointerSwap(TABLE, before, after)])


def run_child(work: Callable[[], None]) -> Callable[[], None]:
    """Fork a child for the work, and return a function that waits for it."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)

    def wait() -> None:
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            sys.exit("the child failed")

    return wait


def share(catalog: Catalog, prepare_child: Callable[[], None]) -> None:
    """Commit in the child, close in the parent, commit in the child again."""
    committed, closed = os.pipe(), os.pipe()

    def work() -> None:
        prepare_child()
        move(catalog, "0", "1")
        os.write(committed[1], b"x")
        os.read(closed[0], 1)
        move(catalog, "1", "2")

    wait = run_child(work)
    os.read(committed[0], 1)
    catalog.close()
    os.write(closed[1], b"x")
    wait()


def guarded(catalog: Catalog) -> None:
    share(catalog, lambda: None)


def unguarded(catalog: Any) -> None:
    """With the hook switched off (see main), and the child made to believe that the pool is its own."""
    connections = catalog._database._connections

    def prepare_child() -> None:
        connections._process = os.getpid()
        connections._idle = []

    kept: list[sqlite3.Connection] = list(connections._idle)
    share(catalog, prepare_child)
    del kept


def unhooked(catalog: Catalog) -> None:
    """With the hook switched off (see main): the child must refuse."""

    def work() -> None:
        try:
            catalog.pointer(TABLE)
        except CatalogError as error:
            print(error)

    run_child(work)()


def busy(catalog: Any) -> None:
    """Fork while another thread is in the middle of a transaction."""
    inside, order = threading.Event(), list[str]()

    def slow(session: Session) -> None:
        inside.set()
        threading.Event().wait(0.3)
        session.execute("UPDATE iceberg_tables SET metadata_location = '1'")
        order.append("committed")

    thread = threading.Thread(target=lambda: catalog._database.write(slow))
    thread.start()
    inside.wait()
    wait = run_child(lambda: move(catalog, "1", "2"))
    order.append("forked")
    wait()
    thread.join()
    if order != ["committed", "forked"]:
        sys.exit(f"the fork did not wait: {order}")


SCENARIOS = {"guarded": guarded, "unguarded": unguarded, "unhooked": unhooked, "busy": busy}


def main(scenario: str, place: str) -> None:
    if scenario in ("unguarded", "unhooked"):
        os.register_at_fork = lambda **_: None
    catalog = open_at(place)
    catalog.create_namespace(("a",))
    catalog.swap([PointerSwap(TABLE, None, "0")])
    SCENARIOS[scenario](catalog)
    if scenario != "unhooked":
        print(open_at(place).pointer(TABLE))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
