"""Race processes for one pointer: `increment_worker.py <kind> <place> <processes> <increments>`.

The place is the path of a SQLite file, or the URL of a PostgreSQL database or a ZooKeeper server.

Each process counts the pointer up. In the first turn all have read it before any moves it, so that a catalog which does
not check what it replaces must lose increments. Prints the final count.

With the kind `endless` one process counts on and prints each number once it is acknowledged, until it is killed.
With the kind `first-open` nobody opened the database before: each process creates a namespace; prints their number.
"""

import os
import sys
from collections.abc import Callable, Sequence

from icefield.ambient import SystemAmbient
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.catalog.nodes import NodeCatalog, Transaction
from icefield.catalog.sql.catalog import SqlCatalog
from icefield.catalog.sql.postgres import open_postgres_catalog
from icefield.catalog.sql.sqlite import open_sqlite_catalog
from icefield.catalog.zookeeper import ZooKeeperNodes, open_zookeeper_catalog
from icefield.errors import CommitConflict
from icefield.model.names import parse_table_name

TABLE = parse_table_name("a.counter")


class BlindCatalog(SqlCatalog):
    """Wrong: moves the pointer without looking where it is."""

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        for change in changes:
            values = (change.new, change.table.name)
            self._database.write(
                lambda session, values=values: session.execute(  # type: ignore[misc]
                    "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?", values
                )
            )


class BlindNodes(ZooKeeperNodes):
    """Wrong: writes without looking at versions."""

    def commit(self, transaction: Transaction) -> bool:
        return super().commit(Transaction({}, [write._replace(version=-1) for write in transaction.writes]))


def open_at(place: str) -> Catalog:
    if place.startswith("zookeeper://"):
        return open_zookeeper_catalog(place, "default", SystemAmbient())
    return open_postgres_catalog(place) if place.startswith("postgresql://") else open_sqlite_catalog(place)


def open_catalog(kind: str, place: str) -> Catalog:
    if kind == "blind" and place.startswith("zookeeper://"):
        ambient = SystemAmbient()
        return NodeCatalog(BlindNodes(place, "default", 15.0, ambient), "default", ambient=ambient)
    catalog = open_at(place)
    if kind == "blind" and isinstance(catalog, SqlCatalog):
        return BlindCatalog(catalog._database, catalog.name)
    return catalog


def increment(catalog: Catalog, between: Callable[[], None]) -> None:
    while True:
        pointer = catalog.pointer(TABLE)
        between()
        try:
            return catalog.swap([PointerSwap(TABLE, pointer, str(int(pointer) + 1))])
        except CommitConflict:
            between = do_nothing


def do_nothing() -> None:
    pass


def count_up(kind: str, place: str, increments: int, meet: Callable[[], None]) -> None:
    catalog = open_catalog(kind, place)
    increment(catalog, meet)
    for _ in range(increments - 1):
        increment(catalog, do_nothing)
    catalog.close()


def open_first(place: str, number: int, meet: Callable[[], None]) -> None:
    meet()
    catalog = open_at(place)
    catalog.create_namespace((f"n{number}",))
    catalog.close()


def run_processes(number: int, work: Callable[[int, Callable[[], None]], None]) -> None:
    """Fork the processes and hand each a function that waits until all have called it."""
    arrivals, arrive = os.pipe()
    gate, opener = os.pipe()
    children = [fork(lambda meet, n=n: work(n, meet), (arrive, gate, opener)) for n in range(number)]  # type: ignore[misc]
    os.close(arrive)
    waiting = number
    while waiting and (arrived := os.read(arrivals, waiting)):
        waiting -= len(arrived)
    os.close(opener)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes):
        sys.exit(f"processes ended with {codes}")


def fork(work: Callable[[Callable[[], None]], None], pipes: tuple[int, int, int]) -> int:
    arrive, gate, opener = pipes
    if child := os.fork():
        return child
    os.close(opener)

    def meet() -> None:
        os.write(arrive, b"x")
        os.read(gate, 1)  # Ends when the parent closes the other end.

    try:
        work(meet)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def main(kind: str, place: str, processes: int, increments: int) -> None:
    if kind == "first-open":
        run_processes(processes, lambda number, meet: open_first(place, number, meet))
        print(len(open_at(place).list_namespaces()))
        return
    catalog = open_at(place)
    catalog.create_namespace(("a",))
    catalog.swap([PointerSwap(TABLE, None, "0")])
    while kind == "endless":
        increment(catalog, do_nothing)
        print(catalog.pointer(TABLE), flush=True)
    run_processes(processes, lambda _, meet: count_up(kind, place, increments, meet))
    print(catalog.pointer(TABLE))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
