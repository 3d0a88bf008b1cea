"""Convert incoming Arrow rows to a table's schema, or refuse them.

Columns are matched by name at every depth; order does not matter. Lossless conversions are made (int to long, float to
double, a larger decimal, coarser time units); a missing column gets its write default, or null. Everything else is
refused: by `check_arrow_schema` before any row is read, or by `conform_batch` if it depends on the values.
Raises SchemaMismatch.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import SchemaMismatch
from icefield.types.arrow import arrow_field, arrow_schema, arrow_type, repeated_value, schema_from_arrow
from icefield.types.arrow_nested import list_around, map_around, struct_around, without_unused
from icefield.types.datatypes import (
    UUID_BYTES,
    BinaryType,
    FixedType,
    GeographyType,
    GeometryType,
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
    VariantType,
    children,
    with_children,
)
from icefield.types.evolve import can_widen
from icefield.types.schema import Schema

_PLAIN_OF_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


@lru_cache(maxsize=64)
def check_arrow_schema(incoming: pa.Schema, schema: Schema) -> None:
    """Refuse an Arrow schema whose rows cannot be written to the table, with all errors.

    What fits is remembered. Arrow schemas are equal without their metadata, which has no part in this.
    """
    check_schema(schema_from_arrow(incoming), schema)


def check_schema(incoming: Schema, schema: Schema, *, is_partial: bool = False) -> None:
    """Refuse a schema whose rows cannot be written to the table, with all errors.

    is_partial: columns that are missing from the rows, even required ones, may be taken from existing rows.
    """
    faults = list(_struct_faults(incoming.struct, schema.struct, "", is_partial=is_partial))
    if faults:
        raise SchemaMismatch(
            f"the rows do not match the table schema: {'; '.join(faults)}",
            hint=f"The table's columns: {', '.join(f'{f.name} {f.type}' for f in schema.fields)}",
        )


def news_of(incoming: Schema, schema: Schema) -> tuple[NestedField, ...]:
    """Return the columns of rows that the table lacks, or that need a wider type in the table.

    A nullable column of the rows stays required in the table: only the rows themselves show whether there is a null.
    """
    return tuple(_news(incoming.fields, schema.fields))


def conform_batch(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Return the batch with the table's columns, types and order; the schema was checked before."""
    return pa.RecordBatch.from_arrays(conform_columns(batch, schema.fields), schema=arrow_schema(schema))


def conform_columns(batch: pa.RecordBatch, fields: Iterable[NestedField]) -> list[pa.Array]:
    """Return some of the table's columns of a batch; missing ones have their default."""
    given = {name: at for at, name in enumerate(batch.schema.names)}
    return [
        conform_array(batch.column(given[f.name]), f) if f.name in given else _absent(f, batch.num_rows) for f in fields
    ]


def conform_array(array: pa.Array, field: NestedField) -> pa.Array:
    """Return one column with the Arrow type of its field; refuse nulls where the field is required."""
    conformed = _conform(array, field, field.name)
    _check_nulls(conformed, field, field.name, None)
    return conformed


def conform_column(array: pa.Array | None, field: NestedField, batch: pa.RecordBatch) -> pa.Array:
    """Return a column of a batch with the type of its field, or None if it is missing; nulls are not checked."""
    return _absent(field, batch.num_rows) if array is None else _conform(array, field, field.name)


def _struct_faults(incoming: StructType, wanted: StructType, path: str, *, is_partial: bool = False) -> Iterator[str]:
    given = {f.name: f for f in incoming.fields}
    for field in wanted.fields:
        name = f"{path}{field.name}"
        if field.name not in given:
            if field.required and field.write_default is None and not is_partial:
                yield f"required column {name!r} is missing"
            continue
        yield from _type_faults(given.pop(field.name).type, field.type, name, is_partial=is_partial)
    known = {field.name.lower(): field.name for field in wanted.fields}
    for name in given:
        other = f", which has {path + known[name.lower()]!r}" if name.lower() in known else ""
        yield f"column {path + name!r} is not in the table{other}"


def _type_faults(incoming: Type, wanted: Type, path: str, *, is_partial: bool = False) -> Iterator[str]:
    match incoming, wanted:
        case StructType(), StructType():
            yield from _struct_faults(incoming, wanted, f"{path}.", is_partial=is_partial)
        case ListType(), ListType():
            yield from _type_faults(incoming.element_type, wanted.element_type, f"{path}.element")
        case MapType(), MapType():
            yield from _type_faults(incoming.key_type, wanted.key_type, f"{path}.key")
            yield from _type_faults(incoming.value_type, wanted.value_type, f"{path}.value")
        case _:
            if not _widens(incoming, wanted):
                yield f"column {path!r} is {incoming}, but the table has {wanted}"


def _news(incoming: tuple[NestedField, ...], wanted: tuple[NestedField, ...]) -> Iterator[NestedField]:
    known = {f.name: f for f in wanted}
    lower = {f.name.lower(): f.name for f in wanted}
    for field in incoming:
        ours = known.get(field.name)
        if ours is None and field.name.lower() in lower:
            raise SchemaMismatch(
                f"cannot merge the schema of the rows: the table has {lower[field.name.lower()]!r}, the rows "
                f"{field.name!r}, which differ only in case, and Spark cannot distinguish them",
                hint="Rename the column of the rows; to keep both, add it with table.evolve()",
            )
        if ours is None:
            yield field
        elif not _widens(field.type, ours.type):
            kind = _news_of_type(field.type, ours.type)
            if kind != StructType(()):
                yield replace(field, type=kind, required=ours.required)


def _news_of_type(incoming: Type, wanted: Type) -> Type:
    match incoming, wanted:
        case StructType(), StructType():
            return StructType(tuple(_news(incoming.fields, wanted.fields)))
        case (ListType(), ListType()) | (MapType(), MapType()):
            pairs = zip(children(incoming), children(wanted), strict=True)
            inner = (replace(a, type=_news_of_type(a.type, b.type), required=b.required) for a, b in pairs)
            return with_children(incoming, tuple(inner))
        case _:
            return wanted if _widens(incoming, wanted) else incoming


def _widens(incoming: Type, wanted: Type) -> bool:
    match incoming, wanted:
        case UnknownType(), _:
            return True
        case ((FixedType(16) | StringType()), UUIDType()):
            return True
        case BinaryType(), (GeometryType() | GeographyType()):
            return True
        case (TimestampType(), TimestampNsType()) | (TimestamptzType(), TimestamptzNsType()):
            return True
        case _:
            return incoming == wanted or can_widen(incoming, wanted)


def _absent(field: NestedField, rows: int) -> pa.Array:
    """Return the values of a field that is missing from the rows. (spec: Default values)"""
    if field.write_default is None:
        return _nulls(field, rows)
    if isinstance(field.type, StructType):
        columns = [_absent(f, rows) for f in field.type.fields]
        return pa.StructArray.from_arrays(columns, fields=[arrow_field(f) for f in field.type.fields])
    return repeated_value(field.write_default, field.type, rows)


def _nulls(field: NestedField, rows: int) -> pa.Array:
    nulls = pa.nulls(rows, arrow_type(field.type))
    return _conform_struct(nulls, field.type.fields, field.name) if isinstance(field.type, StructType) else nulls


def _conform(array: pa.Array, field: NestedField, path: str) -> pa.Array:
    if pa.types.is_null(array.type):
        return _nulls(field, len(array))
    if pa.types.is_dictionary(array.type):
        array = _decode_dictionary(array)
    match field.type:
        case StructType(fields):
            return _conform_struct(array, fields, path)
        case ListType():
            return _conform_list(array, field.type, path)
        case MapType():
            return _conform_map(array, field.type, path)
        case UUIDType():
            return _conform_uuid(array, path)
        case VariantType():
            return array
        case _:
            return _cast(array, field.type, path)


def _decode_dictionary(array: pa.DictionaryArray) -> pa.Array:
    """Return the values of a dictionary column; Arrow's `take` does not support view types, which Polars uses."""
    plain = _PLAIN_OF_VIEWS.get(array.type.value_type)
    if plain is not None:
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(plain))
    return array.dictionary_decode()


def _cast(array: pa.Array, kind: PrimitiveType, path: str) -> pa.Array:
    target = arrow_type(kind)
    if array.type == target:
        return array
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(f"column {path!r} holds a value that is not a valid {kind}: {error}") from error


def _conform_struct(array: pa.Array, fields: tuple[NestedField, ...], path: str) -> pa.Array:
    given = {array.type.field(i).name: i for i in range(array.type.num_fields)}
    inner = array.flatten()  # applies the struct's own nulls to its children
    columns = [
        _conform(inner[given[f.name]], f, f"{path}.{f.name}") if f.name in given else _absent(f, len(array))
        for f in fields
    ]
    return struct_of(array, fields, columns)


def struct_of(array: pa.StructArray, fields: tuple[NestedField, ...], columns: Sequence[pa.Array]) -> pa.StructArray:
    """Return a struct array of these columns that is null where `array` is."""
    # The Parquet writer checks a required column without its struct, and refuses nulls that belong to the struct.
    settled = [
        _all_valid(c) if f.required and _is_null_with(array, c) else c for f, c in zip(fields, columns, strict=True)
    ]
    return struct_around(array, fields, settled)


def _is_null_with(parent: pa.Array, column: pa.Array) -> bool:
    """Return whether a column has nulls, and all of them where its struct is null."""
    return column.null_count > 0 and not pc.any(pc.and_(column.is_null(), parent.is_valid())).as_py()


def _all_valid(array: pa.Array) -> pa.Array:
    """Return the array with no value marked as null; the values under nulls are never read."""
    if isinstance(array.type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(array.type, _all_valid(array.storage))
    if pa.types.is_struct(array.type):
        return pa.StructArray.from_arrays(
            [array.field(i) for i in range(array.type.num_fields)], fields=list(array.type)
        )
    own = array.buffers()[1 : 2 if pa.types.is_nested(array.type) else None]
    return pa.Array.from_buffers(array.type, len(array), [None, *own], 0, array.offset, _inside(array))


def _inside(array: pa.Array) -> list[pa.Array] | None:
    if pa.types.is_map(array.type):
        fields = [array.type.key_field, array.type.item_field]
        return [pa.StructArray.from_arrays([array.keys, array.items], fields=fields)]
    return [array.values] if pa.types.is_list(array.type) else None


def _conform_list(array: pa.Array, kind: ListType, path: str) -> pa.Array:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    array = without_unused(array)
    return list_around(array, kind, _conform(array.values, kind.element, f"{path}.element"))


def _conform_map(array: pa.Array, kind: MapType, path: str) -> pa.Array:
    array = without_unused(array)
    keys = _conform(array.keys, kind.key, f"{path}.key")
    items = _conform(array.items, kind.value, f"{path}.value")
    return map_around(array, kind, keys, items)


def _conform_uuid(array: pa.Array, path: str) -> pa.Array:
    storage: Any = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    if pa.types.is_binary(storage.type) or pa.types.is_large_binary(storage.type):
        storage = _cast(storage, FixedType(UUID_BYTES), path)  # Spark has no type for bytes of one length
    elif not pa.types.is_fixed_size_binary(storage.type):
        storage = pa.array([_uuid_bytes(v, path) for v in storage.to_pylist()], pa.binary(UUID_BYTES))
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _uuid_bytes(text: str | None, path: str) -> bytes | None:
    if text is None:
        return None
    try:
        return uuid.UUID(text).bytes
    except ValueError as error:
        raise SchemaMismatch(f"column {path!r} holds {text!r}, which is not a valid UUID") from error


def _check_nulls(array: pa.Array, field: NestedField, path: str, parent: pa.Array | None) -> None:
    """Refuse nulls in required fields, wherever their parent is not null itself."""
    if field.required and array.null_count:
        nulls = array.is_null() if parent is None else pc.and_(array.is_null(), parent.is_valid())
        count = pc.sum(nulls).as_py() or 0
        if count:
            raise SchemaMismatch(f"required column {path!r} holds {count} null{'s' if count > 1 else ''}")
    if array.null_count == len(array):
        return  # it is empty, and Arrow cannot build an empty array of uuids from it
    match field.type:
        case StructType(fields):
            for child, inner in zip(fields, array.flatten(), strict=True):
                _check_nulls(inner, child, f"{path}.{child.name}", array)
        case ListType():
            _check_nulls(array.flatten(), field.type.element, f"{path}.element", None)
        case MapType():
            kind, own = pa.list_(array.type.item_field), array.buffers()[:2]
            items = pa.ListArray.from_buffers(kind, len(array), own, array.null_count, array.offset, [array.items])
            _check_nulls(items.flatten(), field.type.value, f"{path}.value", None)
        case _:
            return
