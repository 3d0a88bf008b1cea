"""Apply updates to a table's metadata, and check their requirements. No I/O.

Raises InvalidInput for an invalid update, Unsupported for an unknown format version, CommitConflict from `check`, and
for row ids that were assigned concurrently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from icefield.deferred import deferred_imports
from icefield.errors import CommitConflict, InvalidInput, NoSuchSnapshot
from icefield.model.snapshot import MAIN, RefKind, Snapshot, SnapshotLogEntry
from icefield.model.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    Requirement,
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
    from icefield.model.metadata import TableMetadata, check_format_version
    from icefield.types.versions import check_schema_version


def apply(metadata: TableMetadata, updates: Iterable[Update], now_ms: int) -> TableMetadata:
    """Return the metadata with all updates applied, in order."""
    updates = tuple(updates)
    added = {u.snapshot.snapshot_id: u.snapshot.timestamp_ms for u in updates if isinstance(u, AddSnapshot)}
    # Timestamps in metadata never decrease, whatever the writers' clocks say.
    change = _Change(max(now_ms, metadata.last_updated_ms, *added.values()), frozenset(added))
    for update in updates:
        metadata = APPLY[type(update)](metadata, update, change)
    return replace(metadata, last_updated_ms=change.now_ms)


def check(metadata: TableMetadata, requirements: Iterable[Requirement]) -> None:
    """Raise CommitConflict unless all requirements of a change are still met."""
    for requirement in requirements:
        actual, wanted, what = CHECK[type(requirement)](metadata, requirement)
        if actual != wanted:
            raise CommitConflict(f"{what} is {actual}, but the change requires {wanted}")


@dataclass(frozen=True)
class _Change:
    """What all updates of one change share: its time, and the snapshots that it adds."""

    now_ms: int
    added: frozenset[int]


def _upgrade_format_version(metadata: TableMetadata, update: UpgradeFormatVersion, change: _Change) -> TableMetadata:
    check_format_version(update.format_version, "the version to upgrade to")
    if update.format_version < metadata.format_version:
        raise InvalidInput(
            f"cannot downgrade a table from format version {metadata.format_version} to {update.format_version}"
        )
    return replace(metadata, format_version=update.format_version)


def _add_schema(metadata: TableMetadata, update: AddSchema, change: _Change) -> TableMetadata:
    if any(s.schema_id == update.schema.schema_id for s in metadata.schemas):
        raise InvalidInput(f"schema id {update.schema.schema_id} already exists")
    check_schema_version(update.schema, metadata.format_version)
    last_column_id = max(metadata.last_column_id, update.schema.highest_field_id)
    return replace(metadata, schemas=(*metadata.schemas, update.schema), last_column_id=last_column_id)


def _set_current_schema(metadata: TableMetadata, update: SetCurrentSchema, change: _Change) -> TableMetadata:
    return replace(metadata, current_schema_id=metadata.schema_by_id(update.schema_id).schema_id)


def _remove_schemas(metadata: TableMetadata, update: RemoveSchemas, change: _Change) -> TableMetadata:
    if metadata.current_schema_id in update.schema_ids:
        raise InvalidInput(f"cannot remove schema {metadata.current_schema_id}: it is the current schema")
    return replace(metadata, schemas=tuple(s for s in metadata.schemas if s.schema_id not in update.schema_ids))


def _add_partition_spec(metadata: TableMetadata, update: AddPartitionSpec, change: _Change) -> TableMetadata:
    if any(s.spec_id == update.spec.spec_id for s in metadata.specs):
        raise InvalidInput(f"partition spec id {update.spec.spec_id} already exists")
    last = max(metadata.last_partition_id, update.spec.highest_field_id)
    return replace(metadata, specs=(*metadata.specs, update.spec), last_partition_id=last)


def _set_default_spec(metadata: TableMetadata, update: SetDefaultSpec, change: _Change) -> TableMetadata:
    return replace(metadata, default_spec_id=metadata.spec_by_id(update.spec_id).spec_id)


def _remove_partition_specs(metadata: TableMetadata, update: RemovePartitionSpecs, change: _Change) -> TableMetadata:
    if metadata.default_spec_id in update.spec_ids:
        raise InvalidInput(f"cannot remove partition spec {metadata.default_spec_id}: it is the default spec")
    return replace(metadata, specs=tuple(s for s in metadata.specs if s.spec_id not in update.spec_ids))


def _add_sort_order(metadata: TableMetadata, update: AddSortOrder, change: _Change) -> TableMetadata:
    if any(o.order_id == update.order.order_id for o in metadata.sort_orders):
        raise InvalidInput(f"sort order id {update.order.order_id} already exists")
    return replace(metadata, sort_orders=(*metadata.sort_orders, update.order))


def _set_default_sort_order(metadata: TableMetadata, update: SetDefaultSortOrder, change: _Change) -> TableMetadata:
    return replace(metadata, default_sort_order_id=metadata.sort_order_by_id(update.order_id).order_id)


def _add_snapshot(metadata: TableMetadata, update: AddSnapshot, change: _Change) -> TableMetadata:
    snapshot = update.snapshot
    _check_sequence_number(metadata, snapshot)
    if metadata.snapshots.find(snapshot.snapshot_id) is not None:
        raise InvalidInput(f"snapshot id {snapshot.snapshot_id} already exists")
    return replace(
        metadata,
        snapshots=metadata.snapshots.with_added(snapshot),
        last_sequence_number=max(metadata.last_sequence_number, snapshot.sequence_number),
        next_row_id=_next_row_id(metadata, snapshot),
    )


def _check_sequence_number(metadata: TableMetadata, snapshot: Snapshot) -> None:
    """Refuse a snapshot that was created for an older version of the table.

    A snapshot without a parent depends on no version: Iceberg's replace transactions send it with the sequence number
    that it was created with, and Iceberg Java accepts it.
    """
    number = snapshot.sequence_number
    if number < 0:
        raise InvalidInput(f"snapshot {snapshot.snapshot_id} has the negative sequence number {number}")
    if metadata.format_version == 1:
        if number != 0:
            raise InvalidInput(
                f"snapshot {snapshot.snapshot_id} has sequence number {number}; format version 1 has none"
            )
    elif number <= metadata.last_sequence_number and snapshot.parent_snapshot_id is not None:
        # Another commit came first: the same change works with a later number.
        raise CommitConflict(
            f"snapshot {snapshot.snapshot_id} has sequence number {number}, "
            f"but the table is at {metadata.last_sequence_number}"
        )


def _next_row_id(metadata: TableMetadata, snapshot: Snapshot) -> int:
    """Return the first row id that no snapshot has assigned, including this one. (spec: Snapshot Row IDs)"""
    first, added = snapshot.first_row_id, snapshot.added_rows
    if not metadata.has_row_ids:
        if first is not None:
            raise InvalidInput(
                f"snapshot {snapshot.snapshot_id} assigns row ids, which format version {metadata.format_version} "
                "does not have"
            )
        return metadata.next_row_id
    if first is None or added is None or added < 0:
        raise InvalidInput(
            f"snapshot {snapshot.snapshot_id} does not say which row ids it assigns (first-row-id {first}, "
            f"added-rows {added}); format version {metadata.format_version} requires it"
        )
    if first < metadata.next_row_id:
        # Another writer took these ids concurrently: the same change works with other ids.
        raise CommitConflict(
            f"snapshot {snapshot.snapshot_id} assigns row ids from {first} on, "
            f"but the table's next is {metadata.next_row_id}"
        )
    return first + added


def _set_snapshot_ref(metadata: TableMetadata, update: SetSnapshotRef, change: _Change) -> TableMetadata:
    snapshot = metadata.snapshots.find(update.ref.snapshot_id)
    if snapshot is None:
        raise NoSuchSnapshot(f"cannot set ref {update.name!r}: no snapshot {update.ref.snapshot_id}")
    if update.name == MAIN and update.ref.kind is not RefKind.BRANCH:
        raise InvalidInput(f"{MAIN} is a branch and cannot be made a {update.ref.kind}")
    metadata = replace(metadata, refs={**metadata.refs, update.name: update.ref})
    return _set_current_snapshot(metadata, snapshot, change) if update.name == MAIN else metadata


def _set_current_snapshot(metadata: TableMetadata, snapshot: Snapshot, change: _Change) -> TableMetadata:
    # Only a move is logged. (spec: Table Metadata Fields, snapshot-log)
    if snapshot.snapshot_id == metadata.current_snapshot_id:
        return metadata
    # A snapshot of this change is logged with its own time, an older one with the time of the rollback.
    since_ms = snapshot.timestamp_ms if snapshot.snapshot_id in change.added else change.now_ms
    last_ms = metadata.snapshot_log[-1].timestamp_ms if metadata.snapshot_log else since_ms
    entry = SnapshotLogEntry(max(since_ms, last_ms), snapshot.snapshot_id)
    return replace(metadata, current_snapshot_id=snapshot.snapshot_id, snapshot_log=(*metadata.snapshot_log, entry))


def _remove_snapshot_ref(metadata: TableMetadata, update: RemoveSnapshotRef, change: _Change) -> TableMetadata:
    refs = {name: ref for name, ref in metadata.refs.items() if name != update.name}
    current = None if update.name == MAIN else metadata.current_snapshot_id
    return replace(metadata, refs=refs, current_snapshot_id=current)


def _remove_snapshots(metadata: TableMetadata, update: RemoveSnapshots, change: _Change) -> TableMetadata:
    gone = update.snapshot_ids
    held = sorted(name for name, ref in metadata.refs.items() if ref.snapshot_id in gone)
    if held:
        # This ref did not exist when the snapshots were chosen; on the current table, others would be chosen.
        raise CommitConflict(f"cannot remove a snapshot that {', '.join(held)} points to")
    return replace(
        metadata,
        snapshots=metadata.snapshots.without(gone),
        snapshot_log=_log_without(metadata.snapshot_log, gone),
        statistics=tuple(s for s in metadata.statistics if s.snapshot_id not in gone),
        partition_statistics=tuple(s for s in metadata.partition_statistics if s.snapshot_id not in gone),
    )


def _log_without(log: tuple[SnapshotLogEntry, ...], gone: frozenset[int]) -> tuple[SnapshotLogEntry, ...]:
    """Keep only the entries after the last removed snapshot: a log with gaps would show a wrong history."""
    last = max((at for at, entry in enumerate(log) if entry.snapshot_id in gone), default=-1)
    return log[last + 1 :]


def _set_location(metadata: TableMetadata, update: SetLocation, change: _Change) -> TableMetadata:
    return replace(metadata, location=update.location.rstrip("/"))


def _set_statistics(metadata: TableMetadata, update: SetStatistics, change: _Change) -> TableMetadata:
    others = tuple(s for s in metadata.statistics if s.snapshot_id != update.statistics.snapshot_id)
    metadata.snapshot_by_id(update.statistics.snapshot_id)
    return replace(metadata, statistics=(*others, update.statistics))


def _remove_statistics(metadata: TableMetadata, update: RemoveStatistics, change: _Change) -> TableMetadata:
    return replace(metadata, statistics=tuple(s for s in metadata.statistics if s.snapshot_id != update.snapshot_id))


def _set_partition_statistics(
    metadata: TableMetadata, update: SetPartitionStatistics, change: _Change
) -> TableMetadata:
    others = tuple(s for s in metadata.partition_statistics if s.snapshot_id != update.statistics.snapshot_id)
    metadata.snapshot_by_id(update.statistics.snapshot_id)
    return replace(metadata, partition_statistics=(*others, update.statistics))


def _remove_partition_statistics(
    metadata: TableMetadata, update: RemovePartitionStatistics, change: _Change
) -> TableMetadata:
    kept = tuple(s for s in metadata.partition_statistics if s.snapshot_id != update.snapshot_id)
    return replace(metadata, partition_statistics=kept)


def _set_properties(metadata: TableMetadata, update: SetProperties, change: _Change) -> TableMetadata:
    return replace(metadata, properties={**metadata.properties, **update.updates})


def _remove_properties(metadata: TableMetadata, update: RemoveProperties, change: _Change) -> TableMetadata:
    kept = {key: value for key, value in metadata.properties.items() if key not in update.removals}
    return replace(metadata, properties=kept)


APPLY: dict[type, Callable[[TableMetadata, Any, _Change], TableMetadata]] = {
    UpgradeFormatVersion: _upgrade_format_version,
    AddSchema: _add_schema,
    SetCurrentSchema: _set_current_schema,
    RemoveSchemas: _remove_schemas,
    AddPartitionSpec: _add_partition_spec,
    SetDefaultSpec: _set_default_spec,
    RemovePartitionSpecs: _remove_partition_specs,
    AddSortOrder: _add_sort_order,
    SetDefaultSortOrder: _set_default_sort_order,
    AddSnapshot: _add_snapshot,
    SetSnapshotRef: _set_snapshot_ref,
    RemoveSnapshotRef: _remove_snapshot_ref,
    RemoveSnapshots: _remove_snapshots,
    SetLocation: _set_location,
    SetStatistics: _set_statistics,
    RemoveStatistics: _remove_statistics,
    SetPartitionStatistics: _set_partition_statistics,
    RemovePartitionStatistics: _remove_partition_statistics,
    SetProperties: _set_properties,
    RemoveProperties: _remove_properties,
}


def _ref_snapshot_id(metadata: TableMetadata, ref: str) -> int | None:
    found = metadata.refs.get(ref)
    return found.snapshot_id if found else None


CHECK: dict[type, Callable[[TableMetadata, Any], tuple[Any, Any, str]]] = {
    AssertTableUUID: lambda m, r: (m.table_uuid, r.table_uuid, "the table's uuid"),
    AssertRefSnapshotId: lambda m, r: (_ref_snapshot_id(m, r.ref), r.snapshot_id, f"the snapshot of {r.ref!r}"),
    AssertCurrentSchemaId: lambda m, r: (m.current_schema_id, r.schema_id, "the current schema id"),
    AssertDefaultSpecId: lambda m, r: (m.default_spec_id, r.spec_id, "the default partition spec id"),
    AssertDefaultSortOrderId: lambda m, r: (m.default_sort_order_id, r.order_id, "the default sort order id"),
    AssertLastAssignedFieldId: lambda m, r: (m.last_column_id, r.field_id, "the last column id"),
    AssertLastAssignedPartitionId: lambda m, r: (m.last_partition_id, r.field_id, "the last partition field id"),
}
