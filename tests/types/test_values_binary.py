"""Single values as bytes: bounds."""

import struct
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import types as peer
from pyiceberg.conversions import from_bytes, to_bytes
from tests.effort import effort

from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
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
    TimeType,
    UnknownType,
    UUIDType,
    Value,
)
from icefield.types.values.binary import (
    decode_value,
    encode_unscaled,
    encode_value,
    scaled,
    truncate_lower,
    truncate_upper,
    unscaled,
)

INTS = st.integers(-(1 << 31), (1 << 31) - 1)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
STRINGS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: list[tuple[PrimitiveType, st.SearchStrategy[Value]]] = [
    (BooleanType(), st.booleans()),
    (IntegerType(), INTS),
    (LongType(), LONGS),
    (FloatType(), st.floats(width=32, allow_nan=False)),
    (DoubleType(), st.floats(allow_nan=False)),
    (DateType(), INTS),
    (TimeType(), st.integers(0, 86_399_999_999)),
    (TimestampType(), LONGS),
    (TimestamptzType(), LONGS),
    (TimestampNsType(), LONGS),
    (TimestamptzNsType(), LONGS),
    (GeometryType(), st.binary()),
    (GeographyType(), st.binary()),
    (StringType(), STRINGS),
    (UUIDType(), st.uuids()),
    (BinaryType(), st.binary()),
    (FixedType(3), st.binary(min_size=3, max_size=3)),
    (DecimalType(38, 10), st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: scaled(n, 10))),
    (DecimalType(9, 2), st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: scaled(n, 2))),
]


@given(st.sampled_from(VALUES).flatmap(lambda pair: st.tuples(st.just(pair[0]), pair[1])))
@effort()
def test_every_value_survives(case: tuple[PrimitiveType, Value]) -> None:
    kind, value = case
    again = decode_value(encode_value(value, kind), kind)
    assert again == value
    assert str(again) == str(value)
    assert type(again) is type(value)


PEERS: list[tuple[PrimitiveType, peer.PrimitiveType]] = [
    (BooleanType(), peer.BooleanType()),
    (IntegerType(), peer.IntegerType()),
    (LongType(), peer.LongType()),
    (FloatType(), peer.FloatType()),
    (DoubleType(), peer.DoubleType()),
    (DateType(), peer.DateType()),
    (StringType(), peer.StringType()),
    (UUIDType(), peer.UUIDType()),
    (BinaryType(), peer.BinaryType()),
    (DecimalType(9, 2), peer.DecimalType(9, 2)),
]


@given(st.data(), st.sampled_from(PEERS))
@effort()
def test_the_bytes_are_those_of_pyiceberg(data: st.DataObject, pair: tuple[PrimitiveType, peer.PrimitiveType]) -> None:
    kind, theirs = pair
    value = data.draw(dict(VALUES)[kind])
    encoded = encode_value(value, kind)
    assert encoded == to_bytes(theirs, value.bytes if isinstance(value, uuid.UUID) else value)
    if not isinstance(kind, UUIDType | DecimalType):
        assert from_bytes(theirs, encoded) == decode_value(encoded, kind)


@pytest.mark.parametrize(
    ("kind", "value", "encoded"),
    [
        (BooleanType(), True, b"\x01"),
        (IntegerType(), 1, b"\x01\0\0\0"),
        (LongType(), -2, b"\xfe" + b"\xff" * 7),
        (StringType(), "é", b"\xc3\xa9"),
        (DecimalType(9, 2), Decimal("14.20"), b"\x05\x8c"),
        (DecimalType(9, 2), Decimal("-1.28"), b"\x80"),
        (DecimalType(9, 2), Decimal("1.28"), b"\x00\x80"),
        (UUIDType(), uuid.UUID(int=0xF79C3E09 << 96), b"\xf7\x9c\x3e\x09" + bytes(12)),
    ],
)
def test_examples_of_the_specification(kind: PrimitiveType, value: Value, encoded: bytes) -> None:
    assert encode_value(value, kind) == encoded


def test_unknown_has_no_values() -> None:
    with pytest.raises(ValueError, match="type unknown have no single-value"):
        encode_value(1, UnknownType())


def test_promoted_types_read_their_old_bounds() -> None:
    assert decode_value(struct.pack("<i", -5), LongType()) == -5
    assert decode_value(struct.pack("<f", 1.5), DoubleType()) == 1.5
    assert decode_value(b"\x80", DecimalType(38, 2)) == Decimal("-1.28")
    assert decode_value(struct.pack("<i", -5), TimestampType()) == -5 * 86_400_000_000
    assert decode_value(struct.pack("<i", -5), TimestampNsType()) == -5 * 86_400_000_000_000


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", IntegerType()), (b"\0\0", LongType()), (b"\0", DoubleType()), (b"\xff", StringType()),
        (b"\0", UUIDType()),
        (b"\0" * 4, TimestamptzType()), (b"\0" * 4, TimestamptzNsType()), (b"\0" * 3, TimestampNsType()),
        (struct.pack("<i", 200_000), TimestampNsType()), (struct.pack("<i", 1 << 30), TimestampType()),
        (b"", UnknownType()),
    ],
)  # fmt: skip
def test_unfit_bytes_are_a_value_error(data: bytes, kind: PrimitiveType) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode_value(data, kind)


@pytest.mark.parametrize("text", ["12345678901234567890123456789012345678", "-1234567890123456789012345678.9012345678"])
def test_decimals_of_38_digits_are_not_rounded(text: str) -> None:
    kind = DecimalType(38, 10 if "." in text else 0)
    assert str(decode_value(encode_value(Decimal(text), kind), kind)) == text


@given(st.integers(-(10**40), 10**40), st.integers(0, 38))
@effort()
def test_unscaled_is_the_inverse_of_scaled(number: int, scale: int) -> None:
    assert unscaled(scaled(number, scale), scale) == number


@pytest.mark.parametrize("value", [Decimal("0.001"), Decimal("NaN"), Decimal("Infinity")])
def test_decimals_that_do_not_fit_their_scale_are_refused(value: Decimal) -> None:
    with pytest.raises(ValueError, match=r"decimal"):
        unscaled(value, 2)


@pytest.mark.parametrize(("value", "number"), [("1E+3", 100_000), ("1.5", 150), ("-0.01", -1), ("0", 0)])
def test_unscaled(value: str, number: int) -> None:
    assert unscaled(Decimal(value), 2) == number


@given(st.integers(-(1 << 200), 1 << 200).filter(bool))
@effort()
def test_unscaled_bytes_are_the_fewest(number: int) -> None:
    data = encode_unscaled(number)
    assert int.from_bytes(data, "big", signed=True) == number
    with pytest.raises(OverflowError):
        number.to_bytes(len(data) - 1, "big", signed=True)


CHARACTERS = "\0a\x7f\x80\u07ff\ud7ff\ue000\uffff\U00010000\U0010ffff"


@given(st.text(CHARACTERS, max_size=6), st.integers(1, 4))
@effort()
def test_truncated_texts_bound_the_value(text: str, length: int) -> None:
    lower, upper = truncate_lower(text, length), truncate_upper(text, length)
    assert isinstance(lower, str)
    assert len(lower) <= length
    assert lower.encode() <= text.encode()
    if upper is None:
        assert text[:length] == "\U0010ffff" * length
        return
    assert isinstance(upper, str)
    assert len(upper) <= length
    assert upper.encode() >= text.encode()
    assert (upper == text) is (len(text) <= length)


@given(st.lists(st.sampled_from([0, 1, 127, 128, 254, 255]), max_size=6).map(bytes), st.integers(1, 4))
@effort()
def test_truncated_bytes_bound_the_value(data: bytes, length: int) -> None:
    lower, upper = truncate_lower(data, length), truncate_upper(data, length)
    assert isinstance(lower, bytes)
    assert lower <= data
    if upper is None:
        assert data[:length] == b"\xff" * length
        return
    assert isinstance(upper, bytes)
    assert upper >= data
    assert len(upper) <= length
