"""Reads of the rows that were appended to a table after one version, up to another, and of what snapshots changed.

Appended rows are returned as they were appended: each row once, whether or not it was deleted or rewritten later.
Raises InvalidFilter and InvalidInput when made, MissingFile and CorruptFile when run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.expr.bind.bound import TRUE, Bound
from icefield.storage.store import StaysInProcess
from icefield.table.reading.readable import ReadableRows
from icefield.table.scan import TableScan

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.cache.reading import ReadContext
    from icefield.engine.rows import SessionChoice
    from icefield.expr.parse.ast import Predicate
    from icefield.model.metadata import TableMetadata
    from icefield.model.names import TableName
    from icefield.model.snapshot import Operation, Snapshot
    from icefield.plan.changes import SnapshotRange, plan_appends
    from icefield.plan.plan import ScanPlan, plan_scan
    from icefield.plan.versions import ResolvedVersion
    from icefield.table.read_lease import ReadLease
    from icefield.types.schema import Schema


class AppendScan(ReadableRows, StaysInProcess):
    """A planned read of appended rows; `Table.scan_appends` returns one."""

    def __init__(
        self,
        context: ReadContext,
        table: TableName,
        metadata: TableMetadata,
        snapshot_range: SnapshotRange,
        where: Predicate | str | Any = None,
        select: Sequence[str] | None = None,
    ) -> None:
        self._scan = _AppendedRows(context, table, metadata, snapshot_range.until, where, select)
        self._scan.snapshot_range = snapshot_range

    def using(self, sessions: SessionChoice) -> Self:
        """Use the lake's Spark session for DataFrames."""
        self._scan.using(sessions)
        return self

    def leasing(self, lease: ReadLease) -> Self:
        """Protect the files while they are read."""
        self._scan.leasing(lease)
        return self

    @property
    def schema(self) -> Schema:
        """The columns that the scan returns."""
        return self._scan.schema

    @property
    def where(self) -> Bound:
        """The filter, bound to the schema."""
        return self._scan.where

    @property
    def snapshot_id(self) -> int | None:
        """The last snapshot that the scan covers; pass it as `after` to the next scan."""
        return self._scan.snapshot_id

    def to_spark(self, session: Any | None = None) -> Any:
        """Return a Spark DataFrame, as `TableScan.to_spark` does."""
        return self._scan.to_spark(session)

    def to_arrow(self) -> pa.RecordBatchReader:
        """Return an Arrow batch reader, as `TableScan.to_arrow` does."""
        return self._scan.to_arrow()

    def count(self) -> int:
        """Count the rows. Only files that metadata cannot answer for are opened."""
        return self._scan.count()

    def files(self) -> pa.Table:
        """List the data files to read as an Arrow table, one row each."""
        return self._scan.files()

    def __repr__(self) -> str:
        return f"AppendScan of {self._scan!r}"


class _AppendedRows(TableScan):
    """A scan of the files in a snapshot range; members that describe a single version are not used here."""

    snapshot_range: SnapshotRange

    @property
    def _plan(self) -> ScanPlan:
        if self._planned is None:
            with self._held():
                self._planned = plan_appends(self._context, self._metadata, self.snapshot_range, self._where)
        return self._planned


@dataclass(frozen=True)
class SnapshotChange:
    """What a snapshot changed; `Table.scan_changes` returns one for each.

    Attributes:
        snapshot: The snapshot.
        before: The rows that the changed files had before; None if it only added files.
        after: The rows that they have after it; None if it only removed files. Rows that are in both did not change.
    """

    snapshot: Snapshot
    before: TableScan | None
    after: TableScan | None


class _ChangedFiles(TableScan):
    """A scan of those files of a version that another version does not have, or has with other deletes."""

    locations: frozenset[str] = frozenset()

    @property
    def _plan(self) -> ScanPlan:
        if self._planned is None:
            whole = super()._plan
            self._planned = replace(whole, files=whole.files.at(self.locations))
        return self._planned


def scan_change(
    context: ReadContext, table: TableName, metadata: TableMetadata, snapshot: Snapshot
) -> tuple[TableScan | None, TableScan | None]:
    """Return scans of the files that a snapshot changed, before and after it, with the current columns.

    Raises InvalidInput if its parent has expired.
    """
    version = ResolvedVersion(snapshot, metadata.schema)
    if snapshot.operation == Operation.APPEND:
        appended = _AppendedRows(context, table, metadata, version)
        appended.snapshot_range = SnapshotRange((snapshot,), version)
        return None, appended
    versions = [ResolvedVersion(_parent(metadata, snapshot), metadata.schema), version]
    plans = [plan_scan(context, metadata, each, TRUE) for each in versions]
    files = [{task.location: task.deletes for task in plan.tasks(plan.files)} for plan in plans]
    scans: list[_ChangedFiles | None] = []
    for each, own, other in zip(versions, files, reversed(files), strict=True):
        touched = frozenset(path for path, deletes in own.items() if path not in other or other[path] != deletes)
        scan = _ChangedFiles(context, table, metadata, each) if touched else None
        if scan is not None:
            scan.locations = touched
        scans.append(scan)
    return scans[0], scans[1]


def _parent(metadata: TableMetadata, snapshot: Snapshot) -> Snapshot | None:
    if snapshot.parent_snapshot_id is None:
        return None
    parent = metadata.snapshots.find(snapshot.parent_snapshot_id)
    if parent is None:
        raise InvalidInput(
            f"what snapshot {snapshot.snapshot_id} changed is not known: its parent has expired", hint="Begin after it"
        )
    return parent
