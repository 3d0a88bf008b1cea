"""Iceberg Java in Spark 3.5: expiry of the snapshots of a table of its own, with the removal of their files.

It runs in the environment of `make interop-environment`, and prints lines of JSON:
python -m benchmarks.collector_java FOLDER SNAPSHOTS
"""
# ruff: noqa: SLF001, S608 - Java's own interface is behind names of py4j; the names of tables are our own

import itertools
import json
import sys
from dataclasses import asdict
from functools import partial
from typing import Any

from tests.interop.iceberg_java import start_spark

from benchmarks.iceberg_java import MARK
from benchmarks.spark_measure import measure

LATER = "TIMESTAMP '2100-01-01 00:00:00'"
WARM_SNAPSHOTS = 100
_numbers = itertools.count()
PROCEDURE, API = "CALL expire_snapshots", "Table.expireSnapshots()"


def _main(folder: str, snapshots: int) -> None:
    spark = start_spark(f"{folder}/java", {"spark.driver.memory": "2g"})
    for name, work in {PROCEDURE: _call, API: _commit}.items():
        work(spark, _table(spark, WARM_SNAPSHOTS))
        table = _table(spark, snapshots + 1)
        cost = measure(partial(work, spark, table))
        left = spark.sql(f"SELECT count(*) FROM {table}.snapshots").first()[0]
        assert left == 1, left
        print(MARK + json.dumps([name, asdict(cost)]), flush=True)
    spark.stop()


def _call(spark: Any, table: str) -> None:
    name = f"table => '{table.removeprefix('java.')}'"
    spark.sql(f"CALL java.system.expire_snapshots({name}, older_than => {LATER}, retain_last => 1)").collect()


def _commit(spark: Any, table: str) -> None:
    loaded = _load(spark, table)
    loaded.expireSnapshots().expireOlderThan(2**62).retainLast(1).commit()


def _load(spark: Any, table: str) -> Any:
    return spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)


def _table(spark: Any, snapshots: int) -> str:
    """Create a table with so many snapshots, each of which has appended one file; the files are not there."""
    table = f"java.bench.expired_{next(_numbers)}"
    spark.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg TBLPROPERTIES ('format-version' = '2')")
    iceberg, loaded = spark._jvm.org.apache.iceberg, _load(spark, table)
    for at in range(snapshots):
        file = iceberg.DataFiles.builder(loaded.spec()).withPath(f"{loaded.location()}/data/{at:05d}.parquet")
        loaded.newAppend().appendFile(file.withFileSizeInBytes(600).withRecordCount(10).build()).commit()
    return table


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
