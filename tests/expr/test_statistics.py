"""What each kind of statistics proves, rule by rule."""

import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import Bound, Compare, IsNaN, IsNull, NotNaN, NotNull, Reference, any_of, one_of
from icefield.expr.parse.ast import Operator
from icefield.expr.prune.evaluate import might_match, must_match
from icefield.expr.prune.statistics import (
    Counts,
    FieldStatistics,
    from_counts_and_bounds,
    from_partition_values,
    from_summaries,
)
from icefield.types.datatypes import (
    DecimalType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    UUIDType,
    Value,
)
from icefield.types.text import parse_schema
from icefield.types.values.binary import encode_value

FLOAT_COLUMN, TEXT_COLUMN = Reference(1, DoubleType(), ("f",)), Reference(1, StringType(), ("s",))


def _known(kind: PrimitiveType, lower: Any, upper: Any, counts: tuple[int | None, ...] = (10, 0, 0, 10)) -> Any:
    low, high = (pa.array([side], pa.binary()) for side in (lower, upper))
    values, nulls, nans, records = (pa.array([n], pa.int64()) for n in counts)
    return {1: from_counts_and_bounds(low, high, Counts(values, nulls, nans, records), kind)}.get


def _might(expression: Bound, known: Any) -> bool:
    return bool(might_match(expression, known, 1)[0])


def _must(expression: Bound, known: Any) -> bool:
    return bool(must_match(expression, known, 1)[0])


def _compare(kind: PrimitiveType, operator: str, value: Value) -> Bound:
    return Compare(Reference(1, kind, ("c",)), Operator(operator), value)


def test_a_column_without_statistics_might_match_and_need_not() -> None:
    assert might_match(_compare(IntegerType(), "=", 1), lambda _: None, 3).tolist() == [True] * 3
    assert must_match(_compare(IntegerType(), "=", 1), lambda _: None, 3).tolist() == [False] * 3


@pytest.mark.parametrize(
    ("operator", "value", "might", "must"),
    [
        ("=", 4, False, False), ("=", 5, True, False), ("=", 9, True, False), ("=", 10, False, False),
        ("<", 5, False, False), ("<", 6, True, False), ("<", 9, True, False), ("<", 10, True, True),
        ("<=", 4, False, False), ("<=", 5, True, False), ("<=", 9, True, True),
        (">", 9, False, False), (">", 8, True, False), (">", 4, True, True),
        (">=", 10, False, False), (">=", 9, True, False), (">=", 5, True, True),
        ("!=", 4, True, True), ("!=", 5, True, False),
    ],
)  # fmt: skip
def test_integers_between_5_and_9(operator: str, value: int, might: bool, must: bool) -> None:
    known = _known(IntegerType(), encode_value(5, IntegerType()), encode_value(9, IntegerType()))
    expression = _compare(IntegerType(), operator, value)
    assert (_might(expression, known), _must(expression, known)) == (might, must)


def test_equal_bounds_prove_one_integer_but_not_one_text() -> None:
    one = encode_value(5, IntegerType())
    assert not _might(_compare(IntegerType(), "!=", 5), _known(IntegerType(), one, one))
    assert _must(_compare(IntegerType(), "=", 5), _known(IntegerType(), one, one))
    assert _might(_compare(StringType(), "!=", "ab"), _known(StringType(), b"ab", b"ab"))
    assert not _must(_compare(StringType(), "=", "ab"), _known(StringType(), b"ab", b"ab"))


def test_a_file_of_nulls_only_matches_no_comparison() -> None:
    known = _known(IntegerType(), None, None, (10, 10, None, 10))
    assert not _might(_compare(IntegerType(), "!=", 5), known)
    assert _must(IsNull(Reference(1, IntegerType(), ("c",))), known)


def test_nulls_of_all_records_prove_it_without_a_value_count() -> None:
    assert not _might(_compare(IntegerType(), "=", 5), _known(IntegerType(), None, None, (None, 10, None, 10)))
    assert _might(_compare(IntegerType(), "=", 5), _known(IntegerType(), None, None, (None, 10, None, -1)))


def test_missing_null_counts_may_hide_nulls() -> None:
    known = _known(IntegerType(), encode_value(5, IntegerType()), encode_value(9, IntegerType()), (10, None, None, 10))
    assert _might(IsNull(Reference(1, IntegerType(), ("c",))), known)
    assert not _must(_compare(IntegerType(), ">", 0), known)


def test_an_empty_file_matches_nothing_and_an_unknown_number_of_rows_anything() -> None:
    assert not _might(_compare(IntegerType(), "=", 5), _known(IntegerType(), None, None, (None, None, None, 0)))
    assert _might(_compare(IntegerType(), "=", 5), _known(IntegerType(), None, None, (None, None, None, -1)))


def test_nan_is_greater_than_everything_and_bounds_do_not_show_it() -> None:
    bounds = encode_value(1.0, DoubleType()), encode_value(2.0, DoubleType())
    with_nan, unknown = _known(DoubleType(), *bounds, (10, 0, 1, 10)), _known(DoubleType(), *bounds, (10, 0, None, 10))
    for known in (with_nan, unknown):
        assert _might(_compare(DoubleType(), ">", 5.0), known)
        assert not _must(_compare(DoubleType(), "<", 5.0), known)
        assert _might(IsNaN(FLOAT_COLUMN), known)
    none = _known(DoubleType(), *bounds)
    assert not _might(_compare(DoubleType(), ">", 5.0), none)
    assert _must(_compare(DoubleType(), "<", 5.0), none)
    assert not _might(IsNaN(FLOAT_COLUMN), none)
    assert _must(NotNaN(FLOAT_COLUMN), none)


def test_a_file_of_nan_only_has_no_bounds_and_matches_no_less_than() -> None:
    known = _known(FloatType(), None, None, (10, 0, 10, 10))
    assert not _might(_compare(FloatType(), "<", 5.0), known)
    assert _must(_compare(FloatType(), ">", 5.0), known)


@pytest.mark.parametrize("bad", ["lower", "upper"])
def test_nan_in_one_bound_makes_both_unknown(bad: str) -> None:
    nan, five = encode_value(math.nan, DoubleType()), encode_value(5.0, DoubleType())
    known = _known(DoubleType(), nan if bad == "lower" else five, nan if bad == "upper" else five)
    assert _might(_compare(DoubleType(), "<", -1e300), known)
    assert _might(_compare(DoubleType(), ">", 1e300), known)


def test_negative_zero_is_zero() -> None:
    minus = encode_value(-0.0, DoubleType())
    known = _known(DoubleType(), minus, minus)
    assert _might(_compare(DoubleType(), "=", 0.0), known)
    assert not _might(_compare(DoubleType(), "<", 0.0), known)
    plus = encode_value(0.0, DoubleType())
    assert _might(one_of(FLOAT_COLUMN, [0.0, 7.0]), _known(DoubleType(), minus, plus))


def test_crossed_bounds_are_not_known() -> None:
    known = _known(IntegerType(), encode_value(9, IntegerType()), encode_value(5, IntegerType()))
    assert _might(_compare(IntegerType(), "=", 100), known)


def test_bounds_of_an_int_that_became_a_long_are_read_by_their_length() -> None:
    known = _known(LongType(), encode_value(-5, IntegerType()), encode_value(9, LongType()))
    assert not _might(_compare(LongType(), "<", -5), known)
    assert _might(_compare(LongType(), "<", -4), known)
    assert not _might(_compare(LongType(), ">", 9), known)


def test_bounds_of_a_float_that_became_a_double_are_read_by_their_length() -> None:
    known = _known(DoubleType(), encode_value(1.5, FloatType()), encode_value(2.5, FloatType()))
    assert not _might(_compare(DoubleType(), "<", 1.5), known)
    assert _might(_compare(DoubleType(), "=", 2.0), known)


def test_bounds_of_a_date_that_became_a_timestamp_are_days() -> None:
    day = 86_400_000_000
    known = _known(TimestampType(), encode_value(1, IntegerType()), encode_value(2, IntegerType()))
    assert not _might(_compare(TimestampType(), "<", day), known)
    assert not _might(_compare(TimestampType(), ">", 2 * day), known)
    assert _might(_compare(TimestampType(), "=", day + 5), known)
    far = encode_value(-(1 << 31), IntegerType())
    assert _might(_compare(TimestampType(), "<", -(1 << 62)), _known(TimestampType(), far, far))


def test_bounds_of_a_date_that_became_nanoseconds_are_days() -> None:
    day, kind = 86_400_000_000_000, TimestampNsType()
    known = _known(kind, encode_value(1, IntegerType()), encode_value(2, IntegerType()))
    assert not _might(_compare(kind, "<", day), known)
    assert not _might(_compare(kind, ">", 2 * day), known)
    assert _might(_compare(kind, "=", day + 5), known)
    beyond = encode_value(200_000, IntegerType())
    assert _might(_compare(kind, "<", -(1 << 62)), _known(kind, beyond, beyond))


@pytest.mark.parametrize("kind", [TimestamptzType(), TimestamptzNsType()])
def test_no_date_becomes_a_timestamp_with_a_zone(kind: PrimitiveType) -> None:
    four = encode_value(1, IntegerType())
    assert _might(_compare(kind, "<", -5), _known(kind, four, four))


@pytest.mark.parametrize("kind", [GeometryType(), GeographyType()])
def test_bounds_of_shapes_are_points_and_not_looked_at(kind: PrimitiveType) -> None:
    reference = Reference(1, kind, ("c",))
    known = _known(kind, bytes(16), bytes(16))
    assert _might(NotNull(reference), known)
    assert not _might(IsNull(reference), known)


@pytest.mark.parametrize("bad", [b"", b"\x01", b"\x01" * 3, b"\x01" * 9])
@pytest.mark.parametrize("kind", [IntegerType(), LongType(), FloatType(), DoubleType(), TimestampType(), UUIDType()])
def test_a_bound_of_unfit_length_is_not_known(kind: PrimitiveType, bad: bytes) -> None:
    value: Value = uuid.UUID(int=5) if isinstance(kind, UUIDType) else 5.0 if "o" in str(kind)[1:3] else 5
    for operator in ("<", ">", "="):
        assert _might(_compare(kind, operator, value), _known(kind, bad, bad))


def test_uuid_bounds_in_the_signed_order_of_the_reference_lose_no_row() -> None:
    low, high = uuid.UUID(int=1 << 127), uuid.UUID(int=5)
    known = _known(UUIDType(), low.bytes, high.bytes)
    assert _might(_compare(UUIDType(), "=", uuid.UUID(int=7)), known)
    # Equal first halves, and second halves in signed order: what lies "below" the lower bound is still there.
    known = _known(UUIDType(), uuid.UUID(int=(3 << 64) + (1 << 63)).bytes, uuid.UUID(int=(4 << 64)).bytes)
    assert _might(_compare(UUIDType(), "=", uuid.UUID(int=(3 << 64) + 1)), known)
    assert not _might(_compare(UUIDType(), "=", uuid.UUID(int=5 << 64)), known)


def test_summaries_without_bounds_prove_nothing() -> None:
    nothing = pa.array([None], pa.binary())
    for contains_null in (True, False):
        flags = pa.array([contains_null]), pa.array([None], pa.bool_())
        known = {1: from_summaries(*flags, nothing, nothing, LongType())}
        assert _might(_compare(LongType(), "=", 5), known.get)
        assert _might(IsNull(Reference(1, LongType(), ("c",))), known.get) is contains_null


def test_summaries_without_contains_nan_may_hold_nan() -> None:
    five = pa.array([encode_value(5.0, DoubleType())])
    for contains_nan, expected in ((None, True), (True, True), (False, False)):
        flags = pa.array([False]), pa.array([contains_nan], pa.bool_())
        known = {1: from_summaries(*flags, five, five, DoubleType())}
        assert _might(_compare(DoubleType(), ">", 6.0), known.get) is expected


def test_prefixes_prune_by_their_whole_range() -> None:
    schema = parse_schema("s string")
    known = _known(StringType(), b"abc", b"abf")
    for text, might, must in [
        ("s LIKE 'ab%'", True, True), ("s LIKE 'abd%'", True, False), ("s LIKE 'abg%'", False, False),
        ("s LIKE 'abd_x%'", True, False), ("s LIKE 'b_x%'", False, False), ("s NOT LIKE 'ab%'", False, False),
        ("s NOT LIKE 'b%'", True, True), ("s NOT LIKE 'b_'", True, True), ("s LIKE '%c'", True, False),
        ("s LIKE 'abcdefgh%'", True, False), ("s LIKE 'aa%'", False, False),
    ]:  # fmt: skip
        expression = bind(text, schema)
        assert (_might(expression, known), _must(expression, known)) == (might, must), text


@pytest.mark.parametrize(
    ("lower", "upper", "might", "must"),
    [
        (b"aa", b"ab", True, False),
        (b"ab", b"abz", True, True),
        (b"ab", b"ac", True, False),
        (b"ac", b"ad", False, False),
        (b"aa", b"aaz", False, False),
    ],
)
def test_prefixes_at_the_very_ends_of_their_range(lower: bytes, upper: bytes, might: bool, must: bool) -> None:
    expression = bind("s LIKE 'ab%'", parse_schema("s string"))
    known = _known(StringType(), lower, upper)
    assert (_might(expression, known), _must(expression, known)) == (might, must)


def test_large_in_lists_prune_texts_by_their_range() -> None:
    known = _known(StringType(), b"m", b"n")
    assert not _might(one_of(TEXT_COLUMN, [f"a{i}" for i in range(500)]), known)
    assert _might(one_of(TEXT_COLUMN, [f"a{i}" for i in range(500)] + ["z"]), known)
    assert not _might(one_of(TEXT_COLUMN, ["a", "z"]), known)


def test_conditions_on_several_columns_combine() -> None:
    schema = parse_schema("a int, b int")
    first = from_partition_values(pa.array([1, 2, None], pa.int32()), IntegerType())
    second = from_partition_values(pa.array([1, 1, 5], pa.int32()), IntegerType())
    statistics = {1: first, 2: second}.get
    assert might_match(bind("a = 1 AND b = 1", schema), statistics, 3).tolist() == [True, False, False]
    assert might_match(bind("a = 1 OR b = 5", schema), statistics, 3).tolist() == [True, False, True]
    assert must_match(bind("NOT (a = 2) OR a IS NULL", schema), statistics, 3).tolist() == [True, False, True]
    assert might_match(any_of(), statistics, 3).tolist() == [False] * 3
    assert np.array_equal(might_match(bind(None, schema), statistics, 3), np.ones(3, np.bool_))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (LongType(), [1, None, 3, 4]),
        (DoubleType(), [1.5, None, -0.0, 4.0]),
        (DecimalType(38, 2), [Decimal("1.25"), Decimal(-(10**30)), None, Decimal(0)]),
        (StringType(), ["a", None, "ccc", ""]),
        (UUIDType(), [uuid.UUID(int=n) for n in range(4)]),
    ],
)
def test_what_is_known_of_chosen_files_is_what_is_known_of_each(kind: PrimitiveType, values: list[Any]) -> None:
    data = pa.array([None if v is None else encode_value(v, kind) for v in values], pa.binary())
    counts = [pa.array([10, 0, None, 2], pa.int64()), pa.array([0, None, 0, 2], pa.int64())]
    records = pa.array([10, 0, 3, 2], pa.int64())

    def known(rows: pa.Array) -> FieldStatistics:
        data_of, values_of, nulls_of, records_of = (c.take(rows) for c in (data, *counts, records))
        nans = pa.nulls(len(rows), pa.int64())
        return from_counts_and_bounds(data_of, data_of, Counts(values_of, nulls_of, nans, records_of), kind)

    whole = known(pa.array(range(4)))
    for chosen in ([True, False, False, True], [False, True, True, False], [False] * 4, [True] * 4):
        mask = np.array(chosen)
        some, same = whole.at(mask), known(pa.array(np.flatnonzero(mask)))
        assert some.lower.array().equals(same.lower.array())
        assert some.upper.array().equals(same.upper.array())
        for name in ("may_be_null", "may_be_nan", "may_be_value"):
            assert getattr(some, name).tolist() == getattr(same, name).tolist(), name
