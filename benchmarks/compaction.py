"""Compaction: bin-pack, sort and two-column clustering of small files, against a plain Spark rewrite of the same rows.

    python -m benchmarks compaction [rows [rounds]]

Ratios are of CPU seconds of the driver, the JVM and all Python workers; pieces of work alternate. With the environment
of `make interop-environment`, Iceberg Java does the same on a table of its own, against a plain rewrite in its own
Spark 3.5. The last lines are about rounds of merge and compaction, and about the manifests that a query opens.
"""

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

import icefield
from benchmarks.change_work import KEY, SPREAD, source, target
from benchmarks.iceberg_java import JAVA, run_java
from benchmarks.spark_events import events, write_parquet
from benchmarks.spark_measure import Cost, compare, measure
from benchmarks.spark_partitions import HEAP
from icefield.engine.rows import bind_filter
from icefield.lake import Lake
from icefield.plan.manifest_list import load_manifests, prune_manifests
from icefield.table.table import Table

ROWS, ROUNDS = 5_000_000, 3
FILES, NEW_FILES = 200, 8
BARS = {"bin-pack, spark": 0.35, "bin-pack, local": 0.25, "sort, spark": 1.5, "cluster, spark": 2.0}
MERGES = 5


def run(rows: int = ROWS, rounds: int = ROUNDS) -> None:
    """Create the table, measure each way, and print the results side by side."""
    os.environ["PYSPARK_SUBMIT_ARGS"] = HEAP
    with tempfile.TemporaryDirectory(prefix="icefield-bench-") as folder:
        print(f"{rows:,} rows x 10 columns in {FILES} files, {os.cpu_count()} cores, medians of {rounds} rounds")
        with icefield.connect(f"{folder}/lake", durable=False) as lake:
            # Each part is printed when it is measured: all of it takes long.
            _print("icefield", _measure(lake, folder, rows, rounds))
            for line in (*_merge_and_compact(lake, rows // 5), *_manifests(lake)):
                print(f"  {line}", flush=True)
            lake.spark.stop()
        if JAVA.exists():
            _print("Iceberg Java", run_java("benchmarks.compaction_java", folder, str(FILES), str(rounds)))


def _print(title: str, costs: dict[str, Cost]) -> None:
    """Print the cost of each work, and its ratio to a plain rewrite in the same Spark."""
    if "plain" not in costs:
        return
    plain = costs.pop("plain")
    print(f"  {title:20}{'CPU s':>8}{'wall s':>8}{'ratio':>8}{'bar':>8}")
    print(f"  {'plain rewrite':20}{plain.cpu:8.2f}{plain.wall:8.2f}{1:8.2f}")
    for name, cost in costs.items():
        bar = f"{BARS[name]:8.2f}" if name in BARS else ""
        print(f"  {name:20}{cost.cpu:8.2f}{cost.wall:8.2f}{cost.cpu / plain.cpu:8.2f}{bar}", flush=True)


def _measure(lake: Lake, folder: str, rows: int, rounds: int) -> dict[str, Cost]:
    spark = lake.spark
    frame = events(spark, rows, FILES)
    write_parquet(frame, f"{folder}/small")
    plain = spark.read.parquet(f"{folder}/small")
    table = lake.create_table("bench.small", frame, order_by=["country", "event_id"], format_version=3)
    table.append(frame, options={"distribution-mode": "none"})
    size = sum(table.scan().files()["file_size_in_bytes"].to_pylist())
    options = {"target-file-size-bytes": str(size // NEW_FILES)}
    numbers = itertools.count()

    def rewrite() -> None:
        write_parquet(plain.coalesce(NEW_FILES), f"{folder}/plain-{next(numbers)}")

    def compact(**how: Any) -> None:
        done = _branch(table).compact(options=options, **how)
        assert done.files_removed >= FILES * 0.9, str(done)

    works: dict[str, Callable[[], None]] = {
        "plain": rewrite,
        "bin-pack, spark": partial(compact, engine="spark"),
        "bin-pack, local": partial(compact, engine="local"),
        "sort, spark": partial(compact, strategy="sort", engine="spark"),
        "cluster, spark": partial(compact, cluster_by=["score", "duration_ms"], engine="spark"),
    }
    return compare(works, rounds)


def _merge_and_compact(lake: Lake, rows: int) -> Iterator[str]:
    """Merge and compact several times: each round must cost as much as the first."""
    frame = target(lake.spark, rows)
    table = lake.create_table("bench.rounds", frame, format_version=3)
    table.append(frame)
    changes = source(lake.spark, rows, SPREAD).cache()
    spent = []
    for number in range(MERGES + 1):
        some = changes.where(f"pmod(hash({KEY}), {MERGES + 1}) = {number}")

        def both(some: Any = some) -> None:
            table.upsert(some, on=[KEY], mode="merge-on-read", engine="spark")
            table.compact(engine="spark")

        spent.append(measure(both).cpu)
    first, *later = spent[1:]  # the first warms up
    ratios = ", ".join(f"{cost / first:.2f}" for cost in later)
    yield f"rounds of merge and compaction of {rows:,} rows: {first:.1f} s CPU, then {ratios} times that, bar 1.30"


def _manifests(lake: Lake) -> Iterator[str]:
    """Count the bytes of manifests that a query for one of 1,728 partitions opens."""
    cells = [(state, month) for state in range(48) for month in range(36)]
    Random(1).shuffle(cells)
    more = [f"c{at}" for at in range(7)]
    columns = ", ".join(f"{name} double" for name in more)
    table = lake.create_table(
        "bench.cells", f"id long, state int, month int, {columns}", partition_by=["state", "month"]
    )
    rng = Random(2)
    for start in range(0, len(cells), 12):
        some = cells[start : start + 12]
        states, months = (pa.array([cell[at] for cell in some], pa.int32()) for at in (0, 1))
        values = {name: [rng.random() for _ in some] for name in more}
        table.append(pa.table({"id": [*range(12)], "state": states, "month": months, **values}))
    before = _opened(table)
    table.rewrite_manifests()
    after = f"{_opened(table):,}, bar 100,000"
    yield f"one-partition query of 1,728 files opens {before:,} bytes of manifests, rewritten {after}"


def _opened(table: Table) -> int:
    metadata = table.metadata
    found = load_manifests(table._context, metadata.current_snapshot)  # noqa: SLF001 - what users do not need
    assert found is not None
    total = 0
    queries = [(state, month) for state in range(0, 48, 6) for month in range(0, 36, 6)]
    for state, month in queries:
        where = bind_filter(f"state = {state} and month = {month}", metadata.schema)
        total += sum(found.choose(prune_manifests(found, where, metadata, metadata.schema)).manifest_length.to_pylist())
    return total // len(queries)


def _branch(table: Table) -> Table:
    name = f"b{len(table.refs())}"
    table.create_branch(name)
    return table.at(name)
