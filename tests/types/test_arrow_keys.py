"""Rows found by several columns: against a dictionary of tuples."""

import math
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.types.arrow_keys import NOT_FOUND, KeyIndex

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "b", None]),
        st.sampled_from([0.0, -0.0, math.nan, 1.5, None]),
        st.sampled_from([0, 1, None]),
    ),
    max_size=8,
)


def columns(rows: list[tuple[Any, ...]]) -> list[pa.Array]:
    kinds = (pa.string(), pa.float64(), pa.int32())
    return [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]


def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """As the format compares: by bits, with one NaN."""
    return tuple(struct.pack("<d", v) if isinstance(v, float) else v for v in row)


@effort(100)
@given(ROWS, ROWS)
def test_rows_are_found_as_in_a_dictionary(known: list[tuple[Any, ...]], asked: list[tuple[Any, ...]]) -> None:
    index = KeyIndex(columns(known), len(known))
    numbers: dict[tuple[Any, ...], int] = {}
    for row, code in zip(known, index.codes.tolist(), strict=True):
        assert numbers.setdefault(key(row), code) == code
    assert sorted(numbers.values()) == list(range(len(numbers)))
    found = index.find(columns(asked), len(asked)).tolist()
    assert found == [numbers.get(key(row), NOT_FOUND) for row in asked]


def test_without_columns_all_rows_are_one() -> None:
    index = KeyIndex([], 3)
    assert index.codes.tolist() == [0, 0, 0]
    assert index.find([], 2).tolist() == [0, 0]


def test_narrower_columns_are_found_among_wider() -> None:
    wide = [pa.array([1, 2]), pa.array([0.5, None]), pa.array([Decimal("1.10"), None], pa.decimal128(20, 2))]
    narrow = [
        pa.array([2, 1], pa.int32()),
        pa.array([None, 0.5], pa.float32()),
        pa.array([None, Decimal("1.10")], pa.decimal128(5, 2)),
    ]
    assert KeyIndex(wide, 2).find(narrow, 2).tolist() == [1, 0]


def test_uuids_are_compared_by_their_bytes() -> None:
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef", None], pa.binary(16)))
    assert KeyIndex([ids], 2).find([ids.slice(1)], 1).tolist() == [1]
