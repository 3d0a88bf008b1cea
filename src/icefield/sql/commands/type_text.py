"""Types, partition fields and sort orders as Spark's SQL writes them.

    list<struct<a: int>>     DESCRIBE: array<struct<a:int>>     CREATE TABLE: ARRAY<STRUCT<a: INT>>

DESCRIBE shows a type that Spark does not have as the one that it is read as, CREATE TABLE as the one that it is.
"""

from icefield.expr.render.spark_sql import is_identifier, quoted_path
from icefield.model.partition import PartitionField
from icefield.model.sort_order import Direction, NullOrder, SortField
from icefield.sql.syntax.strings import literal_of
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
from icefield.types.schema import Schema
from icefield.types.transforms import SIMPLE_TRANSFORMS, Bucket, Identity, Transform, Truncate

# How Spark reads them.
_READ = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimeType: "bigint",
    TimestampType: "timestamp_ntz",
    TimestamptzType: "timestamp",
    TimestampNsType: "bigint",
    TimestamptzNsType: "bigint",
    StringType: "string",
    UUIDType: "string",
    BinaryType: "binary",
    FixedType: "binary",
    GeometryType: "binary",
    GeographyType: "binary",
    UnknownType: "void",
    VariantType: "variant",
}
_PLURALS = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


def described_type(kind: Type) -> str:
    """Return the type as DESCRIBE shows it."""
    match kind:
        case StructType():
            return f"struct<{','.join(f'{f.name}:{described_type(f.type)}' for f in kind.fields)}>"
        case ListType():
            return f"array<{described_type(kind.element_type)}>"
        case MapType():
            return f"map<{described_type(kind.key_type)},{described_type(kind.value_type)}>"
        case DecimalType():
            return f"decimal({kind.precision},{kind.scale})"
    return _READ[type(kind)]


def declared_type(kind: Type) -> str:
    """Return the type as CREATE TABLE takes it."""
    match kind:
        case StructType():
            return f"STRUCT<{', '.join(_declared_field(f) for f in kind.fields)}>"
        case ListType():
            return f"ARRAY<{declared_type(kind.element_type)}{_required(kind.element_required)}>"
        case MapType():
            value = f"{declared_type(kind.value_type)}{_required(kind.value_required)}"
            return f"MAP<{declared_type(kind.key_type)}, {value}>"
        case TimeType() | TimestampNsType() | TimestamptzNsType() | UUIDType() | FixedType() | UnknownType():
            return str(kind).upper()
        case GeometryType() | GeographyType():
            return str(kind)
    return described_type(kind).upper()


def quoted(name: str) -> str:
    """Return a name, in backticks if it needs them."""
    return name if is_identifier(name) and not name[0].isdigit() else quoted_path([name])


def comment_clause(doc: str | None) -> str:
    """Return the comment of a column, with a blank before it, or nothing."""
    return "" if doc is None else f" COMMENT {literal_of(doc)}"


def partition_term(field: PartitionField, schema: Schema) -> str:
    """Return what a partition field is made of."""
    return _term(field.transform, _column(schema, field.source_id))


def named_partition_term(field: PartitionField, schema: Schema) -> str:
    """Return a partition field as PARTITIONED BY takes it, with its name if that is not the usual one."""
    term, usual = partition_term(field, schema), None
    if field.source_id in schema.paths:
        usual = field.transform.default_name(schema.name_of(field.source_id))
    return term if field.name == usual else f"{term} AS {quoted(field.name)}"


def sort_term(field: SortField, schema: Schema) -> str:
    """Return a sort field as WRITE ORDERED BY takes it."""
    direction = "ASC" if field.direction is Direction.ASC else "DESC"
    nulls = "FIRST" if field.null_order is NullOrder.FIRST else "LAST"
    return f"{_term(field.transform, _column(schema, field.source_id))} {direction} NULLS {nulls}"


def _declared_field(field: NestedField) -> str:
    kind = f"{declared_type(field.type)}{_required(field.required)}"
    return f"{quoted(field.name)}: {kind}{comment_clause(field.doc)}"


def _required(required: bool) -> str:  # noqa: FBT001
    return " NOT NULL" if required else ""


def _term(transform: Transform, column: str) -> str:
    match transform:
        case Identity():
            return column
        case Bucket():
            return f"bucket({transform.count}, {column})"
        case Truncate():
            return f"truncate({transform.width}, {column})"
    word = transform.word if transform.word in SIMPLE_TRANSFORMS else str(transform)
    return f"{_PLURALS.get(word, word)}({column})"


def _column(schema: Schema, field_id: int) -> str:
    path = schema.paths.get(field_id)
    return f"field_{field_id}" if path is None else ".".join(quoted(part) for part in path)
