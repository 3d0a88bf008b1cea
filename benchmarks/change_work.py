"""Rows and pieces of work for the benchmark of row-level changes, the same for all engines.

The table has even keys, clustered by time; inserted keys are odd ones in between, so that bounds of keys do not show
whether a key exists. This module does not import icefield, because it also runs in the environment of Iceberg Java.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.spark_events import COLUMNS, DAYS, events, write_parquet_by_day
from benchmarks.spark_measure import Cost, measure, warm_up

KEY = "event_id"
RECENT_DAYS = 3
UPDATES, INSERTS = 40_000, 10_000  # in a table of REFERENCE_ROWS
REFERENCE_ROWS = 5_000_000
ONE_PERCENT = "score < 0.01"
PARTIAL = {"amount": "source.amount", "score": "target.score + source.score"}
SPREAD, RECENT = "spread", "recent"
# Rounds, and seconds after which no more begins: what the JVM compiles for the first merges is half of their cost.
WARM_UP = (20, 30)


def target(spark: Any, rows: int) -> Any:
    """Return the rows of the table: those of the other benchmarks, with even keys."""
    return events(spark, rows).withColumn(KEY, _column(f"{KEY} * 2"))


def source(spark: Any, rows: int, kind: str, share: float | None = None) -> Any:
    """Return the rows to merge: four updates for each insert, over all days or over the last ones.

    share: of UPDATES and INSERTS; by default it grows with the table.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where there is Spark

    share = rows / REFERENCE_ROWS if share is None else share
    updates, inserts = max(4, int(UPDATES * share)), max(1, int(INSERTS * share))
    first = 0 if kind == SPREAD else rows - rows * RECENT_DAYS // DAYS
    step = (rows - first) // updates
    ids = spark.range(0, updates, 1, 2).selectExpr(f"{first} + id * {step} AS id", "0L AS odd")
    more = spark.range(0, inserts, 1, 2).selectExpr(f"{first} + id * {step * (updates // inserts)} AS id", "1L AS odd")
    whole = events(spark, rows)
    keyed = ids.union(more).join(whole, F.col("id") == whole[KEY])
    changed = keyed.withColumn("amount", F.col("amount") + 1000).withColumn(KEY, F.col("id") * 2 + F.col("odd"))
    return changed.select(*COLUMNS)


def plain_rewrite(table: Any, changes: Any, folder: str, *, is_small: bool = True) -> None:
    """Merge with plain Spark: a left join, the new rows, and all rows written by day again.

    is_small: whether the source is small enough for a broadcast.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where there is Spark

    renamed = changes.toDF(*(f"s_{name}" for name in COLUMNS))
    joined = table.join(F.broadcast(renamed) if is_small else renamed, table[KEY] == renamed[f"s_{KEY}"], "left")
    is_matched = F.col(f"s_{KEY}").isNotNull()
    updated = joined.select(
        *(F.when(is_matched, F.col(f"s_{name}")).otherwise(F.col(name)).alias(name) for name in COLUMNS)
    )
    new = changes.join(table.select(KEY), KEY, "left_anti").select(*COLUMNS)
    write_parquet_by_day(updated.union(new), folder)


class ChangeEngine(Protocol):
    """An engine that changes rows of a table; each change is on a branch of its own."""

    spark: Any

    def merge(self, mode: str, kind: str, values: Mapping[str, str] | None) -> None:
        """Merge source rows: update all columns, or these, and insert the others."""
        ...

    def update(self, mode: str, where: str | None) -> None:
        """Update one column of the rows that match."""
        ...

    def delete(self, mode: str, where: str) -> None:
        """Delete the rows that match."""
        ...


@dataclass(frozen=True)
class ChangeWork:
    """A piece of work, and the most that it may cost in relation to the plain rewrite; None: as much as Java's."""

    name: str
    bar: float | None
    run: Callable[[ChangeEngine], None]


MERGE_ON_READ, COPY_ON_WRITE = "merge-on-read", "copy-on-write"
WORKS = (
    ChangeWork("merge, spread, merge-on-read", 0.13, lambda e: e.merge(MERGE_ON_READ, SPREAD, None)),
    ChangeWork("merge, recent, merge-on-read", 0.07, lambda e: e.merge(MERGE_ON_READ, RECENT, None)),
    ChangeWork("merge, spread, partial set", 0.15, lambda e: e.merge(MERGE_ON_READ, SPREAD, PARTIAL)),
    ChangeWork("update one column, 1 % of rows", 0.13, lambda e: e.update(MERGE_ON_READ, ONE_PERCENT)),
    ChangeWork("delete 1 % of rows", 0.03, lambda e: e.delete(MERGE_ON_READ, ONE_PERCENT)),
    ChangeWork("merge, spread, copy-on-write", None, lambda e: e.merge(COPY_ON_WRITE, SPREAD, None)),
    ChangeWork("merge, recent, copy-on-write", None, lambda e: e.merge(COPY_ON_WRITE, RECENT, None)),
    ChangeWork("update one column, all rows", 1.10, lambda e: e.update(COPY_ON_WRITE, None)),
)


def run_changes(engine: ChangeEngine, rounds: int) -> Iterator[tuple[ChangeWork, Cost]]:
    """Measure the pieces of work one after the other: the median of some rounds, after others to warm up."""
    for work in WORKS:
        warm_up(lambda work=work: work.run(engine), *WARM_UP)  # type: ignore[misc]
        costs = sorted((measure(lambda work=work: work.run(engine)) for _ in range(rounds)), key=lambda c: c.cpu)  # type: ignore[misc]
        yield work, costs[len(costs) // 2]


def _column(text: str) -> Any:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where there is Spark

    return F.expr(text)
