"""Values of a model's rows: drawn at random, as Arrow columns, and in the plain form in which rows are compared.

A struct is a dict by field id, a list a list, a map a list of pairs; other values are as icefield has them in memory.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
from tests.expr.cases import pool_of
from tests.peers.samples import LONG_TEXT

from icefield.types.arrow import arrow_array, arrow_field, arrow_type
from icefield.types.datatypes import (
    DateType,
    DoubleType,
    FloatType,
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
)

NULLS = 0.25  # of all values that may be null
_DAYS = [-719_162, -366, -32, -1, 0, 31, 59, 365, 19_782, 2_932_896]  # the years 1 to 9999, which all calendars have
_MICROS = [d * 86_400_000_000 + more for d in (-719_162, -365, -1, 0, 31, 19_782) for more in (0, 1)] + [-1]
_NANOS = [d * 86_400_000_000_000 + more for d in (-365, -1, 0, 19_782) for more in (0, 1)] + [-1, -999]


def draw_value(random: Random, field: NestedField) -> Any:
    """Draw a value of a field: null now and then, and of primitive types those that readers get wrong."""
    if isinstance(field.type, UnknownType) or (not field.required and random.random() < NULLS):
        return None
    return draw_present(random, field.type)


def draw_present(random: Random, kind: Type) -> Any:
    """Draw a value that is not null."""
    match kind:
        case StructType(fields):
            return {f.field_id: draw_value(random, f) for f in fields}
        case ListType():
            return [draw_value(random, kind.element) for _ in range(random.randrange(3))]
        case MapType():
            keys = {draw_value(random, kind.key) for _ in range(random.randrange(3))}
            return [(key, draw_value(random, kind.value)) for key in sorted(keys)]
        case _:
            assert isinstance(kind, PrimitiveType)
            return random.choice(pool(kind))


def pool(kind: PrimitiveType) -> list[Any]:
    """Return the values that a type's are drawn from."""
    if isinstance(kind, DateType):
        return _DAYS
    if isinstance(kind, TimestampType | TimestamptzType):
        return _MICROS
    if isinstance(kind, TimestampNsType | TimestamptzNsType):
        return _NANOS
    found = pool_of(kind)
    return [*found, LONG_TEXT] if isinstance(kind, StringType) else found


def arrow_values(values: Sequence[Any], kind: Type) -> pa.Array:
    """Return values as an Arrow array, without field ids."""
    match kind:
        case StructType(fields):
            inner = [arrow_values([None if v is None else v[f.field_id] for v in values], f.type) for f in fields]
            names = [plain_field(f) for f in fields]
            return pa.StructArray.from_arrays(
                inner, fields=names, mask=pa.array([v is None for v in values], pa.bool_())
            )
        case ListType():
            flat = [each for v in values for each in v or ()]
            made = arrow_values(flat, kind.element_type)
            return pa.ListArray.from_arrays(_offsets(values), made, type=plain_type(kind))
        case MapType():
            pairs = [pair for v in values for pair in v or ()]
            keys, items = (
                arrow_values([p[at] for p in pairs], t) for at, t in enumerate((kind.key_type, kind.value_type))
            )
            return pa.MapArray.from_arrays(_offsets(values), keys, items, type=plain_type(kind))
        case _:
            assert isinstance(kind, PrimitiveType)
            return arrow_array(list(values), kind)


def plain_type(kind: Type) -> pa.DataType:
    """Return the Arrow type of a type, without field ids."""
    match kind:
        case StructType(fields):
            return pa.struct([plain_field(f) for f in fields])
        case ListType():
            return pa.list_(plain_field(kind.element))
        case MapType():
            return pa.map_(plain_field(kind.key), plain_field(kind.value))
        case _:
            return arrow_type(kind)


def plain_field(field: NestedField) -> pa.Field:
    """Return the Arrow field of a field, without its id."""
    return pa.field(field.name, plain_type(field.type), nullable=arrow_field(field).nullable)


def normal_value(value: Any, kind: Type) -> Any:
    """Return a value in the form of `tests.peers.normal`."""
    if value is None:
        return None
    match kind:
        case StructType(fields):
            return tuple(normal_value(value[f.field_id], f.type) for f in fields)
        case ListType():
            return tuple(normal_value(each, kind.element_type) for each in value)
        case MapType():
            pairs = [(normal_value(k, kind.key_type), normal_value(v, kind.value_type)) for k, v in value]
            return tuple(sorted(pairs, key=repr))
        case FloatType() | DoubleType():
            return repr(value)
        case _:
            return value


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Return where each list starts; null where there is none, and the end."""
    ends, at = [], 0
    for value in values:
        ends.append(None if value is None else at)
        at += len(value or ())
    return pa.array([*ends, at], pa.int32())
