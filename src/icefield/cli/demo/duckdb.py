"""Read the demo's table with DuckDB, from its metadata file alone.

DuckDB runs in a child process, because its extension can crash the process.
"""

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal

PACKAGES = ("duckdb", "duckdb_extension_avro", "duckdb_extension_iceberg")
READER = "icefield.cli.demo.duckdb_reader"


@dataclass(frozen=True)
class Totals:
    """The totals that two engines must agree on."""

    rows: int
    distinct_orders: int
    revenue: Decimal
    items: int
    last_order: str


@dataclass(frozen=True)
class Peer:
    """DuckDB's answer, or why there is none."""

    version: str = ""
    totals: Totals | None = None
    why_not: str = ""


def ask_duckdb(metadata_file: str) -> Peer:
    """Read a table from its metadata file with DuckDB."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        return Peer(why_not=f"not installed: {', '.join(missing)}")
    command = [sys.executable, "-P", "-m", READER, metadata_file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return Peer(why_not=lines[-1] if lines else f"it stopped with exit code {done.returncode}")
    answer = json.loads(done.stdout)
    totals = Totals(**{**answer["totals"], "revenue": Decimal(answer["totals"]["revenue"])})
    return Peer(answer["version"], totals)
