"""Read a table with PyIceberg, DuckDB and Polars, from the same catalog and the same files.

PyIceberg opens the lake's own SQLite catalog. DuckDB and Polars read a version by its metadata file; Polars plans with
PyIceberg. Data frames of Polars are Arrow data: a table takes them, and a scan makes them.
Needs pyiceberg[pyarrow,sql-sqlite], duckdb, duckdb-extension-avro, duckdb-extension-iceberg and polars.

Prints:
    icefield  [(1, 'ada'), (3, 'edsger')]
    PyIceberg [(1, 'ada'), (3, 'edsger')]
    DuckDB    [(1, 'ada'), (3, 'edsger')]
    Polars    [(1, 'ada'), (3, 'edsger')]
    PyIceberg appends, icefield reads: 3 rows
    Polars hands over a data frame, icefield appends: 4 rows
"""

import os
from pathlib import Path

import duckdb
import duckdb_extension_avro  # type: ignore[import-untyped]
import duckdb_extension_iceberg  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

import icefield


def main() -> None:
    with icefield.connect("lake") as lake:
        customers = lake.create_table("crm.customers", "id long, name string")
        customers.append(pa.table({"id": [1, 2, 3], "name": ["ada", "grace", "edsger"]}))
        customers.delete("id = 2")
        print("icefield ", pairs(customers.scan().to_arrow().read_all()))

        catalog = SqlCatalog("icefield", uri="sqlite:///lake/catalog.db")
        theirs = catalog.load_table("crm.customers")
        print("PyIceberg", pairs(theirs.scan().to_arrow()))

        rows = connect_duckdb().execute("SELECT * FROM iceberg_scan(?)", [customers.metadata_location])
        print("DuckDB   ", sorted(rows.fetchall()))

        # Polars has a planner of its own in another package, and warns if that is not installed.
        os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")
        print("Polars   ", sorted(pl.scan_iceberg(customers.metadata_location).collect().rows()))

        theirs.append(pa.table({"id": [4], "name": ["barbara"]}))
        customers.refresh()
        print(f"PyIceberg appends, icefield reads: {customers.count()} rows")

        frame = pl.DataFrame(customers.scan(where="id = 4").to_arrow()).with_columns(id=pl.lit(5), name=pl.lit("alan"))
        customers.append(frame)
        print(f"Polars hands over a data frame, icefield appends: {customers.count()} rows")


def pairs(rows: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in rows.to_pylist())


def connect_duckdb() -> duckdb.DuckDBPyConnection:
    """Open DuckDB with the extensions from their wheels; avro first, which iceberg needs."""
    connection = duckdb.connect()
    for name, package in (("avro", duckdb_extension_avro), ("iceberg", duckdb_extension_iceberg)):
        folder = Path(str(package.__file__)).parent / "extensions" / f"v{duckdb.__version__}"
        connection.load_extension(str(folder / f"{name}.duckdb_extension"))
    return connection


if __name__ == "__main__":
    main()
