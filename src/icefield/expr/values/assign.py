"""Assign values to columns: UPDATE SET and INSERT VALUES, as Spark's ANSI policy of store assignment does it.

Numbers are cast to numbers with an error on overflow, anything whose text is certain to strings; a string is not cast
to anything. (Spark: Cast.canANSIStoreAssign)
Raises InvalidInput, where Spark refuses; NeedsSpark, where only Spark knows the result.
"""

from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.values import syntax
from icefield.expr.values.bind import bind, parse_value
from icefield.expr.values.casts import cast, or_out_of_range
from icefield.expr.values.coerce import NUMBERS, coerce
from icefield.expr.values.fold import fold
from icefield.expr.values.parse import parse
from icefield.expr.values.scope import Scope
from icefield.expr.values.value import Call, Constant, Rows, Value
from icefield.types.arrow import arrow_type, struct_array
from icefield.types.datatypes import (
    BinaryType,
    DateType,
    EmptyStruct,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
    UnknownType,
    UUIDType,
)

_MOMENTS = (DateType, TimestampType, TimestamptzType)
_SPARK_NAMES: dict[Type, str] = {TimestamptzType(): "TIMESTAMP", TimestampType(): "TIMESTAMP_NTZ"}
_WITHOUT_NANOS: dict[Type, Type] = {TimestampNsType(): TimestampType(), TimestamptzNsType(): TimestamptzType()}


@dataclass(frozen=True)
class Struct(Value):
    """A struct of values, never null."""

    fields: tuple[Value, ...]

    @property
    def children(self) -> tuple[Value, ...]:
        return self.fields

    def array(self, rows: Rows) -> pa.Array:
        assert isinstance(self.type, StructType)
        if not self.fields:
            return pa.array([{}] * rows.count, arrow_type(self.type))
        return struct_array(self.type.fields, [field.array(rows) for field in self.fields])


def bind_assignment(given: object, field: NestedField, scope: Scope, name: str) -> Value:
    """Bind the value that is assigned to a column, or to a field of a struct. name: of the column in errors."""
    written = parse(given) if isinstance(given, str) else None
    if isinstance(written, syntax.Default):
        return assign(default_value(field), field, name)
    return fold(assign(parse_value(given, scope) if written is None else bind(written, scope), field, name))


def assign(value: Value, field: NestedField, name: str) -> Value:
    """Return a value as the type of a column; null in a required column raises InvalidInput."""
    converted = _converted(value, field.type, name)
    if not field.required:
        return converted
    if isinstance(converted, Constant):
        _require(converted.value is not None, name)
        return converted
    return Call(field.type, partial(_check_present, name=name), (converted,), checked=True, strict=False)


def default_value(field: NestedField) -> Value:
    """Return the value of a column to which nothing is assigned. (spec: Default values)"""
    if isinstance(field.write_default, EmptyStruct) and isinstance(field.type, StructType):
        return Struct(field.type, tuple(default_value(inner) for inner in field.type.fields))
    return Constant(field.type, None if isinstance(field.write_default, EmptyStruct) else field.write_default)


def _converted(value: Value, kind: Type, name: str) -> Value:
    if value.type == kind:
        return value
    if isinstance(value.type, UnknownType):
        return Constant(kind, None) if isinstance(value, Constant) else cast(value, kind)
    if not isinstance(value.type, PrimitiveType) or not isinstance(kind, PrimitiveType):
        return _converted_nested(value, kind, name)
    if kind in _WITHOUT_NANOS and isinstance(value.type, _MOMENTS):
        micros = _converted(value, _WITHOUT_NANOS[kind], name)
        return Call(kind, partial(_with_nanos, kind=kind), (micros,), checked=True)
    if isinstance(value.type, FixedType):
        value = cast(value, BinaryType())
    if isinstance(kind, FixedType) and isinstance(value.type, BinaryType):
        return Call(kind, partial(_check_length, length=kind.length, name=name), (value,), checked=True)
    if value.type != kind and not _can_assign(value.type, kind):
        raise InvalidInput(
            f"cannot assign a {value.type} to column {name!r} of type {kind}",
            hint=f"Write CAST(... AS {_SPARK_NAMES.get(kind, kind)})",
        )
    return coerce(value, kind)


def _can_assign(source: Type, kind: Type) -> bool:
    if isinstance(kind, StringType | UUIDType):
        # To Spark a UUID is a string.
        return isinstance(kind, StringType) or isinstance(source, StringType)
    return any(isinstance(source, some) and isinstance(kind, some) for some in (NUMBERS, _MOMENTS))


def _converted_nested(value: Value, kind: Type, name: str) -> Value:
    if not _same_shape(value.type, kind):
        raise NeedsSpark(f"the assignment of {value.type} to column {name!r} of type {kind}")
    return Call(kind, partial(_with_ids, kind=arrow_type(kind)), (value,))


def _same_shape(source: Type, kind: Type) -> bool:
    """Return whether two types differ in ids and docs only."""
    match source, kind:
        case StructType(ours), StructType(theirs):
            return len(ours) == len(theirs) and all(map(_same_field, ours, theirs))
        case ListType(), ListType():
            return _same_field(source.element, kind.element)
        case MapType(), MapType():
            return _same_field(source.key, kind.key) and _same_field(source.value, kind.value)
        case _:
            return source == kind


def _same_field(ours: NestedField, theirs: NestedField) -> bool:
    named = ours.name == theirs.name and (ours.required or not theirs.required)
    return named and _same_shape(ours.type, theirs.type)


def _with_ids(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array.cast(kind)


def _with_nanos(array: pa.Array, kind: Type) -> pa.Array:
    return or_out_of_range(lambda: array.cast(arrow_type(kind)), kind)


def _check_present(array: pa.Array, name: str) -> pa.Array:
    _require(array.null_count == 0, name)
    return array


def _require(present: bool, name: str) -> None:  # noqa: FBT001
    if not present:
        raise InvalidInput(f"cannot assign null to column {name!r}: it is required")


def _check_length(array: pa.Array, length: int, name: str) -> pa.Array:
    lengths = pc.binary_length(array)
    if pc.any(pc.not_equal(lengths, length)).as_py():
        raise InvalidInput(f"a value for column {name!r} does not have {length} bytes")
    return array.cast(pa.binary(length))
