"""The statistics files of a table's snapshots: list, compute, set and remove them.

Raises NoSuchSnapshot, InvalidInput, StorageError, CommitConflict, CommitStateUnknown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput, NoSuchSnapshot
from icefield.table.versions.history import TableHistory

with deferred_imports(__name__):
    from icefield.codec.json.statistics import decode_statistics
    from icefield.commit.actions.statistics import RemoveStatisticsFiles, SetStatisticsFile
    from icefield.dml.statistics import measured_columns, write_partition_statistics, write_statistics
    from icefield.engine.choose import EngineName
    from icefield.expr.parse.ast import Predicate
    from icefield.model.snapshot import Snapshot
    from icefield.model.statistics import PartitionStatisticsFile, StatisticsFile
    from icefield.plan.versions import AsOf, resolve_version
    from icefield.table.inspection import TableInspection
    from icefield.table.scan import TableScan


@check_arguments
class TableStatistics(TableHistory, ABC):
    """The part of a table handle that deals with statistics files."""

    @abstractmethod
    def scan(
        self, where: Predicate | str | Any = None, select: Sequence[str] | None = None, as_of: AsOf | None = None
    ) -> TableScan:
        """Plan a read."""

    @abstractmethod
    def inspect(
        self,
        name: str,
        *,
        where: Predicate | str | Any = None,
        select: Sequence[str] | None = None,
        as_of: AsOf | None = None,
    ) -> TableInspection:
        """Open a metadata table."""

    def statistics(self) -> list[StatisticsFile]:
        """List the statistics files of the table's snapshots."""
        return [decode_statistics(entry) for entry in self.metadata.statistics]

    def compute_statistics(
        self,
        columns: Sequence[str] | None = None,
        *,
        snapshot_id: int | None = None,
        engine: EngineName | None = None,
    ) -> StatisticsFile:
        """Count about how many distinct values columns have, and set the statistics file of a snapshot.

        All rows of these columns are read, by tasks that return a sketch of the values of each column.

        Args:
            columns: Columns with single values, also inside structs. By default all that are not.
            snapshot_id: The snapshot. By default the newest.
            engine: `local` or `spark`. By default the engine of `Lake.use`, else Spark if much data must be read and a
                Spark session is active.
        """
        snapshot = self._snapshot_to_measure(snapshot_id)
        schema = resolve_version(self._load(), snapshot.snapshot_id).schema
        chosen = measured_columns(schema, columns)
        sketches = self.scan(as_of=snapshot.snapshot_id)._sketches(chosen, engine)  # noqa: SLF001 - not for users
        return write_statistics(self._head, snapshot, sketches)

    def compute_partition_statistics(self, *, snapshot_id: int | None = None) -> PartitionStatisticsFile:
        """Count the rows, files and deletes of each partition, and set the partition statistics file of a snapshot.

        Args:
            snapshot_id: The snapshot. By default the newest.
        """
        snapshot = self._snapshot_to_measure(snapshot_id)
        if all(spec.is_unpartitioned for spec in self._load().specs):
            raise InvalidInput(f"table {self.name} is not partitioned")
        at = snapshot.snapshot_id
        partitions = self.inspect("partitions", as_of=at).to_arrow().read_all()
        vectors = self.inspect(
            "delete_files", where="file_format = 'PUFFIN'", select=["spec_id", "partition"], as_of=at
        )
        return write_partition_statistics(self._head, snapshot, partitions, vectors.to_arrow().read_all())

    def set_statistics(self, file: StatisticsFile | PartitionStatisticsFile) -> None:
        """Set the statistics file of a snapshot. It replaces another one of the same kind."""
        self._head.commit([SetStatisticsFile(file)])

    def remove_statistics(self, snapshot_id: int) -> None:
        """Remove the statistics of a snapshot from the metadata. The files are kept."""
        self._head.commit([RemoveStatisticsFiles(snapshot_id)])

    def _snapshot_to_measure(self, snapshot_id: int | None) -> Snapshot:
        found = self._point(self._load(), snapshot_id).snapshot
        if found is None:
            raise NoSuchSnapshot(f"table {self.name} has no snapshots")
        return found
