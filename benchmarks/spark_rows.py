"""Rows on Spark: reads, deletes and writes against plain Parquet of the same files in the same session.

    python -m benchmarks spark_rows [rows [rounds]]

Each piece of work alternates with its baseline; the result is the median of some rounds. CPU is that of the driver, the
JVM and all Python workers; memory is the peak of the JVM and all Python processes together. With the environment of
`make interop-environment`, Iceberg Java does the same work on the same tables in its own Spark 3.5, against plain
Parquet there, so that the ratios can be compared.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import icefield
from benchmarks.iceberg_java import JAVA, MARK, plain_environment
from benchmarks.spark_events import ONE_PERCENT, TEN_PERCENT, events
from benchmarks.spark_measure import ROUNDS, Cost
from benchmarks.spark_partitions import HEAP
from benchmarks.spark_work import BASE, BY_DAY, ONE, SMALL, TEN, Measured, Place, measured_of, run_works
from icefield.lake import Lake
from icefield.storage.location import local_path

ROWS = 5_000_000
PARTITIONS = 20_000
LONGEST_SECONDS = 1800
DELETES_IN_PLACE = {"write.delete.mode": "merge-on-read"}


class Icefield:
    """Icefield on Spark."""

    def __init__(self, lake: Lake) -> None:
        self.spark = lake.spark
        self._lake = lake
        self._written = 0

    def open(self, table: str, branch: str | None = None, where: str | None = None) -> Any:
        """Return a DataFrame of a table's rows that match."""
        return self._lake.read(table, where, as_of=branch)

    def count(self, table: str, where: str, branch: str | None = None) -> int:
        """Count rows that match, from metadata where possible."""
        return self._lake.table(table).scan(where, as_of=branch).count()

    def write(self, frame: Any, partition_by: Sequence[str]) -> None:
        """Write rows to a new table."""
        self._written += 1
        self._lake.create_table(f"bench.written_{self._written}", frame, partition_by=partition_by).append(frame)


def run(rows: int = ROWS, rounds: int = ROUNDS) -> None:
    """Create the tables, measure each engine, and print the results side by side."""
    os.environ["PYSPARK_SUBMIT_ARGS"] = HEAP
    partitions = min(PARTITIONS, max(100, rows // 250))
    with tempfile.TemporaryDirectory(prefix="icefield-bench-") as folder:
        alone = _run_alone([sys.executable, "-m", "benchmarks.spark_partitions", f"{folder}/lake", str(partitions)])
        with icefield.connect(f"{folder}/lake", durable=False) as lake:
            place = _make_tables(lake, folder, rows, partitions)
            ours = [_told(measured) for measured in run_works(Icefield(lake), place, rounds)]
            lake.spark.stop()
        java, java_alone = _run_java(place, rounds) if JAVA.exists() else ({}, "not run")
    print(f"{rows:,} rows x 10 columns through Spark, {os.cpu_count()} cores, medians of {rounds} rounds in turns")
    print(f"one row to each of {partitions:,} partitions, 2 GB heap: {alone}; Iceberg Java: {java_alone}")
    for line in _table(ours, java):
        print(line)


def _told(measured: Measured) -> Measured:
    """Print progress, because each piece of work takes long."""
    print(f"{measured.name}: {_ratio(measured)}", file=sys.stderr, flush=True)
    return measured


def _make_tables(lake: Lake, folder: str, rows: int, partitions: int) -> Place:
    frame = events(lake.spark, rows)
    for name, partition_by in ((BASE, ()), (BY_DAY, ("day(ts)",))):
        table = lake.create_table(name, frame, partition_by=partition_by, properties=DELETES_IN_PLACE, format_version=3)
        table.append(frame)
        for branch, deleted in ((ONE, ONE_PERCENT), (TEN, TEN_PERCENT)):
            table.create_branch(branch)
            table.at(branch).delete(deleted)
    files, metadata = {}, {}
    for name in (BASE, BY_DAY, SMALL):
        table = lake.table(name)
        files[name] = [local_path(location) for location in table.scan().files()["file_path"].to_pylist()]
        metadata[name] = table.metadata_location
    return Place(folder, rows, partitions, files, metadata)


def _run_java(place: Place, rounds: int) -> tuple[dict[str, Measured], str]:
    path = Path(place.folder) / "place.json"
    path.write_text(json.dumps(asdict(place)))
    command = [str(JAVA), "-m", "benchmarks.spark_java"]
    works = [*command, "works", str(path), str(rounds)]
    done = subprocess.run(works, stdout=subprocess.PIPE, text=True, env=plain_environment(), check=False)
    marked = (line.removeprefix(MARK) for line in done.stdout.splitlines() if line.startswith(MARK))
    measured = [measured_of(json.loads(line)) for line in marked]
    if done.returncode:
        print(f"Iceberg Java ended with {done.returncode} after {len(measured)} works", file=sys.stderr)
    return {each.name: each for each in measured}, _run_alone([*command, "partitions", str(path), "1"])


def _run_alone(command: Sequence[str]) -> str:
    """Run a program that prints a cost in a separate process, and report the result."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST_SECONDS, env=plain_environment(), check=False
        )
    except subprocess.TimeoutExpired:
        return f"not done after {LONGEST_SECONDS} s"
    found = [line.removeprefix(MARK) for line in done.stdout.splitlines() if line.removeprefix(MARK).startswith("{")]
    if done.returncode or not found:
        out_of_memory = "OutOfMemoryError" in done.stderr + done.stdout
        return "out of memory" if out_of_memory else f"failed: {done.stderr.strip().splitlines()[-1:]}"
    cost = Cost(**json.loads(found[-1]))
    return f"CPU {cost.cpu:.1f} s, wall {cost.wall:.1f} s, {cost.java_mib:,.0f} + {cost.python_mib:,.0f} MiB"


def _table(ours: Sequence[Measured], java: dict[str, Measured]) -> Iterator[str]:
    head = f"{'icefield':>17}{'held against':>17}{'ratio':>13}{'bar':>17}{'Java ratio':>13}{'MiB, Java + Python':>25}"
    yield f"  {'CPU s, wall s':36}{head}"
    for each in ours:
        theirs = java.get(each.name)
        ratio = _ratio(theirs) if theirs else "-"
        memory = f"{each.ours.java_mib:,.0f} + {each.ours.python_mib:,.0f}"
        notes = each.note + (f" (Java {theirs.note})" if theirs and theirs.note else "")
        yield (
            f"  {each.name:36}{_seconds(each.ours):>17}{_seconds(each.other):>17}{_ratio(each):>13}{each.bar:>17}"
            f"{ratio:>13}{memory:>25}  {notes}".rstrip()
        )


def _seconds(cost: Cost) -> str:
    return f"{cost.cpu:.2f}  {cost.wall:.2f}"


def _ratio(measured: Measured) -> str:
    wall = measured.ours.wall / measured.other.wall
    # Work that takes no measurable CPU has no ratio.
    return f"{measured.ours.cpu / max(measured.other.cpu, 0.01):.2f}  {wall:.2f}"
