"""Racing swaps of one pointer: every acknowledged one counts, exactly once. The check is shown to fail."""

import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from tests.catalog.increment_worker import open_at
from tests.postgres import PostgresServer
from tests.zookeeper import ZOOKEEPER, ZooKeeperServer

from icefield.ambient import SystemAmbient
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.catalog.memory import MemoryCatalog
from icefield.catalog.sql.postgres import open_postgres_catalog
from icefield.catalog.sql.sqlite import open_sqlite_catalog
from icefield.catalog.zookeeper import open_zookeeper_catalog
from icefield.errors import AlreadyExists, CommitConflict
from icefield.model.names import parse_table_name

pytestmark = pytest.mark.slow

WORKER = Path(__file__).with_name("increment_worker.py")
TABLE, OTHER = parse_table_name("a.t"), parse_table_name("a.u")
WORKERS, INCREMENTS = 8, 8


class BlindMemoryCatalog(MemoryCatalog):
    """Wrong: moves the pointer without looking where it is."""

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        for change in changes:
            self._move(change)


@pytest.fixture(params=["sqlite", "postgres", pytest.param("zookeeper", marks=ZOOKEEPER)])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """A function that returns where to make another catalog which processes can share."""
    if request.param == "sqlite":
        return lambda: str(tmp_path / f"{uuid.uuid4()}.db")
    if request.param == "zookeeper":
        zookeeper: ZooKeeperServer = request.getfixturevalue("zookeeper_server")
        return zookeeper.url
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_schema


@pytest.fixture(params=["memory", "sqlite", "postgres", pytest.param("zookeeper", marks=ZOOKEEPER)])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """An empty catalog that threads can share."""
    made: Catalog = MemoryCatalog()
    if request.param == "sqlite":
        made = open_sqlite_catalog(tmp_path / "c.db")
    elif request.param == "postgres":
        made = open_postgres_catalog(request.getfixturevalue("postgres_url"))
    elif request.param == "zookeeper":
        made = open_zookeeper_catalog(request.getfixturevalue("zookeeper_url"), "default", SystemAmbient())
    with closing(made):
        yield made


def race_processes(kind: str, place: str, processes: int = WORKERS, increments: int = INCREMENTS) -> int:
    command = [sys.executable, str(WORKER), kind, place, str(processes), str(increments)]
    return int(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=120).stdout)


def race_threads(catalog: Catalog) -> int:
    """Count one pointer up from many threads, each having read it before any moves it, and return where it ends."""
    catalog.create_namespace(("a",))
    catalog.swap([PointerSwap(TABLE, None, "0")])
    together = threading.Barrier(WORKERS)

    def count_up(_: int) -> None:
        for slot in range(INCREMENTS):
            while True:
                pointer = catalog.pointer(TABLE)
                if slot == 0 and pointer == "0":
                    together.wait(30)
                try:
                    catalog.swap([PointerSwap(TABLE, pointer, str(int(pointer) + 1))])
                    break
                except CommitConflict:
                    continue

    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(count_up, range(WORKERS)))
    return int(catalog.pointer(TABLE))


def test_racing_processes_lose_no_increment(new_place: Callable[[], str]) -> None:
    assert race_processes("checked", new_place()) == WORKERS * INCREMENTS


def test_the_race_of_processes_finds_a_swap_without_expectation(new_place: Callable[[], str]) -> None:
    assert race_processes("blind", new_place()) < WORKERS * INCREMENTS


def test_racing_threads_lose_no_increment(catalog: Catalog) -> None:
    assert race_threads(catalog) == WORKERS * INCREMENTS


def test_the_race_of_threads_finds_a_swap_without_expectation() -> None:
    assert race_threads(BlindMemoryCatalog()) < WORKERS * INCREMENTS


def test_many_processes_may_open_a_new_catalog_at_once(new_place: Callable[[], str]) -> None:
    for _ in range(3):
        assert race_processes("first-open", new_place(), processes=16) == 16


def test_a_killed_writer_leaves_the_last_acknowledged_pointer_or_the_one_after_it(
    new_place: Callable[[], str],
) -> None:
    counter = parse_table_name("a.counter")
    for acknowledged in (1, 7, 40):
        place = new_place()
        command = [sys.executable, str(WORKER), "endless", place, "1", "1"]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            for _ in range(acknowledged):
                writer.stdout.readline()
            writer.kill()
            last = [acknowledged, *(int(line) for line in writer.stdout if line.endswith("\n"))][-1]
        with closing(open_at(place)) as catalog:
            found = catalog.pointer(counter)
            assert int(found) in (last, last + 1)
            catalog.swap([PointerSwap(counter, found, "next")])
            assert catalog.pointer(counter) == "next"


def test_of_racing_creations_one_wins(catalog: Catalog) -> None:
    catalog.create_namespace(("a",))
    together = threading.Barrier(WORKERS)

    def create(number: int) -> bool:
        together.wait(30)
        try:
            catalog.swap([PointerSwap(TABLE, None, str(number))])
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(WORKERS) as threads:
        won = list(threads.map(create, range(WORKERS)))
        assert won.count(True) == 1
        assert catalog.pointer(TABLE) == str(won.index(True))


def test_a_reader_of_two_tables_never_sees_half_a_swap(catalog: Catalog) -> None:
    catalog.create_namespace(("a",))
    catalog.swap([PointerSwap(TABLE, None, "0"), PointerSwap(OTHER, None, "0")])
    done = threading.Event()

    def write() -> None:
        for slot in range(200):
            before, after = str(slot), str(slot + 1)
            catalog.swap([PointerSwap(TABLE, before, after), PointerSwap(OTHER, before, after)])
        done.set()

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        while not done.is_set() and not writing.done():
            seen = catalog.pointers([TABLE, OTHER])
            assert seen[TABLE] == seen[OTHER]
        writing.result()
