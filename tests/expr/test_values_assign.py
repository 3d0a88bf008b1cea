"""Values assigned to columns: what Spark's store assignment casts, what it refuses, and fields of structs."""

import datetime
import pickle
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.expr.value_cases import ASSIGNABLE, TYPES

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.values.assign import bind_insert, bind_update
from icefield.expr.values.scope import Scope, Side
from icefield.expr.values.value import Value
from icefield.types.arrow import arrow_schema
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
TARGET = Side("target", SCHEMA)
SCOPE = Scope((TARGET,))


def evaluated(bound: dict[int, Value], rows: pa.RecordBatch = ROWS) -> dict[str, list[Any]]:
    arrays = {
        SCHEMA.by_id[i].name: pickle.loads(pickle.dumps(v)).evaluate({"target": rows}, rows.num_rows)
        for i, v in bound.items()
    }
    wanted = arrow_schema(SCHEMA)
    assert {name: array.type for name, array in arrays.items()} == {name: wanted.field(name).type for name in arrays}
    return {name: array.to_pylist() for name, array in arrays.items()}


def updated(assignments: Mapping[str, object]) -> dict[str, list[Any]]:
    return evaluated(bind_update(assignments, SCOPE, TARGET))


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("qty", "qty + 10", [20, None]),
        ("qty", "id", [1, 2]),
        ("qty", "2.9", [2, 2]),
        ("qty", "DEFAULT", [7, 7]),
        ("price", "DEFAULT", [None, None]),
        ("qty", None, [None, None]),
        ("TARGET.QTY", 5, [5, 5]),
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
        ("id", "NULL", InvalidInput),
        ("id", None, InvalidInput),
        ("id", "qty", InvalidInput),
        ("id", "9999999999", InvalidInput),
        ("nope", "1", InvalidInput),
        ("box", "DEFAULT", [{"a": 3, "b": None}] * 2),
        ("box", "address", NeedsSpark),
        ("tags.element", "'x'", InvalidInput),
    ],
)
def test_store_assignment(column: str, value: object, expected: Any) -> None:
    if isinstance(expected, type):
        with pytest.raises(expected):
            updated({column: value})
    else:
        assert list(updated({column: value}).values()) == [expected]


@pytest.mark.parametrize(("source", "target"), [(source, target) for source in TYPES for target in TYPES])
def test_types_that_can_be_assigned(source: str, target: str) -> None:
    column = Side("target", Schema((NestedField(1, "given", TYPES[source]), NestedField(2, "set", TYPES[target]))))
    if target not in ASSIGNABLE[source]:
        with pytest.raises(InvalidInput, match="cannot assign a .* to column 'set'"):
            bind_update({"set": "given"}, Scope((column,)), column)
    else:
        with suppress(NeedsSpark):
            bind_update({"set": "given"}, Scope((column,)), column)


def test_an_error_names_the_column() -> None:
    with pytest.raises(InvalidInput, match="cannot assign null to column 'id': it is required"):
        updated({"id": "nullif(id, 2)"})
    with pytest.raises(InvalidInput, match="cannot assign a string to column 'qty' of type long"):
        updated({"qty": "note"})


def test_a_field_of_a_struct_is_set_and_the_others_stay() -> None:
    assert updated({"address.city": "concat(note, '!')", "Address.Geo.Lat": "id"}) == {
        "address": [
            {"city": "a!", "zip": 1, "geo": {"lat": 1.0, "lon": 2.0}},
            # As in Spark, a field of a struct that is null makes a struct whose other fields are null.
            {"city": None, "zip": 2, "geo": {"lat": 2.0, "lon": None}},
        ]
    }


def test_a_required_field_beside_it_must_have_a_value() -> None:
    rows = pa.RecordBatch.from_pylist([{"id": 1, "address": None}], schema=arrow_schema(SCHEMA))
    whole = bind_update({"address.city": "'x'", "address.zip": "id"}, SCOPE, TARGET)
    assert evaluated(whole, rows) == {"address": [{"city": "x", "zip": 1, "geo": None}]}
    with pytest.raises(InvalidInput, match=r"'address.zip': it is required"):
        evaluated(bind_update({"address.city": "'x'"}, SCOPE, TARGET), rows)


@pytest.mark.parametrize(
    "assignments",
    [{"qty": 1, "QTY": 2}, {"address": None, "address.city": "'x'"}, {"address.geo.lat": 1, "address.geo": None}],
)
def test_a_column_is_assigned_once(assignments: Mapping[str, object]) -> None:
    with pytest.raises(InvalidInput, match="more than once|as a whole and in part"):
        updated(assignments)


def test_assignments_see_the_old_values() -> None:
    assert updated({"qty": "id", "id": "coalesce(qty, 5) + 1"}) == {"qty": [1, 2], "id": [11, 6]}


def test_an_insert_fills_in_defaults() -> None:
    found = evaluated(bind_insert({"id": "id + 1", "note": "'n'"}, SCOPE, SCHEMA))
    assert list(found) == SCHEMA.column_names
    assert (found["id"], found["qty"], found["note"], found["price"]) == ([2, 3], [7, 7], ["n", "n"], [None, None])
    assert found["box"] == [{"a": 3, "b": None}] * 2


def test_an_insert_needs_its_required_columns() -> None:
    with pytest.raises(InvalidInput, match="'id': it is required"):
        bind_insert({"note": "'n'"}, SCOPE, SCHEMA)
    with pytest.raises(InvalidInput, match="it is inside a column"):
        bind_insert({"id": 1, "address.city": "'x'"}, SCOPE, SCHEMA)
    with pytest.raises(InvalidInput, match="more than once"):
        bind_insert({"id": 1, "ID": 2}, SCOPE, SCHEMA)
