"""The definition of a table as users write it: a schema in any form, partition fields and sort order as strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from icefield.codec.json.name_mapping import PROPERTY
from icefield.commit.validate.key_history import IDEMPOTENCY_KEYS, STREAM
from icefield.commit.validate.ownership import ROOT_PROPERTIES
from icefield.deferred import deferred_imports
from icefield.model.metadata import TableMetadata
from icefield.properties.format_versions import FORMAT_VERSION

with deferred_imports(__name__):
    from icefield.commit.actions.create import TableDefinition
    from icefield.engine.rows import as_schema
    from icefield.history.checks import check_new_checks
    from icefield.model.partition import parse_partition_by
    from icefield.model.sort_order import parse_order_by
    from icefield.properties.check import check_new_properties
    from icefield.types.datatypes import NestedField, children, with_children
    from icefield.types.schema import Schema, assign_fresh_ids
    from icefield.types.transforms import Void


def define_table(
    schema: object,
    partition_by: Sequence[str] = (),
    order_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    format_version: int = FORMAT_VERSION,
) -> TableDefinition:
    """Parse a definition. Raises InvalidInput; warns about properties that have no effect."""
    fields = assign_fresh_ids(as_schema(schema))
    check_properties(properties or {}, fields)
    partition, order = parse_partition_by(partition_by, fields), parse_order_by(order_by, fields)
    return TableDefinition(fields, partition, order, dict(properties or {}), format_version)


def check_properties(properties: Mapping[str, str], schema: Schema) -> None:
    """Refuse new properties that are misspelled, or that are checks which do not fit; warn of those without effect."""
    check_new_properties(properties)
    check_new_checks(properties, schema)


def define_like(metadata: TableMetadata, properties: Mapping[str, str] | None = None) -> TableDefinition:
    """Return the definition of an empty table like another one; it has a location, and a history, of its own."""
    kept = {key: value for key, value in metadata.properties.items() if not _is_of_one_table(key)}
    check_properties(properties or {}, metadata.schema)
    spec, order = metadata.spec, metadata.sort_order
    return TableDefinition(
        replace(metadata.schema, schema_id=0),
        replace(spec, spec_id=0, fields=tuple(f for f in spec.fields if not isinstance(f.transform, Void))),
        replace(order, order_id=min(order.order_id, 1)),
        {**kept, **(properties or {})},
        metadata.format_version,
    )


def all_optional(schema: Schema) -> Schema:
    """Return a schema in which every column and every field allows nulls, except the keys of maps."""

    def optional(field: NestedField) -> NestedField:
        inner = with_children(field.type, tuple(map(optional, children(field.type))))
        return replace(field, type=inner, required=False)

    return Schema(tuple(map(optional, schema.fields)))


def _is_of_one_table(key: str) -> bool:
    return key in ROOT_PROPERTIES or key == PROPERTY or key.startswith((IDEMPOTENCY_KEYS, STREAM))
