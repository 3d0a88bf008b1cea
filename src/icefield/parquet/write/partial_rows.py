"""Rows with only some of a table's columns."""

from icefield.types.datatypes import NestedField, StructType, Type
from icefield.types.schema import Schema


def find_unnamed(incoming: Schema, schema: Schema) -> list[NestedField]:
    """Return the columns of a table that are missing from rows, or lack some fields of their structs."""
    given = {f.name: f.type for f in incoming.fields}
    return [f for f in schema.fields if not _is_whole(given.get(f.name), f.type)]


def _is_whole(given: Type | None, wanted: Type) -> bool:
    if not isinstance(given, StructType) or not isinstance(wanted, StructType):
        return given is not None
    named = {f.name: f.type for f in given.fields}
    return all(_is_whole(named.get(f.name), f.type) for f in wanted.fields)
