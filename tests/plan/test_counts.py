"""Answers from metadata: counts, least and greatest values, each read from files only where metadata cannot tell."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from tests.effort import effort
from tests.expr.cases import Row, is_nan, sort_key
from tests.plan.test_plan import build, tables

from icefield.errors import InvalidInput
from icefield.expr.bind.bound import Reference
from icefield.expr.render.describe import describe
from icefield.expr.render.rows import matches
from icefield.lake import Lake
from icefield.table.scan import TableScan
from icefield.table.table import Table
from icefield.types.arrow import python_values
from icefield.types.datatypes import Value


@pytest.fixture
def opened(memory_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The data files that were opened."""
    store, locations = type(memory_lake.store), []
    open_input = store.open_input

    def spy(self: Any, location: str) -> Any:
        locations.append(location)
        return open_input(self, location)

    monkeypatch.setattr(store, "open_input", spy)
    return locations


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    """Three partitions of two rows, and a fourth without a value."""
    made = memory_lake.create_table("a.t", "day date, id long, name string, ratio double", partition_by=["day"])
    for day in range(4):
        ids = [day * 10, day * 10 + 5] if day < 3 else [None, None]
        ratio = [1.5, math.nan] if day == 2 else [float(day), None]
        rows = {"day": [day, day], "id": ids, "name": [f"n{day}", "x" * 40], "ratio": ratio}
        made.append(pa.table(rows, pa.schema(DAYS)))
    return made


DAYS = [("day", pa.date32()), ("id", pa.int64()), ("name", pa.string()), ("ratio", pa.float64())]


def extremes(scan: TableScan, column: str) -> tuple[Any, Any]:
    return scan.min(column).as_py(), scan.max(column).as_py()


def test_exact_bounds_answer_without_opening_a_file(table: Table, opened: list[str]) -> None:
    assert extremes(table.scan(), "id") == (0, 25)
    assert table.scan().min("id").type == pa.int64()
    assert extremes(table.scan(where="day >= DATE '1970-01-02'"), "id") == (10, 25)
    assert extremes(table.scan(where="day = DATE '1970-01-04'"), "id") == (None, None)
    assert str(table.scan().max("day")) == "1970-01-04"
    assert opened == []


def test_counts_under_a_filter_that_partitions_settle_open_no_file(table: Table, opened: list[str]) -> None:
    scan = table.scan(where="day >= DATE '1970-01-02' AND day < DATE '1970-01-04'")
    assert scan.count() == 4
    assert scan.count_by_partition().to_pylist() == [
        {"partition": f"day=1970-01-0{day}", "spec_id": 0, "record_count": 2, "file_count": 1} for day in (2, 3)
    ]
    assert opened == []


def test_only_files_that_could_change_the_answer_are_opened(table: Table, opened: list[str]) -> None:
    assert table.scan(where="id != 25").max("id").as_py() == 20
    assert len(opened) == 1
    assert table.scan(where="id != 25").min("id").as_py() == 0
    assert len(opened) == 1


def test_bounds_of_long_texts_are_not_answers(table: Table, opened: list[str]) -> None:
    assert extremes(table.scan(), "name") == ("n0", "x" * 40)
    assert opened


def test_a_filtered_count_by_partition_reads_what_metadata_cannot_tell(table: Table, opened: list[str]) -> None:
    found = table.scan(where="id > 10").count_by_partition()
    assert found.select(["partition", "record_count"]).to_pylist() == [
        {"partition": "day=1970-01-02", "record_count": 1},
        {"partition": "day=1970-01-03", "record_count": 2},
    ]
    assert len(opened) == 1


def test_nan_is_the_greatest(table: Table) -> None:
    least, greatest = extremes(table.scan(), "ratio")
    assert least == 0
    assert math.isnan(greatest)
    assert table.scan(where="day < DATE '1970-01-03'").max("ratio").as_py() == 1
    assert math.isnan(table.scan(where="isnan(ratio)").min("ratio").as_py())


def test_deleted_rows_are_no_answer(memory_lake: Lake, opened: list[str]) -> None:
    made = memory_lake.create_table("a.d", "id long", properties={"write.delete.mode": "merge-on-read"})
    made.append(pa.table({"id": [1, 2, 3]}))
    made.append(pa.table({"id": [7, 8]}))
    made.delete("id = 3")
    made.delete("id = 7")
    made.delete("id = 1")
    opened.clear()
    assert extremes(made.scan(), "id") == (2, 8)
    assert made.scan().count() == 2


def test_null_and_the_text_null_are_two_partitions(memory_lake: Lake) -> None:
    made = memory_lake.create_table("a.n", "name string", partition_by=["name"])
    made.append(pa.table({"name": [None, "null", "null"]}))
    assert sorted(made.scan().count_by_partition()["record_count"].to_pylist()) == [1, 2]


def test_fields_of_structs_have_extremes_too(memory_lake: Lake) -> None:
    made = memory_lake.create_table("a.s", "p struct<x: long>, l list<long>")
    rows = pa.table({"p": pa.array([{"x": 4}, None, {"x": 2}], pa.struct([("x", pa.int64())]))})
    made.append(rows)
    assert extremes(made.scan(), "p.x") == (2, 4)
    assert extremes(made.scan(where="p.x < 4"), "p.x") == (2, 2)
    for column in ("p", "l"):
        with pytest.raises(InvalidInput, match="no minimum or maximum"):
            made.scan().min(column)


def test_an_empty_table_has_no_extremes(memory_lake: Lake) -> None:
    made = memory_lake.create_table("a.e", "id long")
    assert extremes(made.scan(), "id") == (None, None)
    assert made.scan().count_by_partition().num_rows == 0


def expected(values: Sequence[Value], *, greatest: bool) -> Value | None:
    """The plain meaning: NaN is greater than all others."""
    ordered = sorted((v for v in values if not is_nan(v)), key=sort_key)
    if len(ordered) < len(values) and (greatest or not ordered):
        return math.nan
    return ordered[-1 if greatest else 0] if ordered else None


def values_in(rows: Iterator[Row] | list[Row], column: Reference) -> list[Value]:
    return [value for row in rows if (value := row[column.field_id]) is not None]


@effort(80)
@given(tables())
def test_extremes_are_those_of_the_rows_that_match(case: tuple[Any, Any, Any, Any]) -> None:
    columns, spec, writes, where = case
    try:
        _, table = build(columns, spec, writes)
    except InvalidInput as refused:
        assume("overflow" not in str(refused) and "does not fit" not in str(refused))
        raise
    scan = table.scan()
    scan._where = where  # not every bound expression has a text
    matching = [row for rows in writes for row in rows if matches(where, row)]
    for column in columns:
        for found, greatest in ((scan.min(column.path[0]), False), (scan.max(column.path[0]), True)):
            (value,) = python_values(pa.array([found], found.type), column.type) if found.is_valid else (None,)
            wanted = expected(values_in(matching, column), greatest=greatest)
            assert value == wanted or (is_nan(value) and is_nan(wanted)), describe(where)


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("column", ["_last_updated_sequence_number", "_row_id", "_pos", "_file", "_spec_id"])
def test_least_and_greatest_of_metadata_columns_are_those_of_the_rows(
    memory_lake: Lake, mode: str, column: str
) -> None:
    properties = {"write.delete.mode": mode, "write.merge.mode": mode}
    made = memory_lake.create_table("a.m", "id long", format_version=3, properties=properties)
    made.append(pa.table({"id": [1, 2, 3]}))
    made.append(pa.table({"id": [4, 5]}))
    made.delete("id = 1")
    made.upsert(pa.table({"id": [4]}), on=["id"])
    made.compact("id > 3")
    for where in (None, "id > 1", "id = 5"):
        values = made.scan(where, [column]).to_arrow().read_all()[column].to_pylist()
        assert made.scan(where).min(column).as_py() == min(values)
        assert made.scan(where).max(column).as_py() == max(values)
