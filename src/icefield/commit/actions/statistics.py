"""Set and remove the statistics files of snapshots. (spec: Table Statistics, Partition Statistics)

A snapshot has at most one file of each type; a new one replaces it. Raises NoSuchSnapshot.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from icefield.codec.json.statistics import encode_statistics
from icefield.commit.action import ProposedChange, WriteContext
from icefield.model.metadata import TableMetadata
from icefield.model.statistics import PartitionStatisticsFile, StatisticsFile
from icefield.model.updates import (
    AssertTableUUID,
    RemovePartitionStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
    Update,
)


@dataclass(frozen=True)
class SetStatisticsFile:
    """Sets a statistics file."""

    file: StatisticsFile | PartitionStatisticsFile

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        base.snapshot_by_id(self.file.snapshot_id)
        by_partition = isinstance(self.file, PartitionStatisticsFile)
        update = (SetPartitionStatistics if by_partition else SetStatistics)(encode_statistics(self.file))
        return ProposedChange([update], [AssertTableUUID(base.table_uuid)])

    def reusable_files(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class RemoveStatisticsFiles:
    """Removes the statistics of a snapshot, of both types; the files are kept."""

    snapshot_id: int

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        updates: list[Update] = [RemoveStatistics(self.snapshot_id), RemovePartitionStatistics(self.snapshot_id)]
        return ProposedChange(updates, [AssertTableUUID(base.table_uuid)])

    def reusable_files(self) -> Sequence[str]:
        return ()
