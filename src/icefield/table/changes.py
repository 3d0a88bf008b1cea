"""A read of the rows that were appended to a table after one version, up to another.

Rows are returned as they were appended: each row once, whether or not it was deleted or rewritten later.
Raises InvalidFilter and InvalidInput when made, MissingFile and CorruptFile when run.
"""

from collections.abc import Sequence
from typing import Any, Self

import pyarrow as pa

from icefield.cache.reading import ReadContext
from icefield.engine.rows import SessionChoice
from icefield.expr.bind.bound import Bound
from icefield.expr.parse.ast import Predicate
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.plan.changes import SnapshotRange, plan_appends
from icefield.plan.plan import ScanPlan
from icefield.storage.store import StaysInProcess
from icefield.table.read_lease import ReadLease
from icefield.table.scan import TableScan
from icefield.types.schema import Schema


class AppendScan(StaysInProcess):
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


class _AppendedRows(TableScan):
    """A scan of the files in a snapshot range; members that describe a single version are not used here."""

    snapshot_range: SnapshotRange

    @property
    def _plan(self) -> ScanPlan:
        if self._planned is None:
            with self._held():
                self._planned = plan_appends(self._context, self._metadata, self.snapshot_range, self._where)
        return self._planned
