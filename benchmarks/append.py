"""A small append, ours and PyIceberg's, in one process and on one disk: CPU per commit as history grows.

python -m benchmarks append [commits]
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

import icefield

WINDOW = 20
ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"n{i}" for i in range(10)]})


def cpu_per_commit(append: Callable[[], object], commits: int) -> tuple[float, float]:
    """Return CPU milliseconds per commit over the first and the last commits."""
    spent: list[float] = []
    for _ in range(commits):
        before = time.process_time()
        append()
        spent.append((time.process_time() - before) * 1000)
    warm = spent[WINDOW // 2 :]
    return sum(warm[:WINDOW]) / WINDOW, sum(warm[-WINDOW:]) / WINDOW


def run(commits: int = 200) -> None:
    """Print CPU per append early and late, and the ratio to PyIceberg."""
    with tempfile.TemporaryDirectory() as folder:
        lake = icefield.connect(Path(folder) / "ours", durable=False)
        ours = lake.create_table("a.t", "id long, name string")
        theirs_at = Path(folder) / "theirs"
        theirs_at.mkdir()
        catalog = SqlCatalog("theirs", uri=f"sqlite:///{theirs_at}/catalog.db", warehouse=f"file://{theirs_at}")
        catalog.create_namespace("a")
        theirs = catalog.create_table("a.t", ROWS.schema)
        our_cost = cpu_per_commit(lambda: ours.append(ROWS), commits)
        their_cost = cpu_per_commit(lambda: theirs.append(ROWS), commits)
    print(f"append of 10 rows, CPU ms per commit, {commits} commits")
    print(f"  {'':12}{'first':>8}{'last':>8}")
    print(f"  {'icefield':12}{our_cost[0]:8.1f}{our_cost[1]:8.1f}")
    print(f"  {'pyiceberg':12}{their_cost[0]:8.1f}{their_cost[1]:8.1f}")
    print(f"  pyiceberg / icefield at the end: {their_cost[1] / our_cost[1]:.1f}x")
