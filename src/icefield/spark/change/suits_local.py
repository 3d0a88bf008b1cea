"""Whether the local engine's code may apply a MERGE whose source comes from Spark."""

from icefield.engine.change import ChangePlan
from icefield.model.metadata import TableMetadata
from icefield.types.datatypes import (
    GeographyType,
    GeometryType,
    TimestampNsType,
    TimestamptzNsType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

# Spark has these as values of other types.
_OTHER_IN_SPARK = (
    UUIDType,
    TimeType,
    TimestampNsType,
    TimestamptzNsType,
    UnknownType,
    VariantType,
    GeometryType,
    GeographyType,
)


def suits_local(plan: ChangePlan, base: TableMetadata) -> bool:
    """Return whether it needs neither sorted rows, nor subqueries, nor values that Spark has as another type."""
    return (
        base.sort_order.is_unsorted
        and not plan.relations.names
        and not any(isinstance(f.type, _OTHER_IN_SPARK) for f in base.schema.by_id.values())
    )
