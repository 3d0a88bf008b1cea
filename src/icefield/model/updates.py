"""Changes to a table as data: updates and their requirements.

The names are those of the REST protocol (rest-catalog-open-api.yaml: TableUpdate, TableRequirement), so that the same
values can be sent to a server. `apply` applies updates, `check` checks requirements.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    from icefield.model.partition import PartitionSpec
    from icefield.model.snapshot import Snapshot, SnapshotRef
    from icefield.model.sort_order import SortOrder
    from icefield.model.statistics import StatisticsEntry
    from icefield.types.schema import Schema


@dataclass(frozen=True)
class UpgradeFormatVersion:
    format_version: int


@dataclass(frozen=True)
class AddSchema:
    schema: Schema


@dataclass(frozen=True)
class SetCurrentSchema:
    schema_id: int


@dataclass(frozen=True)
class RemoveSchemas:
    schema_ids: frozenset[int]


@dataclass(frozen=True)
class AddPartitionSpec:
    spec: PartitionSpec


@dataclass(frozen=True)
class SetDefaultSpec:
    spec_id: int


@dataclass(frozen=True)
class RemovePartitionSpecs:
    spec_ids: frozenset[int]


@dataclass(frozen=True)
class AddSortOrder:
    order: SortOrder


@dataclass(frozen=True)
class SetDefaultSortOrder:
    order_id: int


@dataclass(frozen=True)
class AddSnapshot:
    snapshot: Snapshot


@dataclass(frozen=True)
class SetSnapshotRef:
    name: str
    ref: SnapshotRef


@dataclass(frozen=True)
class RemoveSnapshotRef:
    name: str


@dataclass(frozen=True)
class RemoveSnapshots:
    snapshot_ids: frozenset[int]


@dataclass(frozen=True)
class SetLocation:
    location: str


@dataclass(frozen=True)
class SetStatistics:
    statistics: StatisticsEntry


@dataclass(frozen=True)
class RemoveStatistics:
    snapshot_id: int


@dataclass(frozen=True)
class SetPartitionStatistics:
    statistics: StatisticsEntry


@dataclass(frozen=True)
class RemovePartitionStatistics:
    snapshot_id: int


@dataclass(frozen=True)
class SetProperties:
    updates: Mapping[str, str]


@dataclass(frozen=True)
class RemoveProperties:
    removals: tuple[str, ...]


Update = (
    UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | RemoveSchemas
    | AddPartitionSpec
    | SetDefaultSpec
    | RemovePartitionSpecs
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshotRef
    | RemoveSnapshots
    | SetLocation
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | SetProperties
    | RemoveProperties
)


@dataclass(frozen=True)
class AssertTableUUID:
    """The table is still the same one, not another of the same name."""

    table_uuid: uuid.UUID


@dataclass(frozen=True)
class AssertRefSnapshotId:
    """A ref still points to the same snapshot; None: it does not exist."""

    ref: str
    snapshot_id: int | None


@dataclass(frozen=True)
class AssertCurrentSchemaId:
    schema_id: int


@dataclass(frozen=True)
class AssertDefaultSpecId:
    spec_id: int


@dataclass(frozen=True)
class AssertDefaultSortOrderId:
    order_id: int


@dataclass(frozen=True)
class AssertLastAssignedFieldId:
    field_id: int


@dataclass(frozen=True)
class AssertLastAssignedPartitionId:
    field_id: int


Requirement = (
    AssertTableUUID
    | AssertRefSnapshotId
    | AssertCurrentSchemaId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
    | AssertLastAssignedFieldId
    | AssertLastAssignedPartitionId
)
