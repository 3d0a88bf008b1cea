"""Many processes append to one table: how many commits land, how fast, how evenly, and which files are left behind.

python -m benchmarks contention [processes [appends]]

On SQLite and on PostgreSQL with default settings, durable; then PyIceberg on SQLite with its own retries, with fewer
appends: those that it gives up on do not land. Without arguments: 16 processes x 20 appends, and 8 x 20 for the rate.
The CPU time is that of all writers together, without their start; it is the figure that other load affects least.
"""

import logging
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy.exc import OperationalError
from tests.postgres import running_server

import icefield
from icefield.lake import Lake
from icefield.plan.manifest_list import load_manifests
from icefield.table.table import Table

TABLE = "a.t"
SCHEMA = "id long"
PATIENCE_S = 300
THEIR_APPENDS = 3
Append = Callable[[pa.Table], object]


@dataclass(frozen=True)
class Place:
    """The catalog of a run: a target and a warehouse for icefield, a file for PyIceberg."""

    target: str
    warehouse: str | None = None

    def connect(self) -> Lake:
        """Open it with default settings."""
        return icefield.connect(self.target, warehouse=self.warehouse)


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    landed: int
    asked: int
    seconds: float
    each_s: list[float]
    cpu_seconds: float
    orphans: int | None = None

    def show(self, title: str) -> str:
        """Return one line of the report."""
        median, slowest = statistics.median(self.each_s) * 1000, max(self.each_s) * 1000
        orphans = "" if self.orphans is None else f", {self.orphans} orphans"
        return (
            f"  {title:22} {self.landed:4}/{self.asked} landed {self.landed / self.seconds:7.1f}/s  "
            f"median {median:6.0f} ms  slowest {slowest:7.0f} ms ({slowest / median:4.1f}x)  "
            f"CPU {self.cpu_seconds / self.landed * 1000:5.1f} ms each{orphans}"
        )


def run(processes: int | None = None, appends: int = 20) -> None:
    """Print a line for each catalog."""
    for writers in (processes,) if processes else (16, 8):
        print(f"{writers} processes x {appends} appends to one table")
        print(_ours_on_sqlite(writers, appends).show("icefield, SQLite"))
        print(_ours_on_postgres(writers, appends).show("icefield, PostgreSQL"))
        print(_theirs_on_sqlite(writers, min(appends, THEIR_APPENDS)).show("pyiceberg, SQLite"))


def find_orphans(lake: Lake, table: Table) -> set[str]:
    """Return the files below a table that nothing refers to."""
    known = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for snapshot in table.snapshots():
        manifests = load_manifests(lake.backend.reading, snapshot)
        known |= {snapshot.manifest_list or ""} | set(manifests["manifest_path"].to_pylist() if manifests else ())
    known |= set(table.scan().files()["file_path"].to_pylist())
    return {file.location for file in lake.store.list(table.location)} - known


def _ours_on_sqlite(writers: int, appends: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        return _ours(Place(folder), writers, appends)


def _ours_on_postgres(writers: int, appends: int) -> Result:
    with tempfile.TemporaryDirectory() as folder, running_server() as server:
        return _ours(Place(server.new_schema(), folder), writers, appends)


def _ours(place: Place, writers: int, appends: int) -> Result:
    with place.connect() as lake:
        table = lake.create_table(TABLE, SCHEMA)
        race = _race(partial(_write_ours, place), writers, appends)
        table.refresh()
        return Result(table.scan().count(), writers * appends, *race, len(find_orphans(lake, table)))


def _theirs_on_sqlite(writers: int, appends: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        catalog = _open_theirs(folder)
        catalog.create_namespace("a")
        catalog.create_table(TABLE, pa.schema([("id", pa.int64())]))
        race = _race(partial(_write_theirs, folder), writers, appends)
        return Result(catalog.load_table(TABLE).scan().count(), writers * appends, *race)


def _open_theirs(folder: str) -> SqlCatalog:
    return SqlCatalog("theirs", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")


def _race(
    write: Callable[[], AbstractContextManager[Append]], writers: int, appends: int
) -> tuple[float, list[float], float]:
    spawn = multiprocessing.get_context("spawn")
    ready, times = spawn.Barrier(writers + 1), spawn.Queue()
    running = [spawn.Process(target=_work, args=(write, number, appends, ready, times)) for number in range(writers)]
    for process in running:
        process.start()
    ready.wait(PATIENCE_S)
    started = time.monotonic()
    output = [times.get(timeout=PATIENCE_S) for _ in running]
    elapsed = time.monotonic() - started
    for process in running:
        process.join()
    return elapsed, [spent for each, _ in output for spent in each], sum(cpu for _, cpu in output)


def _work(
    write: Callable[[], AbstractContextManager[Append]],
    number: int,
    appends: int,
    ready: Barrier,
    times: "Queue[tuple[list[float], float]]",
) -> None:
    spent: list[float] = []
    with write() as append:
        ready.wait(PATIENCE_S)
        before = time.process_time()
        for slot in range(appends):
            started = time.monotonic()
            append(pa.table({"id": [number * 1000 + slot]}))
            spent.append(time.monotonic() - started)
        times.put((spent, time.process_time() - before))


@contextmanager
def _write_ours(place: Place) -> Iterator[Append]:
    with place.connect() as lake:
        yield lake.table(TABLE).append


@contextmanager
def _write_theirs(folder: str) -> Iterator[Append]:
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)
    catalog = _open_theirs(folder)

    def append(rows: pa.Table) -> None:
        with suppress(CommitFailedException, OperationalError):
            catalog.load_table(TABLE).append(rows)

    yield append
