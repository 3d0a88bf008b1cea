"""Metadata columns, which are not stored as data: the position of a row and its lineage. (spec: Reserved Field IDs)

They are identified by their reserved ids, never by name: a table may have columns of any name. A table's column hides a
metadata column of the same name, ignoring case: neither Spark nor filters distinguish case.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from icefield.types.datatypes import BooleanType, IntegerType, LongType, NestedField, StringType, StructType
from icefield.types.schema import Schema

FILE = NestedField(2147483646, "_file", StringType(), required=True)
POSITION = NestedField(2147483645, "_pos", LongType(), required=True)
# A scan that selects it returns deleted rows too.
DELETED = NestedField(2147483644, "_deleted", BooleanType(), required=True)
SPEC_ID = NestedField(2147483643, "_spec_id", IntegerType(), required=True)
ROW_ID = NestedField(2147483540, "_row_id", LongType())
LAST_UPDATED = NestedField(2147483539, "_last_updated_sequence_number", LongType())
# The two columns of position delete files.
DELETED_FILE = NestedField(2147483546, "file_path", StringType(), required=True)
DELETED_POSITION = NestedField(2147483545, "pos", LongType(), required=True)

PARTITION_ID = 2147483642
# The fields of `_partition` have their own ids: those of partition specs start at 1000 and may collide with columns.
_FIRST_OF_PARTITION = 2147400000
_LAST_OF_PARTITION = 2147480000

LINEAGE = (ROW_ID, LAST_UPDATED)
SELECTABLE = (FILE, POSITION, DELETED, SPEC_ID, *LINEAGE)
# Those that a file and the position in it determine, and that a change can be filtered on.
OF_LIVE_ROWS = (FILE, POSITION, SPEC_ID, *LINEAGE)
_IDS = frozenset({PARTITION_ID, *(f.field_id for f in SELECTABLE)})


def is_metadata_column(field_id: int) -> bool:
    """Return whether a field is a metadata column, or a field of `_partition`."""
    return field_id in _IDS or is_partition_field(field_id)


def is_partition_field(field_id: int) -> bool:
    """Return whether a field is one of `_partition`."""
    return _FIRST_OF_PARTITION <= field_id <= _LAST_OF_PARTITION


@lru_cache(maxsize=64)  # every scan needs it, and a table has few schemas
def with_metadata_columns(schema: Schema, partition: tuple[NestedField, ...] = ()) -> Schema:
    """Return the schema with all metadata columns after its own; `partition`: the fields of all partition specs."""
    taken = {f.name.lower() for f in schema.fields}
    columns = (*SELECTABLE, *_partition_column(partition))
    return with_columns(schema, tuple(f for f in columns if f.name not in taken))


def _partition_column(partition: Sequence[NestedField]) -> Iterable[NestedField]:
    fields = (replace(f, field_id=partition_field_id(at)) for at, f in enumerate(partition))
    return [NestedField(PARTITION_ID, "_partition", StructType(tuple(fields)), required=True)] if partition else []


def partition_field_id(at: int) -> int:
    """Return the id that the field at an index of `_partition` has in schemas."""
    return _FIRST_OF_PARTITION + at


def with_free_names(schema: Schema, columns: tuple[NestedField, ...]) -> tuple[Schema, tuple[str, ...]]:
    """Return the schema with some metadata columns, under names that it has in no case, and those names."""
    taken = {f.name.lower() for f in schema.fields}
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
