"""Replace a table by another definition: its history is kept, its rows are removed from the branch `main`.

A replacement defines the whole table, so it conflicts with every other change: if the table was changed in any way
since the replacement was planned, it fails, instead of dropping the change silently. Compaction and rewritten manifests
are not changes. A primitive column that keeps its name and type keeps its id.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from icefield.commit.action import ProposedChange, WriteContext
from icefield.commit.actions.create import TableDefinition, check_definition
from icefield.commit.actions.evolve import Draft, shape_updates
from icefield.commit.actions.location import check_paths
from icefield.commit.validate.key_history import forget_branches
from icefield.errors import ConcurrentChange, InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import MAIN, Operation
from icefield.model.sort_order import SortOrder
from icefield.model.updates import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRef,
    Requirement,
    SetProperties,
    Update,
    UpgradeFormatVersion,
)
from icefield.types.datatypes import NestedField, PrimitiveType
from icefield.types.schema import Schema, renumber


@dataclass(frozen=True)
class ReplaceTable:
    """Replaces the schema, spec and sort order of the planned table, adds properties, and removes all rows."""

    definition: TableDefinition
    planned: TableMetadata

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if _state(base) != _state(self.planned) or not _only_rewritten(self.planned, base):
            raise ConcurrentChange(
                "cannot replace the table: it was changed concurrently, and the change would be lost",
                hint="Nothing was changed; check the table and run it again",
            )
        check_definition(self.definition)
        check_paths(self.definition.properties, context.store)
        if self.definition.format_version < base.format_version:
            raise InvalidInput(
                f"cannot replace a table of format version {base.format_version} by one of version "
                f"{self.definition.format_version}"
            )
        draft = _draft(self.definition, base)
        updates: list[Update] = []
        if self.definition.format_version > base.format_version:
            updates.append(UpgradeFormatVersion(self.definition.format_version))
        updates += shape_updates(draft)
        if self.definition.properties:
            updates.append(SetProperties(self.definition.properties))
        if MAIN in base.refs:
            updates += [RemoveSnapshotRef(MAIN), *forget_branches(base, [MAIN])]
        return ProposedChange(updates, _everything_stands(base))

    def reusable_files(self) -> Sequence[str]:
        return ()


def _state(table: TableMetadata) -> tuple[object, ...]:
    """Return everything that a commit can change in a table, except times and snapshots."""
    return (
        table.format_version,
        table.location,
        table.schemas,
        table.current_schema_id,
        table.specs,
        table.default_spec_id,
        table.sort_orders,
        table.default_sort_order_id,
        dict(table.properties),
        {name: replace(ref, snapshot_id=0) for name, ref in table.refs.items()},
        table.statistics,
        table.partition_statistics,
    )


def _only_rewritten(planned: TableMetadata, base: TableMetadata) -> bool:
    """Return whether all snapshots are there, and every branch has only new ones that rewrote files or manifests."""
    known = {s.snapshot_id for s in planned.snapshots}
    if not known <= {s.snapshot_id for s in base.snapshots}:
        return False
    if any(s.operation != Operation.REPLACE for s in base.snapshots if s.snapshot_id not in known):
        return False
    for name, ref in base.refs.items():
        since = takewhile(lambda s: s.snapshot_id not in known, base.ancestors(base.snapshot_by_id(ref.snapshot_id)))
        oldest = list(since)[-1:]
        before = oldest[0].parent_snapshot_id if oldest else ref.snapshot_id
        if before != planned.refs[name].snapshot_id:
            return False
    return True


def _draft(definition: TableDefinition, base: TableMetadata) -> Draft:
    draft = Draft(base)
    ids: dict[int, int] = {}
    fields = tuple(_renumbered(field, draft, ids) for field in definition.schema.fields)
    draft.schema = Schema(fields, identifier_field_ids=tuple(ids[i] for i in definition.schema.identifier_field_ids))
    draft.spec = PartitionSpec()  # the old spec is dropped, so that the same fields can reuse its ids
    parts = (replace(f, source_id=ids[f.source_id]) for f in definition.spec.fields)
    draft.spec = PartitionSpec(tuple(replace(part, field_id=draft.draw_partition_id(part)) for part in parts))
    draft.order = SortOrder(tuple(replace(f, source_id=ids[f.source_id]) for f in definition.order.fields))
    if base.format_version == 1 and draft.spec.fields != base.spec.fields:
        raise InvalidInput("a table of format version 1 cannot drop partition fields", hint="Upgrade the table first")
    return draft


def _renumbered(field: NestedField, draft: Draft, ids: dict[int, int]) -> NestedField:
    known_id = draft.base.schema.ids_by_path.get((field.name,))
    known = None if known_id is None else draft.base.schema.by_id[known_id]
    if known is not None and isinstance(field.type, PrimitiveType) and known.type == field.type:
        ids[field.field_id] = known.field_id
        # Rows of other branches may lack the column: what they read does not change.
        return replace(field, field_id=known.field_id, initial_default=known.initial_default)
    return renumber((field,), draft.draw_column_id, ids)[0]


def _everything_stands(base: TableMetadata) -> list[Requirement]:
    main = base.refs.get(MAIN)
    return [
        AssertTableUUID(base.table_uuid),
        AssertRefSnapshotId(MAIN, main.snapshot_id if main else None),
        AssertCurrentSchemaId(base.current_schema_id),
        AssertDefaultSpecId(base.default_spec_id),
        AssertDefaultSortOrderId(base.default_sort_order_id),
        AssertLastAssignedFieldId(base.last_column_id),
        AssertLastAssignedPartitionId(base.last_partition_id),
    ]
