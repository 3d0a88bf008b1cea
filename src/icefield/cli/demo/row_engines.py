"""How the demo moves and adds up rows: with Spark, or with Arrow in this process, without a JVM."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cli.demo.duckdb import Totals
from icefield.cli.demo.race import ARROW_TURNS, SPARK_TURNS, ArrowProcess, Definition, Landed, Task, race, start_spark
from icefield.cli.progress import show_wait
from icefield.lake import Lake
from icefield.table.scan import TableScan

WRONG_AMOUNT = "cast(amount * 100 AS decimal(10, 2))"
TOTALS = (
    "count(*) AS rows",
    "count(DISTINCT order_id) AS distinct_orders",
    "sum(amount) AS revenue",
    "sum(size(items)) AS items",
    "date_format(max(ts), \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\") AS last_order",
)


class DemoRows(Protocol):
    """The engine of a demo, by its name for people."""

    name: str
    turns: tuple[str, ...]  # of the writers: who takes the next slice, over and over

    def start(self, lake: Lake, definition: Definition, total: int) -> None:
        """Get ready, so that all writers start together."""
        ...

    def race(self, tasks: Sequence[Task], processes: Sequence[ArrowProcess]) -> Iterator[Landed]:
        """Run the writers of this engine and the processes concurrently, and yield commits as they succeed."""
        ...

    def count(self, scan: TableScan) -> tuple[int, int]:
        """Return how many orders there are, and how many different ones."""
        ...

    def read(self, scan: TableScan, order_by: str) -> pa.Table:
        """Return the rows in order."""
        ...

    def with_wrong_amounts(self, scan: TableScan) -> Any:
        """Return the rows with all amounts times 100."""
        ...

    def totals(self, scan: TableScan) -> Totals:
        """Add up all orders."""
        ...


class SparkRows:
    """Rows in Spark."""

    name = "Spark"
    turns: tuple[str, ...] = SPARK_TURNS

    def __init__(self) -> None:
        self._spark: Any = None

    def start(self, lake: Lake, definition: Definition, total: int) -> None:
        with show_wait("starting Spark"):
            self._spark = start_spark(lake, definition, total)

    def race(self, tasks: Sequence[Task], processes: Sequence[ArrowProcess]) -> Iterator[Landed]:
        return race(self._spark, tasks, processes)

    def count(self, scan: TableScan) -> tuple[int, int]:
        rows, distinct = scan.to_spark().selectExpr("count(*)", "count(DISTINCT order_id)").first()
        return rows, distinct

    def read(self, scan: TableScan, order_by: str) -> pa.Table:
        found: pa.Table = scan.to_spark().orderBy(order_by).toArrow()
        return found

    def with_wrong_amounts(self, scan: TableScan) -> Any:
        return scan.to_spark().selectExpr("* EXCEPT (amount)", f"{WRONG_AMOUNT} AS amount")

    def totals(self, scan: TableScan) -> Totals:
        return Totals(**scan.to_spark().selectExpr(*TOTALS).first().asDict())


class ArrowRows:
    """Rows in this process."""

    name = "Arrow"
    turns: tuple[str, ...] = ARROW_TURNS

    def start(self, lake: Lake, definition: Definition, total: int) -> None:
        lake.use(engine="local")

    def race(self, tasks: Sequence[Task], processes: Sequence[ArrowProcess]) -> Iterator[Landed]:
        return race(None, tasks, processes)

    def count(self, scan: TableScan) -> tuple[int, int]:
        ids = scan.to_arrow().read_all().column("order_id")
        return len(ids), pc.count_distinct(ids).as_py()

    def read(self, scan: TableScan, order_by: str) -> pa.Table:
        return scan.to_arrow().read_all().sort_by(order_by)

    def with_wrong_amounts(self, scan: TableScan) -> Any:
        rows = scan.to_arrow().read_all()
        at = rows.schema.get_field_index("amount")
        wrong = pc.multiply(rows.column(at), pa.scalar(100, pa.decimal128(3))).cast(rows.schema.field(at).type)
        return rows.set_column(at, "amount", wrong)

    def totals(self, scan: TableScan) -> Totals:
        rows = scan.to_arrow().read_all()
        last = pc.max(rows.column("ts")).as_py()
        return Totals(
            rows.num_rows,
            pc.count_distinct(rows.column("order_id")).as_py(),
            pc.sum(rows.column("amount")).as_py(),
            pc.sum(pc.list_value_length(rows.column("items"))).as_py(),
            last.strftime("%Y-%m-%dT%H:%M:%S.%f"),
        )
