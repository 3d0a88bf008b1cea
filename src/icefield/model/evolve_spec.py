"""Evolve a partition spec by the rules of the format. (spec: Partition Evolution)

Old files keep the spec they were written with. A field that was in an earlier spec gets its old id again, so that an id
always means one transform of one column. Raises InvalidInput.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput

with deferred_imports(__name__):
    from icefield.model.partition import PartitionField, PartitionSpec, check_spec, find_source, parse_transform_call
    from icefield.types.schema import Schema
    from icefield.types.transforms import Void


def add_partition_field(
    spec: PartitionSpec, text: str, name: str | None, schema: Schema, draw_id: Callable[[PartitionField], int]
) -> PartitionSpec:
    """Add `transform(column)` to a spec; `draw_id` returns its id."""
    transform, column = parse_transform_call(text)
    source = find_source(schema, column, transform, text)
    chosen = name or transform.default_name(schema.name_of(source.field_id))
    field = PartitionField(source.field_id, 0, chosen, transform)
    kept = tuple(_without_name(f, chosen) for f in spec.fields)
    changed = replace(spec, fields=(*kept, replace(field, field_id=draw_id(field))))
    check_spec(changed, schema)
    return changed


def _without_name(field: PartitionField, name: str) -> PartitionField:
    """Rename a dropped field of version 1 that occupies a name."""
    is_taken = field.name == name and isinstance(field.transform, Void)
    return replace(field, name=f"{field.name}_{field.field_id}") if is_taken else field


def drop_partition_field(spec: PartitionSpec, name: str, *, keep_void: bool) -> PartitionSpec:
    """Remove a field from a spec; in version 1 it becomes void, because fields are identified by position there."""
    found = find_partition_field(spec, name)
    if keep_void:
        return replace(spec, fields=tuple(replace(f, transform=Void()) if f == found else f for f in spec.fields))
    return replace(spec, fields=tuple(f for f in spec.fields if f != found))


def rename_partition_field(spec: PartitionSpec, name: str, new_name: str, schema: Schema) -> PartitionSpec:
    """Rename a field."""
    found = find_partition_field(spec, name)
    changed = replace(spec, fields=tuple(replace(f, name=new_name) if f == found else f for f in spec.fields))
    check_spec(changed, schema)
    return changed


def find_partition_field(spec: PartitionSpec, name: str) -> PartitionField:
    """Find a field by its name; dropped fields of version 1 are not found."""
    for field in spec.fields:
        if field.name == name and not isinstance(field.transform, Void):
            return field
    known = ", ".join(f.name for f in spec.fields if not isinstance(f.transform, Void)) or "none"
    raise InvalidInput(f"no partition field {name!r} (partition fields: {known})")


def known_field_id(specs: Iterable[PartitionSpec], field: PartitionField, current: PartitionSpec) -> int | None:
    """Return the id that the same transform of the same column had in an older spec.

    Dropped fields of version 1 stay in the current spec, as void, and keep their ids.
    """
    taken = {kept.field_id for kept in current.fields}
    for spec in specs:
        for old in spec.fields:
            is_same = (old.source_ids, old.transform) == (field.source_ids, field.transform)
            if is_same and old.field_id not in taken:
                return old.field_id
    return None
