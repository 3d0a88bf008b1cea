"""The writers of the demo, concurrently on one table: threads with Spark DataFrames, processes with Arrow tables.

Each writer opens the table by itself, appends its slices one by one, and reports each commit when it succeeds.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, cast

from icefield.backend import Backend
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.cli.demo.orders import spark_orders
from icefield.cli.demo.processes import DemoProcess, interleave
from icefield.config.connect import connect
from icefield.errors import CommitConflict
from icefield.lake import Lake
from icefield.table.table import Table

WRITER_MODULE, WRITER_ROLE = "icefield.cli.demo.actors", "append_task"
# Who takes the next slice, over and over: Arrow appends are quicker, so those writers take two of eight each.
ARROW_TURNS = ("arrow-1", "arrow-2", "arrow-3")
SPARK_TURNS = ("arrow-1", "arrow-2", "spark-1", "arrow-3", "arrow-1", "arrow-2", "spark-2", "arrow-3")
SLICES = 24
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


def share_out(lake: str, table: str, total: int, turns: Sequence[str] = SPARK_TURNS) -> list[Task]:
    """Cut the orders into slices and assign them to the writers."""
    edges = [total * at // SLICES for at in range(SLICES + 1)]
    slices: dict[str, list[tuple[int, int]]] = {}
    for at in range(SLICES):
        slices.setdefault(turns[at % len(turns)], []).append((edges[at], edges[at + 1]))
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


class ArrowProcess(DemoProcess):
    """A writer in its own process."""

    def __init__(self, task: Task) -> None:
        super().__init__(task.writer, WRITER_MODULE, {"role": WRITER_ROLE, **asdict(task)})

    def landed(self) -> Iterator[Landed]:
        """Start it, and yield its commits as they succeed."""
        for event in self.events():
            yield Landed(**event)


def race(spark: Any, spark_tasks: Sequence[Task], processes: Sequence[ArrowProcess]) -> Iterator[Landed]:
    """Run all writers concurrently, and yield commits as they succeed."""
    streams = [process.landed() for process in processes]
    streams += [append_slices(task, _spark_rows(spark, task.total)) for task in spark_tasks]
    yield from interleave(streams)


def _spark_rows(spark: Any, total: int) -> Callable[[int, int], object]:
    columns = spark_orders(total)
    return lambda start, stop: spark.range(start, stop).selectExpr(*columns)
