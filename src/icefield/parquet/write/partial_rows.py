"""Rows with only some of a table's columns."""

from icefield.types.datatypes import ListType, MapType, NestedField, StructType, Type
from icefield.types.schema import Schema


def find_unnamed(incoming: Schema, schema: Schema) -> list[NestedField]:
    """Return the columns of a table that are missing from rows, or lack some fields of their structs."""
    given = {f.name: f.type for f in incoming.fields}
    return [f for f in schema.fields if not is_whole(given.get(f.name), f.type)]


def lacks_fields(given: Type, wanted: Type) -> bool:
    """Return whether structs of a column, also inside lists and maps, lack fields."""
    match given, wanted:
        case StructType(), StructType():
            named = {f.name: f.type for f in given.fields}
            return any(f.name not in named or lacks_fields(named[f.name], f.type) for f in wanted.fields)
        case ListType(), ListType():
            return lacks_fields(given.element_type, wanted.element_type)
        case MapType(), MapType():
            return lacks_fields(given.value_type, wanted.value_type)
        case _:
            return False


def is_whole(given: Type | None, wanted: Type) -> bool:
    """Return whether rows have a column with all fields of its structs. given: None if they do not have it."""
    if not isinstance(given, StructType) or not isinstance(wanted, StructType):
        return given is not None
    named = {f.name: f.type for f in given.fields}
    return all(is_whole(named.get(f.name), f.type) for f in wanted.fields)
