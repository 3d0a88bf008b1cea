"""The format version that a schema requires. (spec: Primitive Types, "added by version"; Appendix E, Version 3)"""

from icefield.errors import InvalidInput
from icefield.types.datatypes import (
    GeographyType,
    GeometryType,
    NestedField,
    TimestampNsType,
    TimestamptzNsType,
    Type,
    UnknownType,
    VariantType,
    children,
    walk,
)
from icefield.types.schema import Schema

# All other types exist since version 1.
ADDED_IN = dict.fromkeys((UnknownType, TimestampNsType, TimestamptzNsType, VariantType, GeometryType, GeographyType), 3)
DEFAULTS_ADDED_IN = 3


def minimum_version(kind: Type) -> int:
    """Return the first version that has a type and all its nested types."""
    return max([ADDED_IN.get(type(kind), 1), *(minimum_version(f.type) for f in children(kind))])


def check_schema_version(schema: Schema, format_version: int) -> None:
    """Refuse a schema that a format version does not allow. Raises InvalidInput with the column."""
    for path, field in walk(schema.struct):
        what, needed = _need(field)
        if needed > format_version:
            raise InvalidInput(
                f"column {'.'.join(path)!r} needs format version {needed}, but the table has {format_version}: {what}",
                hint=f"Use a table of format version {needed}",
            )


def _need(field: NestedField) -> tuple[str, int]:
    # A write default alone is harmless: only writers use it. (spec: Appendix E, Version 3)
    if field.initial_default is not None:
        return f"it has the initial default {field.initial_default!r}", DEFAULTS_ADDED_IN
    return f"it is of type {field.type}", ADDED_IN.get(type(field.type), 1)
