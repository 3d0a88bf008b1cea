"""The requirements of a list of changes, derived from the base of the first one.

A later change of a list depends on the state after the earlier ones, which does not exist yet when a server checks the
whole list. So everything that any of them changes, or states as a requirement, must be as in the base; that is at least
what Iceberg's own client requires. (rest-catalog-open-api.yaml: TableRequirement)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from icefield.deferred import deferred_imports
from icefield.model.updates import (
    AddPartitionSpec,
    AddSchema,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    Requirement,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetSnapshotRef,
    Update,
)

with deferred_imports(__name__):
    from icefield.model.metadata import TableMetadata


def find_requirements(
    base: TableMetadata, updates: Iterable[Update], stated: Iterable[Requirement] = ()
) -> list[Requirement]:
    """Return the requirements of updates; stated: the requirements of the changes themselves."""
    found: dict[Requirement, None] = {AssertTableUUID(base.table_uuid): None}
    for each in (*updates, *stated):
        rule = RESTS_ON.get(type(each))
        found.update(dict.fromkeys(rule(base, each) if rule else ()))
    return list(found)


def find_version(base: TableMetadata) -> list[Requirement]:
    """Return the requirements on a table that was only read: its refs, and how rows are read and written."""
    return [
        AssertTableUUID(base.table_uuid),
        *_all_refs(base),
        AssertCurrentSchemaId(base.current_schema_id),
        AssertDefaultSpecId(base.default_spec_id),
    ]


def _ref(base: TableMetadata, name: str) -> AssertRefSnapshotId:
    known = base.refs.get(name)
    return AssertRefSnapshotId(name, known.snapshot_id if known else None)


def _all_refs(base: TableMetadata) -> list[Requirement]:
    return [AssertRefSnapshotId(name, ref.snapshot_id) for name, ref in base.refs.items()]


RESTS_ON: dict[type, Callable[[TableMetadata, Any], list[Requirement]]] = {
    SetSnapshotRef: lambda base, update: [_ref(base, update.name)],
    RemoveSnapshotRef: lambda base, update: [_ref(base, update.name)],
    # Which snapshots are unreachable depends on every ref.
    RemoveSnapshots: lambda base, update: _all_refs(base),
    AddSchema: lambda base, update: [AssertLastAssignedFieldId(base.last_column_id)],
    SetCurrentSchema: lambda base, update: [AssertCurrentSchemaId(base.current_schema_id)],
    # If no branch moves, no concurrent write uses what is removed.
    RemoveSchemas: lambda base, update: [AssertCurrentSchemaId(base.current_schema_id), *_all_refs(base)],
    RemovePartitionSpecs: lambda base, update: [AssertDefaultSpecId(base.default_spec_id), *_all_refs(base)],
    AddPartitionSpec: lambda base, update: [AssertLastAssignedPartitionId(base.last_partition_id)],
    SetDefaultSpec: lambda base, update: [AssertDefaultSpecId(base.default_spec_id)],
    SetDefaultSortOrder: lambda base, update: [AssertDefaultSortOrderId(base.default_sort_order_id)],
    AssertRefSnapshotId: lambda base, stated: [_ref(base, stated.ref)],
    AssertCurrentSchemaId: lambda base, stated: [AssertCurrentSchemaId(base.current_schema_id)],
    AssertDefaultSpecId: lambda base, stated: [AssertDefaultSpecId(base.default_spec_id)],
    AssertDefaultSortOrderId: lambda base, stated: [AssertDefaultSortOrderId(base.default_sort_order_id)],
    AssertLastAssignedFieldId: lambda base, stated: [AssertLastAssignedFieldId(base.last_column_id)],
    AssertLastAssignedPartitionId: lambda base, stated: [AssertLastAssignedPartitionId(base.last_partition_id)],
}
