"""Statistics files of a snapshot. (spec: Table Statistics, Partition Statistics)

In a table's metadata they are kept as the original JSON, so that no field of other writers is lost; only the snapshot
that each belongs to is decoded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StatisticsEntry:
    """A statistics file as metadata describes it: its JSON, and its snapshot."""

    snapshot_id: int
    document: bytes


@dataclass(frozen=True)
class BlobMetadata:
    """The description of one blob in a statistics file."""

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
    """A partition statistics file of one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
