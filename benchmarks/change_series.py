"""Changes that are large, or many: an upsert of every row, deletes in growing tables, and a scan after many merges.

Each is compared with plain Spark in the same session, and the upsert with PyIceberg too, in a process of its own.
"""

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

from benchmarks.change_local import read_rows
from benchmarks.change_work import KEY, ONE_PERCENT, SPREAD, plain_rewrite, source, target
from benchmarks.spark_events import COLUMNS, drain, open_parquet, totals, write_parquet
from benchmarks.spark_measure import Cost, compare, measure, warm_up
from icefield.lake import Lake
from icefield.storage.location import local_path
from icefield.table.table import Table

UPSERTED = 1_000_000
MERGED, MERGES = 5_000_000, 20
LONGEST_SECONDS = 900


def run_series(lake: Lake, folder: str, rows: int) -> Iterator[str]:
    """Measure one after the other, and yield what to print; `rows`: of the largest of the other benchmarks."""
    share = min(1.0, rows / 5_000_000)
    yield from _upsert_all(lake, folder, int(UPSERTED * share))
    yield from _delete_in_growing_tables(lake, [int(n * share) for n in (1_000_000, 5_000_000, 20_000_000)])
    yield from _scan_after_merges(lake, int(MERGED * share))


def _upsert_all(lake: Lake, folder: str, rows: int) -> Iterator[str]:
    """Upsert every row of a table. `auto` rewrites the files."""
    spark = lake.spark
    table = _new_table(lake, "bench.upserted", rows)
    write_parquet(target(spark, rows).selectExpr(*(_changed(name) for name in COLUMNS)), f"{folder}/all")
    write_parquet(target(spark, rows), f"{folder}/before")
    changes = spark.read.parquet(f"{folder}/all")
    numbers = itertools.count()

    def upsert(engine: Literal["spark", "local"]) -> None:
        given: Any = changes if engine == "spark" else read_rows(f"{folder}/all")
        _branch(table).upsert(given, on=[KEY], mode="auto", engine=engine)

    def rewrite() -> None:
        again = f"{folder}/upserted-{next(numbers)}"
        plain_rewrite(spark.read.parquet(f"{folder}/before"), changes, again, is_small=False)

    costs = {name: _warm(work) for name, work in (("plain", rewrite), ("spark", lambda: upsert("spark")))}
    costs["local"] = _warm(lambda: upsert("local"))
    yield f"upsert of {rows:,} keys into {rows:,} rows, a plain rewrite takes CPU {costs['plain'].cpu:.1f} s:"
    for name in ("spark", "local"):
        yield f"  {name:12}{_cost(costs[name])}, ratio {costs[name].cpu / costs['plain'].cpu:.2f}, bar 0.80"
    yield f"  {'PyIceberg':12}{_with_pyiceberg(folder)}"


def _delete_in_growing_tables(lake: Lake, sizes: list[int]) -> Iterator[str]:
    yield "delete 1 % of rows by deletion vectors:"
    for rows in sizes:
        table = _new_table(lake, f"bench.deleted_{rows}", rows)
        cost = _warm(partial(_delete, table))
        yield f"  {rows:>12,} rows: {_cost(cost)}, {cost.cpu / rows * 1e6:.2f} s per million rows"


def _delete(table: Table) -> None:
    _branch(table).delete(ONE_PERCENT, mode="merge-on-read", engine="spark")


def _scan_after_merges(lake: Lake, rows: int) -> Iterator[str]:
    """Scan a table after small merges, the same table compacted, and the files of the first as plain Parquet."""
    table = _new_table(lake, "bench.merged", rows)
    changes = source(lake.spark, rows, SPREAD).cache()
    for number in range(MERGES):
        some = changes.where(f"pmod(hash({KEY}), {MERGES}) = {number}")
        table.upsert(some, on=[KEY], mode="merge-on-read", engine="spark")
    table.create_branch("compacted")
    compacted = table.at("compacted")
    compacted.compact(engine="spark")
    files = [local_path(location) for location in table.scan().files()["file_path"].to_pylist()]
    for name, read in (("all columns", drain), ("aggregate", totals)):
        works = {place: partial(_read, where, read) for place, where in (("merged", table), ("compacted", compacted))}
        works["plain"] = partial(_read_plain, lake.spark, files, read)
        costs = compare(works)
        ratio, plain = (costs[place].cpu / costs["compacted"].cpu for place in ("merged", "plain"))
        yield (
            f"scan after {MERGES} merges, {name}: {_cost(costs['merged'])}, {ratio:.2f} of it compacted, bar 2.00; "
            f"its {len(files)} files as plain Parquet {plain:.2f}"
        )


def _read(table: Table, read: Callable[[Any], object]) -> None:
    read(table.scan().to_spark())


def _read_plain(spark: Any, files: list[str], read: Callable[[Any], object]) -> None:
    read(open_parquet(spark, files))


def _new_table(lake: Lake, name: str, rows: int) -> Table:
    frame = target(lake.spark, rows)
    table = lake.create_table(name, frame, partition_by=["day(ts)"], format_version=3)
    table.append(frame)
    return table


def _branch(table: Table) -> Table:
    name = f"b{len(table.refs())}"
    table.create_branch(name)
    return table.at(name)


def _warm(work: Callable[[], object]) -> Cost:
    """Return the cost of a run after others."""
    warm_up(work, 4, 60)
    return min((measure(work) for _ in range(2)), key=lambda cost: cost.cpu)


def _changed(column: str) -> str:
    return "amount + 1000 AS amount" if column == "amount" else column


def _cost(cost: Cost) -> str:
    return f"CPU {cost.cpu:.2f} s, wall {cost.wall:.2f} s"


def _with_pyiceberg(folder: str) -> str:
    command = [sys.executable, "-m", "benchmarks.change_local", "pyiceberg", folder, "all"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"not done after {LONGEST_SECONDS} s"
    return done.stdout.strip() or f"not run: {(done.stderr.strip().splitlines() or ['?'])[-1]}"
