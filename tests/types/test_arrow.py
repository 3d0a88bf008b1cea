"""Types, schemas and values to and from Arrow."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort
from tests.expr.cases import ALL_TYPES, is_nan, values_of

from icefield.errors import SchemaMismatch
from icefield.types.arrow import (
    arrow_array,
    arrow_field,
    arrow_schema,
    arrow_type,
    field_id_of,
    physical_array,
    python_values,
    schema_from_arrow,
)
from icefield.types.datatypes import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
)
from icefield.types.text import parse_schema


@given(st.sampled_from(ALL_TYPES).flatmap(lambda kind: st.tuples(st.just(kind), st.lists(st.none() | values_of(kind)))))
@effort()
def test_values_survive_arrow(case: tuple[PrimitiveType, list[object]]) -> None:
    kind, values = case
    array = arrow_array(values, kind)  # type: ignore[arg-type]
    assert array.type == arrow_type(kind)
    again = python_values(array, kind)
    pairs = list(zip(again, values, strict=True))
    assert all(a == b or (is_nan(a) and is_nan(b)) for a, b in pairs)  # type: ignore[arg-type]
    assert all(type(a) is type(b) for a, b in pairs)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_a_schema_of_each_type_survives_arrow(kind: PrimitiveType) -> None:
    schema = schema_from_arrow(pa.schema([pa.field("a", arrow_type(kind), nullable=False)]), nanoseconds=True)
    assert schema.fields == (NestedField(1, "a", kind, required=True),)


def test_nested_schemas_survive_arrow_with_ids_and_docs() -> None:
    schema = parse_schema(
        "a int not null, s struct<x: list<string not null>, y: map<string, struct<z: uuid>>> not null, t timestamptz"
    )
    arrow = arrow_schema(schema)
    assert schema_from_arrow(arrow) == schema
    assert [field_id_of(f) for f in arrow] == [1, 2, 3]
    assert field_id_of(arrow.field("s").type.field("x").type.value_field) == schema.find_field("s.x.element").field_id
    documented = NestedField(1, "a", IntegerType(), doc="what it is")
    assert schema_from_arrow(pa.schema([arrow_field(documented)])).fields == (documented,)
    assert field_id_of(pa.field("a", pa.int32())) is None


@pytest.mark.parametrize(
    ("arrow", "kind"),
    [
        (pa.int8(), IntegerType()),
        (pa.uint16(), IntegerType()),
        (pa.uint32(), LongType()),
        (pa.float16(), FloatType()),
        (pa.date64(), DateType()),
        (pa.time32("s"), TimeType()),
        (pa.timestamp("ms"), TimestampType()),
        (pa.timestamp("s", "Europe/Berlin"), TimestamptzType()),
        (pa.timestamp("ns"), TimestampType()),
        (pa.timestamp("ns", "UTC"), TimestamptzType()),
        (pa.large_string(), StringType()),
        (pa.string_view(), StringType()),
        (pa.large_binary(), BinaryType()),
        (pa.binary(4), FixedType(4)),
        (pa.dictionary(pa.int8(), pa.string()), StringType()),
        (pa.decimal256(10, 2), DecimalType(10, 2)),
        (pa.uuid(), UUIDType()),
        (pa.float64(), DoubleType()),
        (pa.null(), UnknownType()),
    ],
)
def test_wider_arrow_types_find_their_type(arrow: pa.DataType, kind: Type) -> None:
    assert schema_from_arrow(pa.schema([("a", arrow)])).fields[0].type == kind


@pytest.mark.parametrize("arrow", [pa.uint64(), pa.duration("us"), pa.month_day_nano_interval()])
def test_arrow_types_without_a_place_are_refused_by_name(arrow: pa.DataType) -> None:
    with pytest.raises(SchemaMismatch, match=r"'s\.a'"):
        schema_from_arrow(pa.schema([("s", pa.struct([("a", arrow)]))]))


def test_nanoseconds_are_kept_on_demand_at_any_depth() -> None:
    nested = pa.schema([("l", pa.list_(pa.struct([("a", pa.timestamp("ns", "UTC"))]))), ("b", pa.timestamp("us"))])
    schema = schema_from_arrow(nested, nanoseconds=True)
    assert [str(schema.find_field(n).type) for n in ("l.element.a", "b")] == ["timestamptz_ns", "timestamp"]


def test_types_that_only_the_format_knows_have_an_arrow_type() -> None:
    schema = arrow_schema(parse_schema("u unknown, v variant, g geometry(EPSG:4326), w geography"))
    assert schema.field("u").type == pa.null()
    assert (schema.field("g").type, schema.field("w").type) == (pa.binary(), pa.binary())
    variant = schema.field("v").type
    assert [(f.name, f.type, f.nullable, field_id_of(f)) for f in variant] == [
        ("metadata", pa.binary(), False, None),
        ("value", pa.binary(), True, None),
    ]


def test_an_empty_schema_is_refused() -> None:
    with pytest.raises(SchemaMismatch):
        schema_from_arrow(pa.schema([]))


def test_physical_arrays_keep_nulls_and_slices() -> None:
    dates = arrow_array([1, None, 3], DateType()).slice(1)
    assert physical_array(dates).to_pylist() == [None, 3]
    stamps = arrow_array([1, None, 3], TimestamptzType())
    assert physical_array(stamps).to_pylist() == [1, None, 3]
