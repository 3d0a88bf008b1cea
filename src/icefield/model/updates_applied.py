"""Check whether updates were applied to a table, to resolve the outcome of a change without a snapshot.

Only what the updates change is compared with the table as they would have left it; other changes are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from icefield.deferred import deferred_imports
from icefield.model.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
)

with deferred_imports(__name__):
    from icefield.model.metadata import TableMetadata


def updates_applied(table: TableMetadata, updates: Iterable[Update], wanted: TableMetadata) -> bool:
    """Return whether a table shows the updates; wanted: their base with all of them applied."""
    return all(MADE[type(update)](table, wanted, update) for update in updates)


def has_snapshot(table: TableMetadata, update: AddSnapshot) -> bool:
    """Return whether a table has this snapshot, and not one of another attempt."""
    found = table.snapshots.find(update.snapshot.snapshot_id)
    return found is not None and found.manifest_list == update.snapshot.manifest_list


def _same_ref(table: TableMetadata, wanted: TableMetadata, update: SetSnapshotRef | RemoveSnapshotRef) -> bool:
    return table.refs.get(update.name) == wanted.refs.get(update.name)


def _same_properties(table: TableMetadata, wanted: TableMetadata, keys: Iterable[str]) -> bool:
    return all(table.properties.get(key) == wanted.properties.get(key) for key in keys)


def _anything(table: TableMetadata, wanted: TableMetadata, update: Any) -> bool:
    return True  # what matters is whether it is referenced


MADE: dict[type, Callable[[TableMetadata, TableMetadata, Any], bool]] = {
    UpgradeFormatVersion: lambda table, wanted, update: table.format_version >= update.format_version,
    AddSchema: _anything,
    AddPartitionSpec: _anything,
    AddSortOrder: _anything,
    SetCurrentSchema: lambda table, wanted, update: table.schema.fields == wanted.schema.fields,
    SetDefaultSpec: lambda table, wanted, update: table.spec.fields == wanted.spec.fields,
    SetDefaultSortOrder: lambda table, wanted, update: table.sort_order.fields == wanted.sort_order.fields,
    AddSnapshot: lambda table, wanted, update: has_snapshot(table, update),
    SetSnapshotRef: _same_ref,
    RemoveSnapshotRef: _same_ref,
    RemoveSnapshots: lambda table, wanted, update: all(table.snapshots.find(s) is None for s in update.snapshot_ids),
    RemoveSchemas: lambda table, wanted, u: not u.schema_ids & {s.schema_id for s in table.schemas},
    RemovePartitionSpecs: lambda table, wanted, u: not u.spec_ids & {s.spec_id for s in table.specs},
    SetLocation: lambda table, wanted, update: table.location == wanted.location,
    SetProperties: lambda table, wanted, update: _same_properties(table, wanted, update.updates),
    RemoveProperties: lambda table, wanted, update: _same_properties(table, wanted, update.removals),
    SetStatistics: lambda table, wanted, update: update.statistics in table.statistics,
    RemoveStatistics: lambda table, wanted, u: all(s.snapshot_id != u.snapshot_id for s in table.statistics),
    SetPartitionStatistics: lambda table, wanted, update: update.statistics in table.partition_statistics,
    RemovePartitionStatistics: lambda table, wanted, u: all(
        s.snapshot_id != u.snapshot_id for s in table.partition_statistics
    ),
}
