"""Bounds decoded by the column are those decoded one by one."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort
from tests.expr.cases import ALL_TYPES, constants_of, sort_key

from icefield.expr.parse.ast import Operator
from icefield.expr.prune.bounds import decode_bounds
from icefield.types.datatypes import DecimalType, PrimitiveType, UnknownType, UUIDType, Value
from icefield.types.values.binary import encode_value

PLAIN_TYPES = [kind for kind in ALL_TYPES if not isinstance(kind, UUIDType)]


@given(st.data(), st.sampled_from(PLAIN_TYPES))
@effort(200)
def test_bounds_compare_as_their_values_do(data: st.DataObject, kind: PrimitiveType) -> None:
    values = data.draw(st.lists(st.none() | constants_of(kind), min_size=1, max_size=6))
    wanted = data.draw(constants_of(kind))
    encoded = [None if v is None else encode_value(v, kind) for v in values]
    skipped = data.draw(st.integers(0, len(values) - 1))
    array = pa.array(encoded, pa.binary()).slice(skipped)
    lower, upper = decode_bounds(array, array, kind)
    for operator in Operator:
        expected = [v is not None and _holds(v, operator, wanted) for v in values[skipped:]]
        assert lower.compare(operator, wanted).tolist() == expected
        assert upper.compare(operator, wanted).tolist() == expected


def _holds(value: Value, operator: Operator, wanted: Value) -> bool:
    left, right = sort_key(value)[0] or value, sort_key(wanted)[0] or wanted
    if isinstance(value, str):
        left, right = value.encode(), str(wanted).encode()
    return {
        Operator.EQ: left == right, Operator.NE: left != right, Operator.LT: left < right,  # type: ignore[operator]
        Operator.LE: left <= right, Operator.GT: left > right, Operator.GE: left >= right,  # type: ignore[operator]
    }[operator]  # fmt: skip


@pytest.mark.parametrize("number", [0, 1, -1, 127, 128, -128, -129, 2**63, -(2**63) - 1, 10**37, -(10**38) + 1])
def test_decimals_of_every_length_are_sign_extended(number: int) -> None:
    kind = DecimalType(38, 0)
    shortest = number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
    longest = number.to_bytes(16, "big", signed=True)
    array = pa.array([shortest, longest, longest[:0], b"\0" * 17], pa.binary())
    column, _ = decode_bounds(array, array, kind)
    from_number = column.order.operand
    assert column.known.tolist() == [True, True, False, False]
    assert column.order.equal(column.values, from_number(Decimal(number))).tolist()[:2] == [True, True]


def test_no_files_give_no_bounds() -> None:
    for kind in (*ALL_TYPES, UnknownType()):
        empty = pa.array([], pa.binary())
        lower, upper = decode_bounds(empty, empty, kind)
        assert len(lower.known) == len(upper.known) == 0


def test_all_bounds_missing() -> None:
    for kind in (*ALL_TYPES, UnknownType()):
        nothing = pa.nulls(3, pa.binary())
        lower, upper = decode_bounds(nothing, nothing, kind)
        assert not lower.known.any()
        assert not upper.known.any()
