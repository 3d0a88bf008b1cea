"""Delete many rows on Spark by merge-on-read, and measure the memory of the driver.

    python -m benchmarks driver_memory [files [rows in each]]

Half of the rows of every file match, scattered. The driver is a separate process with a JVM of 1 GB; the result is its
peak memory for a tenth of the rows and for all of them.
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

_DRIVER = """
import json, resource, sys, time
import icefield
from icefield.spark.session.session import session
session(master="local[2]")
with icefield.connect(sys.argv[1], durable=False) as lake:
    table = lake.table("bench.deleted")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    snapshot = table.delete("k = 1", engine="spark").snapshot
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([before, peak, seconds, snapshot.summary["added-position-deletes"], snapshot.engine]))
"""


def run(files: int = 1_000, rows: int = 200_000) -> None:
    """Print the memory of the driver."""
    for share in (10, 1):
        with tempfile.TemporaryDirectory() as folder:
            _make_table(Path(folder), files, rows // share)
            command = [sys.executable, "-c", _DRIVER, folder]
            settings = {"PYSPARK_SUBMIT_ARGS": "--driver-memory 1g pyspark-shell"}
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=_environment(settings))
            before, peak, seconds, deleted, engine = json.loads(done.stdout.splitlines()[-1])
        sys.stdout.write(
            f"delete {int(deleted):,} of {files * rows // share:,} rows in {files:,} files: {seconds:.1f} s, "
            f"driver {before / 1024:.0f} MB before and {peak / 1024:.0f} MB at most, engine {engine}\n"
        )


def _environment(settings: dict[str, str]) -> dict[str, str]:

    return {**os.environ, **settings}


def _make_table(folder: Path, files: int, rows: int) -> None:
    """Create a table of many files with the same rows."""
    with icefield.connect(folder, durable=False) as lake:
        lake.create_namespace("bench")
        table = lake.create_table(
            "bench.deleted", "id long, k int", format_version=3, properties={"write.delete.mode": "merge-on-read"}
        )
        data = folder / "given"
        data.mkdir()
        ids = np.arange(rows)
        marked = np.random.default_rng(7).integers(0, 2, rows).astype(np.int32)
        pq.write_table(pa.table({"id": ids, "k": marked}), data / "0.parquet")
        content = (data / "0.parquet").read_bytes()
        for number in range(1, files):
            (data / f"{number}.parquet").write_bytes(content)
        table.add_files(str(data))
