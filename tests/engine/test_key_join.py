"""Rows of a table and source rows are paired as SQL's `=` pairs them."""

import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.engine import key_join
from icefield.engine.key_join import KeyJoin

VALUES = (st.sampled_from([0.0, -0.0, math.nan, 1.5, None]), st.sampled_from(["", "a", "b", None]))
ROWS = st.lists(st.tuples(*VALUES), max_size=12)


def columns(rows: list[tuple[Any, ...]]) -> list[pa.Array]:
    return [pa.array([row[at] for row in rows], kind) for at, kind in enumerate((pa.float64(), pa.string()))]


def equal(left: Any, right: Any) -> bool:
    return left is not None and right is not None and (left == right or (left != left and right != right))


@effort(200)
@given(ROWS, ROWS, st.sampled_from([1, 3, 100]))
def test_pairs_are_those_of_sql(source: list[tuple[Any, ...]], table: list[tuple[Any, ...]], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_join, "MOST_PAIRS", most)
        join = KeyJoin(columns(source), len(source))
        parts = [(ours.tolist(), theirs.tolist()) for ours, theirs in join.pairs(columns(table), len(table))]
    expected = [
        (ours, theirs)
        for ours, row in enumerate(table)
        for theirs, other in enumerate(source)
        if all(map(equal, row, other))
    ]
    assert [pair for ours, theirs in parts for pair in zip(ours, theirs, strict=True)] == expected
    # All pairs of a row come together, and no more pairs at a time than there must be.
    assert max(Counter(row for ours, _ in parts for row in set(ours)).values(), default=1) == 1
    assert all(len(ours) <= most or len(set(ours)) == 1 for ours, _ in parts)
    passed = join.may_match(columns(table), len(table))
    assert all(passed[ours] for ours, _ in expected)
