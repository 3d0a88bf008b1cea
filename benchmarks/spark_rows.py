"""Writing and scanning through Spark, against plain Parquet of the same rows in the same session.

python -m benchmarks spark_rows [rows]
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame

import icefield

ROUNDS = 3


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the median wall time of a few rounds, after one to warm up."""
    work()
    times: list[float] = []
    for _ in range(rounds):
        before = time.perf_counter()
        work()
        times.append(time.perf_counter() - before)
    return statistics.median(times)


def aggregate(frame: DataFrame) -> object:
    """Read three columns of every row."""
    return frame.groupBy("country").agg({"amount": "sum", "customer": "max"}).collect()


def run(rows: int = 2_000_000) -> None:
    """Print wall seconds and the ratio of ours to plain Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        lake = icefield.connect(Path(folder) / "lake")
        spark = lake.spark
        frame = spark.range(0, rows, 1, 4).selectExpr(
            "id",
            "timestamp_micros(1767225600000000 + id * 1000000) AS ts",
            "concat('customer ', id % 1000) AS customer",
            "cast(id % 10000 AS double) / 100 AS amount",
            "id % 50 AS country",
        )
        ours = lake.create_table("a.t", frame)
        count = iter(range(1000))
        table_write = seconds(lambda: ours.append(frame))
        plain_write = seconds(lambda: frame.write.parquet(f"{folder}/plain-{next(count)}"))
        scanned = lake.create_table("a.scanned", frame)
        scanned.append(frame)
        plain = spark.read.parquet(f"{folder}/plain-0")
        table_scan = seconds(lambda: aggregate(scanned.scan().to_spark()))
        plain_scan = seconds(lambda: aggregate(plain))
    print(f"{rows:,} rows x 5 columns through Spark, wall seconds, median of {ROUNDS}")
    print(f"  {'':8}{'icefield':>10}{'plain':>10}{'ratio':>8}")
    for name, mine, other in (("write", table_write, plain_write), ("scan", table_scan, plain_scan)):
        print(f"  {name:8}{mine:10.2f}{other:10.2f}{mine / other:8.2f}")
