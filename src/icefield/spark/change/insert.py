"""The rows of INSERT: the columns of a query as columns of a table, by the rules of store assignment.

    INSERT INTO shop.items (name, qty) SELECT 7, 2.5      name '7', qty 2 (an int), the other columns by default

Raises SchemaMismatch for a type that cannot be assigned.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark

from icefield.spark.change.store_assignment import is_stored_as_it_is, store
from icefield.spark.types import logical_field
from icefield.types.datatypes import (
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNsType,
    TimestamptzNsType,
    TimeType,
    Type,
)
from icefield.types.schema import Schema


def rows_to_insert(
    frame: DataFrame, columns: Sequence[str], schema: Schema, constants: Mapping[str, str], *, by_position: bool
) -> DataFrame:
    """Return rows that can be appended to a table.

    columns: the column of the table, or the new one, for each column of the frame. constants: further columns, as SQL
    text. by_position: fields of structs are matched by position, too.
    """
    names = [f"c{at}" for at in range(len(columns))]
    placed = frame.toDF(*names)
    given = {f.name: f.dataType for f in placed.schema.fields}
    values = [(F.col(name), given[name], column) for name, column in zip(names, columns, strict=True)]
    if constants:
        typed = placed.select([F.expr(text).alias(f"v{at}") for at, text in enumerate(constants.values())]).schema
        fixed = zip(constants.items(), typed.fields, strict=True)
        values += [(F.expr(text), field.dataType, column) for (column, text), field in fixed]
    wanted = {f.name: f.type for f in schema.fields}
    stored = [
        _stored(value, kind, wanted[column], column, by_position=by_position) if column in wanted else value
        for value, kind, column in values
    ]
    return placed.select([value.alias(column) for value, (_, _, column) in zip(stored, values, strict=True)])


def _stored(value: Column, given: spark.DataType, wanted: Type, column: str, *, by_position: bool) -> Column:
    if isinstance(wanted, TimeType):
        return value
    kind = _type_of(wanted)
    if by_position and not is_stored_as_it_is(given, kind):
        named = _named_like(given, kind)
        value, given = (value, given) if named == given else (value.cast(named), named)
    return store(value, given, kind, column)


def _type_of(kind: Type) -> spark.DataType:
    """Return the type that values of a column are given in; nanoseconds are written from microseconds."""
    match kind:
        case TimestampNsType():
            return spark.TimestampNTZType()
        case TimestamptzNsType():
            return spark.TimestampType()
        case StructType(fields):
            return spark.StructType([spark.StructField(f.name, _type_of(f.type)) for f in fields])
        case ListType():
            return spark.ArrayType(_type_of(kind.element_type))
        case MapType():
            return spark.MapType(_type_of(kind.key_type), _type_of(kind.value_type))
        case _:
            return logical_field(NestedField(1, "value", kind, required=False)).dataType


def _named_like(given: spark.DataType, wanted: spark.DataType) -> spark.DataType:
    """Return a type whose structs have the names of another one, field by field."""
    match given, wanted:
        case spark.StructType(), spark.StructType() if len(given.fields) == len(wanted.fields):
            pairs = zip(given.fields, wanted.fields, strict=True)
            return spark.StructType(
                [spark.StructField(w.name, _named_like(g.dataType, w.dataType), g.nullable) for g, w in pairs]
            )
        case spark.ArrayType(), spark.ArrayType():
            return spark.ArrayType(_named_like(given.elementType, wanted.elementType), given.containsNull)
        case spark.MapType(), spark.MapType():
            key, value = _named_like(given.keyType, wanted.keyType), _named_like(given.valueType, wanted.valueType)
            return spark.MapType(key, value, given.valueContainsNull)
        case _:
            return given
