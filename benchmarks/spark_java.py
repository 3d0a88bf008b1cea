"""Iceberg Java in Spark 3.5: the same work on the same tables.

It runs in the environment of `make interop-environment`, and prints lines of JSON:
python -m benchmarks.spark_java works|partitions PLACE ROUNDS
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.interop.iceberg_java import start_spark

from benchmarks.iceberg_java import MARK
from benchmarks.spark_events import one_for_each
from benchmarks.spark_measure import measure
from benchmarks.spark_work import Place, run_works


class IcebergJava:
    """Reads tables from their metadata files, and writes its own tables."""

    def __init__(self, spark: Any, place: Place) -> None:
        self.spark = spark
        self._place = place
        self._written = 0

    def open(self, table: str, branch: str | None = None, where: str | None = None) -> Any:
        """Return a DataFrame of a table's rows that match."""
        reader = self.spark.read.format("iceberg")
        if branch is not None:
            reader = reader.option("branch", branch)
        frame = reader.load(self._place.metadata[table])
        return frame if where is None else frame.where(where)

    def count(self, table: str, where: str, branch: str | None = None) -> int:
        """Count rows that match; Java uses metadata where it can."""
        return int(self.open(table, branch, where).count())

    def write(self, frame: Any, partition_by: Sequence[str]) -> None:
        """Write rows to a new table."""
        self._written += 1
        name = f"java.bench.written_{os.getpid()}_{self._written}"
        columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in frame.schema.fields)
        clause = f"PARTITIONED BY ({', '.join(part.replace('day(', 'days(') for part in partition_by)})"
        self.spark.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {clause if partition_by else ''}")
        frame.writeTo(name).append()


def _main(what: str, path: str, rounds: int) -> None:
    place = Place(**json.loads(Path(path).read_text()))
    spark = start_spark(f"{place.folder}/java", {"spark.driver.memory": "2g"})
    engine = IcebergJava(spark, place)
    if what == "works":
        for measured in run_works(engine, place, rounds):
            print(MARK + json.dumps(measured.as_json()), flush=True)
    else:
        rows = one_for_each(spark, place.partitions)
        print(MARK + json.dumps(asdict(measure(lambda: engine.write(rows, ["event_id"])))), flush=True)
    spark.stop()


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
