"""Row-level changes: MERGE, UPDATE and DELETE against a plain Spark rewrite of the same rows in the same session.

    python -m benchmarks changes [rows [rounds]]

Ratios are of CPU seconds of the driver, the JVM and all Python workers. The plain rewrite joins the table with the
source, and writes all rows again, clustered by day. With the environment of `make interop-environment`, Iceberg Java
does the same on a table of its own, against the same rewrite in its own Spark 3.5. The local engine is compared with
DuckDB, and with delta-rs if it is installed, each in a process of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

import icefield
from benchmarks.change_series import run_series
from benchmarks.change_work import KEY, RECENT, SPREAD, WORKS, plain_rewrite, run_changes, source, target
from benchmarks.spark_events import digest, write_parquet, write_parquet_by_day
from benchmarks.spark_java import MARK
from benchmarks.spark_measure import Cost, measure
from benchmarks.spark_partitions import HEAP
from benchmarks.spark_rows import JAVA, plain_environment
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
            _make(lake, folder, rows)
            plain = _measure_plain(lake.spark, folder)
            ours = {work.name: cost for work, cost in run_changes(Icefield(lake, folder), rounds)}
            series = list(run_series(lake, folder, rows))
            lake.spark.stop()
        java = _run_java(folder, rows, rounds) if JAVA.exists() else {}
        print(f"{rows:,} rows x 10 columns, {os.cpu_count()} cores, medians of {rounds} rounds, ratios of CPU")
        print(f"  plain rewrite by day: CPU {plain.cpu:.1f} s, wall {plain.wall:.1f} s")
        print(f"  {'':36}{'CPU s':>8}{'wall s':>8}{'ratio':>8}{'bar':>8}{'Java ratio':>12}{'Python MiB':>12}")
        for work in WORKS:
            cost, theirs = ours[work.name], java.get(work.name)
            ratio = f"{theirs.cpu / java['plain'].cpu:.2f}" if theirs else "-"
            print(
                f"  {work.name:36}{cost.cpu:8.2f}{cost.wall:8.2f}{cost.cpu / plain.cpu:8.3f}{work.bar:>8}{ratio:>12}"
                f"{cost.python_mib:12,.0f}"
            )
        for line in (*_run_local(folder), *series):
            print(line)


def _make(lake: Lake, folder: str, rows: int) -> None:
    spark = lake.spark
    frame = target(spark, rows)
    for kind in (SPREAD, RECENT):
        write_parquet(source(spark, rows, kind), f"{folder}/{kind}")
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


def _run_java(folder: str, rows: int, rounds: int) -> dict[str, Cost]:
    command = [str(JAVA), "-m", "benchmarks.change_java", folder, str(rows), str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=plain_environment(), check=False)
    marked = (json.loads(line.removeprefix(MARK)) for line in done.stdout.splitlines() if line.startswith(MARK))
    found = {name: Cost(**cost) for name, cost in marked}
    if done.returncode:
        print(f"Iceberg Java ended with {done.returncode} after {len(found)} works", file=sys.stderr)
    return found


def _run_local(folder: str) -> list[str]:
    """Run each engine that needs no JVM in a process of its own."""
    lines = []
    for name in ("icefield", "duckdb", "deltalake"):
        for kind in (SPREAD, RECENT):
            command = [sys.executable, "-m", "benchmarks.change_local", name, folder, kind]
            done = subprocess.run(command, capture_output=True, text=True, env=plain_environment(), check=False)
            said = done.stdout.strip() or f"not run: {(done.stderr.strip().splitlines() or ['?'])[-1]}"
            lines.append(f"  without a JVM, merge, {kind}: {name} {said}")
    return lines


if __name__ == "__main__":
    run(*(int(argument) for argument in sys.argv[1:]))
