"""Every way to read a table, and how each answers filters."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.histories.model import KEY_ID, Model
from tests.matrix.reading_filters import Filter, draw_filter, places, truth, where_column, where_text
from tests.matrix.reading_partitions import is_partition_source
from tests.matrix.reading_tables import Case
from tests.peers.normal import normal_rows

from icefield.lake import Lake
from icefield.spark.data_source.data_source import register
from icefield.spark.read import read
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema

Ids = list[int]


@dataclass(frozen=True)
class Reader:
    """Opens a table as a DataFrame, with a filter of ours or without."""

    name: str
    open: Callable[[Table, str | None], DataFrame]
    by_tasks: bool = False


def native(spark: SparkSession) -> Reader:
    """Return the reader that users get: Spark's own, where that is right."""
    return Reader("to_spark", lambda table, where: table.scan(where).to_spark())


def tasks(spark: SparkSession) -> Reader:
    """Return the reader that runs our tasks for every file."""
    return Reader("tasks", lambda table, where: table.scan(where).to_spark(), by_tasks=True)


def data_source(spark: SparkSession, lake: Lake) -> Reader:
    """Return the reader of `format("icefield")`."""
    register(spark, lake)

    def opened(table: Table, where: str | None) -> DataFrame:
        reader = spark.read.format("icefield")
        return (reader if where is None else reader.option("where", where)).load(table.name)

    return Reader("format", opened)


def compare(case: Case, readers: Sequence[Reader], random: Random, filters: int) -> Iterator[str]:
    """Read a case every way, and yield what is not as its model has it."""
    model, table = case.model, case.table
    columns = list(places(model.fields))
    # More often on what files are partitioned by.
    columns += [place for place in columns if is_partition_source(table, place.fields[-1])] * 2
    drawn = [draw_filter(random, columns, model.rows) for _ in range(filters)]
    expected = [(c, sorted(r[KEY_ID] for r in model.rows if truth(c, r) is True)) for c in drawn]
    yield from _compare_rows("to_arrow", lambda: table.scan().to_arrow().read_all(), model)
    for condition, ids in expected:
        found = table.scan(where_text(condition), ["id"]).to_arrow().read_all()["id"].to_pylist()
        if sorted(found) != ids:
            yield f"to_arrow, where={where_text(condition)}: rows {sorted(found)} instead of {ids}"
    for reader in readers:
        with pytest.MonkeyPatch.context() as patch:
            if reader.by_tasks:
                patch.setattr(read, "_reads_natively", lambda request: np.zeros(request.files.num_rows, np.bool_))
            yield from _compare_rows(reader.name, partial(_load, reader, table), model)
            yield from compare_filters(reader, table, expected, ours=False)
            yield from compare_filters(reader, table, expected, ours=True)


def _load(reader: Reader, table: Table) -> pa.Table:
    return reader.open(table, None).toArrow()


def _compare_rows(name: str, load: Callable[[], pa.Table], model: Model) -> Iterator[str]:
    wanted = model.normal_rows()
    try:
        found = normal_rows(load(), arrow_schema(model.schema))
    except Exception as error:
        yield f"{name}: {_first_lines(error)}"
        return
    if found != wanted:
        missing = [row for row in wanted if row not in found]
        more = [row for row in found if row not in wanted]
        yield f"{name}: {len(found)} rows instead of {len(wanted)}, such as {more[:1]} instead of {missing[:1]}"


def compare_filters(
    reader: Reader, table: Table, expected: Sequence[tuple[Filter, Ids]], *, ours: bool
) -> Iterator[str]:
    """Ask for many filters in one job: each scan is a part of a union."""

    def asked(condition: Filter) -> DataFrame:
        if ours:
            return reader.open(table, where_text(condition))
        return whole.where(where_column(condition))

    name = f"{reader.name}, {'where=' if ours else '.where'}"
    try:
        whole = reader.open(table, None)
        parts = [asked(c).select(F.lit(at).alias("at"), "id") for at, (c, _) in enumerate(expected)]
        rows = reduce(DataFrame.union, parts).collect()
    except Exception as error:
        yield f"{name}: {_first_lines(error)}"
        return
    for at, (condition, ids) in enumerate(expected):
        found = sorted(row[1] for row in rows if row[0] == at)
        if found != ids:
            yield f"{name} {where_text(condition)}: rows {found} instead of {ids}"


def _first_lines(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:1500]}"
