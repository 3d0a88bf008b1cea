"""Statistics files of a snapshot. (spec: Table Statistics, Partition Statistics)

In a table's metadata they are kept as the JSON that they came as, so that nothing of what other writers say of them is
lost; only the snapshot that each belongs to is looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StatisticsEntry:
    """One file of statistics, as the metadata describes it: JSON, and the snapshot that it names."""

    snapshot_id: int
    document: bytes


@dataclass(frozen=True)
class BlobMetadata:
    """What a statistics file holds in one of its blobs."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StatisticsFile:
    """A Puffin file of statistics of one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[BlobMetadata, ...] = ()


@dataclass(frozen=True)
class PartitionStatisticsFile:
    """A file of statistics by partition of one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
