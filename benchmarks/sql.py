"""Queries by `lake.sql`: what a statement costs beyond Spark's own, what its filters cost, and what they save.

    python -m benchmarks sql [rounds]

The lake has two tables of 60 and 30 files. The plain queries of Spark are over the same files, as Parquet, in temporary
views. A Spark Connect server is used if SPARK_REMOTE names one: there, filters come from the text.
"""

import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from pyspark.sql import SparkSession

import icefield
from benchmarks.sql_lake import QUERIES, build_lake
from icefield.lake import Lake
from icefield.spark.session.session import session
from icefield.spark.sql.probe import KEY_PRUNING, PRUNING
from icefield.sql.query.names import QueryNames
from icefield.sql.query.read import Opening
from icefield.sql.session import Run, SqlSession
from icefield.sql.syntax.place import Place

Result = TypeVar("Result")

ROUNDS = 5
MODES = {
    "no filters": {PRUNING: "false"},
    "filters": {KEY_PRUNING: "false"},
    "filters and keys": {},
}


def run(rounds: int = ROUNDS) -> None:
    """Print files and milliseconds of each query."""
    spark = session(master="local[2]")
    with tempfile.TemporaryDirectory() as name, icefield.connect(Path(name) / "lake", durable=False) as lake:
        build_lake(lake)
        lake.use(spark)
        _register_plain(lake, spark)
        _print_files(lake, spark)
        _print_times(lake, spark, rounds)


def _print_files(lake: Lake, spark: SparkSession) -> None:
    print("files to read" + "".join(f"{mode:>18}" for mode in MODES))
    totals = dict.fromkeys(MODES, 0)
    for name, query in QUERIES.items():
        counts = {mode: _with(spark, settings, partial(_files, lake, query)) for mode, settings in MODES.items()}
        totals = {mode: totals[mode] + counts[mode] for mode in MODES}
        print(f"  {name:16}" + "".join(f"{counts[mode]:>12}      " for mode in MODES))
    print(f"  {'sum':16}" + "".join(f"{totals[mode]:>12}      " for mode in MODES))


def _print_times(lake: Lake, spark: SparkSession, rounds: int) -> None:
    """Print the median of milliseconds: until there is a DataFrame, of that for the filters, and with its rows."""
    kept = SqlSession(lake)
    works: dict[str, Callable[[str], object]] = {
        "plain: open": lambda query: spark.sql(_plain(query)),
        "lake: open, no filters": lambda query: _with(spark, {PRUNING: "false"}, lambda: lake.sql(query)),
        "lake: open": lake.sql,
        "filters, first": lambda query: _prune(query, SqlSession(lake)),
        "filters, again": lambda query: _prune(query, kept),
        "plain: rows": lambda query: spark.sql(_plain(query)).collect(),
        "lake: rows, no filters": lambda query: _with(spark, {PRUNING: "false"}, lambda: lake.sql(query).collect()),
        "lake: rows": lambda query: lake.sql(query).collect(),
    }
    print(f"\nms, median of {len(QUERIES)} queries in {rounds} rounds, after one to warm up")
    spent: dict[str, list[float]] = {name: [] for name in works}
    for slot in range(rounds + 1):
        for query in QUERIES.values():
            for name, work in works.items():
                began = perf_counter()
                work(query)
                if slot:
                    spent[name].append((perf_counter() - began) * 1000)
    for name, times in spent.items():
        print(f"  {name:24}{statistics.median(times):8.0f}")


def _register_plain(lake: Lake, spark: SparkSession) -> None:
    for name in ("orders", "items"):
        paths = lake.table(f"shop.{name}").scan().files()["file_path"].to_pylist()
        spark.read.parquet(*paths).createOrReplaceTempView(f"plain_{name}")


def _plain(query: str) -> str:
    return query.replace("shop.", "plain_")


def _files(lake: Lake, query: str) -> int:
    names = _prune(query, SqlSession(lake))
    return sum(each.scan(each.where).files().num_rows for each in names.all_references())


def _prune(query: str, kept: SqlSession) -> QueryNames:
    opening = Opening(Run(kept))
    names = opening.names(Place(query, 0, len(query)))
    opening.prune(names)
    return names


def _with(spark: SparkSession, settings: dict[str, str], work: Callable[[], Result]) -> Result:
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        return work()
    finally:
        for key in settings:
            spark.conf.unset(key)
