"""Iceberg Java in Spark 3.5: bin-pack, sort and z-order of a table of its own with the same rows.

It runs in the environment of `make interop-environment`, and prints lines of JSON:
python -m benchmarks.compaction_java FOLDER FILES ROUNDS
"""
# ruff: noqa: S608 - the names and the SQL are our own

import itertools
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from tests.interop.iceberg_java import start_spark

from benchmarks.iceberg_java import MARK
from benchmarks.spark_events import write_parquet
from benchmarks.spark_measure import compare

NEW_FILES = 8
STRATEGIES = {
    "bin-pack": "strategy => 'binpack'",
    "sort": "strategy => 'sort', sort_order => 'country, event_id'",
    "cluster": "strategy => 'sort', sort_order => 'zorder(score, duration_ms)'",
}


def _main(folder: str, files: int, rounds: int) -> None:
    spark = start_spark(f"{folder}/java", {"spark.driver.memory": "2g"})
    rows = spark.read.parquet(f"{folder}/small")
    numbers = itertools.count()

    def rewrite() -> None:
        write_parquet(rows.coalesce(NEW_FILES), f"{folder}/java-plain-{next(numbers)}")

    _table(spark, rows, files)
    works: dict[str, Callable[[], None]] = {"plain": rewrite}
    works |= {name: partial(_compact, spark, rows, files, how) for name, how in STRATEGIES.items()}
    for name, cost in compare(works, rounds).items():
        print(MARK + json.dumps([name, asdict(cost)]), flush=True)
    spark.stop()


def _compact(spark: Any, rows: Any, files: int, how: str) -> None:
    table = _table(spark, rows, files)
    spark.sql(f"CALL java.system.rollback_to_snapshot('{table.removeprefix('java.')}', {_first(spark, table)})")
    size = spark.sql(f"SELECT sum(file_size_in_bytes) FROM {table}.files").first()[0]
    options = f"map('target-file-size-bytes', '{size // NEW_FILES}', 'rewrite-all', 'true')"
    done = spark.sql(
        f"CALL java.system.rewrite_data_files(table => '{table.removeprefix('java.')}', {how}, options => {options})"
    ).first()
    assert done[0] >= files, done


def _first(spark: Any, table: str) -> int:
    return int(spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").first()[0])


def _table(spark: Any, rows: Any, files: int) -> str:
    """Return the table; create it on the first call."""
    table = "java.bench.small"
    if not spark.catalog.tableExists(table):
        columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema.fields)
        spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg TBLPROPERTIES ('format-version' = '2')")
        rows.repartition(files).writeTo(table).append()
    return table


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
