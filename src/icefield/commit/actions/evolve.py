"""Change schema, partition specs, sort order and format version: only metadata changes.

Steps are applied again to the current version of the table.

Two writers that add different columns both succeed; a step that is not valid on the new base (its column was dropped,
its name is taken) fails as it would have failed there in the first place.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from icefield.codec.json.name_mapping import PROPERTY, encode_name_mapping, find_name_mapping, remap_schema
from icefield.commit.action import NOTHING_TO_DO, ProposedChange, WriteContext
from icefield.errors import InvalidInput
from icefield.model.evolve_spec import known_field_id
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionField, PartitionSpec, check_spec
from icefield.model.sort_order import UNSORTED
from icefield.model.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedPartitionId,
    AssertTableUUID,
    Requirement,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetProperties,
    Update,
    UpgradeFormatVersion,
)
from icefield.types.evolve import check_widening_of_source
from icefield.types.schema import Schema, check_dotted_names
from icefield.types.transforms import Void


class Draft:
    """A table's schema, spec and sort order while steps change them; ids that were ever used are not reused."""

    def __init__(self, base: TableMetadata) -> None:
        self.base = base
        self.schema = base.schema
        self.spec = base.spec
        self.order = base.sort_order
        self._column_ids = itertools.count(base.last_column_id + 1)
        self._partition_ids = itertools.count(base.last_partition_id + 1)

    def draw_column_id(self) -> int:
        """Return a field id that no schema of the table has used."""
        return next(self._column_ids)

    def draw_partition_id(self, field: PartitionField) -> int:
        """Return the former id of the same field, or one that no spec has used."""
        known = known_field_id(self.base.specs, field, self.spec)
        return next(self._partition_ids) if known is None else known

    def check(self) -> None:
        """Raise InvalidInput if the spec or order does not fit the schema; void fields go with their source."""
        self.spec = replace(self.spec, fields=tuple(f for f in self.spec.fields if not self._is_left_over(f)))
        for part in self.spec.fields:
            if not self.schema.by_id.keys() >= set(part.source_ids):
                # In manifests the type of a void field is that of its source.
                hint = "Drop the partition field first"
                if isinstance(part.transform, Void):
                    hint = "Version 1 keeps a dropped partition field and its source: upgrade(2) the table first"
                raise InvalidInput(f"cannot drop the source of partition field {part.name!r}", hint=hint)
        for term in self.order.fields:
            if not self.schema.by_id.keys() >= set(term.source_ids):
                raise InvalidInput("cannot drop a column of the sort order", hint="Set another sort order first")
        for part in (part for spec in self.base.specs for part in spec.fields):
            self._check_widening(part)
        check_spec(self.spec, self.schema)

    def _is_left_over(self, part: PartitionField) -> bool:
        """Return whether a void field has lost its source; only version 1 must keep it. (spec: Partition Evolution)"""
        is_void = isinstance(part.transform, Void) and self.base.format_version > 1
        return is_void and not self.schema.by_id.keys() >= set(part.source_ids)

    def _check_widening(self, part: PartitionField) -> None:
        # Of every spec: files of old specs remain, and filters are projected through them with the new type.
        for source_id in part.source_ids:
            old, new = (schema.by_id.get(source_id) for schema in (self.base.schema, self.schema))
            if old is not None and new is not None:
                check_widening_of_source(old.type, new.type, part.transform, new.name)


Step = Callable[[Draft], None]


@dataclass(frozen=True)
class EvolveTable:
    """Steps to apply to the newest version of the table."""

    steps: Sequence[Step]

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        draft = Draft(base)
        for step in self.steps:
            step(draft)
        draft.check()
        updates = shape_updates(draft)
        requirements: list[Requirement] = [
            AssertTableUUID(base.table_uuid),
            AssertCurrentSchemaId(base.current_schema_id),
            AssertDefaultSpecId(base.default_spec_id),
        ]
        return ProposedChange(updates, requirements)

    def reusable_files(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class UpgradeTable:
    """Upgrades a table to a format version, from any earlier one: older manifests are valid in newer tables.

    (spec: Writer requirements, Row Lineage for Upgraded Tables)
    """

    format_version: int

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        return ProposedChange([UpgradeFormatVersion(self.format_version)], [AssertTableUUID(base.table_uuid)])

    def reusable_files(self) -> Sequence[str]:
        return ()


class AddUnpartitionedSpec:
    """Adds a spec without fields, unless the table has one; the default spec stays as it is.

    Equality deletes of such a spec apply to the files of all specs and partitions. (spec: Scan Planning)
    """

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if find_unpartitioned_spec(base) is not None:
            return NOTHING_TO_DO
        # The id must be the one that files are written for: none may be assigned concurrently.
        requirements: list[Requirement] = [
            AssertTableUUID(base.table_uuid),
            AssertDefaultSpecId(base.default_spec_id),
            AssertLastAssignedPartitionId(base.last_partition_id),
        ]
        return ProposedChange([AddPartitionSpec(PartitionSpec((), _next_spec_id(base)))], requirements)

    def reusable_files(self) -> Sequence[str]:
        return ()


def find_unpartitioned_spec(base: TableMetadata) -> PartitionSpec | None:
    """Return the spec of a table that has no fields at all, not even void ones."""
    return next((spec for spec in base.specs if not spec.fields), None)


def shape_updates(draft: Draft) -> list[Update]:
    """Return the updates from the base to the draft; an identical earlier schema, spec or order is reused."""
    return [*_schema_updates(draft), *_mapping_updates(draft), *_spec_updates(draft), *_order_updates(draft)]


def _schema_updates(draft: Draft) -> list[Update]:
    if _same_columns(draft.schema, draft.base.schema):
        return []
    for known in draft.base.schemas:
        if _same_columns(draft.schema, known):
            return [SetCurrentSchema(known.schema_id)]
    check_dotted_names(draft.schema)
    fresh = max(s.schema_id for s in draft.base.schemas) + 1
    return [AddSchema(replace(draft.schema, schema_id=fresh)), SetCurrentSchema(fresh)]


def _mapping_updates(draft: Draft) -> list[Update]:
    """Update the name mapping with the schema."""
    mapping = find_name_mapping(draft.base.properties)
    if mapping is None or _same_columns(draft.schema, draft.base.schema):
        return []
    return [SetProperties({PROPERTY: encode_name_mapping(remap_schema(mapping, draft.schema))})]


def _same_columns(one: Schema, other: Schema) -> bool:
    return (one.fields, one.identifier_field_ids) == (other.fields, other.identifier_field_ids)


def _spec_updates(draft: Draft) -> list[Update]:
    for known in draft.base.specs:
        if known.fields == draft.spec.fields:
            return [] if known.spec_id == draft.base.default_spec_id else [SetDefaultSpec(known.spec_id)]
    fresh = _next_spec_id(draft.base)
    return [AddPartitionSpec(replace(draft.spec, spec_id=fresh)), SetDefaultSpec(fresh)]


def _next_spec_id(base: TableMetadata) -> int:
    return max(spec.spec_id for spec in base.specs) + 1


def _order_updates(draft: Draft) -> list[Update]:
    for known in draft.base.sort_orders:
        if known.fields == draft.order.fields:
            same = known.order_id == draft.base.default_sort_order_id
            return [] if same else [SetDefaultSortOrder(known.order_id)]
    if draft.order.is_unsorted:
        # Other engines omit it in a table that was created with a sort order.
        return [AddSortOrder(UNSORTED), SetDefaultSortOrder(UNSORTED.order_id)]
    fresh = max(o.order_id for o in draft.base.sort_orders) + 1
    return [AddSortOrder(replace(draft.order, order_id=fresh)), SetDefaultSortOrder(fresh)]
