"""Change many rows on Spark, and measure the memory of the driver.

    python -m benchmarks driver_memory [files [rows in each]]

Every second row matches. The driver is a separate process with a heap of 512 MB, where the tasks run as well. The
results are for a tenth of the rows and for all of them: the peak memory of its Python process, and how much heap is in
use after a garbage collection, before and after the change.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import icefield

VERBS = {
    "delete": 'table.delete("k = 1", mode="merge-on-read", engine="spark")',
    "update": 'table.update({"v": "v + 1"}, "k = 1", mode="merge-on-read", engine="spark")',
    "upsert": 'table.upsert(source, ["id"], mode="merge-on-read", engine="spark")',
    "merge": """(
        table.merge(source, "target.id = source.id", mode="merge-on-read", engine="spark")
        .when_matched().update({"v": "target.v + source.v"})
        .when_not_matched().insert_all()
        .execute()
    )""",
}
_DRIVER = """
import gc, json, resource, sys, time
import icefield
from icefield.spark.session.session import session
spark = session(master="local[2]")
heap = spark._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def in_use():
    gc.collect()
    spark._jvm.System.gc()
    return heap.getHeapMemoryUsage().getUsed()


with icefield.connect(sys.argv[1], durable=False) as lake:
    table = lake.table("bench.changed")
    source = spark.range(1, int(sys.argv[2]), 2).selectExpr("id", "CAST(1 AS INT) AS k", "10L AS v")
    before, used = peak(), in_use()
    begin = time.perf_counter()
    done = CHANGE
    seconds = time.perf_counter() - begin
    changed = done.rows_deleted + done.rows_updated
    print(json.dumps([before, peak(), used, in_use(), seconds, changed, done.engine]))
"""


def run(files: int = 50, rows: int = 200_000) -> None:
    """Print the memory of the driver."""
    for verb in VERBS:
        for share in (10, 1):
            measure(verb, files, rows // share)


def measure(verb: str, files: int, rows: int) -> None:
    """Print the memory of the driver for one verb."""
    with tempfile.TemporaryDirectory() as folder:
        _make_table(Path(folder), files, rows)
        command = [sys.executable, "-c", _DRIVER.replace("CHANGE", VERBS[verb]), folder, str(files * rows)]
        settings = {"PYSPARK_SUBMIT_ARGS": "--driver-memory 512m pyspark-shell"}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, **settings})
        if done.returncode:
            sys.stdout.write(f"{verb} of {files * rows:,} rows failed: {done.stderr[-2000:]}\n")
            return
        before, peak, used, after, seconds, changed, engine = json.loads(done.stdout.splitlines()[-1])
    sys.stdout.write(
        f"{verb} {changed:,} of {files * rows:,} rows in {files:,} files: {seconds:.1f} s, "
        f"driver {before / 1024:.0f} MB before and {peak / 1024:.0f} MB at most, "
        f"heap {used / 2**20:.0f} MB before and {after / 2**20:.0f} MB after, engine {engine}\n"
    )


def _make_table(folder: Path, files: int, rows: int) -> None:
    """Create a table of many files; the odd ids have k = 1."""
    with icefield.connect(folder, durable=False) as lake:
        lake.create_namespace("bench")
        table = lake.create_table("bench.changed", "id long, k int, v long", format_version=3)
        data = folder / "given"
        data.mkdir()
        for number in range(files):
            ids = np.arange(number * rows, (number + 1) * rows)
            columns = {"id": ids, "k": (ids % 2).astype(np.int32), "v": ids}
            pq.write_table(pa.table(columns), data / f"{number}.parquet")
        table.add_files(str(data))
