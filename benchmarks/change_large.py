"""A MERGE of few rows into a large table, against a plain Spark rewrite of the same rows in the same session.

    python -m benchmarks changes_large [rows]

The source has as many rows as that of `changes`, whatever the size of the table: what a MERGE costs beside the scan of
the keys does not grow with the table. The plain rewrite is run once, because it takes minutes.
"""

import os
import sys
import tempfile
from statistics import median

import icefield
from benchmarks.change_report import HEADER, Line
from benchmarks.change_work import MERGE_ON_READ, REFERENCE_ROWS, SPREAD, WARM_UP, plain_rewrite, source
from benchmarks.changes import Icefield, make
from benchmarks.spark_measure import Cost, measure, warm_up
from benchmarks.spark_partitions import HEAP

ROWS, ROUNDS = 50_000_000, 3


def run(rows: int = ROWS) -> None:
    """Create the table, measure both, and print the ratio."""
    os.environ["PYSPARK_SUBMIT_ARGS"] = HEAP
    with (
        tempfile.TemporaryDirectory(prefix="icefield-bench-") as folder,
        icefield.connect(f"{folder}/lake", durable=False) as lake,
    ):
        make(lake, folder, rows, {SPREAD: source(lake.spark, rows, SPREAD, share=min(1.0, rows / REFERENCE_ROWS))})
        engine = Icefield(lake, folder)

        def merge() -> None:
            engine.merge(MERGE_ON_READ, SPREAD, None)

        warm_up(merge, *WARM_UP)
        costs = [measure(merge) for _ in range(ROUNDS)]
        table, changes = (lake.spark.read.parquet(f"{folder}/{name}") for name in ("plain", SPREAD))
        plain = measure(lambda: plain_rewrite(table.drop("day"), changes, f"{folder}/rewritten"))
        ours = Cost(median(c.cpu for c in costs), median(c.wall for c in costs))
        print(f"{rows:,} rows x 10 columns, {os.cpu_count()} cores, medians of {ROUNDS} rounds, ratios of CPU")
        print(f"  plain rewrite by day: CPU {plain.cpu:.1f} s, wall {plain.wall:.1f} s")
        print(HEADER)
        print(Line("merge, spread, merge-on-read", ours, plain, 0.06))


if __name__ == "__main__":
    run(*(int(argument) for argument in sys.argv[1:]))
