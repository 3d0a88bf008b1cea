"""Logical columns from physical ones: uuids are strings, structs have the requested fields."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from icefield.expr.render.spark_sql import is_identifier, quoted_path
from icefield.types.datatypes import ListType, MapType, NestedField, StructType, Type, UUIDType, children
from icefield.types.schema import Schema

ColumnOrText = Column | str
UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


def to_logical(column: Column, kind: Type) -> Column:
    """Convert physical values to logical ones: uuids, at any depth, become strings."""
    if not holds_uuid(kind):
        return column
    match kind:
        case UUIDType():
            digits = F.lower(F.hex(column))
            text = F.concat_ws("-", *(F.substring(digits, start, length) for start, length in UUID_PARTS))
            return F.when(column.isNotNull(), text)
        case StructType(fields):
            parts = [to_logical(column.getField(f.name), f.type).alias(f.name) for f in fields]
            return F.when(column.isNotNull(), F.struct(*parts))
        case ListType():
            return F.transform(column, lambda item: to_logical(item, kind.element_type))
        case MapType():
            return F.transform_values(
                F.transform_keys(column, lambda key, _: to_logical(key, kind.key_type)),
                lambda _, value: to_logical(value, kind.value_type),
            )
        case _:
            return column


def to_logical_as(physical: str, field: NestedField, *, metadata: Mapping[str, str] | None = None) -> ColumnOrText:
    """Convert a physical column to its logical form and name; metadata: replaces its own."""
    is_plain = is_identifier(physical) and is_identifier(field.name) and not holds_uuid(field.type)
    if is_plain and metadata is None:
        return f"{quoted_path([physical])} AS {quoted_path([field.name])}"
    logical = to_logical(F.col(quoted_path([physical])), field.type)
    return logical.alias(field.name) if metadata is None else logical.alias(field.name, metadata=dict(metadata))


def narrow(frame: DataFrame, full: Schema, select: Schema) -> DataFrame:
    """Keep the selected columns; of a partially selected struct, keep that part."""
    if full.fields == select.fields:
        return frame
    # By position: Spark does not distinguish names that differ only by case.
    names = {f.field_id: f"icefield_{at}" for at, f in enumerate(full.fields)}
    renamed = frame.toDF(*names.values())
    return select_all(renamed, [_chosen(names[f.field_id], f, full.by_id[f.field_id].type) for f in select.fields])


def select_all(frame: DataFrame, columns: Sequence[ColumnOrText]) -> DataFrame:
    """Select columns; as text if possible, because a column takes three calls to the JVM, and text one."""
    strings = [column for column in columns if isinstance(column, str)]
    if len(strings) == len(columns):
        return frame.selectExpr(*strings)
    return frame.select([F.expr(column) if isinstance(column, str) else column for column in columns])


def _chosen(name: str, field: NestedField, full: Type) -> ColumnOrText:
    if field.type == full and is_identifier(field.name):
        return f"{name} AS {quoted_path([field.name])}"
    return _narrowed(F.col(name), full, field.type).alias(field.name)


def _narrowed(column: Column, full: Type, kept: Type) -> Column:
    if full == kept:
        return column
    match full, kept:
        case StructType(), StructType():
            inner = {f.field_id: f.type for f in full.fields}
            parts = [_narrowed(column.getField(f.name), inner[f.field_id], f.type).alias(f.name) for f in kept.fields]
            return F.when(column.isNotNull(), F.struct(*parts))
        case ListType(), ListType():
            return F.transform(column, lambda item: _narrowed(item, full.element_type, kept.element_type))
        case MapType(), MapType():
            return F.transform_values(column, lambda _, value: _narrowed(value, full.value_type, kept.value_type))
        case _:
            return column


def holds_uuid(kind: Type) -> bool:
    """Return whether a type is a uuid, or contains one."""
    return isinstance(kind, UUIDType) or any(holds_uuid(f.type) for f in children(kind))
