"""Partition transforms, with the specification's examples and PyIceberg as a second opinion."""

import datetime
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import transforms as peer
from pyiceberg import types as peer_types
from tests.effort import effort

from icefield.errors import InvalidInput, Unsupported
from icefield.types.arrow import arrow_array, python_values
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
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
    TimeType,
    UnknownType,
    UUIDType,
    Value,
)
from icefield.types.transforms import (
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    Transform,
    Truncate,
    Unknown,
    Void,
    Year,
    parse_transform,
)
from icefield.types.values.binary import encode_unscaled, scaled, unscaled

INTS = st.integers(-(1 << 31) + 1000, (1 << 31) - 1)
LONGS = st.integers(-(1 << 63) + 1000, (1 << 63) - 1)
STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
# Python's calendar ends where PyIceberg's does.
DAYS = st.dates().map(lambda d: (d - datetime.date(1970, 1, 1)).days)
MICROS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
DECIMALS = st.integers(-(10**9) + 1000, 10**9 - 1).map(lambda n: scaled(n, 2))
WIDE = DecimalType(38, 10)
WIDE_DECIMALS = st.integers(-(10**38) + 1000, 10**38 - 1).map(lambda n: scaled(n, 10))
SOURCES: dict[PrimitiveType, tuple[st.SearchStrategy[Any], peer_types.PrimitiveType]] = {
    IntegerType(): (INTS, peer_types.IntegerType()),
    LongType(): (LONGS, peer_types.LongType()),
    DateType(): (DAYS, peer_types.DateType()),
    TimeType(): (st.integers(0, 86_399_999_999), peer_types.TimeType()),
    TimestampType(): (MICROS, peer_types.TimestampType()),
    TimestamptzType(): (MICROS, peer_types.TimestamptzType()),
    TimestampNsType(): (LONGS, peer_types.TimestampNanoType()),
    TimestamptzNsType(): (LONGS, peer_types.TimestamptzNanoType()),
    StringType(): (STRINGS, peer_types.StringType()),
    BinaryType(): (st.binary(max_size=8), peer_types.BinaryType()),
    FixedType(3): (st.binary(min_size=3, max_size=3), peer_types.FixedType(3)),
    UUIDType(): (st.uuids(), peer_types.UUIDType()),
    DecimalType(9, 2): (DECIMALS, peer_types.DecimalType(9, 2)),
    WIDE: (WIDE_DECIMALS, peer_types.DecimalType(38, 10)),
}
PEERS: list[tuple[Transform, peer.Transform[Any, Any]]] = [
    (Bucket(7), peer.BucketTransform(7)),
    (Bucket(1000), peer.BucketTransform(1000)),
    (Truncate(3), peer.TruncateTransform(3)),
    (Truncate(10), peer.TruncateTransform(10)),
    (Year(), peer.YearTransform()),
    (Month(), peer.MonthTransform()),
    (Day(), peer.DayTransform()),
    (Hour(), peer.HourTransform()),
    (Identity(), peer.IdentityTransform()),
    (Void(), peer.VoidTransform()),
]
Case = tuple[Transform, peer.Transform[Any, Any], PrimitiveType]
PAIRS: list[Case] = [(ours, theirs, kind) for ours, theirs in PEERS for kind in SOURCES if ours.fits(kind)]


@given(st.data(), st.sampled_from(PAIRS))
@effort()
def test_columns_are_transformed_as_pyiceberg_does_values(data: st.DataObject, case: Case) -> None:
    ours, theirs, kind = case
    values = data.draw(st.lists(st.none() | SOURCES[kind][0], min_size=1, max_size=6))
    result = ours.apply(arrow_array(values, kind), kind)
    apply: Callable[[Any], Any] = theirs.transform(SOURCES[kind][1])
    expected = [None if v is None else apply(v) for v in values]
    assert python_values(result, ours.result_type(kind)) == expected
    assert [None if v is None else ours.apply_value(v, kind) for v in values] == expected


@given(st.sampled_from(PAIRS))
@effort()
def test_pyiceberg_agrees_on_where_transforms_fit(case: Case) -> None:
    ours, theirs, kind = case
    assert theirs.can_transform(SOURCES[kind][1])
    assert str(theirs) == str(ours)
    assert parse_transform(str(ours)) == ours


@given(st.sampled_from(list(SOURCES)).flatmap(lambda kind: st.tuples(st.just(kind), SOURCES[kind][0])))
@effort()
def test_buckets_are_murmur3_of_the_specified_bytes(case: tuple[PrimitiveType, Any]) -> None:
    kind, value = case
    hashed = mmh3.hash(_hashed_bytes(value, kind), signed=False) & 0x7FFFFFFF
    assert Bucket(1 << 20).apply_value(value, kind) == hashed % (1 << 20)


def _hashed_bytes(value: Any, kind: PrimitiveType) -> bytes:
    match kind:
        case DecimalType(_, scale):
            return encode_unscaled(unscaled(value, scale))
        case StringType():
            return bytes(value.encode())
        case UUIDType():
            return bytes(value.bytes)
        case BinaryType() | FixedType():
            return bytes(value)
        case TimestampNsType() | TimestamptzNsType():
            return struct.pack("<q", value // 1000)
        case _:
            return struct.pack("<q", value)


@pytest.mark.parametrize(
    ("value", "kind", "hashed"),
    [
        # (spec: Appendix B)
        (34, IntegerType(), 2017239379),
        (34, LongType(), 2017239379),
        (Decimal("14.20"), DecimalType(9, 2), -500754589),
        (17486, DateType(), -653330422),
        (81_068_000_000, TimeType(), -662762989),
        (1_510_871_468_000_000, TimestampType(), -2047944441),
        (1_510_871_468_000_001, TimestampType(), -1207196810),
        (1_510_871_468_000_000, TimestamptzType(), -2047944441),
        (1_510_871_468_000_000_000, TimestampNsType(), -2047944441),
        (1_510_871_468_000_001_001, TimestampNsType(), -1207196810),
        (1_510_871_468_000_001_001, TimestamptzNsType(), -1207196810),
        ("iceberg", StringType(), 1210000089),
        (uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), UUIDType(), 1488055340),
        (b"\0\1\2\3", FixedType(4), -188683207),
        (b"\0\1\2\3", BinaryType(), -188683207),
    ],
)
def test_hashes_of_the_specification(value: Value, kind: PrimitiveType, hashed: int) -> None:
    assert Bucket(0x7FFFFFFF).apply_value(value, kind) == (hashed & 0x7FFFFFFF) % 0x7FFFFFFF


@pytest.mark.parametrize(
    ("transform", "kind", "value", "expected"),
    [
        (Truncate(10), IntegerType(), 1, 0),
        (Truncate(10), IntegerType(), -1, -10),
        (Truncate(50), DecimalType(9, 2), Decimal("10.65"), Decimal("10.50")),
        (Truncate(3), StringType(), "iceberg", "ice"),
        (Truncate(2), StringType(), "a😀b", "a😀"),
        (Truncate(3), BinaryType(), b"\1\2\3\4", b"\1\2\3"),
        (Truncate(10), DecimalType(38, 10), Decimal("1234567890123456789012345678.9012345678"),
         Decimal("1234567890123456789012345678.9012345670")),
        (Year(), DateType(), -1, -1),
        (Month(), DateType(), -1, -1),
        (Day(), TimestampType(), -1, -1),
        (Hour(), TimestampType(), -1, -1),
        (Hour(), TimestampType(), -3_600_000_001, -2),
        (Year(), TimestamptzType(), 1_510_871_468_000_000, 47),
        (Month(), TimestamptzType(), 1_510_871_468_000_000, 574),
        (Hour(), TimestamptzType(), 1_510_871_468_000_000, 419686),
        (Day(), TimestampNsType(), -1, -1),
        (Hour(), TimestampNsType(), -3_600_000_000_001, -2),
        (Year(), TimestamptzNsType(), 1_510_871_468_000_000_001, 47),
        (Month(), TimestampNsType(), -(1 << 63), -3508),
        (Hour(), TimestamptzNsType(), 1_510_871_468_000_000_001, 419686),
        # The lowest number of all, which numpy takes for no time at all.
        (Day(), TimestampType(), -(1 << 63), -106751992),
        (Year(), TimestampType(), -(1 << 63), -292278),
        # Below the lowest multiple of the width Iceberg Java wraps around.
        (Truncate(10), IntegerType(), -(1 << 31), 2147483646),
        (Truncate(10), LongType(), -(1 << 63), 9223372036854775806),
        (Truncate(16), IntegerType(), -(1 << 31), -(1 << 31)),
        (Identity(), UUIDType(), uuid.UUID(int=7), uuid.UUID(int=7)),
    ],
)  # fmt: skip
def test_single_values(transform: Transform, kind: PrimitiveType, value: Value, expected: Value) -> None:
    assert transform.apply_value(value, kind) == expected


def test_an_hour_that_fits_no_int_is_refused() -> None:
    with pytest.raises(InvalidInput, match="hour"):
        Hour().apply_value((1 << 63) - 1, TimestampType())


def test_a_decimal_that_truncates_out_of_its_type_is_refused() -> None:
    with pytest.raises(InvalidInput, match="does not fit"):
        Truncate(10).apply_value(Decimal("-9.99"), DecimalType(3, 2))


@pytest.mark.parametrize("transform", [Bucket(4), Truncate(4), Identity(), Void()])
def test_slices_and_empty_columns(transform: Transform) -> None:
    array = pa.array(["zero", None, "second", "third"])
    whole = transform.apply(array, StringType()).to_pylist()
    assert transform.apply(array.slice(1, 2), StringType()).to_pylist() == whole[1:3]
    assert transform.apply(array.slice(4), StringType()).to_pylist() == []


@pytest.mark.parametrize(
    ("transform", "kind", "fits"),
    [
        (Bucket(4), DoubleType(), False),
        (Bucket(4), BooleanType(), False),
        (Truncate(4), FixedType(4), False),
        (Truncate(4), DateType(), False),
        (Hour(), DateType(), False),
        (Year(), StringType(), False),
        (Identity(), DoubleType(), True),
        (Void(), BooleanType(), True),
        (Void(), GeometryType(), False),  # manifests have no type for it
        (Identity(), GeometryType(), False),
        (Identity(), GeographyType(), False),
        (Identity(), UnknownType(), False),
        (Bucket(4), GeographyType(), False),
        (Truncate(4), TimestampNsType(), False),
        (Unknown("x"), BooleanType(), True),
    ],
)
def test_fits(transform: Transform, kind: PrimitiveType, fits: bool) -> None:
    assert transform.fits(kind) is fits


@pytest.mark.parametrize("text", ["zorder[2]", "bucket", "bucket[x]", "BUCKET[4]", "truncate[]"])
def test_unknown_transforms_are_kept_and_not_applied(text: str) -> None:
    transform = parse_transform(text)
    assert transform == Unknown(text)
    assert str(transform) == text
    with pytest.raises(Unsupported, match="unknown transform"):
        transform.apply(pa.array([1]), LongType())


@pytest.mark.parametrize("make", [lambda: Bucket(0), lambda: Truncate(0), lambda: Bucket(1 << 31)])
def test_widths_and_counts_are_positive_ints(make: Callable[[], Transform]) -> None:
    with pytest.raises(InvalidInput):
        make()


@pytest.mark.parametrize(
    ("transform", "kind", "value", "text"),
    [
        (Year(), DateType(), -1, "1969"),
        (Month(), DateType(), -1, "1969-12"),
        (Day(), DateType(), -1, "1969-12-31"),
        (Hour(), TimestampType(), -1, "1969-12-31-23"),
        (Bucket(4), IntegerType(), 3, "3"),
        (Identity(), BooleanType(), True, "true"),
        (Identity(), BinaryType(), b"\0\xff", "00ff"),
        (Identity(), TimeType(), 36_775_038_194, "10:12:55.038194"),
        (Identity(), TimestamptzType(), 0, "1970-01-01T00:00:00.000000+00:00"),
        (Identity(), TimestamptzNsType(), -1, "1969-12-31T23:59:59.999999999+00:00"),
        (Day(), TimestampNsType(), -1, "1969-12-31"),
        (Hour(), TimestampNsType(), -1, "1969-12-31-23"),
        (Identity(), StringType(), None, "null"),
        (Truncate(10), DecimalType(9, 2), Decimal("1.50"), "1.50"),
    ],
)
def test_partition_values_for_people(transform: Transform, kind: PrimitiveType, value: Value | None, text: str) -> None:
    assert transform.to_human_string(value, kind) == text


@pytest.mark.parametrize(
    "text", ["bucket[0]", "bucket[2147483648]", f"bucket[{'9' * 5000}]", f"truncate[{'9' * 5000}]"]
)
def test_a_number_that_no_transform_has_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_transform(text)
