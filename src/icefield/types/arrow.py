"""Types and schemas to and from Arrow.

Field ids are in the Arrow field's metadata under `PARQUET:field_id`, where the Parquet writer expects them.

Some conversions are not symmetric. A nanosecond timestamp is `timestamp[ns]`, but an Arrow schema's `timestamp[ns]`
becomes a microsecond column unless the caller requests nanoseconds, because only format version 3 has them and most
Arrow data is in nanoseconds by default rather than by need. `unknown` is `null`. A geometry or geography is `binary`
with WKB, and `binary` becomes a binary column. A variant is the struct of Parquet's two binary fields, which have no
ids, and a struct becomes a struct column.
Raises SchemaMismatch for an Arrow type that the format does not have.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from icefield.deferred import deferred_imports
from icefield.errors import SchemaMismatch
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
    Value,
    VariantType,
)

with deferred_imports(__name__):
    import numpy as np

    from icefield.types.schema import Schema, assign_fresh_ids

FIELD_ID_KEY = b"PARQUET:field_id"
DOC_KEY = b"doc"

_ARROW: dict[PrimitiveType, pa.DataType] = {
    BooleanType(): pa.bool_(),
    IntegerType(): pa.int32(),
    LongType(): pa.int64(),
    FloatType(): pa.float32(),
    DoubleType(): pa.float64(),
    DateType(): pa.date32(),
    TimeType(): pa.time64("us"),
    TimestampType(): pa.timestamp("us"),
    TimestamptzType(): pa.timestamp("us", "UTC"),
    TimestampNsType(): pa.timestamp("ns"),
    TimestamptzNsType(): pa.timestamp("ns", "UTC"),
    StringType(): pa.string(),
    UUIDType(): pa.uuid(),
    BinaryType(): pa.binary(),
    UnknownType(): pa.null(),
}
_VARIANT = pa.struct([pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary())])
_COUNTED = (TimeType, TimestampType, TimestamptzType, TimestampNsType, TimestamptzNsType)


def arrow_type(kind: Type) -> pa.DataType:
    """Return the Arrow type for values of this type; nested fields have their ids."""
    match kind:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case FixedType(length):
            return pa.binary(length)
        case StructType(fields):
            return pa.struct([arrow_field(f) for f in fields])
        case ListType():
            return pa.list_(arrow_field(kind.element))
        case MapType():
            return pa.map_(arrow_field(kind.key), arrow_field(kind.value))
        case VariantType():
            return _VARIANT
        case GeometryType() | GeographyType():
            return pa.binary()
        case _:
            return _ARROW[kind]


def arrow_field(field: NestedField) -> pa.Field:
    """Return the Arrow field with its id (and doc) as metadata."""
    metadata = {FIELD_ID_KEY: str(field.field_id).encode()}
    if field.doc:
        metadata[DOC_KEY] = field.doc.encode()
    return pa.field(field.name, arrow_type(field.type), nullable=not field.required, metadata=metadata)


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema with field ids."""
    return pa.schema([arrow_field(f) for f in schema.fields])


def schema_from_arrow(schema: pa.Schema, *, nanoseconds: bool = False) -> Schema:
    """Convert an Arrow schema to a table schema with fresh ids; ids in its metadata are ignored.

    Timestamps of any unit become microseconds, unless `nanoseconds` is set.
    """
    counter = iter(range(1, 1 << 31))
    source = _Source(lambda: next(counter), nanoseconds)
    fields = tuple(_field_from_arrow(f, source, f.name) for f in schema)
    if not fields:
        raise SchemaMismatch("the Arrow schema has no columns")
    return assign_fresh_ids(Schema(fields))


def field_id_of(field: pa.Field) -> int | None:
    """Return the field id in the metadata of an Arrow field, if any."""
    metadata: dict[bytes, bytes] = field.metadata or {}
    text = metadata.get(FIELD_ID_KEY)
    return int(text) if text is not None else None


def physical_array(array: pa.Array) -> pa.Array:
    """Return the array with in-memory values as in `values.binary`: dates and times as integers."""
    kind = array.type
    if pa.types.is_date32(kind):
        return array.view(pa.int32())
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return array.view(pa.int64())
    if isinstance(kind, pa.BaseExtensionType):
        return array.storage
    return array


def arrow_array(values: Sequence[Value | None], kind: PrimitiveType) -> pa.Array:
    """Build an Arrow array from in-memory values."""
    if isinstance(kind, UUIDType):
        blobs = [v.bytes if isinstance(v, uuid.UUID) else v for v in values]
        return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(blobs, pa.binary(16)))
    if isinstance(kind, DateType):
        return pa.array(values, pa.int32()).view(pa.date32())
    if isinstance(kind, _COUNTED):
        return pa.array(values, pa.int64()).view(_ARROW[kind])
    return pa.array(values, arrow_type(kind))


def repeated_value(value: Value | EmptyStruct | None, kind: Type, rows: int) -> pa.Array:
    """Return an array that repeats one in-memory value; for a type that is not primitive it must be null."""
    if value is None:
        return pa.nulls(rows, arrow_type(kind))
    if isinstance(value, EmptyStruct) or not isinstance(kind, PrimitiveType):
        raise ValueError(f"{value!r} is not a valid {kind}")
    return arrow_array([value], kind).take(pa.array(np.zeros(rows, np.int64)))


def python_values(array: pa.Array, kind: PrimitiveType) -> list[Value | None]:
    """Return in-memory values from an Arrow array."""
    values: list[Any] = physical_array(array).to_pylist()
    if isinstance(kind, UUIDType):
        return [None if v is None else uuid.UUID(bytes=v) for v in values]
    if isinstance(kind, DecimalType):
        return [None if v is None else Decimal(v) for v in values]
    return values


@dataclass(frozen=True)
class _Source:
    """The source of ids, and whether nanoseconds are kept."""

    draw: Callable[[], int]
    nanoseconds: bool


def _field_from_arrow(field: pa.Field, source: _Source, path: str) -> NestedField:
    field_id = source.draw()
    metadata: dict[bytes, bytes] = field.metadata or {}
    doc = metadata.get(DOC_KEY)
    kind = _type_from_arrow(field.type, source, path)
    return NestedField(field_id, field.name, kind, not field.nullable, doc.decode() if doc else None)


def _type_from_arrow(kind: pa.DataType, source: _Source, path: str) -> Type:
    types = pa.types
    if types.is_dictionary(kind):
        return _type_from_arrow(kind.value_type, source, path)
    if types.is_struct(kind):
        inner = (kind.field(i) for i in range(kind.num_fields))
        return StructType(tuple(_field_from_arrow(f, source, f"{path}.{f.name}") for f in inner))
    if types.is_map(kind):
        key_id, value_id = source.draw(), source.draw()
        key = _type_from_arrow(kind.key_type, source, f"{path}.key")
        value = _type_from_arrow(kind.item_type, source, f"{path}.value")
        return MapType(key_id, key, value_id, value, not kind.item_field.nullable)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        element_id = source.draw()
        element = _type_from_arrow(kind.value_type, source, f"{path}.element")
        return ListType(element_id, element, not kind.value_field.nullable)
    if types.is_timestamp(kind) and kind.unit == "ns" and source.nanoseconds:
        return TimestampNsType() if kind.tz is None else TimestamptzNsType()
    return _primitive_from_arrow(kind, path)


def _primitive_from_arrow(kind: pa.DataType, path: str) -> PrimitiveType:
    types = pa.types
    if types.is_decimal128(kind) or types.is_decimal256(kind) or types.is_decimal32(kind) or types.is_decimal64(kind):
        return DecimalType(kind.precision, kind.scale)
    if types.is_fixed_size_binary(kind):
        return FixedType(kind.byte_width)
    if types.is_timestamp(kind):
        return TimestampType() if kind.tz is None else TimestamptzType()
    for matches, result in _PRIMITIVE_RULES:
        if matches(kind):
            return result
    raise SchemaMismatch(
        f"column {path!r} has the Arrow type {kind}, which the table format cannot hold",
        hint=_cast_for(kind),
    )


def _cast_for(kind: pa.DataType) -> str:
    """Return the hint for a column of a type that the table format does not have."""
    if kind == pa.uint64():
        return "Cast it first, to decimal(20, 0), or to int64 if all values fit"
    if pa.types.is_duration(kind):
        return "Cast it to int64 first"
    if pa.types.is_run_end_encoded(kind):
        return "Decode it first, with pyarrow.compute.run_end_decode"
    if isinstance(kind, pa.BaseExtensionType):
        return f"Cast it to another type first, for instance to its storage type {kind.storage_type}"
    return "Cast it to another type first"


def _is_any(*wanted: pa.DataType) -> Callable[[pa.DataType], bool]:
    return lambda kind: any(kind == w for w in wanted)


_PRIMITIVE_RULES: Iterable[tuple[Callable[[pa.DataType], bool], PrimitiveType]] = (
    (_is_any(pa.null()), UnknownType()),
    (_is_any(pa.bool_()), BooleanType()),
    (_is_any(pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()), IntegerType()),
    (_is_any(pa.int64(), pa.uint32()), LongType()),
    (_is_any(pa.float16(), pa.float32()), FloatType()),
    (_is_any(pa.float64()), DoubleType()),
    (pa.types.is_date, DateType()),
    (pa.types.is_time, TimeType()),
    (_is_any(pa.string(), pa.large_string(), pa.string_view()), StringType()),
    (_is_any(pa.uuid()), UUIDType()),
    (_is_any(pa.binary(), pa.large_binary(), pa.binary_view()), BinaryType()),
)


def struct_array(fields: Iterable[NestedField], columns: Iterable[pa.Array]) -> pa.StructArray:
    """Return a struct column without nulls."""
    return pa.StructArray.from_arrays(list(columns), fields=[arrow_field(f) for f in fields])
