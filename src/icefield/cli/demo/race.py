"""The writers of the demo, concurrently on one table: threads with Spark DataFrames, processes with Arrow tables.

Each writer opens the table by itself, appends its slices one by one, and reports each commit when it succeeds.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from queue import SimpleQueue
from typing import Any, cast

from icefield.backend import Backend
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.cli.demo.orders import spark_orders
from icefield.config.connect import connect
from icefield.errors import CommitConflict, CommitError
from icefield.lake import Lake
from icefield.table.table import Table

ARROW_WRITER = "icefield.cli.demo.arrow_writer"
READY, GO = "ready", "go"
ERROR, HINT = "error", "hint"  # keys of the line by which a process tells why it stopped
# Who takes the next slice, over and over: Arrow appends are quicker, so those writers take two of eight each.
TURNS = ("arrow-1", "arrow-2", "spark-1", "arrow-3", "arrow-1", "arrow-2", "spark-2", "arrow-3")
ROUNDS = 3
SLICES = ROUNDS * len(TURNS)
WARM_UP_ROWS = 1_000

Definition = Callable[[Lake], Table]


@dataclass(frozen=True)
class Task:
    """The work of one writer: slices of the orders, as [start, stop), of a month with `total` orders."""

    writer: str
    lake: str
    table: str
    total: int
    slices: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Landed:
    """A successful commit, and how many attempts conflicted with other writers before it."""

    writer: str
    snapshot_id: int
    rows: int
    lost_races: int


class CountingCatalog:
    """A catalog that counts swaps that failed because another writer committed first."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.lost_races = 0

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        try:
            self._catalog.swap(changes)
        except CommitConflict:
            self.lost_races += 1
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)


def share_out(lake: str, table: str, total: int) -> list[Task]:
    """Cut the orders into slices and assign them to the writers."""
    edges = [total * at // SLICES for at in range(SLICES + 1)]
    slices: dict[str, list[tuple[int, int]]] = {}
    for at in range(SLICES):
        slices.setdefault(TURNS[at % len(TURNS)], []).append((edges[at], edges[at + 1]))
    return [Task(writer, lake, table, total, tuple(slices[writer])) for writer in sorted(slices)]


def append_slices(task: Task, make_rows: Callable[[int, int], object]) -> Iterator[Landed]:
    """Append a writer's slices one by one."""
    with connect(task.lake) as opened:
        counting = CountingCatalog(opened.catalog)
        lake = Lake(Backend(cast(Catalog, counting), opened.store, opened.ambient), opened.warehouse)
        table = lake.table(task.table)
        for start, stop in task.slices:
            lost_before = counting.lost_races
            snapshot = table.append(make_rows(start, stop))
            if snapshot is not None:
                yield Landed(task.writer, snapshot.snapshot_id, stop - start, counting.lost_races - lost_before)


def start_spark(lake: Lake, definition: Definition, total: int) -> Any:
    """Start Spark, and warm it up on a similar table elsewhere, so that all writers start together."""
    spark = lake.spark
    spark.conf.set("spark.sql.shuffle.partitions", "4")  # the default of 200 is for clusters
    with tempfile.TemporaryDirectory(prefix="icefield-demo-") as folder, connect(folder) as scratch:
        table = definition(scratch)
        table.append(_spark_rows(spark, total)(0, WARM_UP_ROWS))
    return spark


@contextmanager
def arrow_processes(tasks: Sequence[Task]) -> Iterator[list["ArrowProcess"]]:
    """Start the processes that write Arrow tables; they wait for the start signal, and end with the block."""
    with ExitStack() as stack:
        yield [stack.enter_context(ArrowProcess(task)) for task in tasks]


class ArrowProcess:
    """A writer in its own process, controlled through lines on its pipes."""

    def __init__(self, task: Task) -> None:
        self.task = task
        command = [sys.executable, "-P", "-m", ARROW_WRITER, json.dumps(asdict(task))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def landed(self) -> Iterator[Landed]:
        """Start it, and yield its commits as they succeed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() == READY:
            self._process.stdin.write(f"{GO}\n")
            self._process.stdin.close()
            for line in self._process.stdout:
                yield self._parse(json.loads(line))
        code = self._process.wait()
        if code:
            raise CommitError(f"the writer {self.task.writer} stopped with exit code {code}")

    def _parse(self, message: dict[str, Any]) -> Landed:
        if ERROR in message:
            raise CommitError(f"the writer {self.task.writer} stopped: {message[ERROR]}", hint=message[HINT])
        return Landed(**message)

    def __enter__(self) -> "ArrowProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        with self._process:  # closes the pipes and waits
            pass


def race(spark: Any, spark_tasks: Sequence[Task], processes: Sequence[ArrowProcess]) -> Iterator[Landed]:
    """Run all writers concurrently, and yield commits as they succeed."""
    landed: SimpleQueue[Landed | None] = SimpleQueue()

    def run(commits: Iterator[Landed]) -> None:
        try:
            for commit in commits:
                landed.put(commit)
        finally:
            landed.put(None)

    streams = [process.landed() for process in processes]
    streams += [append_slices(task, _spark_rows(spark, task.total)) for task in spark_tasks]
    with ThreadPoolExecutor(len(streams)) as pool:
        runs = [pool.submit(run, stream) for stream in streams]
        for _ in streams:
            yield from iter(landed.get, None)
        for done in runs:
            done.result()


def _spark_rows(spark: Any, total: int) -> Callable[[int, int], object]:
    columns = spark_orders(total)
    return lambda start, stop: spark.range(start, stop).selectExpr(*columns)
