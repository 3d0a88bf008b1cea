"""Write one row to each of very many partitions, in a separate process with a small heap.

python -m benchmarks.spark_partitions FOLDER PARTITIONS
"""

import json
import os
import sys
from dataclasses import asdict

import icefield
from benchmarks.spark_events import one_for_each
from benchmarks.spark_measure import measure
from benchmarks.spark_work import SMALL

HEAP = "--driver-memory 2g pyspark-shell"


def write_partitions(folder: str, partitions: int) -> None:
    """Write the table, and print the cost."""
    with icefield.connect(folder, durable=False) as lake:
        frame = one_for_each(lake.spark, partitions)
        table = lake.create_table(SMALL, frame, partition_by=["event_id"])
        cost = measure(lambda: table.append(frame))
        files = table.scan().files().num_rows
        assert files == table.count() == partitions, f"{files} files"
        print(json.dumps(asdict(cost)))
        lake.spark.stop()


if __name__ == "__main__":
    os.environ["PYSPARK_SUBMIT_ARGS"] = HEAP
    write_partitions(sys.argv[1], int(sys.argv[2]))
