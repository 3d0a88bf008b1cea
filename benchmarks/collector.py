"""The collector: what orphan file removal and expiry cost, without the deletes. CPU seconds and memory of this process.

python -m benchmarks collector [files]

Most files of the table are live, as they usually are, and one in a hundred is an orphan file. The data files are empty.
"""

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

import icefield
from icefield.commit.action import CommitTarget
from icefield.dml.write import TableWrite
from icefield.lake import Lake
from icefield.storage.location import local_path
from icefield.table.table import Table

PER_COMMIT, ONE_IN, SNAPSHOTS = 20_000, 100, 1_000
LATER = "2100-01-01T00:00:00Z"
ROWS = pa.table({"id": pa.array(range(10), pa.int64())})
Result = TypeVar("Result")


def run(files: int = 100_000) -> None:
    """Print the CPU of a dry run over so many files, and of finding what 1,000 expired snapshots needed."""
    with tempfile.TemporaryDirectory() as folder, icefield.connect(Path(folder) / "lake", durable=False) as lake:
        _with_files(lake, files)
        _warm_up(lake)
        before = _peak_mb()
        spent, found = _cpu_s(lambda: lake.table("a.t").remove_orphans(dry_run=True, unsafe=True))
        assert (found.files_marked, found.files_listed >= files) == (files // ONE_IN, True)
        print(f"orphan dry run over {files:,} files, {found.files_marked:,} of them orphan files")
        print(f"  CPU s {spent:8.2f}    memory MB {_peak_mb() - before:8.0f} more, {_peak_mb():.0f} in all")
        history = _with_snapshots(lake)
        spent, expired = _cpu_s(lambda: history.expire_snapshots(LATER, dry_run=True))
        print(f"expiry of {len(expired.snapshot_ids):,} snapshots: what to remove, {expired.files_marked:,} files")
        print(f"  CPU s {spent:8.2f}")


def _warm_up(lake: Lake) -> None:
    warm = lake.create_table("a.warm", ROWS.schema, properties={"icefield.gc.orphan-age-ms": "0"})
    warm.append(ROWS)
    warm.remove_orphans(dry_run=True, unsafe=True)


def _with_files(lake: Lake, files: int) -> None:
    properties = {"icefield.gc.orphan-age-ms": "0", "commit.manifest-merge.enabled": "false"}
    table = lake.create_table("a.t", ROWS.schema, properties=properties)
    for start in range(0, files, PER_COMMIT):
        write = TableWrite.begin(lake.head(table.name), CommitTarget())
        (pattern,) = (file := write.write(ROWS)).file_path.to_pylist()
        paths = [pattern.replace("00000-0", f"{at:05d}-1") for at in range(start, min(start + PER_COMMIT, files))]
        for path in paths:
            Path(local_path(path)).touch()
        Path(local_path(pattern)).unlink()
        live = [path for at, path in enumerate(paths) if at % ONE_IN]
        many = file.take(pa.array(np.zeros(len(live), np.int64)))
        write.append_files(many.replaced({"file_path": pa.array(live, pa.string())}))


def _with_snapshots(lake: Lake) -> Table:
    table = lake.create_table("a.history", ROWS.schema)
    for _ in range(SNAPSHOTS + 1):
        table.append(ROWS)
    return lake.table("a.history")


def _cpu_s(work: Callable[[], Result]) -> tuple[float, Result]:
    before = time.process_time()
    result = work()
    return time.process_time() - before, result


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
