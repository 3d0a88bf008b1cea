"""What DuckDB finds in the demo's table, given its metadata file and nothing else of icefield.

DuckDB runs in a child process, for its extension can end the process it runs in. Its avro extension is loaded first:
the iceberg one would otherwise look for it on the net.
"""

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

EXTENSIONS = ("avro", "iceberg")
MODULE = "icefield.cli.demo_duckdb"


@dataclass(frozen=True)
class Totals:
    """What two engines must agree on."""

    rows: int
    distinct_orders: int
    revenue: Decimal
    items: int
    last_order: str


@dataclass(frozen=True)
class Peer:
    """What DuckDB answered, or why it did not."""

    version: str = ""
    totals: Totals | None = None
    why_not: str = ""


def ask_duckdb(metadata_file: str) -> Peer:
    """Let DuckDB read a table from its metadata file."""
    missing = [m for m in ("duckdb", *map(_package, EXTENSIONS)) if importlib.util.find_spec(m) is None]
    if missing:
        return Peer(why_not=f"not installed: {', '.join(missing)}")
    command = [sys.executable, "-P", "-m", MODULE, metadata_file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return Peer(why_not=lines[-1] if lines else f"it stopped with exit code {done.returncode}")
    answer = json.loads(done.stdout)
    totals = Totals(**{**answer["totals"], "revenue": Decimal(answer["totals"]["revenue"])})
    return Peer(answer["version"], totals)


def main() -> None:
    """Read the table whose metadata file is the first argument, and print the totals as JSON."""
    duckdb = importlib.import_module("duckdb")
    connection = duckdb.connect()
    for name in EXTENSIONS:
        folder = Path(str(importlib.import_module(_package(name)).__file__)).parent
        path = folder / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        connection.execute(f"LOAD {_quoted(str(path))}")
    row = connection.execute(
        f"""
        SELECT count(*), count(DISTINCT order_id), sum(amount)::VARCHAR, sum(len(items))::BIGINT,
               strftime(max(ts) AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%f')
        FROM iceberg_scan({_quoted(sys.argv[1])})
        """  # noqa: S608 - the path is quoted; iceberg_scan takes no parameters
    ).fetchone()
    names = ("rows", "distinct_orders", "revenue", "items", "last_order")
    print(json.dumps({"version": duckdb.__version__, "totals": dict(zip(names, row, strict=True))}))


def _package(extension: str) -> str:
    return f"duckdb_extension_{extension}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    main()
