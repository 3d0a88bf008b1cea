"""Rows with nested columns and without row ids are followed by their values, too."""

from typing import Any

import pyarrow as pa
import pytest

import icefield
from icefield.commit.replay.nested_keys import encode_rows
from icefield.errors import ConcurrentChange
from icefield.table.table import Table

KIND = pa.struct(
    [
        ("names", pa.list_(pa.string())),
        ("by", pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.int64()), ("y", pa.float64())])))),
    ]
)
SCHEMA = pa.schema([("id", pa.int64()), ("nested", KIND)])


def rows(*ids: int) -> pa.Table:
    values = [{"names": ["a", None, f"{key}"], "by": [("k", [{"x": key, "y": None}]), ("l", [])]} for key in ids]
    return pa.Table.from_pylist([{"id": key, "nested": value} for key, value in zip(ids, values, strict=True)], SCHEMA)


@pytest.fixture
def table() -> Table:
    modes = {f"write.{verb}.mode": "copy-on-write" for verb in ("delete", "update", "merge")}
    table = icefield.connect("memory:").create_table("t.t", SCHEMA, format_version=2, properties=modes)
    table.append(rows(*range(8)))
    table.create_branch("staging")
    return table


def ids(table: Table) -> list[int]:
    return sorted(table.scan(select=["id"]).to_arrow().read_all()["id"].to_pylist())


def test_two_copies_of_a_file_with_nested_rows_are_merged(table: Table) -> None:
    table.at("staging").delete(where="id = 1")
    table.delete(where="id = 2")
    table.publish("staging")
    assert ids(table) == [0, 3, 4, 5, 6, 7]
    assert table.diff(None).rows_added == 6


def test_a_nested_row_that_both_sides_changed_collides(table: Table) -> None:
    table.at("staging").update({"id": "id + 100"}, where="id = 1")
    table.update({"id": "id + 200"}, where="id = 1")
    with pytest.raises(ConcurrentChange):
        table.publish("staging")
    assert ids(table) == [0, *range(2, 8), 201]


VALUES: list[Any] = [
    None,
    {"names": None, "by": None},
    {"names": [], "by": []},
    {"names": [None], "by": [("k", None)]},
    {"names": [""], "by": [("k", [])]},
    {"names": ["", ""], "by": [("k", []), ("l", [])]},
    {"names": ["ab"], "by": [("k", [None])]},
    {"names": ["a", "b"], "by": [("k", [{"x": None, "y": None}])]},
    {"names": ["a", "b"], "by": [("k", [{"x": 1, "y": 0.0}, {"x": 2, "y": None}])]},
    {"names": ["a", "b"], "by": [("k", [{"x": 1, "y": 0.0}]), ("l", [{"x": 2, "y": None}])]},
]


def test_keys_of_nested_values_are_equal_only_if_the_values_are() -> None:
    whole = pa.array(VALUES, KIND)
    keys = encode_rows([whole], len(whole)).to_pylist()
    assert len(set(keys)) == len(VALUES)
    alone = [encode_rows([whole[at : at + 1]], 1).to_pylist()[0] for at in range(len(VALUES))]
    assert alone == keys  # also of a slice
    swapped = pa.array([{"names": ["", ""], "by": [("l", []), ("k", [])]}], KIND)
    assert encode_rows([swapped], 1).to_pylist() == [keys[5]]  # maps have no order
