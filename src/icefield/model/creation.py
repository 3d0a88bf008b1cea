"""A new table as the list of updates that creates it. (rest-catalog-open-api.yaml: updateTable)

`creation_updates` splits the first metadata of a table into updates, `create_from` builds it from them, with any
further updates in the list. Raises InvalidInput for a list that lacks a required part.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.model.sort_order import UNSORTED
from icefield.model.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    Update,
    UpgradeFormatVersion,
)
from icefield.properties.format_versions import FORMAT_VERSION

with deferred_imports(__name__):
    from icefield.model.apply import apply


@dataclass(frozen=True)
class AssignUUID:
    """Sets the uuid of a new table or view."""

    uuid: uuid.UUID


@dataclass(frozen=True)
class AssertCreate:
    """The table does not exist yet."""


TableUpdate = Update | AssignUUID


def creation_updates(metadata: TableMetadata) -> list[TableUpdate]:
    """Return the updates that create an empty table."""
    return [
        AssignUUID(metadata.table_uuid),
        UpgradeFormatVersion(metadata.format_version),
        AddSchema(metadata.schema),
        SetCurrentSchema(metadata.current_schema_id),
        AddPartitionSpec(metadata.spec),
        SetDefaultSpec(metadata.default_spec_id),
        *(AddSortOrder(order) for order in metadata.sort_orders),
        SetDefaultSortOrder(metadata.default_sort_order_id),
        SetLocation(metadata.location),
        SetProperties(metadata.properties),
    ]


def create_from(updates: Sequence[TableUpdate], now_ms: int) -> TableMetadata:
    """Create a table from a list of updates."""
    schema = _first(updates, AddSchema).schema
    spec = _first(updates, AddPartitionSpec).spec
    order = _first(updates, AddSortOrder).order
    versions = [u.format_version for u in updates if isinstance(u, UpgradeFormatVersion)]
    first = TableMetadata(
        table_uuid=_first(updates, AssignUUID).uuid,
        location=_first(updates, SetLocation).location,
        last_updated_ms=now_ms,
        last_column_id=schema.highest_field_id,
        schemas=(schema,),
        current_schema_id=schema.schema_id,
        format_version=versions[0] if versions else FORMAT_VERSION,
        specs=(spec,),
        default_spec_id=spec.spec_id,
        last_partition_id=spec.highest_field_id,
        sort_orders=(UNSORTED,) if order.is_unsorted else (UNSORTED, order),
        default_sort_order_id=order.order_id,
    )
    made = (AddSchema(schema), AddPartitionSpec(spec), AddSortOrder(order))
    return apply(first, [u for u in updates if not isinstance(u, AssignUUID) and u not in made], now_ms)


T = TypeVar("T")


def _first(updates: Sequence[Any], kind: type[T]) -> T:
    for update in updates:
        if isinstance(update, kind):
            return update
    raise InvalidInput(f"the updates do not create a table: there is no {kind.__name__}")
