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
from benchmarks.spark_measure import memory_peak_mib
from icefield.commit.action import CommitTarget
from icefield.dml.write import TableWrite
from icefield.lake import Lake
from icefield.storage.location import local_path

PER_COMMIT, ONE_IN, SNAPSHOTS = 20_000, 100, 1_000
LATER = "2100-01-01T00:00:00Z"
ROWS = pa.table({"id": pa.array(range(10), pa.int64())})
MANY, HISTORY, WARM = "a.many", "a.history", "a.warm"


def run(files: int = 100_000) -> None:
    """Print what a dry run over so many files, fsck of them, and the expiry of 1,000 snapshots cost."""
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/lake"
        with icefield.connect(place, durable=False) as lake:
            _with_files(lake, files)
            for name, commits in ((WARM, 1), (HISTORY, SNAPSHOTS + 1)):
                table = lake.create_table(name, ROWS.schema, properties={"icefield.gc.orphan-age-ms": "0"})
                for _ in range(commits):
                    table.append(ROWS)
        for work in WORKS:
            subprocess.run([sys.executable, "-m", "benchmarks.collector", place, work], check=True)


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


def _orphans(lake: Lake, name: str) -> str:
    found = lake.table(name).remove_orphans(dry_run=True, unsafe=True)
    return f"orphan dry run, {found.files_listed:,} files, {found.files_marked:,} orphan files"


def _expire(lake: Lake, name: str) -> str:
    found = lake.table(HISTORY if name == MANY else name).expire_snapshots(LATER, dry_run=True)
    return f"expiry of {len(found.snapshot_ids):,} snapshots: what to remove, {found.files_marked:,} files"


def _fsck(lake: Lake, name: str) -> str:
    found = lake.table(name).fsck()
    return f"fsck of {found.files:,} files, {len(found.findings):,} findings"


WORKS: dict[str, Callable[[Lake, str], str]] = {"orphans": _orphans, "expire": _expire, "fsck": _fsck}


def _measure(place: str, work: str) -> None:
    with icefield.connect(place, durable=False) as lake:
        WORKS[work](lake, WARM)
        memory, before = memory_peak_mib(), time.process_time()
        what = WORKS[work](lake, MANY)
        spent, peak = time.process_time() - before, memory_peak_mib()
        print(f"{what}: CPU s {spent:.2f}, memory MiB {peak:.0f}, of which {memory:.0f} before", flush=True)


if __name__ == "__main__":
    _measure(*sys.argv[1:])
