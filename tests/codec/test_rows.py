"""Rows under a type of their own: columns by name, a check when the type is given, and selections."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefield.codec.rows import FEW, Column, Rows


class Named(Rows):
    name: Column


class Cities(Named, partial=True):
    people: Column


class Capitals(Cities):
    country: Column


def cities(count: int) -> Cities:
    return Cities(pa.table({"name": [f"c{i}" for i in range(count)], "people": list(range(count))}))


def test_columns_are_attributes_and_found_by_name() -> None:
    rows = cities(2)
    assert rows.name.to_pylist() == rows["name"].to_pylist() == ["c0", "c1"]
    assert "people" in rows
    assert "country" not in rows
    assert rows.num_rows == 2


@pytest.mark.parametrize("columns", [{"name": ["x"]}, {"country": ["y"]}])
def test_a_table_without_a_required_column_is_refused_also_one_of_the_parent(columns: dict[str, list[str]]) -> None:
    with pytest.raises(TypeError, match=r"Capitals without (country|name)$"):
        Capitals(pa.table(columns))


def test_an_optional_column_may_be_missing() -> None:
    rows = Cities(pa.table({"name": ["x"]}))
    with pytest.raises(KeyError):
        _ = rows.people


@given(chosen=st.one_of(st.lists(st.booleans(), max_size=8), st.lists(st.booleans(), min_size=FEW, max_size=FEW + 9)))
def test_a_choice_is_the_rows_that_a_filter_keeps(chosen: list[bool]) -> None:
    rows, mask = cities(len(chosen)), np.array(chosen, np.bool_)
    found = rows.choose(mask)
    assert type(found) is Cities
    assert found.people.to_pylist() == np.flatnonzero(mask).tolist()


def test_parts_are_put_together_in_order_and_what_one_lacks_is_null() -> None:
    without = Cities(pa.table({"name": ["x"]}))
    assert Cities.concat([cities(1), without]).to_pylist() == [
        {"name": "c0", "people": 0},
        {"name": "x", "people": None},
    ]
    assert Cities.concat([without]).table is without.table


def test_rows_are_changed_as_copies() -> None:
    rows = cities(3)
    changed = rows.replaced({"people": pa.array([7, 8, 9])}).extended({"mayor": pa.array(["a", "b", "c"])})
    assert changed.take([2, 0]).to_pylist() == [
        {"name": "c2", "people": 9, "mayor": "c"},
        {"name": "c0", "people": 7, "mayor": "a"},
    ]
    assert changed.without(["mayor"]).select(["name"]).column_names == ["name"]
    with pytest.raises(TypeError, match="Cities without name"):
        changed.select(["people"])
    assert rows == cities(3)
    assert rows != changed


def test_rows_of_two_types_are_not_equal_and_travel_to_other_processes() -> None:
    table = pa.table({"name": ["x"], "country": ["y"]})
    assert Cities(table) != Capitals(table)
    assert pickle.loads(pickle.dumps(Capitals(table))) == Capitals(table)


def test_rows_are_not_iterated_by_mistake() -> None:
    with pytest.raises(TypeError, match="to_pylist"):
        list(cities(1))
