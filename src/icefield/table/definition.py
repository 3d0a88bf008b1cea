"""The definition of a table as users write it: a schema in any form, partition fields and sort order as strings."""

from collections.abc import Mapping, Sequence

from icefield.commit.actions.create import TableDefinition
from icefield.engine.rows import as_schema
from icefield.model.metadata import FORMAT_VERSION
from icefield.model.partition import parse_partition_by
from icefield.model.sort_order import parse_order_by
from icefield.properties.check import check_new_properties
from icefield.types.schema import assign_fresh_ids


def define_table(
    schema: object,
    partition_by: Sequence[str] = (),
    order_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    format_version: int = FORMAT_VERSION,
) -> TableDefinition:
    """Parse a definition. Raises InvalidInput; warns about properties that have no effect."""
    check_new_properties(properties or {}, stacklevel=5)
    fields = assign_fresh_ids(as_schema(schema))
    partition, order = parse_partition_by(partition_by, fields), parse_order_by(order_by, fields)
    return TableDefinition(fields, partition, order, dict(properties or {}), format_version)
