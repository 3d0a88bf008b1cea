"""The changes between two versions of a table: appended rows, added and removed files.

Raises InvalidInput if one version is not an ancestor of the other, MissingFile, CorruptFile.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import DELETED
from icefield.errors import InvalidInput
from icefield.expr.bind.bound import Bound
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation, Snapshot
from icefield.plan.entries import LIVE, load_batches
from icefield.plan.manifest_list import load_manifests
from icefield.plan.metrics import ScanMetrics
from icefield.plan.partition.struct import PartitionStruct, partition_struct
from icefield.plan.plan import ScanPlan, plan_added_files
from icefield.plan.planned_files import NO_FILES
from icefield.plan.versions import AsOf, ResolvedVersion, resolve_version
from icefield.types.arrow import arrow_schema
from icefield.types.arrow_keys import NOT_FOUND, KeyIndex
from icefield.types.datatypes import StructType
from icefield.types.schema import Schema, numbered
from icefield.types.text import parse_schema

ADDED, REMOVED = "added", "removed"
COLUMNS = ManifestColumns(
    (
        "status",
        "snapshot_id",
        "sequence_number",
        "content",
        "file_path",
        "record_count",
        "file_size_in_bytes",
        "content_offset",
    )
)
GONE = ManifestColumns(("status", "snapshot_id", "file_path", "content_offset"), partition=False)
# What identifies a file: deletion vectors share a Puffin file.
KEY = ("file_path", "content_offset")
_BEFORE_PARTITION = parse_schema(
    "change string not null, snapshot_id long, sequence_number long not null, content int not null, "
    "file_path string not null, spec_id int not null"
).fields
_AFTER_PARTITION = parse_schema(
    "record_count long not null, file_size_in_bytes long not null, content_offset long"
).fields


@dataclass(frozen=True)
class SnapshotRange:
    """The snapshots, oldest first, after one version up to another."""

    snapshots: tuple[Snapshot, ...]
    until: ResolvedVersion


def find_snapshot_range(metadata: TableMetadata, after: AsOf | None, until: ResolvedVersion) -> SnapshotRange:
    """Find the snapshots after one version up to another; for None, all ancestors.

    A snapshot id may be that of an expired snapshot, if its child is still there. Raises InvalidInput if a snapshot in
    between has expired: what it appended is unknown.
    """
    start = _find_start(metadata, after)
    found: list[Snapshot] = []
    for snapshot in metadata.ancestors(until.snapshot):
        if snapshot.snapshot_id == start:
            return SnapshotRange(tuple(reversed(found)), until)
        found.append(snapshot)
        if snapshot.parent_snapshot_id == start:  # for None, the first snapshot
            return SnapshotRange(tuple(reversed(found)), until)
    if start is None and not found:
        return SnapshotRange((), until)
    raise _no_snapshot_range(metadata, start, until, found)


def _no_snapshot_range(
    metadata: TableMetadata, start: int | None, until: ResolvedVersion, found: list[Snapshot]
) -> InvalidInput:
    end = f"snapshot {until.snapshot.snapshot_id}" if until.snapshot else "the empty table"
    begin = "the beginning" if start is None else f"snapshot {start}"
    known = None if start is None else metadata.snapshots.find(start)
    # Sequence numbers decrease from child to parent: a snapshot as new as those kept would have been found.
    was_passed = known is not None and bool(found) and 0 < found[-1].sequence_number <= known.sequence_number
    if found and not was_passed and (lost := found[-1].parent_snapshot_id) is not None:
        oldest = found[-1].snapshot_id
        return InvalidInput(
            f"cannot determine the appends from {begin} to {end}: snapshot {lost} in between has expired, and the "
            f"remaining history starts at snapshot {oldest}",
            hint=f"Read all rows with scan(as_of={oldest}), then later appends with scan_appends({oldest})",
        )
    if start is not None and known is None:
        return InvalidInput(f"snapshot {start} is not an ancestor of {end}: it has expired, or was never in the table")
    return InvalidInput(
        f"{begin} is not an ancestor of {end}: it is on another branch, or was rolled back",
        hint="Start after a snapshot that is an ancestor",
    )


def plan_appends(
    context: ReadContext, metadata: TableMetadata, snapshot_range: SnapshotRange, where: Bound
) -> ScanPlan:
    """Plan a read of the rows that were appended in a snapshot range.

    As in Iceberg Java: files that other operations added are not read, and rows that were deleted later are.
    """
    like = ScanPlan(snapshot_range.until, where, NO_FILES, ScanMetrics())
    appends = [s for s in snapshot_range.snapshots if s.operation == Operation.APPEND]
    return replace(like, files=plan_added_files(context, metadata, appends, like))


def load_changed_files(
    context: ReadContext, metadata: TableMetadata, before: Snapshot | None, until: Snapshot | None
) -> pa.Table:
    """List the files that are in only one of two versions; files that were added and removed in between are in neither.

    Manifests that both versions share are not opened. An added file has the snapshot that added it, a removed file the
    snapshot that removed it, if that is between the two versions.
    """
    struct = partition_struct(metadata)
    schema = numbered((*_BEFORE_PARTITION, *struct.column, *_AFTER_PARTITION))
    lists = [load_manifests(context, snapshot) for snapshot in (before, until)]
    was = _live_files(context, struct, schema, _only_in(lists[0], lists[1]), REMOVED)
    now = _live_files(context, struct, schema, _only_in(lists[1], lists[0]), ADDED)
    added, removed = _absent_from(now, was), _absent_from(was, now)
    return pa.concat_tables([added, _with_removers(context, removed, _way(metadata, before, until))])


def _find_start(metadata: TableMetadata, after: AsOf | None) -> int | None:
    if isinstance(after, int) and not isinstance(after, bool):
        return after
    snapshot = None if after is None else resolve_version(metadata, after).snapshot
    return None if snapshot is None else snapshot.snapshot_id


def _only_in(manifests: Manifests | None, others: Manifests | None) -> Manifests | None:
    if manifests is None or others is None:
        return manifests
    shared = pc.is_in(manifests.manifest_path, value_set=others.manifest_path.combine_chunks())
    return manifests.filter(pc.invert(shared))


def _live_files(
    context: ReadContext, struct: PartitionStruct, schema: Schema, manifests: Manifests | None, change: str
) -> pa.Table:
    target = arrow_schema(schema)
    tables = [target.empty_table()]
    for step, entries in load_batches(context, manifests, COLUMNS, LIVE) if manifests is not None else ():
        rows = entries.num_rows
        made: dict[str, pa.Array] = {
            "change": pa.repeat(change, rows),
            "spec_id": pa.repeat(step.partition_spec_id[0], rows),
        }
        for field in schema.fields:
            if isinstance(field.type, StructType):
                made[field.name] = struct.array(entries, field.type.fields)
        arrays = [made[f.name] if f.name in made else entries[f.name].combine_chunks() for f in target]
        tables.append(pa.Table.from_arrays(arrays, schema=target))
    return pa.concat_tables(tables).combine_chunks()


def _absent_from(files: pa.Table, others: pa.Table) -> pa.Table:
    there = KeyIndex(_key(others), others.num_rows).find(_key(files), files.num_rows)
    return files.filter(pa.array(there == NOT_FOUND))


def _key(files: pa.Table | ManifestEntries) -> list[pa.Array]:
    return [files[name].combine_chunks() for name in KEY]


def _way(metadata: TableMetadata, before: Snapshot | None, until: Snapshot | None) -> Iterator[Snapshot]:
    """Yield the ancestors of one version that are not ancestors of the other, newest first."""
    known = {s.snapshot_id for s in metadata.ancestors(before)}
    return takewhile(lambda s: s.snapshot_id not in known, metadata.ancestors(until))


def _with_removers(context: ReadContext, removed: pa.Table, way: Iterator[Snapshot]) -> pa.Table:
    """Replace the snapshot that added a file by the one that removed it."""
    index = KeyIndex(_key(removed), removed.num_rows)
    removers: dict[int, int] = {}
    for snapshot in way:
        if len(removers) == removed.num_rows:
            break
        for entries in _removed_by(context, snapshot):
            codes = index.find(_key(entries), entries.num_rows)
            removers = {int(c): snapshot.snapshot_id for c in codes if c != NOT_FOUND} | removers
    ids = pa.array([removers.get(int(code)) for code in index.codes], pa.int64())
    at = removed.column_names.index("snapshot_id")
    return removed.set_column(at, removed.schema.field(at), ids)


def _removed_by(context: ReadContext, snapshot: Snapshot) -> Iterator[ManifestEntries]:
    manifests = load_manifests(context, snapshot)
    if manifests is None:
        return
    own = pc.equal(manifests.added_snapshot_id, snapshot.snapshot_id)
    may_remove = pc.fill_null(pc.not_equal(manifests.deleted_files_count, 0), fill_value=True)
    for _, entries in load_batches(context, manifests.filter(pc.and_(own, may_remove)), GONE, (DELETED,)):
        yield entries.filter(pc.equal(entries.snapshot_id, snapshot.snapshot_id))
