"""Row values as JSON, CSV and terminals hold them."""

import datetime
import json
import math
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefield.cli.values import MAX_CELL_CHARACTERS, csv_cell, grid_cell, plain

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.datetimes()
    | st.dates()
    | st.times()
    | st.uuids()
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(VALUES)
def test_every_value_becomes_strict_json(value: object) -> None:
    text = json.dumps(plain(value), allow_nan=False)
    assert json.loads(text) == plain(value)


@given(VALUES)
def test_a_cell_on_a_terminal_is_short(value: object) -> None:
    assert len(grid_cell(value)) <= MAX_CELL_CHARACTERS


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1E+3"), "1000"),
        (Decimal("12.50"), "12.50"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (b"ab", "YWI="),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), "2026-01-01T00:00:00+00:00"),
        ([("a", 1), ("b", None)], [{"key": "a", "value": 1}, {"key": "b", "value": None}]),
        ([], []),
        (2**62, 2**62),
    ],
)
def test_plain_values(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_csv_cells() -> None:
    assert [csv_cell(v) for v in (None, True, 3, "x", [1, {"a": None}])] == ["", "true", "3", "x", '[1, {"a": null}]']
