"""Row-level changes: MERGE, UPDATE and DELETE against a plain Spark rewrite of the same rows in the same session.

    python -m benchmarks changes [rows [rounds]]

Ratios are of CPU seconds of the driver, the JVM and all Python workers. The plain rewrite joins the table with the
source, and writes all rows again, clustered by day. With the environment of `make interop-environment`, Iceberg Java
does the same on a table of its own, against the same rewrite in its own Spark 3.5. The local engine is compared with
DuckDB, PyIceberg and delta-rs, each in a process of its own. delta-rs is not installed with the project:

    .venv/bin/python -m pip install deltalake

Each piece of work is repeated before it is measured, because Spark's own code is compiled while it runs. A bar is met
if the ratio is not above it, and if the CPU is below that of the peers that it names; without a peer that part is left
out, and the line says why.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import icefield
from benchmarks.change_report import HEADER, Line, run_alone
from benchmarks.change_series import LONGEST_SECONDS, run_series
from benchmarks.change_work import KEY, RECENT, SPREAD, WORKS, ChangeWork, plain_rewrite, run_changes, source, target
from benchmarks.iceberg_java import JAVA, run_java
from benchmarks.spark_events import digest, write_parquet, write_parquet_by_day
from benchmarks.spark_measure import Cost, measure
from benchmarks.spark_partitions import HEAP
from icefield.lake import Lake
from icefield.table.table import Table

ROWS, ROUNDS = 5_000_000, 3
TABLE = "bench.changed"


class Icefield:
    """Changes branches of a table of format version 3, on Spark."""

    def __init__(self, lake: Lake, folder: str) -> None:
        self.spark = lake.spark
        self._table = lake.table(TABLE)
        self._folder = folder
        self._branches = 0

    def merge(self, mode: str, kind: str, values: Mapping[str, str] | None) -> None:
        """Merge source rows."""
        changes = self.spark.read.parquet(f"{self._folder}/{kind}")
        matched = self._branch().merge(changes, on=[KEY], mode=mode, engine="spark").when_matched()
        merging = matched.update_all() if values is None else matched.update(values)
        merging.when_not_matched().insert_all().execute()

    def update(self, mode: str, where: str | None) -> None:
        """Update one column."""
        self._branch().update({"amount": "amount + 1"}, where, mode=mode, engine="spark")

    def delete(self, mode: str, where: str) -> None:
        """Delete rows."""
        self._branch().delete(where, mode=mode, engine="spark")

    def _branch(self) -> Table:
        self._branches += 1
        self._table.create_branch(f"b{self._branches}")
        return self._table.at(f"b{self._branches}")


def run(rows: int = ROWS, rounds: int = ROUNDS) -> None:
    """Create the table, measure each engine, and print the results side by side."""
    os.environ["PYSPARK_SUBMIT_ARGS"] = HEAP
    with tempfile.TemporaryDirectory(prefix="icefield-bench-") as folder:
        with icefield.connect(f"{folder}/lake", durable=False) as lake:
            make(lake, folder, rows, {kind: source(lake.spark, rows, kind) for kind in (SPREAD, RECENT)})
            plain = _measure_plain(lake.spark, folder)
            ours = {work.name: cost for work, cost in run_changes(Icefield(lake, folder), rounds)}
            series = list(run_series(lake, folder, rows))
            lake.spark.stop()
        java = run_java("benchmarks.change_java", folder, str(rows), str(rounds)) if JAVA.exists() else {}
        print(f"{rows:,} rows x 10 columns, {os.cpu_count()} cores, medians of {rounds} rounds, ratios of CPU")
        print(f"  plain rewrite by day: CPU {plain.cpu:.1f} s, wall {plain.wall:.1f} s")
        print(HEADER)
        for line in (*(_line(work, ours[work.name], plain, java) for work in WORKS), *_run_local(folder), *series):
            print(line)


def _line(work: ChangeWork, cost: Cost, plain: Cost, java: Mapping[str, Cost]) -> Line:
    theirs = java.get(work.name)
    ratio = theirs.cpu / java["plain"].cpu if theirs else None
    peers = "Iceberg Java not run" if ratio is None else f"Iceberg Java {ratio:.3f}"
    return Line(work.name, cost, plain, ratio if work.bar is None else work.bar, peers=peers)


def make(lake: Lake, folder: str, rows: int, sources: Mapping[str, Any]) -> None:
    """Write the table, the same rows as plain Parquet, and the rows to merge, by their kind."""
    frame = target(lake.spark, rows)
    for kind, changes in sources.items():
        write_parquet(changes, f"{folder}/{kind}")
    write_parquet_by_day(frame, f"{folder}/plain")
    table = lake.create_table(TABLE, frame, partition_by=["day(ts)"], format_version=3)
    table.append(frame)
    assert digest(table.scan().to_spark()) == digest(frame)


def _measure_plain(spark: Any, folder: str) -> Cost:
    def rewrite(number: int) -> None:
        table = spark.read.parquet(f"{folder}/plain").drop("day")
        plain_rewrite(table, spark.read.parquet(f"{folder}/{SPREAD}"), f"{folder}/rewritten/{number}")

    rewrite(0)
    costs = [measure(lambda n=n: rewrite(n)) for n in range(1, 3)]  # type: ignore[misc]
    return min(costs, key=lambda cost: cost.cpu)


def _run_local(folder: str) -> Iterator[Line]:
    """Run each engine that needs no JVM in a process of its own."""
    for kind, bar in ((SPREAD, 0.07), (RECENT, 0.05)):
        ours, delta, duck = (
            run_alone(name, folder, kind, LONGEST_SECONDS) for name in ("icefield", "deltalake", "duckdb")
        )
        if isinstance(ours, str):
            raise RuntimeError(ours)
        below = {"DuckDB": duck.cpu} if isinstance(duck, Cost) else {}
        said = [f"delta-rs {delta.cpu:.2f} s" if isinstance(delta, Cost) else delta]
        said += [duck] if isinstance(duck, str) else []
        baseline = delta if isinstance(delta, Cost) else None
        yield Line(f"merge, {kind}, without a JVM, to delta-rs", ours, baseline, bar, below, "; ".join(said))


if __name__ == "__main__":
    run(*(int(argument) for argument in sys.argv[1:]))
