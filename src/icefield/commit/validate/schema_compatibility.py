"""Whether rows that were written for one schema can stand in a table that has another one by now.

Columns that were added, dropped, renamed or widened meanwhile do not matter: files are read by field id. But a table
that was replaced may demand values that the rows do not have, or call another type by an old id.
"""

from icefield.errors import ConcurrentChange
from icefield.model.metadata import TableMetadata
from icefield.types.datatypes import NestedField, PrimitiveType
from icefield.types.evolve import can_widen
from icefield.types.schema import Schema


def check_fits(written: Schema, base: TableMetadata) -> None:
    """Refuse to add files of a schema to a table whose current one they cannot be read with."""
    if written.fields == base.schema.fields:
        return
    for field in base.schema.by_id.values():
        if why := _obstacle(field, written.by_id.get(field.field_id), base.format_version):
            raise ConcurrentChange(
                f"cannot add the rows: the table was meanwhile changed, and its column {field.name!r} {why}",
                hint="Nothing was changed; look at the table's new schema and run it again",
            )


def _obstacle(now: NestedField, written: NestedField | None, format_version: int) -> str | None:
    if written is None:
        is_missing = now.required and now.initial_default is None
        return "is required, but the rows do not have it" if is_missing else None
    if not isinstance(now.type, PrimitiveType):
        return None if type(now.type) is type(written.type) else f"is a {now.type} now"
    if now.type != written.type and not can_widen(written.type, now.type, format_version):
        return f"is a {now.type} now, and the rows have a {written.type}"
    return "is required now, and in the rows it is not" if now.required and not written.required else None
