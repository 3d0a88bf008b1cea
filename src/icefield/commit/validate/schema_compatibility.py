"""Whether rows written for one schema can be added to a table whose schema has changed.

Columns that were concurrently added, dropped, renamed or widened do not matter: files are read by field id. But a table
that was replaced may require values that the rows lack, or use an old id for another type.
"""

from icefield.errors import ConcurrentChange
from icefield.model.metadata import TableMetadata
from icefield.types.datatypes import NestedField, PrimitiveType
from icefield.types.evolve import can_widen
from icefield.types.schema import Schema


def check_fits(written: Schema, base: TableMetadata) -> None:
    """Raise an error if files of a schema cannot be read with the table's current schema."""
    if why := find_obstacle(written, base):
        raise ConcurrentChange(
            f"cannot add the rows: the table was changed concurrently, and {why}",
            hint="Nothing was changed; check the table's new schema and run it again",
        )


def find_obstacle(written: Schema, base: TableMetadata) -> str | None:
    """Return why files of a schema cannot be read with the table's current schema; None if they can."""
    if written.fields == base.schema.fields:
        return None
    for field in base.schema.by_id.values():
        if why := _obstacle(field, written.by_id.get(field.field_id), base.format_version):
            return f"its column {field.name!r} {why}"
    return None


def _obstacle(now: NestedField, written: NestedField | None, format_version: int) -> str | None:
    if written is None:
        is_missing = now.required and now.initial_default is None
        return "is required, but the rows do not have it" if is_missing else None
    if not isinstance(now.type, PrimitiveType):
        return None if type(now.type) is type(written.type) else f"now has type {now.type}"
    if now.type != written.type and not can_widen(written.type, now.type, format_version):
        return f"now has type {now.type}, but the rows have {written.type}"
    return "is now required, but not in the rows" if now.required and not written.required else None
