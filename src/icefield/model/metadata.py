"""Table metadata: one immutable version of everything about a table except its rows. (spec: Table Metadata)

Changed only through `apply`. Raises NoSuchSnapshot from lookups by id, ref and time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput, NoSuchSnapshot, Unsupported
from icefield.model.partition import UNPARTITIONED, PartitionSpec
from icefield.model.snapshot import MAIN, MetadataLogEntry, Snapshot, SnapshotLogEntry, SnapshotRef, Snapshots
from icefield.model.sort_order import UNSORTED, SortOrder
from icefield.properties.format_versions import FORMAT_VERSION, FORMAT_VERSIONS

with deferred_imports(__name__):
    import numpy as np

    from icefield.model.statistics import StatisticsEntry
    from icefield.types.schema import Schema
    from icefield.types.transforms import Unknown

HIGHEST_SEQUENCE_NUMBER = 2**63 - 1
ROW_LINEAGE_VERSION = 3  # the first format version with row ids


@dataclass(frozen=True)
class TableMetadata:
    """The contents of a metadata.json."""

    table_uuid: uuid.UUID
    location: str
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int
    format_version: int = FORMAT_VERSION
    last_sequence_number: int = 0
    specs: tuple[PartitionSpec, ...] = (UNPARTITIONED,)
    default_spec_id: int = 0
    last_partition_id: int = 999
    sort_orders: tuple[SortOrder, ...] = (UNSORTED,)
    default_sort_order_id: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    current_snapshot_id: int | None = None
    snapshots: Snapshots = field(default_factory=Snapshots)
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    refs: Mapping[str, SnapshotRef] = field(default_factory=dict)
    next_row_id: int = 0
    statistics: tuple[StatisticsEntry, ...] = ()
    partition_statistics: tuple[StatisticsEntry, ...] = ()
    unknown: Mapping[str, bytes] = field(default_factory=dict)  # keys of other writers, preserved

    def is_table(self, known_uuid: uuid.UUID) -> bool:
        """Return whether this is the table with a uuid; a v1 table without one may have been assigned one since."""
        return known_uuid in (self.table_uuid, location_uuid(self.location))

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schema_by_id(self.current_schema_id)

    @property
    def spec(self) -> PartitionSpec:
        """The spec that writers use."""
        return self.spec_by_id(self.default_spec_id)

    @property
    def sort_order(self) -> SortOrder:
        """The order that writers use."""
        return self.sort_order_by_id(self.default_sort_order_id)

    def schema_by_id(self, schema_id: int) -> Schema:
        """Find a schema, current or old."""
        for schema in self.schemas:
            if schema.schema_id == schema_id:
                return schema
        raise InvalidInput(f"the table has no schema with id {schema_id}")

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """Find a partition spec, current or old."""
        for spec in self.specs:
            if spec.spec_id == spec_id:
                return spec
        raise InvalidInput(f"the table has no partition spec with id {spec_id}")

    def sort_order_by_id(self, order_id: int) -> SortOrder:
        """Find a sort order, current or old."""
        for order in self.sort_orders:
            if order.order_id == order_id:
                return order
        raise InvalidInput(f"the table has no sort order with id {order_id}")

    def schema_of_spec(self, spec: PartitionSpec) -> Schema:
        """Return the newest schema that has all source columns of a spec; the current one may have dropped some."""
        # The values of an unknown transform are used as stored, whatever their sources.
        sources = {f.source_id for f in spec.fields if not isinstance(f.transform, Unknown)}
        for schema in self.schemas_newest_first:
            if sources <= schema.by_id.keys():
                return schema
        raise InvalidInput(f"no schema of the table has all source columns of partition spec {spec.spec_id}")

    @property
    def schemas_newest_first(self) -> tuple[Schema, ...]:
        """All schemas of the table, the current one first, then from new to old."""
        return (self.schema, *reversed(self.schemas))

    @property
    def has_row_ids(self) -> bool:
        """Whether the format version has row lineage. (spec: Row Lineage)"""
        return self.format_version >= ROW_LINEAGE_VERSION

    @property
    def next_sequence_number(self) -> int:
        """The sequence number of the next snapshot; 0 in version 1, which has none. (spec: Sequence Numbers)"""
        if self.format_version == 1:
            return 0
        if self.last_sequence_number >= HIGHEST_SEQUENCE_NUMBER:
            raise InvalidInput(
                f"no snapshot can be added after sequence number {self.last_sequence_number}, the highest"
            )
        return self.last_sequence_number + 1

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The snapshot that `main` points to; None for a table without snapshots."""
        return None if self.current_snapshot_id is None else self.snapshot_by_id(self.current_snapshot_id)

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot:
        """Find a snapshot."""
        found = self.snapshots.find(snapshot_id)
        if found is None:
            newest = ", ".join(str(s.snapshot_id) for s in list(self.snapshots)[-3:]) or "none"
            raise NoSuchSnapshot(
                f"the table has no snapshot {snapshot_id} (newest: {newest})",
                hint="It may have expired; list the snapshots with `icefield snapshots`",
            )
        return found

    def ref_head(self, ref: str) -> Snapshot | None:
        """Return the snapshot that a branch or tag points to; None only for `main` of an empty table."""
        if ref in self.refs:
            return self.snapshot_by_id(self.refs[ref].snapshot_id)
        if ref == MAIN:
            return None
        known = ", ".join(sorted(self.refs)) or "none"
        raise NoSuchSnapshot(f"the table has no branch or tag {ref!r} (refs: {known})")

    def snapshot_as_of(self, timestamp_ms: int) -> Snapshot:
        """Return the snapshot that `main` pointed to at a time; the last of several in one millisecond.

        (spec: Point in Time Reads; the log is in order of change, so clock skew between writers cannot reorder it.)
        """
        for entry in reversed(self.snapshot_log):
            if entry.timestamp_ms <= timestamp_ms:
                return self.snapshot_by_id(entry.snapshot_id)
        begins = f"; its history begins at {_utc(self.snapshot_log[0].timestamp_ms)}" if self.snapshot_log else ""
        raise NoSuchSnapshot(f"the table had no snapshot at {_utc(timestamp_ms)}{begins}")

    def ancestors(self, snapshot: Snapshot | None) -> Iterator[Snapshot]:
        """Yield a snapshot and its ancestors, as far as they are retained."""
        return iter(()) if snapshot is None else self.snapshots.ancestors(snapshot)


def location_uuid(location: str) -> uuid.UUID:
    """Return the uuid of a v1 table that has none, derived from its location."""
    return uuid.uuid5(uuid.NAMESPACE_URL, location)


def check_format_version(version: int, what: str) -> None:
    """Refuse an unsupported format version."""
    if version not in FORMAT_VERSIONS:
        known = ", ".join(str(each) for each in FORMAT_VERSIONS)
        raise Unsupported(f"{what} has format version {version}; icefield supports versions {known}")


def _utc(timestamp_ms: int) -> str:
    return f"{np.datetime64(timestamp_ms, 'ms')}Z"
