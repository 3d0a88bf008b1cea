"""The collector and fsck: what they cost without deletes. CPU seconds of the verb, and memory of a process of its own.

    python -m benchmarks collector [files]

Most files of the table are live, as they usually are, and one in a hundred is an orphan file. The data files are empty.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import icefield
from benchmarks.iceberg_java import JAVA, run_java
from benchmarks.spark_measure import memory_peak_mib
from icefield.commit.action import CommitTarget
from icefield.dml.write import TableWrite
from icefield.lake import Lake
from icefield.storage.location import local_path

PER_COMMIT, ONE_IN, SNAPSHOTS = 20_000, 100, 1_000
# CPU seconds and MiB; those of orphan files are for so many files, and CPU time grows with them.
BAR_FILES, ORPHANS_CPU, ORPHANS_MIB, EXPIRY_CPU = 100_000, 1.0, 300, 0.3
LATER = "2100-01-01T00:00:00Z"
ROWS = pa.table({"id": pa.array(range(10), pa.int64())})
MANY, HISTORY, WARM = "a.many", "a.history", "a.warm"
AT_ONCE = {
    "icefield.gc.orphan-age-ms": "0",
    "icefield.gc.grace-ms": "0",
    "icefield.gc.foreign-readers": "false",
}


def run(files: int = 100_000) -> None:
    """Print what a dry run over so many files, fsck of them, and the expiry of 1,000 snapshots cost."""
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/lake"
        with icefield.connect(place, durable=False) as lake:
            _with_files(lake, files)
            for name, commits in ((WARM, 1), (HISTORY, SNAPSHOTS + 1)):
                table = lake.create_table(name, ROWS.schema, properties=AT_ONCE)
                for _ in range(commits):
                    table.append(ROWS)
        for work in WORKS:
            subprocess.run([sys.executable, "-m", "benchmarks.collector", place, work], check=True)
        if JAVA.exists():
            for name, cost in run_java("benchmarks.collector_java", folder, str(SNAPSHOTS)).items():
                print(f"Iceberg Java, {name}, {SNAPSHOTS:,} snapshots: CPU s {cost.cpu:.2f}", flush=True)


def _with_files(lake: Lake, files: int) -> None:
    properties = {"icefield.gc.orphan-age-ms": "0", "commit.manifest-merge.enabled": "false"}
    table = lake.create_table(MANY, ROWS.schema, properties=properties)
    for start in range(0, files, PER_COMMIT):
        write = TableWrite.begin(lake.head(table.name), CommitTarget())
        (pattern,) = (file := write.write(ROWS)).file_path.to_pylist()
        paths = [pattern.replace("00000-0", f"{at:05d}-1") for at in range(start, min(start + PER_COMMIT, files))]
        for path in paths:
            Path(local_path(path)).touch()
        Path(local_path(pattern)).unlink()
        live = [path for at, path in enumerate(paths) if at % ONE_IN]
        columns = {
            "file_path": pa.array(live, pa.string()),
            "file_size_in_bytes": pa.array([0] * len(live), pa.int64()),
        }
        write.append_files(file.take(pa.array(np.zeros(len(live), np.int64))).replaced(columns))


def _orphans(lake: Lake, name: str) -> tuple[str, str]:
    found = lake.table(name).remove_orphans(dry_run=True, unsafe=True)
    bars = f"bars: CPU s {max(ORPHANS_CPU, found.files_listed / BAR_FILES):.1f}"
    if found.files_listed <= BAR_FILES * 1.1:
        bars += f", MiB {ORPHANS_MIB}"
    return f"orphan dry run, {found.files_listed:,} files, {found.files_marked:,} orphan files", bars


def _expire(lake: Lake, name: str) -> tuple[str, str]:
    found = lake.table(HISTORY if name == MANY else name).expire_snapshots(LATER, dry_run=True)
    what = f"expiry of {len(found.snapshot_ids):,} snapshots: what to remove, {found.files_marked:,} files"
    return what, f"bar: CPU s {EXPIRY_CPU}"


def _remove(lake: Lake, name: str) -> tuple[str, str]:
    found = lake.table(HISTORY if name == MANY else name).expire_snapshots(LATER)
    assert found.swept is not None
    return f"the same with its removal, {found.swept.files_deleted:,} files", "bar: a third of Iceberg Java"


def _fsck(lake: Lake, name: str) -> tuple[str, str]:
    found = lake.table(name).fsck()
    return f"fsck of {found.files:,} files, {len(found.findings):,} findings", "no bar"


# In this order: the removal leaves no snapshots to expire. What each did, and its bars.
WORKS: dict[str, Callable[[Lake, str], tuple[str, str]]] = {
    "orphans": _orphans,
    "expire": _expire,
    "remove": _remove,
    "fsck": _fsck,
}


def _measure(place: str, work: str) -> None:
    with icefield.connect(place, durable=False) as lake:
        WORKS[work](lake, WARM)
        memory, before = memory_peak_mib(), time.process_time()
        what, bars = WORKS[work](lake, MANY)
        spent, peak = time.process_time() - before, memory_peak_mib()
        print(f"{what}: CPU s {spent:.2f}, memory MiB {peak:.0f}, of which {memory:.0f} before ({bars})", flush=True)


if __name__ == "__main__":
    _measure(*sys.argv[1:])
