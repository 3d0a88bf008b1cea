"""Types and schemas to and from Spark's; importing Spark's types starts no JVM."""

import pytest
from hypothesis import given
from pyspark.sql import types as spark
from tests.effort import effort
from tests.schema_cases import ALL_TYPES, schemas

from icefield.errors import InvalidInput, SchemaMismatch
from icefield.spark.types import FIELD_ID_KEY, physical_field, physical_type, schema_from_spark
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
    UnknownType,
    UUIDType,
    VariantType,
    children,
)
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

BOTH_WAYS: list[tuple[spark.DataType, PrimitiveType]] = [
    (spark.BooleanType(), BooleanType()),
    (spark.IntegerType(), IntegerType()),
    (spark.LongType(), LongType()),
    (spark.FloatType(), FloatType()),
    (spark.DoubleType(), DoubleType()),
    (spark.DateType(), DateType()),
    (spark.TimestampNTZType(), TimestampType()),
    (spark.TimestampType(), TimestamptzType()),
    (spark.StringType(), StringType()),
    (spark.BinaryType(), BinaryType()),
    (spark.DecimalType(9, 2), DecimalType(9, 2)),
    (spark.DecimalType(38, 0), DecimalType(38, 0)),
]
# Types of Spark that are wider words for one of ours.
ONE_WAY: list[tuple[spark.DataType, PrimitiveType]] = [
    (spark.ByteType(), IntegerType()),
    (spark.ShortType(), IntegerType()),
    (spark.VarcharType(5), StringType()),
    (spark.CharType(5), StringType()),
    (spark.StringType("UNICODE_CI"), StringType()),
]
# Types of ours that Spark shows as the nearest one of its own.
STORED: list[tuple[PrimitiveType | VariantType, spark.DataType]] = [
    (TimestampNsType(), spark.LongType()),
    (TimestamptzNsType(), spark.LongType()),
    (GeometryType(), spark.BinaryType()),
    (GeographyType("EPSG:4326"), spark.BinaryType()),
    (UnknownType(), spark.NullType()),
    (VariantType(), spark.VariantType()),
    (TimeType(), spark.LongType()),
    (UUIDType(), spark.BinaryType()),
    (FixedType(3), spark.BinaryType()),
]


def one(kind: spark.DataType, *, nullable: bool = True) -> spark.StructType:
    return spark.StructType([spark.StructField("c", kind, nullable)])


@pytest.mark.parametrize(("theirs", "ours"), BOTH_WAYS + ONE_WAY, ids=str)
def test_a_type_of_spark_becomes_ours(theirs: spark.DataType, ours: PrimitiveType) -> None:
    assert schema_from_spark(one(theirs)) == Schema((NestedField(1, "c", ours),))
    assert schema_from_spark(one(theirs, nullable=False)).fields[0].required


@pytest.mark.parametrize(("ours", "theirs"), [*((o, t) for t, o in BOTH_WAYS), *STORED], ids=str)
def test_a_type_of_ours_is_read_as_one_of_spark(ours: Type, theirs: spark.DataType) -> None:
    assert physical_type(ours) == theirs


def test_every_type_of_ours_can_be_read() -> None:
    for kind in ALL_TYPES:
        assert isinstance(physical_type(kind), spark.DataType)


@pytest.mark.parametrize(
    "kind",
    [spark.NullType(), spark.DayTimeIntervalType(), spark.YearMonthIntervalType(), spark.VariantType()],
    ids=str,
)
def test_a_type_that_the_format_lacks_is_refused_with_its_path(kind: spark.DataType) -> None:
    nested = one(spark.ArrayType(spark.StructType([spark.StructField("x", spark.MapType(spark.StringType(), kind))])))
    with pytest.raises(SchemaMismatch, match=r"'c' has the Spark type"):
        schema_from_spark(one(kind))
    with pytest.raises(SchemaMismatch, match=r"'c\.element\.x\.value' has the Spark type .* Cast it first"):
        schema_from_spark(nested)


def test_nested_types_keep_their_nullability_and_get_ids_level_by_level() -> None:
    struct = spark.StructType(
        [
            spark.StructField("a", spark.LongType(), nullable=False),
            spark.StructField("l", spark.ArrayType(spark.StringType(), containsNull=False)),
            spark.StructField("m", spark.MapType(spark.StringType(), spark.IntegerType(), valueContainsNull=False)),
            spark.StructField("s", spark.StructType([spark.StructField("x", spark.DateType(), nullable=False)])),
        ]
    )
    assert schema_from_spark(struct) == parse_schema(
        "a long not null, l list<string not null>, m map<string, int not null>, s struct<x date not null>"
    )


@pytest.mark.parametrize("struct", [spark.StructType(), spark.StructType([])])
def test_a_schema_without_columns_is_refused(struct: spark.StructType) -> None:
    with pytest.raises(SchemaMismatch, match="no column"):
        schema_from_spark(struct)


def test_a_name_that_stands_twice_is_refused() -> None:
    twice = spark.StructType([spark.StructField("a", spark.LongType()), spark.StructField("a", spark.LongType())])
    with pytest.raises(InvalidInput, match="duplicate column names"):
        schema_from_spark(twice)


def test_a_column_is_found_by_id_and_may_always_be_null() -> None:
    field = physical_field(NestedField(7, "c", LongType(), required=True))
    assert field == spark.StructField("c", spark.LongType(), True, {FIELD_ID_KEY: 7})


def ids_of(kind: spark.DataType) -> set[int]:
    """Every field id in a Spark type."""
    if isinstance(kind, spark.StructType):
        own = {f.metadata[FIELD_ID_KEY] for f in kind.fields}
        return own.union(*(ids_of(f.dataType) for f in kind.fields))
    if isinstance(kind, spark.ArrayType):
        return ids_of(kind.elementType)
    return ids_of(kind.keyType) | ids_of(kind.valueType) if isinstance(kind, spark.MapType) else set()


def struct_ids(kind: Type) -> set[int]:
    """Ids of fields of structs at any depth; an element, key or value has none that Spark could look for."""
    own = {f.field_id for f in kind.fields} if isinstance(kind, StructType) else set()
    return own.union(*(struct_ids(f.type) for f in children(kind)))


@effort(40)
@given(schemas())
def test_every_field_of_every_struct_carries_its_id(schema: Schema) -> None:
    assert ids_of(physical_type(schema.struct)) == struct_ids(schema.struct)


def plain(kind: Type) -> Type:
    """The type that comes back from Spark, where nothing in a struct is required."""
    match kind:
        case StructType():
            return StructType(tuple(NestedField(f.field_id, f.name, plain(f.type)) for f in kind.fields))
        case ListType():
            return ListType(kind.element_id, plain(kind.element_type), kind.element_required)
        case MapType():
            return MapType(
                kind.key_id, plain(kind.key_type), kind.value_id, plain(kind.value_type), kind.value_required
            )
        case TimeType():
            return LongType()
        case UUIDType() | FixedType():
            return BinaryType()
        case _:
            return kind


@effort(40)
@given(schemas())
def test_a_schema_survives_the_way_through_spark_but_for_what_spark_lacks(schema: Schema) -> None:
    there = spark.StructType([physical_field(f) for f in schema.fields])
    back = schema_from_spark(there)
    assert str(back.struct) == str(plain(schema.struct))
    assert [required_inside(f.type) for f in back.fields] == [required_inside(plain(f.type)) for f in schema.fields]


def required_inside(kind: Type) -> list[bool]:
    return [flag for f in children(kind) for flag in (f.required, *required_inside(f.type))]
