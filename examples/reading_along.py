"""Read a table with PyIceberg and DuckDB, from the same catalog and the same files.

PyIceberg opens the lake's own SQLite catalog. DuckDB reads a version by its metadata file.
Needs pyiceberg[pyarrow,sql-sqlite], duckdb, duckdb-extension-avro and duckdb-extension-iceberg.

Prints:
    icefield  [(1, 'ada'), (3, 'edsger')]
    PyIceberg [(1, 'ada'), (3, 'edsger')]
    DuckDB    [(1, 'ada'), (3, 'edsger')]
    PyIceberg appends, icefield reads: 3 rows
"""

from pathlib import Path

import duckdb
import duckdb_extension_avro  # type: ignore[import-untyped]
import duckdb_extension_iceberg  # type: ignore[import-untyped]
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

        theirs.append(pa.table({"id": [4], "name": ["barbara"]}))
        customers.refresh()
        print(f"PyIceberg appends, icefield reads: {customers.count()} rows")


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
