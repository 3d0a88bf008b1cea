"""Read a table of 100 one-row appends before it is compacted, by icefield, PyIceberg and DuckDB: CPU time per query.

    python -m benchmarks small_files [appends]

Warm: the same query was asked before, so the plan is known; files are read each time. The best of some rounds that
take turns.
"""

import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import StaticTable

import icefield

ROUNDS = 15


def run(appends: int = 100) -> None:
    """Print CPU ms of a sum and of a count."""
    with tempfile.TemporaryDirectory() as name, icefield.connect(Path(name) / "lake", durable=False) as lake:
        table = lake.create_table("a.t", "id long, amount double")
        for number in range(appends):
            table.append(pa.table({"id": [number], "amount": [float(number)]}))
        static = StaticTable.from_metadata(table.metadata_location)
        query = f"FROM iceberg_scan({table.metadata_location!r}) SELECT {{}}"
        connection = duckdb.connect(config={"threads": 1})
        _load_extensions(connection)
        work: dict[str, Callable[[], object]] = {
            "icefield, sum": lambda: pc.sum(table.scan(select=["amount"]).to_arrow().read_all()["amount"]).as_py(),
            "pyiceberg, sum": lambda: pc.sum(static.scan(selected_fields=("amount",)).to_arrow()["amount"]).as_py(),
            "duckdb, sum": lambda: connection.execute(query.format("sum(amount)")).fetchall(),
            "icefield, count": table.count,
            "pyiceberg, count": lambda: static.scan().count(),
            "duckdb, count": lambda: connection.execute(query.format("count(*)")).fetchall(),
        }
        best = dict.fromkeys(work, float("inf"))
        for _ in range(ROUNDS):
            for each, ask in work.items():
                best[each] = min(best[each], _cpu_ms(ask))
    print(f"{appends} appends of one row, warm, CPU ms (bars: sum 20, count 3)")
    for each, ms in best.items():
        print(f"  {each:18}{ms:8.1f}")


def _load_extensions(connection: duckdb.DuckDBPyConnection) -> None:
    """Load what reads Iceberg tables from wheels; nothing is fetched."""
    connection.execute("SET autoinstall_known_extensions=false; SET autoload_known_extensions=false")
    for name in ("avro", "iceberg"):
        spec = find_spec(f"duckdb_extension_{name}")
        assert spec is not None
        assert spec.origin is not None
        file = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        connection.execute(f"LOAD {str(file)!r}")


def _cpu_ms(ask: Callable[[], object]) -> float:
    before = process_time()
    ask()
    return (process_time() - before) * 1000
