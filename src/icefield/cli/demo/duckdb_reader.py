"""DuckDB on one table of the demo, in its own process: prints the totals as JSON."""

import json
import sys
from pathlib import Path

import duckdb
import duckdb_extension_avro  # type: ignore[import-untyped]
import duckdb_extension_iceberg  # type: ignore[import-untyped]

# The iceberg extension downloads avro unless it is already loaded, so the order matters.
EXTENSIONS = (("avro", duckdb_extension_avro), ("iceberg", duckdb_extension_iceberg))
TOTALS = """
    SELECT count(*), count(DISTINCT order_id), sum(amount)::VARCHAR, sum(len(items))::BIGINT,
           strftime(max(ts) AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%f')
    FROM iceberg_scan(?)
"""
NAMES = ("rows", "distinct_orders", "revenue", "items", "last_order")


def main() -> None:
    """Read the table whose metadata file is the first argument. A failure is one line on stderr."""
    try:
        version, row = duckdb.__version__, read_totals(sys.argv[1])
    except duckdb.Error as error:
        sys.exit(str(error).splitlines()[0])
    print(json.dumps({"version": version, "totals": dict(zip(NAMES, row, strict=True))}))


def read_totals(metadata_file: str) -> tuple[object, ...]:
    """Query the totals with DuckDB, in the order of NAMES."""
    connection = duckdb.connect()
    for name, package in EXTENSIONS:
        folder = Path(str(package.__file__)).parent / "extensions" / f"v{duckdb.__version__}"
        quoted = str(folder / f"{name}.duckdb_extension").replace("'", "''")
        connection.execute(f"LOAD '{quoted}'")
    row: tuple[object, ...] | None = connection.execute(TOTALS, [metadata_file]).fetchone()
    assert row is not None
    return row


if __name__ == "__main__":
    main()
