"""Values assigned to columns: what Spark's store assignment casts, and what it refuses."""

import datetime
import pickle
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.expr.value_cases import ASSIGNABLE, TYPES

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.values.assign import bind_assignment
from icefield.expr.values.scope import Scope, Side
from icefield.types.arrow import arrow_schema, arrow_type
from icefield.types.datatypes import (
    EMPTY_STRUCT,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)
from icefield.types.schema import Schema

GEO = StructType((NestedField(24, "lat", DoubleType()), NestedField(25, "lon", DoubleType())))
ADDRESS = StructType(
    (
        NestedField(21, "city", StringType()),
        NestedField(22, "zip", IntegerType(), required=True),
        NestedField(
            23, "geo", StructType((NestedField(24, "lat", DoubleType()), NestedField(25, "lon", DoubleType())))
        ),
    )
)
SCHEMA = Schema(
    (
        NestedField(1, "id", IntegerType(), required=True),
        NestedField(2, "qty", LongType(), write_default=7),
        NestedField(3, "price", DecimalType(5, 2)),
        NestedField(4, "note", StringType()),
        NestedField(5, "day", DateType()),
        NestedField(6, "at", TimestampType()),
        NestedField(7, "address", ADDRESS),
        NestedField(8, "raw", BinaryType()),
        NestedField(9, "code", FixedType(2)),
        NestedField(10, "flag", BooleanType()),
        NestedField(11, "tags", ListType(26, StringType())),
        NestedField(
            12,
            "box",
            StructType((NestedField(27, "a", IntegerType(), write_default=3), NestedField(28, "b", IntegerType()))),
            write_default=EMPTY_STRUCT,
        ),
    )
)
ROWS = pa.RecordBatch.from_pylist(
    [
        {"id": 1, "qty": 10, "price": Decimal("1.50"), "note": "a", "day": datetime.date(2026, 1, 31),
         "address": {"city": "Rome", "zip": 1, "geo": {"lat": 1.0, "lon": 2.0}}, "raw": b"ab", "flag": True},
        {"id": 2, "address": {"city": None, "zip": 2, "geo": None}},
    ],
    schema=arrow_schema(SCHEMA),
)  # fmt: skip
SCOPE = Scope((Side("target", SCHEMA),))


def updated(column: str, value: object) -> list[Any]:
    field = SCHEMA.find_field(column)
    bound = pickle.loads(pickle.dumps(bind_assignment(value, field, SCOPE, column)))
    array = bound.evaluate({"target": ROWS}, ROWS.num_rows)
    assert array.type == arrow_type(field.type)
    return array.to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("qty", "qty + 10", [20, None]),
        ("qty", "id", [1, 2]),
        ("qty", "2.9", [2, 2]),
        ("qty", "DEFAULT", [7, 7]),
        ("price", "DEFAULT", [None, None]),
        ("qty", None, [None, None]),
        ("qty", 5, [5, 5]),
        ("address.zip", "id", [1, 2]),
        ("address.zip", "nullif(id, 1)", InvalidInput),
        ("address.geo", "address.geo", [{"lat": 1.0, "lon": 2.0}, None]),
        ("id", "qty % 7 + id", InvalidInput),
        ("price", "id", [Decimal("1.00"), Decimal("2.00")]),
        ("price", "1.005", [Decimal("1.01")] * 2),
        ("price", "1000", InvalidInput),
        ("price", "1.5D", NeedsSpark),
        ("note", "qty", ["10", None]),
        ("note", "flag", ["true", None]),
        ("note", "day", ["2026-01-31", None]),
        ("note", "price", ["1.50", None]),
        ("note", "1.5D", NeedsSpark),
        ("qty", "'5'", InvalidInput),
        ("day", "'2026-01-31'", InvalidInput),
        ("day", "DATE '2026-02-01'", [datetime.date(2026, 2, 1)] * 2),
        ("at", "day", [datetime.datetime(2026, 1, 31), None]),
        ("day", "TIMESTAMP_NTZ '2026-01-31 23:59:59'", [datetime.date(2026, 1, 31)] * 2),
        ("flag", "1", InvalidInput),
        ("qty", "flag", InvalidInput),
        ("code", "raw", [b"ab", None]),
        ("code", b"abc", InvalidInput),
        ("code", "code", [None, None]),
        ("raw", "code", [None, None]),
        ("id", "NULL", InvalidInput),
        ("id", None, InvalidInput),
        ("id", "qty", InvalidInput),
        ("id", "9999999999", InvalidInput),
        ("box", "DEFAULT", [{"a": 3, "b": None}] * 2),
        ("box", "address", NeedsSpark),
    ],
)
def test_store_assignment(column: str, value: object, expected: Any) -> None:
    if isinstance(expected, type):
        with pytest.raises(expected):
            updated(column, value)
    else:
        assert updated(column, value) == expected


@pytest.mark.parametrize(("source", "target"), [(source, target) for source in TYPES for target in TYPES])
def test_types_that_can_be_assigned(source: str, target: str) -> None:
    scope = Scope((Side("target", Schema((NestedField(1, "given", TYPES[source]),))),))
    field = NestedField(2, "set", TYPES[target])
    if target not in ASSIGNABLE[source]:
        with pytest.raises(InvalidInput, match="cannot assign a .* to column 'set'"):
            bind_assignment("given", field, scope, "set")
    else:
        with suppress(NeedsSpark):
            bind_assignment("given", field, scope, "set")


def test_a_constant_that_does_not_fit_needs_no_rows() -> None:
    with pytest.raises(InvalidInput, match="out of range for decimal"):
        bind_assignment("1000", SCHEMA.find_field("price"), SCOPE, "price")
    with pytest.raises(InvalidInput, match="'id': it is required"):
        bind_assignment("nullif(1, 1)", SCHEMA.find_field("id"), SCOPE, "id")


def test_an_error_names_the_column() -> None:
    with pytest.raises(InvalidInput, match="cannot assign null to column 'id': it is required"):
        updated("id", "nullif(id, 2)")
    with pytest.raises(InvalidInput, match="cannot assign a string to column 'qty' of type long"):
        updated("qty", "note")
