"""Racing swaps of one pointer: every acknowledged one counts, exactly once. The check is shown to fail."""

import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.catalog.memory import MemoryCatalog
from icefield.catalog.sqlite import open_sqlite_catalog
from icefield.errors import AlreadyExists, CommitConflict
from icefield.model.names import parse_table_name

pytestmark = pytest.mark.slow

WORKER = Path(__file__).with_name("increment_worker.py")
TABLE, OTHER = parse_table_name("a.t"), parse_table_name("a.u")
WORKERS, INCREMENTS = 8, 20


class BlindMemoryCatalog(MemoryCatalog):
    """Wrong: moves the pointer without looking where it is."""

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        for change in changes:
            self._move(change)


def race_processes(kind: str, path: Path, processes: int = WORKERS, increments: int = INCREMENTS) -> int:
    command = [sys.executable, str(WORKER), kind, str(path), str(processes), str(increments)]
    return int(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=120).stdout)


def race_threads(catalog: Catalog) -> int:
    """Count one pointer up from many threads, each having read it before any moves it, and return where it ends."""
    catalog.create_namespace(("a",))
    catalog.swap([PointerSwap(TABLE, None, "0")])
    together = threading.Barrier(WORKERS)

    def count_up(_: int) -> None:
        for turn in range(INCREMENTS):
            while True:
                pointer = catalog.pointer(TABLE)
                if turn == 0 and pointer == "0":
                    together.wait(30)
                try:
                    catalog.swap([PointerSwap(TABLE, pointer, str(int(pointer) + 1))])
                    break
                except CommitConflict:
                    continue

    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(count_up, range(WORKERS)))
    return int(catalog.pointer(TABLE))


def test_racing_processes_lose_no_increment(tmp_path: Path) -> None:
    assert race_processes("sqlite", tmp_path / "c.db") == WORKERS * INCREMENTS


def test_the_race_of_processes_finds_a_swap_without_expectation(tmp_path: Path) -> None:
    assert race_processes("blind", tmp_path / "c.db") < WORKERS * INCREMENTS


def test_racing_threads_lose_no_increment(tmp_path: Path) -> None:
    assert race_threads(MemoryCatalog()) == WORKERS * INCREMENTS
    with closing(open_sqlite_catalog(tmp_path / "c.db")) as catalog:
        assert race_threads(catalog) == WORKERS * INCREMENTS


def test_the_race_of_threads_finds_a_swap_without_expectation() -> None:
    assert race_threads(BlindMemoryCatalog()) < WORKERS * INCREMENTS


def test_many_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    for turn in range(3):
        assert race_processes("first-open", tmp_path / f"{turn}.db", processes=16) == 16


def test_a_killed_writer_leaves_the_last_acknowledged_pointer_or_the_one_after_it(tmp_path: Path) -> None:
    counter = parse_table_name("a.counter")
    for acknowledged in (1, 7, 40):
        path = tmp_path / f"{acknowledged}.db"
        command = [sys.executable, str(WORKER), "endless", str(path), "1", "1"]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            for _ in range(acknowledged):
                writer.stdout.readline()
            writer.kill()
            last = [acknowledged, *(int(line) for line in writer.stdout if line.endswith("\n"))][-1]
        with closing(open_sqlite_catalog(path)) as catalog:
            found = catalog.pointer(counter)
            assert int(found) in (last, last + 1)
            catalog.swap([PointerSwap(counter, found, "next")])
            assert catalog.pointer(counter) == "next"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_of_racing_creations_one_wins(kind: str, tmp_path: Path) -> None:
    catalog: Catalog = MemoryCatalog() if kind == "memory" else open_sqlite_catalog(tmp_path / "c.db")
    catalog.create_namespace(("a",))
    together = threading.Barrier(WORKERS)

    def create(number: int) -> bool:
        together.wait(30)
        try:
            catalog.swap([PointerSwap(TABLE, None, str(number))])
        except AlreadyExists:
            return False
        return True

    with closing(catalog), ThreadPoolExecutor(WORKERS) as threads:
        won = list(threads.map(create, range(WORKERS)))
        assert won.count(True) == 1
        assert catalog.pointer(TABLE) == str(won.index(True))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_reader_of_two_tables_never_sees_half_a_swap(kind: str, tmp_path: Path) -> None:
    catalog: Catalog = MemoryCatalog() if kind == "memory" else open_sqlite_catalog(tmp_path / "c.db")
    catalog.create_namespace(("a",))
    catalog.swap([PointerSwap(TABLE, None, "0"), PointerSwap(OTHER, None, "0")])
    done = threading.Event()

    def write() -> None:
        for turn in range(200):
            before, after = str(turn), str(turn + 1)
            catalog.swap([PointerSwap(TABLE, before, after), PointerSwap(OTHER, before, after)])
        done.set()

    with closing(catalog), ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        while not done.is_set() and not writing.done():
            seen = catalog.pointers([TABLE, OTHER])
            assert seen[TABLE] == seen[OTHER]
        writing.result()
