"""An overwrite with a filter takes rows that match it: others would stay when it is run again."""

from typing import Any

import pyarrow as pa
import pytest
from tests.commit.racing import files_of

from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    made = memory_lake.create_table("t.t", "id long, day string, s struct<x double>", partition_by=["day"])
    made.append(rows((1, "mon", 0.5), (2, "mon", 1.5), (3, "tue", None)))
    return made


def rows(*given: tuple[int, str | None, float | None]) -> pa.Table:
    ids, days, numbers = zip(*given, strict=True)
    s = pa.array([{"x": n} for n in numbers], pa.struct([("x", pa.float64())]))
    return pa.table({"id": pa.array(ids, pa.int64()), "day": pa.array(days, pa.string()), "s": s})


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all()["id"].to_pylist())


@pytest.mark.parametrize(
    ("where", "given", "shown"),
    [
        ("day = 'mon'", (9, "tue", 0.0), "{'day': 'tue'}"),
        ("day = 'mon'", (9, None, 0.0), "{'day': None}"),
        ("day != 'mon'", (9, None, 0.0), "{'day': None}"),
        ("id < 3 and day = 'mon'", (9, "mon", 0.0), "{'id': 9, 'day': 'mon'}"),
        ("s.x > 1", (9, "mon", 0.5), "{'s': {'x': 0.5}}"),
        ("s.x < 1", (9, "mon", None), "{'s': {'x': None}}"),
        ("false", (9, "mon", 0.0), "{'id': 9"),
    ],
)
def test_rows_outside_the_filter_are_refused_and_nothing_changes(
    memory_lake: Lake, table: Table, where: str, given: Any, shown: str
) -> None:
    before = files_of(memory_lake)
    with pytest.raises(InvalidInput) as refused:
        table.overwrite(rows(given), where=where)
    assert shown in str(refused.value)
    assert "check_rows=False" in str(refused.value.hint)
    assert ids_of(table) == [1, 2, 3]
    assert files_of(memory_lake) == before


@pytest.mark.parametrize(
    ("where", "given", "left"),
    [
        ("day = 'mon'", (9, "mon", None), [3, 9]),
        ("id = 1 or id >= 9", (9, "sun", None), [2, 3, 9]),
        ("day is null", (9, None, None), [1, 2, 3, 9]),
        ("s.x > 1", (9, "sun", float("inf")), [1, 3, 9]),
        (None, (9, "sun", None), [9]),
    ],
)
def test_rows_inside_the_filter_are_written(table: Table, where: str | None, given: Any, left: list[int]) -> None:
    table.overwrite(rows(given), where=where)
    assert ids_of(table) == left


def test_one_row_outside_is_enough_to_be_refused(table: Table) -> None:
    with pytest.raises(InvalidInput, match="{'day': 'tue'}"):
        table.overwrite(rows((8, "mon", None), (9, "tue", None)), where="day = 'mon'")
    assert ids_of(table) == [1, 2, 3]


def test_rows_outside_the_filter_are_written_if_asked_for(table: Table) -> None:
    table.overwrite(rows((9, "tue", None)), where="day = 'mon'", check_rows=False)
    assert ids_of(table) == [3, 9]


def test_a_column_that_rows_do_not_name_has_its_default_in_the_check(memory_lake: Lake) -> None:
    table = memory_lake.create_table("t.v3", "id long", format_version=3)
    with table.evolve() as change:
        change.add_column("n", "long", default=7)
    table.overwrite(pa.table({"id": [1]}), where="n = 7")
    with pytest.raises(InvalidInput, match=r"\{'n': 7\}"):
        table.overwrite(pa.table({"id": [1]}), where="n = 8")
    assert table.scan().to_arrow().read_all().to_pylist() == [{"id": 1, "n": 7}]
