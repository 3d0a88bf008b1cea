"""Tables with many columns: CPU by number of columns, and its growth. A ratio of 10 from 1,000 to 10,000 is linear.

python -m benchmarks wide [columns]
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import icefield
from icefield.lake import Lake
from icefield.table.table import Table

SIZES, ROUNDS = (1_000, 4_000), 3


def _rows(columns: int, first: int = 0) -> pa.Table:
    data = {f"c{at}": pa.array(range(4), pa.int64()) for at in range(columns)}
    return pa.table({"id": pa.array(range(first, first + 4), pa.int64())} | data)


# In this order: later ones use the results of the earlier ones.
WORKS: dict[str, Callable[[Lake, Table, int], object]] = {
    "create": lambda lake, table, n: lake.create_table(f"t.new{n}", _rows(n).schema, replace=True),
    "append": lambda lake, table, n: table.append(_rows(n, 8)),
    "open": lambda lake, table, n: lake.table(f"t.t{n}").schema,
    "scan": lambda lake, table, n: table.scan().to_arrow().read_all(),
    "scan of one column": lambda lake, table, n: table.scan(f"c{n - 1} = 2", ["id"]).to_arrow().read_all(),
    "explain": lambda lake, table, n: str(table.scan(f"c{n - 1} = 2").explain()),
    "delete": lambda lake, table, n: table.delete("id = 3"),
    "scan with deletes": lambda lake, table, n: table.scan().to_arrow().read_all(),
    "upsert": lambda lake, table, n: table.upsert(_rows(n).slice(1, 1), on=["id"]),
    "upsert of one column": lambda lake, table, n: table.upsert(_rows(1).slice(1, 1), on=["id"]),
    "overwrite": lambda lake, table, n: table.overwrite(_rows(n).slice(2, 1), where="id = 2"),
    "inspect files": lambda lake, table, n: table.inspect("files").to_arrow().read_all(),
    "compact": lambda lake, table, n: table.compact(),
}


def run(largest: int = 10_000) -> None:
    """Print CPU seconds by number of columns, the minimum of several rounds, and the growth."""
    sizes = [*SIZES, largest]
    spent = {size: _measure(size) for size in sizes}
    print(f"CPU seconds, least of {ROUNDS}; linear growth to {largest:,} is x{largest / SIZES[0]:.0f}")
    print(f"  {'columns':24}" + "".join(f"{size:>10,}" for size in sizes))
    for name in WORKS:
        few, many = spent[SIZES[0]][name], spent[largest][name]
        print(f"  {name:24}" + "".join(f"{spent[size][name]:10.2f}" for size in sizes) + f"   x{many / few:.1f}")


def _measure(columns: int) -> dict[str, float]:
    least = dict.fromkeys(WORKS, float("inf"))
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder, icefield.connect(Path(folder) / "l", durable=False) as lake:
            properties = {"write.delete.mode": "merge-on-read"}
            table = lake.create_table(f"t.t{columns}", _rows(columns).schema, properties=properties)
            table.append(_rows(columns))
            table.append(_rows(columns, 4))
            for name, work in WORKS.items():
                before = time.process_time()
                work(lake, table, columns)
                least[name] = min(least[name], time.process_time() - before)
    return least
