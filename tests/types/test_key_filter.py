"""The filter of hashed keys misses no key, however the arrays are laid out, and passes few other rows."""

import datetime as dt
import math
import uuid
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.types.arrow_keys import NOT_FOUND, KeyIndex
from icefield.types.key_filter import KeyFilter

STRINGS = ["", "a", "abcdefg", "abcdefgh", "abcdefghi", "abcdefgh" * 3, "é" * 5, "x" * 7, "\0", "\0\0"]
KINDS: dict[pa.DataType, list[Any]] = {
    pa.int32(): [0, 1, -1, 2**31 - 1],
    pa.int64(): [0, 1, -1, 2**63 - 1, -(2**63)],
    pa.float64(): [0.0, -0.0, math.nan, 1.5, -math.inf],
    pa.float32(): [0.0, -0.0, math.nan, 1.5],
    pa.bool_(): [True, False],
    pa.string(): STRINGS,
    pa.binary(): [text.encode() for text in STRINGS],
    pa.binary(3): [b"abc", b"\0\0\0"],
    pa.binary(16): [bytes(16), b"a" * 16, b"a" * 15 + b"b"],
    pa.decimal128(9, 2): [Decimal("0.00"), Decimal("-1.50"), Decimal("1234567.89")],
    pa.decimal128(38, 2): [Decimal("0.00"), Decimal("-1.50"), Decimal(10**30)],
    pa.date32(): [dt.date(1970, 1, 1), dt.date(2026, 1, 1)],
    pa.timestamp("us"): [dt.datetime(2026, 1, 1), dt.datetime(1883, 1, 1)],
    pa.time64("us"): [dt.time(0), dt.time(1, 2, 3)],
    pa.uuid(): [uuid.UUID(int=0).bytes, uuid.UUID(int=2**128 - 1).bytes],
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[pa.Array], list[pa.Array]]:
    """Draw columns of keys, and columns of the same types to look up, each as a slice of longer arrays."""
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))

    def arrays() -> list[pa.Array]:
        before, rows, after = (draw(st.integers(0, most)) for most in (2, 6, 2))
        made = []
        for kind in kinds:
            size = before + rows + after
            values = draw(st.lists(st.sampled_from([*KINDS[kind], None]), min_size=size, max_size=size))
            made.append(pa.array(values, kind).slice(before, rows))
        return made

    return arrays(), arrays()


@effort(200)
@given(columns())
def test_no_key_is_missed(drawn: tuple[list[pa.Array], list[pa.Array]]) -> None:
    keys, asked = drawn
    has_null = np.any([column.is_null().to_numpy(zero_copy_only=False) for column in asked], axis=0)
    found = KeyIndex(keys, len(keys[0])).find(asked, len(asked[0])) != NOT_FOUND
    passed = KeyFilter(keys, len(keys[0])).may_match(asked, len(asked[0]))
    assert passed[found & ~has_null].all()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_value_has_one_hash_whatever_is_next_to_it(kind: pa.DataType) -> None:
    values = KINDS[kind]
    among = pa.array(values, kind)
    for at, value in enumerate(values):
        alone = pa.array([value], kind)
        assert KeyFilter([alone], 1).may_match([among], len(values))[at]
        assert KeyFilter([among], len(values)).may_match([alone], 1)[0]
        assert KeyFilter([among.slice(at)], len(values) - at).may_match([alone], 1)[0]


@pytest.mark.parametrize(("narrow", "wide"), [(pa.int32(), pa.int64()), (pa.decimal128(9, 2), pa.decimal128(38, 2))])
def test_narrower_columns_have_the_same_keys(narrow: pa.DataType, wide: pa.DataType) -> None:
    values = KINDS[narrow]
    known = KeyFilter([pa.array(values, wide)], len(values))
    assert known.may_match([pa.array(values, narrow)], len(values)).all()


@pytest.mark.parametrize("form", ["dense", "sparse", "text", "common prefix", "two columns"])
def test_few_other_rows_pass(form: str) -> None:
    random, count = Random(1), 4_000
    numbers = random.sample(range(2**40) if form == "sparse" else range(10 * count), 5 * count)
    columns = {
        "dense": [pa.array(numbers)],
        "sparse": [pa.array(numbers)],
        "text": [pa.array([str(number) for number in numbers])],
        "common prefix": [pa.array([f"customer/{number:020}" for number in numbers])],
        "two columns": [pa.array([number // 200 for number in numbers]), pa.array([n % 200 for n in numbers])],
    }[form]
    known = KeyFilter([column.slice(0, count) for column in columns], count)
    assert known.may_match([column.slice(count) for column in columns], 4 * count).mean() < 0.1
