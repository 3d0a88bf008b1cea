"""One MERGE by an engine without a JVM, in a process of its own: CPU seconds and the peak of memory, as JSON.

The same MERGE into another copy of the table comes before, so that each engine has loaded its code.

python -m benchmarks.change_local icefield|duckdb|deltalake|pyiceberg FOLDER KIND
"""
# ruff: noqa: S608 - the names and the SQL are our own

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.change_work import KEY
from benchmarks.spark_events import COLUMNS
from benchmarks.spark_measure import Cost, memory_peak_mib


def read_rows(folder: str) -> pa.Table:
    """Read what Spark wrote: its timestamps have no zone in Parquet, and are in UTC."""
    rows = pq.read_table(folder, coerce_int96_timestamp_unit="us").select(list(COLUMNS))
    at = rows.schema.get_field_index("ts")
    return rows.set_column(at, "ts", rows["ts"].cast(pa.timestamp("us", "UTC")))


def _merge_with_icefield(folder: str, changes: pa.Table, copy: str) -> Callable[[], object]:
    import icefield  # noqa: PLC0415 - each process loads one engine

    table = icefield.connect(f"{folder}/lake", durable=False).table("bench.changed")
    table.create_branch(f"local_{copy}")
    branch = table.at(f"local_{copy}")
    merging = branch.merge(changes, on=[KEY], mode="merge-on-read", engine="local")
    return merging.when_matched().update_all().when_not_matched().insert_all().execute


def _merge_with_duckdb(folder: str, changes: pa.Table, copy: str) -> Callable[[], object]:
    import duckdb  # noqa: PLC0415 - each process loads one engine

    file = Path(folder) / f"{copy}.duckdb"
    connection = duckdb.connect(str(file))
    connection.execute(f"CREATE TABLE t AS SELECT * EXCLUDE (day) FROM '{folder}/plain/*/*.parquet'")
    connection.execute("CHECKPOINT")
    connection.register("s", changes)
    assigned = ", ".join(f"{name} = s.{name}" for name in COLUMNS)
    values = ", ".join(f"s.{name}" for name in COLUMNS)

    def run() -> None:
        connection.execute(
            f"MERGE INTO t USING s ON t.{KEY} = s.{KEY} WHEN MATCHED THEN UPDATE SET {assigned} "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(COLUMNS)}) VALUES ({values})"
        )
        connection.execute("CHECKPOINT")

    return run


def _merge_with_deltalake(folder: str, changes: pa.Table, copy: str) -> Callable[[], object]:
    from deltalake import DeltaTable, write_deltalake  # type: ignore[import-not-found]  # noqa: PLC0415 - each process loads one engine

    place = f"{folder}/delta-{copy}"
    write_deltalake(place, _with_day(read_rows(f"{folder}/plain")), partition_by=["day"])
    rows = _with_day(changes)
    merging: Any = DeltaTable(place).merge(rows, f"t.{KEY} = s.{KEY}", source_alias="s", target_alias="t")
    run: Callable[[], object] = merging.when_matched_update_all().when_not_matched_insert_all().execute
    return run


def _upsert_with_pyiceberg(folder: str, changes: pa.Table, copy: str) -> Callable[[], object]:
    """Upsert into a table of its own with the rows of the other engines."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - each process loads one engine

    rows = read_rows(f"{folder}/before")
    place = Path(folder) / f"pyiceberg-{copy}"
    place.mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}")
    catalog.create_namespace("bench")
    table = catalog.create_table("bench.upserted", rows.schema)
    table.append(rows)
    return lambda: table.upsert(changes, join_cols=[KEY])


def _with_day(rows: pa.Table) -> pa.Table:
    return rows.append_column("day", rows["ts"].cast(pa.date32()))


ENGINES = {
    "icefield": _merge_with_icefield,
    "duckdb": _merge_with_duckdb,
    "deltalake": _merge_with_deltalake,
    "pyiceberg": _upsert_with_pyiceberg,
}


def main(name: str, folder: str, kind: str) -> None:
    """Run one MERGE, and print its cost."""
    changes = read_rows(f"{folder}/{kind}")
    if name != "pyiceberg":  # which takes minutes
        ENGINES[name](folder, changes, f"{kind}-first")()
    run = ENGINES[name](folder, changes, kind)
    before, wall = time.process_time(), time.perf_counter()
    run()
    spent = time.process_time() - before
    wall = time.perf_counter() - wall
    print(json.dumps(asdict(Cost(spent, wall, python_mib=memory_peak_mib()))))


if __name__ == "__main__":
    main(*sys.argv[1:])
