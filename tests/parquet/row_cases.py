"""Rows as plain Python values, to and from Arrow, for any schema; values have the in-memory form of `single_value`.

A struct is a dict by field id, a list a list, a map a list of pairs.
"""

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.expr.cases import values_of

from icefield.types.arrow import arrow_array, arrow_field, arrow_schema, arrow_type, python_values
from icefield.types.datatypes import ListType, MapType, NestedField, PrimitiveType, StructType, Type
from icefield.types.schema import Schema

Row = dict[int, Any]


def rows_of(schema: Schema, max_rows: int = 6) -> st.SearchStrategy[list[Row]]:
    """Rows that fit a schema: null only where a field is optional."""
    return st.lists(_struct_of(schema.fields), max_size=max_rows)


def batch_of(rows: Sequence[Row], schema: Schema) -> pa.RecordBatch:
    """Build a batch with exactly the Arrow types of the schema."""
    arrays = [array_of([row[f.field_id] for row in rows], f.type) for f in schema.fields]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))


def rows_from(data: pa.RecordBatch | pa.Table, schema: Schema) -> list[Row]:
    """Take rows out of Arrow data whose columns have the names of the schema."""
    columns = {f.field_id: values_from(_whole(data.column(f.name)), f.type) for f in schema.fields}
    return [{field_id: column[i] for field_id, column in columns.items()} for i in range(data.num_rows)]


def array_of(values: Sequence[Any], kind: Type) -> pa.Array:
    """Build an Arrow array from plain values."""
    nulls = pa.array([v is None for v in values], pa.bool_())
    match kind:
        case StructType(fields):
            columns = [array_of([None if v is None else v[f.field_id] for v in values], f.type) for f in fields]
            return pa.StructArray.from_arrays(columns, fields=[arrow_field(f) for f in fields], mask=nulls)
        case ListType():
            inner = array_of([item for v in values for item in v or ()], kind.element_type)
            return _nested(values, arrow_type(kind), inner)
        case MapType():
            pairs = [pair for v in values for pair in v or ()]
            target = arrow_type(kind)
            columns = [array_of([k for k, _ in pairs], kind.key_type), array_of([v for _, v in pairs], kind.value_type)]
            entries = pa.StructArray.from_arrays(columns, fields=[target.key_field, target.item_field])
            return _nested(values, target, entries)
        case _:
            assert isinstance(kind, PrimitiveType)
            return arrow_array(values, kind)


def values_from(array: pa.Array, kind: Type) -> list[Any]:
    """Take plain values out of an Arrow array."""
    match kind:
        case StructType(fields):
            columns = {f.field_id: values_from(array.field(i), f.type) for i, f in enumerate(fields)}
            valid = array.is_valid().to_pylist()
            return [{i: c[at] for i, c in columns.items()} if ok else None for at, ok in enumerate(valid)]
        case ListType():
            inner = values_from(array.values, kind.element_type)
            return _cut(array, inner)
        case MapType():
            pairs = zip(values_from(array.keys, kind.key_type), values_from(array.items, kind.value_type), strict=True)
            return _cut(array, list(pairs))
        case _:
            assert isinstance(kind, PrimitiveType)
            return python_values(array, kind)


def same(value: Any) -> Any:
    """A form in which equal rows compare equal: NaN is itself, zero has a sign."""
    if isinstance(value, float):
        return ("float", repr(value))
    if isinstance(value, dict):
        return {key: same(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [same(inner) for inner in value]
    return str(value) if isinstance(value, uuid.UUID) else value


def _struct_of(fields: Sequence[NestedField]) -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries({f.field_id: _field_of(f) for f in fields})


def _field_of(field: NestedField) -> st.SearchStrategy[Any]:
    values = _values_of(field.type)
    return values if field.required else st.none() | values


def _values_of(kind: Type) -> st.SearchStrategy[Any]:
    match kind:
        case StructType(fields):
            return _struct_of(fields)
        case ListType():
            return st.lists(_field_of(kind.element), max_size=3)
        case MapType():
            return st.lists(st.tuples(_field_of(kind.key), _field_of(kind.value)), max_size=2)
        case _:
            assert isinstance(kind, PrimitiveType)
            return values_of(kind)


def _nested(values: Sequence[Any], kind: pa.DataType, inner: pa.Array) -> pa.Array:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value or ()))
    valid = pa.array([v is not None for v in values], pa.bool_()).buffers()[1] if values else None
    buffers = [valid, pa.array(offsets, pa.int32()).buffers()[1]]
    return pa.Array.from_buffers(kind, len(values), buffers, children=[inner])


def _cut(array: pa.Array, inner: list[Any]) -> list[Any]:
    offsets = array.offsets.to_pylist()
    spans = zip(offsets, offsets[1:], array.is_valid().to_pylist(), strict=False)
    return [inner[start:stop] if ok else None for start, stop, ok in spans]


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
