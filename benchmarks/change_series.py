"""Changes that are large, or many: an upsert of every row, deletes in growing tables, and a scan after many merges.

Each is compared with plain Spark in the same session, and the upsert with PyIceberg too, in a process of its own.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

from benchmarks.change_local import read_rows
from benchmarks.change_report import Line, run_alone
from benchmarks.change_work import KEY, ONE_PERCENT, SPREAD, plain_rewrite, source, target
from benchmarks.spark_events import COLUMNS, drain, open_parquet, totals, write_parquet
from benchmarks.spark_measure import Cost, compare, measure, warm_up
from icefield.lake import Lake
from icefield.storage.location import local_path
from icefield.table.table import Table

UPSERTED = 1_000_000
MERGED, MERGES = 5_000_000, 20
LONGEST_SECONDS = 400


def run_series(lake: Lake, folder: str, rows: int) -> Iterator[Line]:
    """Measure one after the other, and yield what to print; `rows`: of the largest of the other benchmarks."""
    share = min(1.0, rows / 5_000_000)
    yield from _upsert_all(lake, folder, int(UPSERTED * share))
    yield from _delete_in_growing_tables(lake, [int(n * share) for n in (1_000_000, 5_000_000)])
    yield from _scan_after_merges(lake, int(MERGED * share))


def _upsert_all(lake: Lake, folder: str, rows: int) -> Iterator[Line]:
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

    plain = _warm(rewrite)
    costs = {"Spark": _warm(lambda: upsert("spark")), "local": _warm(lambda: upsert("local"))}
    theirs = run_alone("pyiceberg", folder, "all", LONGEST_SECONDS)
    for name, cost in costs.items():
        what = f"upsert of {rows:,} keys into as many, {name}"
        if isinstance(theirs, Cost):
            times, tenth = theirs.cpu / cost.cpu, {"a tenth of PyIceberg's": theirs.cpu / 10}
            yield Line(what, cost, plain, 0.8, tenth, f"PyIceberg {theirs.cpu:.1f} s, {times:.1f} times")
        else:
            yield Line(what, cost, plain, 0.8, peers=theirs)


def _delete_in_growing_tables(lake: Lake, sizes: list[int]) -> Iterator[Line]:
    tables = {rows: _new_table(lake, f"bench.deleted_{rows}", rows) for rows in sizes}
    for rows, table in tables.items():
        cost = _warm(partial(_delete, table))
        yield Line(f"delete 1 % of {rows:,} rows", cost, peers=f"{cost.cpu / rows * 1e6:.2f} s per million rows")
    # The newest branch of the largest table is without the rows.
    table = tables[max(sizes)]
    branch = table.at(f"b{len(table.refs()) - 1}")
    costs = compare({name: partial(_read, where, totals) for name, where in (("with", branch), ("without", table))})
    yield Line("aggregate, 1 % deleted, against none", costs["with"], costs["without"], 1.25)


def _delete(table: Table) -> None:
    _branch(table).delete(ONE_PERCENT, mode="merge-on-read", engine="spark")


def _scan_after_merges(lake: Lake, rows: int) -> Iterator[Line]:
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
        plain = costs["plain"].cpu / costs["compacted"].cpu
        peers = f"its {len(files)} files as plain Parquet {plain:.2f}"
        yield Line(f"scan after {MERGES} merges, {name}", costs["merged"], costs["compacted"], 2.0, peers=peers)


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
