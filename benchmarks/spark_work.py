"""The pieces of work on Spark, defined once for all engines: the work, its baseline, and the target.

An engine opens tables as DataFrames and writes to new ones. Each piece of work is checked before it is measured: its
rows must be those of plain Parquet over the same files. This module does not import icefield, because it also runs in
the environment of Iceberg Java.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.spark_events import (
    DAY,
    DAY_FOLDER,
    ONE_PERCENT,
    TEN_PERCENT,
    digest,
    drain,
    events,
    open_parquet,
    totals,
    version,
    write_parquet,
    write_parquet_by_day,
)
from benchmarks.spark_measure import Cost, compare

BASE, BY_DAY, SMALL = "bench.events", "bench.by_day", "bench.small"
# Branches with rows deleted by deletion vectors.
ONE, TEN = "one", "ten"


@dataclass(frozen=True)
class Place:
    """The tables, written by icefield and read by all engines. files: by table. metadata: locations, by table."""

    folder: str
    rows: int
    partitions: int
    files: dict[str, list[str]]
    metadata: dict[str, str]


class Engine(Protocol):
    """A table engine on a Spark session."""

    spark: Any

    def open(self, table: str, branch: str | None = None, where: str | None = None) -> Any:
        """Return a DataFrame of a table's rows that match."""
        ...

    def count(self, table: str, where: str, branch: str | None = None) -> int:
        """Count matching rows, in the fastest way."""
        ...

    def write(self, frame: Any, partition_by: Sequence[str]) -> None:
        """Write rows to a new table."""
        ...


@dataclass(frozen=True)
class Work:
    """A piece of work and its baseline; their results must be equal if they have any."""

    name: str
    bar: str
    ours: Callable[[], object]
    other: Callable[[], object]
    note: Callable[[], str] = lambda: ""


@dataclass(frozen=True)
class Measured:
    """The result of a piece of work."""

    name: str
    bar: str
    ours: Cost
    other: Cost
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Encode it for another process."""
        return asdict(self)


def measured_of(found: dict[str, Any]) -> Measured:
    """Decode the result of another process."""
    costs = {side: Cost(**found[side]) for side in ("ours", "other")}
    return Measured(**{**found, **costs})


def run_works(engine: Engine, place: Place, rounds: int) -> Iterator[Measured]:
    """Check and measure the pieces of work one after the other."""
    _check_rows(engine, place)
    for work in (*_reads(engine, place), *_writes(engine, place)):
        mine, plain = work.ours(), work.other()
        assert mine == plain, f"{work.name}: {mine} is not {plain}"
        costs = compare({"ours": work.ours, "other": work.other}, rounds)
        yield Measured(work.name, work.bar, costs["ours"], costs["other"], work.note())


def _check_rows(engine: Engine, place: Place) -> None:
    """Check all columns of all rows."""
    plain = open_parquet(engine.spark, place.files[BASE])
    whole = digest(events(engine.spark, place.rows))
    assert digest(plain) == digest(engine.open(BASE)) == digest(engine.open(BY_DAY)) == whole
    for branch, deleted in ((ONE, ONE_PERCENT), (TEN, TEN_PERCENT)):
        left = digest(plain.where(f"NOT {deleted}"))
        assert digest(engine.open(BASE, branch)) == left, branch
        assert digest(engine.open(BY_DAY, branch)) == left, branch
    small = open_parquet(engine.spark, place.files[SMALL])
    assert digest(small) == digest(engine.open(SMALL))


def _reads(engine: Engine, place: Place) -> Iterator[Work]:
    def plain(table: str, where: str = "true") -> Any:
        return open_parquet(engine.spark, place.files[table]).where(where)

    def few(frame: Any) -> list[Any]:
        return sorted(tuple(row) for row in frame.collect())

    one_user = version(place.rows)
    yield Work("scan all columns", "1.00", lambda: drain(engine.open(BASE)), lambda: drain(plain(BASE)))
    yield Work("scan and aggregate", "1.00", lambda: totals(engine.open(BASE)), lambda: totals(plain(BASE)))
    for branch, share, bar in ((ONE, "1 %", "1.15"), (TEN, "10 %", "1.25")):
        yield _without(Work(f"scan all columns, {share} deleted", bar, *_both(engine, branch, drain)))
        yield _without(Work(f"scan and aggregate, {share} deleted", bar, *_both(engine, branch, totals)))
    yield Work(
        "count under a partition filter",
        "0 files",
        lambda: engine.count(BY_DAY, DAY),
        lambda: plain(BY_DAY, DAY).count(),
        lambda: _what_is_opened(place, lambda: engine.count(BY_DAY, DAY)),
    )
    yield Work(
        "the same, 1 % deleted",
        "0 files",
        lambda: engine.count(BY_DAY, DAY, ONE),
        lambda: plain(BY_DAY, f"{DAY} AND NOT {ONE_PERCENT}").count(),
        lambda: _what_is_opened(place, lambda: engine.count(BY_DAY, DAY, ONE)),
    )
    yield from _one_day(engine, place)
    yield Work(
        "point query",
        "1.05",
        lambda: few(engine.open(BASE, where=one_user)),
        lambda: few(plain(BASE, one_user)),
    )
    files = f"{len(place.files[SMALL]):,} small files"
    yield Work(f"{files}: plan", "1 s wall", lambda: _plan(engine.open(SMALL)), lambda: _plan(plain(SMALL)))
    yield Work(f"{files}: read", "1.00", lambda: drain(engine.open(SMALL)), lambda: drain(plain(SMALL)))


def _one_day(engine: Engine, place: Place) -> Iterator[Work]:
    """Yield a query for one day, with unordered rows as the baseline, where every file has some rows of that day."""
    scattered = f"{place.folder}/scattered-{type(engine).__name__}"
    write_parquet(open_parquet(engine.spark, place.files[BASE]).repartition(len(place.files[BASE])), scattered)
    for name, read in (("aggregate", totals), ("all columns", drain)):
        yield Work(
            f"one day: {name}",
            "0.20",
            lambda read=read: read(engine.open(BY_DAY, where=DAY)),  # type: ignore[misc]
            lambda read=read: read(open_parquet(engine.spark, [scattered]).where(DAY)),  # type: ignore[misc]
        )
    # No reader in Spark can use less.
    own = [file for file in place.files[BY_DAY] if DAY_FOLDER in file]
    yield Work(
        "one day: its files alone",
        "",
        lambda: totals(engine.open(BY_DAY, where=DAY)),
        lambda: totals(open_parquet(engine.spark, own)),
    )


def _what_is_opened(place: Place, count: Callable[[], object]) -> str:
    """Count while all data files and deletion vectors are moved away."""
    data = Path(place.files[BY_DAY][0].rpartition("/data/")[0]) / "data"
    away = data.rename(data.with_name("away"))
    try:
        count()
    except Exception:  # each engine has its own errors
        return "opens files"
    finally:
        away.rename(data)
    return "opens no file"


def _both(
    engine: Engine, branch: str, read: Callable[[Any], object]
) -> tuple[Callable[[], object], Callable[[], object]]:
    return lambda: read(engine.open(BASE, branch)), lambda: read(engine.open(BASE))


def _without(work: Work) -> Work:
    """Return a piece of work whose rows differ from its baseline, the scan without deletes."""

    def silently(run: Callable[[], object]) -> Callable[[], object]:
        return lambda: run() and None

    return Work(work.name, f"{work.bar} of without", silently(work.ours), silently(work.other))


def _plan(frame: Any) -> None:
    """Do everything that Spark does before the first task runs."""
    frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - Spark has no other way to plan and not to run


def _writes(engine: Engine, place: Place) -> Iterator[Work]:
    rows = open_parquet(engine.spark, place.files[BASE])
    folders = (f"{place.folder}/plain-{type(engine).__name__}-{number}" for number in itertools.count())
    yield Work("write", "1.00", lambda: engine.write(rows, ()), lambda: write_parquet(rows, next(folders)))
    yield Work(
        "write by day(ts)",
        "1.00",
        lambda: engine.write(rows, ("day(ts)",)),
        lambda: write_parquet_by_day(rows, next(folders)),
    )
