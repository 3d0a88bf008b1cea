"""Convert types and schemas to and from Spark's.

Some types have no counterpart in stock Spark and appear as the nearest one that keeps every value: `uuid` as string,
`fixed` as binary, `time` as a bigint of microseconds since midnight, `timestamp_ns` and `timestamptz_ns` as a bigint of
nanoseconds since the epoch, `geometry` and `geography` as binary with WKB. `unknown` is read as Spark's void and
`variant` as its variant; there is no reverse conversion, since neither can be written. Spark's own Parquet reader reads
them all.
Raises SchemaMismatch for a Spark type that the format cannot hold.
"""

from collections.abc import Callable

from pyspark.sql import types as spark

from icefield.errors import SchemaMismatch
from icefield.expr.render.spark_sql import spark_literal
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    EmptyStruct,
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
)
from icefield.types.schema import Schema, assign_fresh_ids

FIELD_ID_KEY = "parquet.field.id"
# The value of Spark's reader for a column that a file does not have.
DEFAULT_KEY = "EXISTS_DEFAULT"
# The metadata of columns instead of the id that they were found by. Ids would be written to the user's files, where
# those of two joined tables may be the same. Spark would replace empty metadata by the column's own.
NO_ID = {"source": "icefield"}

_FROM_SPARK: dict[type[spark.DataType], PrimitiveType] = {
    spark.BooleanType: BooleanType(),
    spark.ByteType: IntegerType(),
    spark.ShortType: IntegerType(),
    spark.IntegerType: IntegerType(),
    spark.LongType: LongType(),
    spark.FloatType: FloatType(),
    spark.DoubleType: DoubleType(),
    spark.DateType: DateType(),
    spark.TimestampType: TimestamptzType(),
    spark.TimestampNTZType: TimestampType(),
    spark.StringType: StringType(),
    spark.VarcharType: StringType(),
    spark.CharType: StringType(),
    spark.BinaryType: BinaryType(),
}
# The physical type of each type in the native Parquet reader.
_STORED: dict[type[PrimitiveType] | type[VariantType], spark.DataType] = {
    BooleanType: spark.BooleanType(),
    IntegerType: spark.IntegerType(),
    LongType: spark.LongType(),
    FloatType: spark.FloatType(),
    DoubleType: spark.DoubleType(),
    DateType: spark.DateType(),
    TimeType: spark.LongType(),
    TimestampType: spark.TimestampNTZType(),
    TimestamptzType: spark.TimestampType(),
    TimestampNsType: spark.LongType(),
    TimestamptzNsType: spark.LongType(),
    StringType: spark.StringType(),
    UUIDType: spark.BinaryType(),
    FixedType: spark.BinaryType(),
    BinaryType: spark.BinaryType(),
    GeometryType: spark.BinaryType(),
    GeographyType: spark.BinaryType(),
    UnknownType: spark.NullType(),
    VariantType: spark.VariantType(),
}


def schema_from_spark(struct: spark.StructType) -> Schema:
    """Build a table schema with fresh ids from a Spark schema; columns that are not nullable become required."""
    counter = iter(range(1, 1 << 31))
    fields = _fields_from_spark(struct, lambda: next(counter), "")
    if not fields:
        raise SchemaMismatch("the Spark schema has no columns")
    return assign_fresh_ids(Schema(fields))


def physical_type(kind: Type) -> spark.DataType:
    """Return the physical Spark type of a column in the native Parquet reader; nested fields have their ids."""
    return _physical_type(kind, physical_field)


def plain_type(kind: Type) -> spark.DataType:
    """Return the same type without ids: for columns that are found by name, and for logical columns."""
    return _physical_type(kind, plain_field)


def physical_field(field: NestedField) -> spark.StructField:
    """Return a Spark field that is found by id; always nullable, as old files may lack the column."""
    # Data of an unknown column in a file is ignored: no column has a negative id. (spec: Parquet)
    file_id = -field.field_id if isinstance(field.type, UnknownType) else field.field_id
    metadata: dict[str, object] = {FIELD_ID_KEY: file_id}
    if isinstance(field.type, PrimitiveType) and field.initial_default is not None:
        assert not isinstance(field.initial_default, EmptyStruct)
        metadata[DEFAULT_KEY] = spark_literal(field.initial_default, field.type)
    return spark.StructField(field.name, physical_type(field.type), True, metadata)


def plain_field(field: NestedField) -> spark.StructField:
    """Return a Spark field that is found by name."""
    return spark.StructField(field.name, plain_type(field.type), True)


def logical_field(field: NestedField) -> spark.StructField:
    """Return a logical column: uuids, at any depth, are strings."""
    return spark.StructField(field.name, _logical_type(field.type), True)


def _physical_type(kind: Type, as_field: Callable[[NestedField], spark.StructField]) -> spark.DataType:
    match kind:
        case StructType(fields):
            return spark.StructType([as_field(f) for f in fields])
        case ListType():
            return spark.ArrayType(_physical_type(kind.element_type, as_field), not kind.element_required)
        case MapType():
            key, value = _physical_type(kind.key_type, as_field), _physical_type(kind.value_type, as_field)
            return spark.MapType(key, value, not kind.value_required)
        case DecimalType(precision, scale):
            return spark.DecimalType(precision, scale)
        case _:
            return _STORED[type(kind)]


def _logical_type(kind: Type) -> spark.DataType:
    match kind:
        case UUIDType():
            return spark.StringType()
        case StructType(fields):
            return spark.StructType([logical_field(f) for f in fields])
        case ListType():
            return spark.ArrayType(_logical_type(kind.element_type))
        case MapType():
            return spark.MapType(_logical_type(kind.key_type), _logical_type(kind.value_type))
        case _:
            return physical_type(kind)


def _fields_from_spark(struct: spark.StructType, draw: Callable[[], int], path: str) -> tuple[NestedField, ...]:
    return tuple(
        NestedField(draw(), f.name, _type_from_spark(f.dataType, draw, f"{path}{f.name}"), not f.nullable)
        for f in struct.fields
    )


def _type_from_spark(kind: spark.DataType, draw: Callable[[], int], path: str) -> Type:
    if isinstance(kind, spark.StructType):
        return StructType(_fields_from_spark(kind, draw, f"{path}."))
    if isinstance(kind, spark.ArrayType):
        element_id = draw()
        return ListType(element_id, _type_from_spark(kind.elementType, draw, f"{path}.element"), not kind.containsNull)
    if isinstance(kind, spark.MapType):
        key_id, value_id = draw(), draw()
        key = _type_from_spark(kind.keyType, draw, f"{path}.key")
        value = _type_from_spark(kind.valueType, draw, f"{path}.value")
        return MapType(key_id, key, value_id, value, not kind.valueContainsNull)
    if isinstance(kind, spark.DecimalType):
        return DecimalType(kind.precision, kind.scale)
    found = _FROM_SPARK.get(type(kind))
    if found is None:
        raise SchemaMismatch(
            f"column {path!r} has the Spark type {kind.simpleString()}, which the table format cannot hold",
            hint="Cast it first",
        )
    return found
