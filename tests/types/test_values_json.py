"""Single values as JSON."""

import json
import struct
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import types as peer
from pyiceberg.conversions import from_json
from tests.effort import effort
from tests.expr.cases import ALL_TYPES, constants_of
from tests.schema_cases import V3_TYPES

from icefield.types.datatypes import (
    EMPTY_STRUCT,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    Default,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)
from icefield.types.values.json import decode_json_value, encode_json_value

POINT = StructType((NestedField(1, "x", IntegerType()),))
EXAMPLES: list[tuple[Type, Any, Default]] = [
    (BooleanType(), True, True),
    (IntegerType(), 34, 34),
    (LongType(), 34, 34),
    (FloatType(), 1.0, 1.0),
    (DoubleType(), 1.0, 1.0),
    (DecimalType(4, 2), "14.20", Decimal("14.20")),
    (DecimalType(4, 0), "-12", Decimal(-12)),
    (DateType(), "2017-11-16", 17486),
    (TimeType(), "22:31:08.123456", 81_068_123_456),
    (TimestampType(), "2017-11-16T22:31:08.123456", 1_510_871_468_123_456),
    (TimestamptzType(), "2017-11-16T22:31:08.123456+00:00", 1_510_871_468_123_456),
    (TimestampNsType(), "2017-11-16T22:31:08.123456789", 1_510_871_468_123_456_789),
    (TimestamptzNsType(), "2017-11-16T22:31:08.123456789+00:00", 1_510_871_468_123_456_789),
    (StringType(), "iceberg", "iceberg"),
    (UUIDType(), "f79c3e09-677c-4bbd-a479-3f349cb785e7", uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
    (FixedType(4), "000102ff", b"\x00\x01\x02\xff"),
    (BinaryType(), "000102ff", b"\x00\x01\x02\xff"),
    (POINT, {}, EMPTY_STRUCT),
]


@pytest.mark.parametrize(("kind", "encoded", "value"), EXAMPLES, ids=str)
def test_the_examples_of_the_specification(kind: Type, encoded: Any, value: Default) -> None:
    assert decode_json_value(encoded, kind) == value
    assert encode_json_value(value, kind) == encoded
    assert type(encode_json_value(value, kind)) is type(encoded)


@given(st.sampled_from(ALL_TYPES).flatmap(lambda kind: st.tuples(st.just(kind), constants_of(kind))))
@effort(200)
def test_every_value_survives(case: tuple[PrimitiveType, Any]) -> None:
    kind, value = case
    if isinstance(kind, FloatType | DoubleType) and value in (float("inf"), float("-inf")):
        with pytest.raises(ValueError, match="no such number"):
            encode_json_value(value, kind)
        return
    again = decode_json_value(json.loads(json.dumps(encode_json_value(value, kind))), kind)
    assert again == value
    assert type(again) is type(value)
    assert str(again) == str(value)


READ_ALSO: list[tuple[Type, Any, Default]] = [
    (DoubleType(), 1, 1.0),
    (FloatType(), 0.1, 0.10000000149011612),
    (BinaryType(), "00FF", b"\x00\xff"),
    (BinaryType(), "", b""),
    (TimeType(), "22:31", 81_060_000_000),
    (TimeType(), "22:31:08", 81_068_000_000),
    (TimeType(), "22:31:08.5", 81_068_500_000),
    (TimestampType(), "1969-12-31T23:59:59.999999000", -1),
    (TimestamptzNsType(), "1969-12-31T23:59:59.999999999+00:00", -1),
    (DateType(), "+12345-01-01", 3_789_391),
    (DateType(), "-0001-12-31", -719_529),
]


@pytest.mark.parametrize(("kind", "encoded", "value"), READ_ALSO, ids=str)
def test_spellings_of_other_writers(kind: Type, encoded: Any, value: Default) -> None:
    assert decode_json_value(encoded, kind) == value


UNFIT: list[tuple[Type, Any]] = [
    *((BooleanType(), v) for v in (0, 1, "true")),
    *((IntegerType(), v) for v in (True, 1.0, "1", 1 << 31, -(1 << 31) - 1)),
    *((LongType(), v) for v in (1 << 63, 1.5, None)),
    *((FloatType(), v) for v in ("1.0", True, 1e39, float("nan"))),
    *((DoubleType(), v) for v in (float("inf"), 10**400, None)),
    *((DecimalType(4, 2), v) for v in (14.2, "14.2", "14.200", "123.45", "1E+2", "x", "14.20 ", "NaN", "١٤.٢٠")),
    *((DateType(), v) for v in ("2017-11-31", "17-11-16", "2017-1-1", 17486, "2017-11-16T00:00", "+9999999-01-01")),
    *((TimeType(), v) for v in ("24:00:00", "22:31:60", "22:31:08.1234567", "22:31:08+00:00", 5)),
    *((TimestampType(), v) for v in ("2017-11-16 22:31:08", "2017-11-16T22:31:08+00:00", "2017-11-16")),
    *((TimestamptzType(), v) for v in ("2017-11-16T22:31:08", "2017-11-16T22:31:08+01:00", "2017-11-16T22:31:08Z")),
    *((TimestampNsType(), v) for v in ("2262-04-12T00:00:00", "1600-01-01T00:00:00")),
    *((StringType(), v) for v in (1, None, "\ud800")),
    *((UUIDType(), v) for v in ("f79c3e09677c4bbda4793f349cb785e7", "{f79c3e09-677c-4bbd-a479-3f349cb785e7}", 1)),
    *((FixedType(2), v) for v in ("00", "000102", "0g01", "00 01", b"ab")),
    *((BinaryType(), v) for v in ("0", "0x00", [0])),
    (POINT, {"1": 3}),
    (POINT, []),
    (POINT, 0),
    (ListType(2, IntegerType()), [1]),
    (MapType(2, IntegerType(), 3, IntegerType()), {"keys": [], "values": []}),
    *((kind, "POINT (30 10)") for kind in V3_TYPES if "timestamp" not in str(kind)),
]


@pytest.mark.parametrize(("kind", "encoded"), UNFIT, ids=str)
def test_what_is_no_value_of_the_type(kind: Type, encoded: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode_json_value(encoded, kind)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (IntegerType(), 1 << 31),
        (DateType(), 1 << 31),
        (DateType(), "2017-11-16"),
        (TimeType(), -1),
        (TimestampType(), 1 << 63),
        (DecimalType(4, 2), Decimal("1.001")),
        (DecimalType(4, 2), Decimal(100)),
        (DecimalType(4, 2), 1),
        (FixedType(2), b"a"),
        (BinaryType(), "a"),
        (UUIDType(), 1),
        (StringType(), b"a"),
        (POINT, 1),
        (StringType(), EMPTY_STRUCT),
    ],
    ids=str,
)
def test_what_could_not_be_read_back_is_not_written(kind: Type, value: Default) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        encode_json_value(value, kind)


PEERS: list[tuple[PrimitiveType, peer.PrimitiveType]] = [
    (BooleanType(), peer.BooleanType()),
    (IntegerType(), peer.IntegerType()),
    (DecimalType(9, 2), peer.DecimalType(9, 2)),
    (UUIDType(), peer.UUIDType()),
    (StringType(), peer.StringType()),
]


@given(st.sampled_from(PEERS).flatmap(lambda pair: st.tuples(st.just(pair), constants_of(pair[0]))))
@effort()
def test_pyiceberg_reads_the_same_value(case: tuple[tuple[PrimitiveType, peer.PrimitiveType], Any]) -> None:
    (ours, theirs), value = case
    read = from_json(theirs, encode_json_value(value, ours))
    assert (read.bytes if isinstance(read, uuid.UUID) else read) == (
        value.bytes if isinstance(value, uuid.UUID) else value
    )


def test_a_decimal_of_a_million_digits_is_refused_before_it_is_a_number() -> None:
    """As an integer it would take half a minute."""
    for text in ("9" * 1_000_000, f"-{'9' * 1_000_000}", "1" * 39, f"0{'1' * 39}"):
        with pytest.raises(ValueError, match="more than 38 digits"):
            decode_json_value(text, DecimalType(38, 0))
    assert decode_json_value(f"-000{'9' * 38}", DecimalType(38, 0)) == -(10**38 - 1)
    assert decode_json_value("-0.05", DecimalType(2, 2)) == Decimal("-0.05")
    with pytest.raises(ValueError, match="more than 2 digits"):
        decode_json_value("1.05", DecimalType(2, 2))


@pytest.mark.parametrize(
    ("value", "written"), [(0.1, "0.1"), (3.4028234663852886e38, "3.4028235e+38"), (1e-45, "1e-45")]
)
def test_a_float_is_written_as_its_shortest_decimal(value: float, written: str) -> None:
    stored = struct.unpack("<f", struct.pack("<f", value))[0]
    assert json.dumps(encode_json_value(stored, FloatType())) == written
    assert decode_json_value(json.loads(written), FloatType()) == stored


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_shortest_decimal_is_the_same_float(value: float) -> None:
    written = encode_json_value(value, FloatType())
    assert decode_json_value(written, FloatType()) == value
    assert len(repr(written)) <= len(repr(value))
