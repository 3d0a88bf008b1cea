"""Rows in an order, on both engines: sorted by the table's order, or clustered by several columns."""

import datetime
import decimal
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield
from icefield.engine.choose import EngineName
from icefield.errors import InvalidInput
from icefield.model.sort_order import UNSORTED, parse_order_by
from icefield.parquet.write.row_order import RowOrder, rank_column
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import DoubleType, IntegerType, StringType
from icefield.types.sort_keys import sort_keys
from icefield.types.text import parse_schema

SCHEMA = "id long, x double, y double, s string, d decimal(20,2), b boolean, t timestamp, p string"


def some_rows(count: int, seed: int = 1) -> pa.Table:
    rng = Random(seed)
    start = datetime.datetime(2026, 1, 1)
    rows = [
        {
            "id": at,
            "x": rng.choice([None, float("nan"), -0.0]) if rng.random() < 0.05 else rng.gauss(0, 1),
            "y": rng.lognormvariate(0, 1),
            "s": None if rng.random() < 0.05 else f"a long common prefix/{rng.random():.6f}",
            "d": decimal.Decimal(rng.randrange(10**6)) / 100,
            "b": rng.random() < 0.5,
            "t": start + datetime.timedelta(seconds=rng.randrange(10**7)),
            "p": rng.choice("ab"),
        }
        for at in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(parse_schema(SCHEMA)))


def make(tmp_path: Path, rows: pa.Table, appends: int = 5, **more: object) -> Table:
    lake = icefield.connect(tmp_path / "lake")
    table = lake.create_table("t.t", SCHEMA, format_version=3, **more)  # type: ignore[arg-type]
    size = rows.num_rows // appends
    for start in range(0, rows.num_rows, size):
        table.append(rows.slice(start, size))
    return table


def lineage(table: Table) -> list[str]:
    select = ["id", "x", "s", "_row_id", "_last_updated_sequence_number"]
    return sorted(map(repr, table.scan(select=select).to_arrow().read_all().to_pylist()))


@pytest.mark.parametrize("partitioned", [False, True])
def test_sorting_keeps_rows_and_records_the_order(tmp_path: Path, engine: EngineName, *, partitioned: bool) -> None:
    table = make(
        tmp_path,
        some_rows(500),
        partition_by=["p"] if partitioned else [],
        order_by=["x desc nulls last", "s nulls first", "id"],
    )
    table.delete("id in (3, 77)", mode="merge-on-read")
    before = lineage(table)
    done = table.compact(strategy="sort", engine=engine)
    assert (done.files_removed, done.groups_done) == ((10, 2) if partitioned else (5, 1))
    assert lineage(table) == before
    files = table.inspect("files").to_arrow().read_all()
    assert set(files["sort_order_id"].to_pylist()) == {table.metadata.default_sort_order_id}


CLUSTERED = (["x", "y"], ["y", "s"], ["d", "b", "t"], ["id"], ["x", "s", "d", "t"])


@pytest.mark.parametrize("columns", CLUSTERED, ids="-".join)
def test_clustering_keeps_rows(tmp_path: Path, engine: EngineName, columns: Sequence[str]) -> None:
    table = make(tmp_path, some_rows(400), partition_by=["p"])
    table.delete("id in (3, 77)", mode="merge-on-read")
    before = lineage(table)
    done = table.compact(cluster_by=columns, engine=engine)
    assert (done.strategy, done.files_removed) == ("cluster", 10)
    assert lineage(table) == before


def test_clustered_files_are_read_less_by_filters_on_either_column(tmp_path: Path, engine: EngineName) -> None:
    rows = some_rows(8_000).filter(pc.is_finite(some_rows(8_000)["x"]))
    table = make(tmp_path, rows)
    small = {"target-file-size-bytes": "20000", "min-file-size-bytes": "1", "max-file-size-bytes": "100000"}
    table.compact(cluster_by=["x", "y"], engine=engine, options=small)
    count = table.scan().files().num_rows
    assert count >= 8
    quantiles = {name: np.quantile(rows[name].to_numpy(), [0.45, 0.5]).tolist() for name in ("x", "y")}
    for name, (low, high) in quantiles.items():
        read = table.scan(where=f"{name} >= {low} and {name} < {high}").files().num_rows
        assert read <= count * 0.6, f"a filter on {name} reads {read} of {count} files"


def test_an_order_of_rows_has_nulls_and_nan_where_they_belong() -> None:
    schema = parse_schema("x double, n int")
    rows = pa.table({"x": [1.0, None, float("nan"), -1.0, -0.0, 0.0], "n": pa.array([1, 2, 3, 4, 5, 6], pa.int32())})
    for term, wanted in {
        "x": [2, 4, 5, 6, 1, 3],
        "x desc": [3, 1, 6, 5, 4, 2],
        "x asc nulls last": [4, 5, 6, 1, 3, 2],
        "x desc nulls first": [2, 3, 1, 6, 5, 4],
    }.items():
        order = RowOrder(parse_order_by([term], schema))
        assert order.sorted(rows, schema)["n"].to_pylist() == wanted, term


def test_rows_that_arrow_cannot_reorder_are_refused() -> None:
    schema = parse_schema("id long, y binary")
    long = pa.py_buffer(np.zeros(1_100_000_000, np.uint8))
    value = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(np.array([0, long.size], np.int32)), long])
    rows = pa.table({"id": pa.array([2, 1]), "y": pa.chunked_array([value, value])})
    for order in (
        RowOrder(parse_order_by(["id"], schema)),
        RowOrder(UNSORTED, (rank_column(1, rows["id"].chunk(0), 1),)),
    ):
        with pytest.raises(InvalidInput, match="above 2 GiB"):
            order.sorted(rows, schema)


def test_ranks_leave_room_for_nulls_and_nan() -> None:
    schema = parse_schema("x double, s string")
    values = [float(v) for v in range(100)]
    batch = pa.record_batch({"x": [None, -5.0, 50.0, 500.0, float("nan")], "s": ["", None, "b", "zz", "é"]})
    ranked = rank_column(1, sort_keys(pa.array([*values, None, float("nan")]), DoubleType()), 2)
    ranks = ranked.ranks(batch, schema).tolist()
    assert ranks[0] == 0
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == 5
    strings = rank_column(2, sort_keys(pa.array(["a", "b", "b", "c"]), StringType()), 2)
    assert strings.ranks(batch, schema).tolist() == [1, 0, 3, 4, 4]


def test_a_column_of_one_value_or_none_is_no_obstacle() -> None:
    schema = parse_schema("x double, n int")
    batch = pa.record_batch({"x": pa.array([None, 1.0]), "n": pa.array([1, 1], pa.int32())})
    columns = tuple(
        rank_column(i, sort_keys(pa.nulls(3, kind), own), 2)
        for i, kind, own in ((1, pa.float64(), DoubleType()), (2, pa.int32(), IntegerType()))
    )
    positions = RowOrder(UNSORTED, columns).curve_positions(batch, schema)
    assert len(positions) == 2
