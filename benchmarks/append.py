"""Small appends to tables with a short and a long history, by icefield and PyIceberg: CPU per commit, without fsync.

python -m benchmarks append [snapshots]

The tables are built first; then appends to all of them alternate, so that other load on the machine affects all alike.
Manifests are not merged, so there are as many as snapshots.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as TheirTable

import icefield
from icefield.lake import Lake
from icefield.table.table import Table

SHORT, LONG, ROUNDS = 10, 1_000, 15
ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"n{i}" for i in range(10)]})


def run(snapshots: int = 500) -> None:
    """Print the CPU per append by length of history, and the ratios."""
    with tempfile.TemporaryDirectory() as folder, icefield.connect(Path(folder) / "ours", durable=False) as lake:
        tables = {length: _ours(lake, length) for length in (SHORT, snapshots, LONG)}
        theirs = _theirs(Path(folder) / "theirs", snapshots)
        appends: dict[str, Callable[[], object]] = {
            f"icefield, {length:,} snapshots and manifests": (lambda table=table: table.append(ROWS))  # type: ignore[misc]
            for length, table in tables.items()
        }
        appends[f"pyiceberg, {snapshots:,} snapshots and manifests"] = lambda: theirs.append(ROWS)
        spent: dict[str, list[float]] = {name: [] for name in appends}
        for _ in range(ROUNDS):
            for name, append in appends.items():
                spent[name].append(_cpu_ms(append))
    cost = [statistics.median(each) for each in spent.values()]
    print(f"append of {ROWS.num_rows} rows, CPU ms, median of {ROUNDS} that take turns")
    for name, ms in zip(spent, cost, strict=True):
        print(f"  {name:46}{ms:8.1f}")
    print(f"  icefield at {LONG:,} / at {SHORT}: {cost[2] / cost[0]:.2f}x")
    print(f"  pyiceberg / icefield at {snapshots:,}: {cost[3] / cost[1]:.1f}x")


def _ours(lake: Lake, snapshots: int) -> Table:
    properties = {"commit.manifest-merge.enabled": "false"}
    table = lake.create_table(f"a.t{snapshots}", "id long, name string", properties=properties)
    for _ in range(snapshots):
        table.append(ROWS)
    return table


def _theirs(folder: Path, snapshots: int) -> TheirTable:
    folder.mkdir()
    catalog = SqlCatalog("theirs", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", ROWS.schema)
    for _ in range(snapshots):
        table.append(ROWS)
    return table


def _cpu_ms(append: Callable[[], object]) -> float:
    before = time.process_time()
    append()
    return (time.process_time() - before) * 1000
