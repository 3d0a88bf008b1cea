"""Columns that every row has without being stored as data: where it lies, and its lineage. (spec: Reserved Field IDs)

A table's own column hides a metadata column of the same name.
"""

from dataclasses import replace

from icefield.types.datatypes import IntegerType, LongType, NestedField, StringType
from icefield.types.schema import Schema

FILE = NestedField(2147483646, "_file", StringType(), required=True)
POSITION = NestedField(2147483645, "_pos", LongType(), required=True)
SPEC_ID = NestedField(2147483643, "_spec_id", IntegerType(), required=True)
ROW_ID = NestedField(2147483540, "_row_id", LongType())
LAST_UPDATED = NestedField(2147483539, "_last_updated_sequence_number", LongType())
# The two columns of position delete files.
DELETED_FILE = NestedField(2147483546, "file_path", StringType(), required=True)
DELETED_POSITION = NestedField(2147483545, "pos", LongType(), required=True)

LINEAGE = (ROW_ID, LAST_UPDATED)
SELECTABLE = (FILE, POSITION, SPEC_ID, *LINEAGE)
_IDS = frozenset(f.field_id for f in SELECTABLE)


def is_metadata_column(field_id: int) -> bool:
    """Say whether a column's values come from where its rows lie, and not from the data alone."""
    return field_id in _IDS


def with_metadata_columns(schema: Schema) -> Schema:
    """Return the schema with all metadata columns after its own."""
    taken = {f.name for f in schema.fields}
    return with_columns(schema, tuple(f for f in SELECTABLE if f.name not in taken))


def with_free_names(schema: Schema, columns: tuple[NestedField, ...]) -> tuple[Schema, tuple[str, ...]]:
    """Return the schema with some metadata columns, under names that it has not, and those names."""
    taken = {f.name for f in schema.fields}
    names = []
    for column in columns:
        name = column.name
        while name in taken:
            name = f"_{name}"
        taken.add(name)
        names.append(name)
    more = tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))
    return with_columns(schema, more), tuple(names)


def with_columns(schema: Schema, more: tuple[NestedField, ...]) -> Schema:
    """Return the schema with more columns at its end."""
    return Schema((*schema.fields, *more), schema.schema_id, schema.identifier_field_ids)
