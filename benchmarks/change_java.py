"""Iceberg Java in Spark 3.5: the same row-level changes on a table of its own with the same rows.

It runs in the environment of `make interop-environment`, and prints lines of JSON:
python -m benchmarks.change_java FOLDER ROWS ROUNDS
"""
# ruff: noqa: S608 - the names and the SQL are our own

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tests.interop.iceberg_java import start_spark

from benchmarks.change_work import KEY, plain_rewrite, run_changes, target
from benchmarks.iceberg_java import MARK
from benchmarks.spark_events import COLUMNS
from benchmarks.spark_measure import measure

TABLE = "java.bench.changed"
MODES = ("delete", "update", "merge")


class IcebergJava:
    """Changes branches of a table of format version 3."""

    def __init__(self, spark: Any, folder: str, rows: int) -> None:
        self.spark = spark
        self._folder = folder
        self._branches = 0
        frame = target(spark, rows)
        columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in frame.schema.fields)
        spark.sql(
            f"CREATE TABLE {TABLE} ({columns}) USING iceberg PARTITIONED BY (days(ts)) "
            "TBLPROPERTIES ('format-version' = '3')"
        )
        frame.writeTo(TABLE).append()

    def merge(self, mode: str, kind: str, values: Mapping[str, str] | None) -> None:
        """Merge source rows."""
        self.spark.read.parquet(f"{self._folder}/{kind}").createOrReplaceTempView("source")
        chosen = values or {name: f"source.{name}" for name in COLUMNS}
        assigned = ", ".join(f"target.{name} = {value}" for name, value in chosen.items())
        self.spark.sql(
            f"MERGE INTO {self._branch(mode)} AS target USING source ON target.{KEY} = source.{KEY} "
            f"WHEN MATCHED THEN UPDATE SET {assigned} WHEN NOT MATCHED THEN INSERT *"
        )

    def update(self, mode: str, where: str | None) -> None:
        """Update one column."""
        self.spark.sql(f"UPDATE {self._branch(mode)} SET amount = amount + 1 {f'WHERE {where}' if where else ''}")

    def delete(self, mode: str, where: str) -> None:
        """Delete rows."""
        self.spark.sql(f"DELETE FROM {self._branch(mode)} WHERE {where}")

    def _branch(self, mode: str) -> str:
        self._branches += 1
        settings = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in MODES)
        self.spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ({settings})")
        self.spark.sql(f"ALTER TABLE {TABLE} CREATE BRANCH b{self._branches}")
        return f"{TABLE}.branch_b{self._branches}"


def _main(folder: str, rows: int, rounds: int) -> None:
    # Its Arrow reader keeps buffers outside the heap, which are freed late: with 2 GB many updates end in an error.
    more = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:MaxDirectMemorySize=8g"}
    spark = start_spark(f"{folder}/java", more)
    files = f"{folder}/java-plain"

    def rewrite(number: int) -> None:
        table = spark.read.parquet(f"{folder}/plain").drop("day")
        plain_rewrite(table, spark.read.parquet(f"{folder}/spread"), f"{files}/{number}")

    rewrite(0)
    costs = sorted((measure(lambda n=n: rewrite(n)) for n in range(1, 3)), key=lambda cost: cost.cpu)  # type: ignore[misc]
    print(MARK + json.dumps(["plain", asdict(costs[0])]), flush=True)
    for work, cost in run_changes(IcebergJava(spark, folder, rows), rounds):
        print(MARK + json.dumps([work.name, asdict(cost)]), flush=True)
    spark.stop()


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
