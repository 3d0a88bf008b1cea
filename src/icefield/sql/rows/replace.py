"""What happens to the rows of the table when an INSERT writes new ones, and what it counts.

INSERT INTO            they stay
INSERT OVERWRITE       all go, those of PARTITION, or (mode `dynamic`, OVERWRITE PARTITIONS) those of partitions
                       that get rows
REPLACE WHERE          those that match go; the new ones must match too
REPLACE USING (a, b)   those whose columns are equal to those of a new row go
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Any

from icefield.engine.local import LOCAL
from icefield.engine.rows import has_session, is_spark, load_spark_engine
from icefield.errors import InvalidInput, Unsupported
from icefield.plan.versions import resolve_version
from icefield.sql.counts import counted, counts_of_append, files_of, number_of
from icefield.sql.session import Rows, Run
from icefield.table.scan import TableScan
from icefield.table.table import Table

_MODE = "spark.sql.sources.partitionOverwriteMode"


class Replaces(Enum):
    """Which rows of the table an INSERT replaces."""

    NONE = "none"
    ALL = "all"
    PARTITIONS = "partitions"
    MATCHING = "matching"
    EQUAL = "equal"


@dataclass(frozen=True)
class NewRows:
    """New rows of a table: Arrow data or a DataFrame. merges_schema: they may have new columns."""

    run: Run
    table: Table
    rows: Any
    merges_schema: bool = False

    def append(self) -> Rows:
        """Add the rows."""
        if self.run.is_dry_run:
            return counted({"rows_inserted": self.count()}, None, f"append to {self.table.name}")
        with self._explained():
            snapshot = self.table.append(self.rows, merge_schema=self.merges_schema, engine=self._engine)
        return counts_of_append(snapshot)

    def overwrite(self, where: str | None) -> Rows:
        """Replace the rows that match a filter, or all; new rows must match it."""
        table = self.table
        if self.run.is_dry_run:
            return self._planned(where)
        with self._explained():
            snapshot = table.overwrite(self.rows, where, merge_schema=self.merges_schema, engine=self._engine)
        if snapshot is None:
            return counted({}, None)
        deleted = self._rows_at(snapshot.parent_snapshot_id, where)
        before = deleted if where is None else self._rows_at(snapshot.parent_snapshot_id)
        inserted = self._rows_at(snapshot.snapshot_id) - before + deleted
        copied = number_of(snapshot, "added-records") - inserted
        counts = {"rows_inserted": inserted, "rows_deleted": deleted, "rows_copied": copied, **files_of(snapshot)}
        return counted(counts, snapshot)

    def overwrite_partitions(self) -> Rows:
        """Replace the partitions that get rows."""
        if self.merges_schema:
            raise Unsupported("an overwrite of partitions cannot add columns", hint="Add them with ALTER TABLE first")
        if self.run.is_dry_run:
            return counted({"rows_inserted": self.count(), "rows_deleted": None}, None, "the partitions that get rows")
        with self._explained():
            snapshot = self.table.overwrite_partitions(self.rows, engine=self._engine)
        if snapshot is None:
            return counted({}, None)
        inserted = number_of(snapshot, "added-records")
        before, after = self._rows_at(snapshot.parent_snapshot_id), self._rows_at(snapshot.snapshot_id)
        return counted(
            {"rows_inserted": inserted, "rows_deleted": before + inserted - after, **files_of(snapshot)}, snapshot
        )

    def replace_equal(self, columns: list[str]) -> Rows:
        """Replace the rows whose columns are equal to those of a new row, in one commit of two snapshots."""
        rows = self.rows.cache() if is_spark(self.rows) else self.rows
        with self._explained():
            deleted = self.table.merge(rows.select(columns), columns, engine=self._engine).when_matched().delete()
            done = deleted.execute(dry_run=self.run.is_dry_run)
            counts = {
                "rows_deleted": done.rows_deleted,
                "rows_copied": done.rows_copied,
                "files_added": done.files_added,
                "files_removed": done.files_rewritten + done.files_dropped,
                "delete_files_added": done.delete_files_added,
            }
            if self.run.is_dry_run:
                return counted({**counts, "rows_inserted": self.count()}, None, str(done))
            snapshot = self.table.append(rows, merge_schema=self.merges_schema, engine=self._engine)
        counts["rows_inserted"] = number_of(snapshot, "added-records")
        counts["files_added"] += files_of(snapshot)["files_added"]
        return counted(counts, snapshot or done.snapshot)

    def count(self) -> int:
        """Return how many new rows there are."""
        return int(self.rows.count()) if is_spark(self.rows) else int(self.rows.num_rows)

    def _planned(self, where: str | None) -> Rows:
        explained = self.table.explain_change(where)
        counts = {
            "rows_inserted": self.count(),
            "rows_deleted": self._rows_at(explained.snapshot_id, where),
            "files_removed": explained.plan.files.num_rows,
        }
        return counted(counts, None, str(explained))

    def _rows_at(self, snapshot_id: int | None, where: str | None = None) -> int:
        """Count rows of a snapshot; a transaction does not take it for a read of the statement."""
        if snapshot_id is None:
            return 0
        metadata, backend = self.table.metadata, self.run.lake.backend
        scan = TableScan(backend.reading, self.table.head.name, metadata, resolve_version(metadata, snapshot_id), where)
        return scan.using(self.run.lake.source.sessions).count()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with load_spark_engine().explained("insert") if is_spark(self.rows) else nullcontext():
            yield

    @property
    def _engine(self) -> Any:
        return None if is_spark(self.rows) else self.run.engine


def is_dynamic(run: Run) -> bool:
    """Return whether the session overwrites only the partitions that get rows."""
    session = run.lake.source.sessions.session
    if run.engine == LOCAL or not has_session(session):
        return False
    mode = str(run.lake.spark.conf.get(_MODE, "static")).lower()
    if mode not in ("static", "dynamic"):
        raise InvalidInput(f"{_MODE} must be static or dynamic, not {mode!r}")
    return mode == "dynamic"
