"""Statistics files in table metadata, to and from JSON. (spec: Table Statistics, Partition Statistics)

Raises ValueError for malformed entries.
"""

from collections.abc import Iterable

import msgspec

from icefield.codec.json.snapshots import Int, Long, NaturalLong
from icefield.model.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsEntry, StatisticsFile


class _Entry(msgspec.Struct, rename="kebab"):
    snapshot_id: Long


class StatisticsLocation(msgspec.Struct, rename="kebab", frozen=True):
    """Where a statistics file of either type is, and its size if the writer gave it."""

    statistics_path: str
    file_size_in_bytes: int | None = None


class _Blob(msgspec.Struct, rename="kebab", omit_defaults=True):
    type: str
    snapshot_id: Long
    sequence_number: Long
    fields: tuple[Int, ...]
    properties: dict[str, str] = msgspec.field(default_factory=dict)


class _Statistics(msgspec.Struct, rename="kebab"):
    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: NaturalLong
    file_footer_size_in_bytes: NaturalLong
    blob_metadata: tuple[_Blob, ...]


class _PartitionStatistics(msgspec.Struct, rename="kebab"):
    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: NaturalLong


_ENTRY = msgspec.json.Decoder(_Entry)
_LOCATION = msgspec.json.Decoder(StatisticsLocation)
_STATISTICS = msgspec.json.Decoder(_Statistics)


def decode_entries(documents: list[msgspec.Raw]) -> tuple[StatisticsEntry, ...]:
    """Return the entries of a list in metadata, undecoded."""
    return tuple(StatisticsEntry(_ENTRY.decode(raw).snapshot_id, bytes(raw)) for raw in documents)


def decode_location(entry: StatisticsEntry) -> StatisticsLocation:
    """Decode where the file of an entry is, and nothing else of it."""
    return _LOCATION.decode(entry.document)


def encode_entries(entries: Iterable[StatisticsEntry]) -> list[msgspec.Raw]:
    """Return the list for metadata."""
    return [msgspec.Raw(entry.document) for entry in entries]


def encode_statistics(file: StatisticsFile | PartitionStatisticsFile) -> StatisticsEntry:
    """Encode the entry of a file."""
    if isinstance(file, PartitionStatisticsFile):
        wire: msgspec.Struct = _PartitionStatistics(file.snapshot_id, file.statistics_path, file.file_size_in_bytes)
    else:
        blobs = tuple(
            _Blob(b.type, b.snapshot_id, b.sequence_number, b.fields, dict(b.properties)) for b in file.blob_metadata
        )
        wire = _Statistics(
            file.snapshot_id, file.statistics_path, file.file_size_in_bytes, file.file_footer_size_in_bytes, blobs
        )
    return StatisticsEntry(file.snapshot_id, msgspec.json.encode(wire))


def decode_statistics(entry: StatisticsEntry) -> StatisticsFile:
    """Decode the entry of a statistics file."""
    wire = _STATISTICS.decode(entry.document)
    blobs = tuple(
        BlobMetadata(b.type, b.snapshot_id, b.sequence_number, b.fields, b.properties) for b in wire.blob_metadata
    )
    return StatisticsFile(
        wire.snapshot_id, wire.statistics_path, wire.file_size_in_bytes, wire.file_footer_size_in_bytes, blobs
    )
