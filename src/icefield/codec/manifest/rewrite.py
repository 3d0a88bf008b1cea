"""Write entries of existing manifests to a new one: kept as existing, marked deleted, or left out.

The data_file records are copied byte for byte if the old files have the layout that icefield writes; otherwise they are
decoded and encoded again. Inherited values are written explicitly, as the spec requires for existing entries.
(spec: Sequence Number Inheritance, First Row ID Inheritance)
Raises CorruptFile for a corrupt source; InvalidInput for sources that cannot be combined in one manifest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.avro.compression import DEFLATE
from icefield.codec.avro.container import parse_header
from icefield.codec.avro.schema import ROOT_ID, Node, Record, parse_schema
from icefield.codec.manifest.columns import ALL, DATA_FILE_COLUMN, ManifestColumns, entry_names
from icefield.codec.manifest.decode import decode_manifests
from icefield.codec.manifest.encode import check_entries, encode_entries, write_manifest
from icefield.codec.manifest.header import ManifestHeader, decode_manifest_header
from icefield.codec.manifest.inherit import inherit
from icefield.codec.manifest.partition import partition_record
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import ADDED, DATA_FILE_ID, DELETED, PATHS, entry_schema_json
from icefield.errors import CorruptFile, InvalidInput
from icefield.types.datatypes import NestedField

_ENTRY_NAMES = ("status", "snapshot_id", "sequence_number", "file_sequence_number")
_COPY = ManifestColumns((*_ENTRY_NAMES, "record_count", "first_row_id"), partition=False, data_file=True)


@dataclass(frozen=True)
class ManifestSource:
    """A manifest to take entries from: its row of the manifest list, and the new status of each of its entries.

    EXISTING keeps an entry; DELETED marks it as deleted by the new snapshot; ADDED keeps the status of an entry that
    the same snapshot added; null drops it.
    """

    location: str
    data: bytes
    manifest: Manifests
    status: pa.Array


def rewrite_manifests(
    sources: Sequence[ManifestSource],
    header: ManifestHeader,
    partition: Sequence[NestedField],
    snapshot_id: int,
    location: str,
    codec: str = DEFLATE,
) -> bytes:
    """Encode the chosen entries of the sources, in order, as the manifest at a location."""
    return open_sources(sources, header, partition, snapshot_id).encode(location, codec)


@dataclass(frozen=True)
class OpenedSources:
    """The chosen entries of manifests, decoded once, to be written to one or several others.

    is_copied: their data_file records are undecoded bytes.
    """

    entries: ManifestEntries
    header: ManifestHeader
    record: Record
    is_copied: bool

    def encode(self, location: str, codec: str = DEFLATE, rows: pa.Array | None = None) -> bytes:
        """Encode entries as the manifest at a location. rows: which, and in which order; None for all, in order."""
        entries = self.entries if rows is None else self.entries.take(rows)
        if not self.is_copied:
            return encode_entries(entries, self.header, self.record, location, codec)
        columns = {PATHS[name]: entries[name].combine_chunks() for name in _ENTRY_NAMES}
        columns[ROOT_ID, DATA_FILE_ID] = entries[DATA_FILE_COLUMN].combine_chunks()
        return write_manifest(columns, self.header, self.record, location, codec)


def open_sources(
    sources: Sequence[ManifestSource], header: ManifestHeader, partition: Sequence[NestedField], snapshot_id: int
) -> OpenedSources:
    """Decode the chosen entries of the sources, in order."""
    for source in sources:
        _check_source(source, header)
    record = partition_record(partition)
    if _same_layout(sources, header.format_version, record):
        entries, stored = _chosen_entries(sources, _COPY, snapshot_id)
        if header.format_version < 3 or entries.first_row_id.equals(stored.first_row_id):
            check_entries(entries.without(["first_row_id"]), header.format_version)
            return OpenedSources(entries, header, record, is_copied=True)
    entries, _ = _chosen_entries(sources, ALL, snapshot_id)
    return OpenedSources(entries, header, record, is_copied=False)


def _check_source(source: ManifestSource, header: ManifestHeader) -> None:
    found = decode_manifest_header(source.data, source.location)
    if (found.partition_spec_id, found.content) != (header.partition_spec_id, header.content):
        raise InvalidInput(
            f"cannot move entries of {source.location} (spec {found.partition_spec_id}, content {found.content}) to a "
            f"manifest of spec {header.partition_spec_id} and content {header.content}"
        )


def _same_layout(sources: Sequence[ManifestSource], version: int, partition: Record) -> bool:
    ours = _data_file_node(entry_schema_json(version, partition).encode(), b"")
    for source in sources:
        found = parse_header(source.data, source.location)
        try:
            theirs = _data_file_node(found.schema, found.metadata.get("partition-spec", b""))
        except ValueError as error:
            raise CorruptFile(source.location, str(error)) from error
        if theirs != ours:
            return False
    return True


@lru_cache(maxsize=64)
def _data_file_node(schema: bytes, partition_spec: bytes) -> Node | None:
    fields = parse_schema(schema, entry_names(partition_spec)).fields
    return next((f.node for f in fields if f.field_id == DATA_FILE_ID and f.null_branch < 0), None)


def _chosen_entries(
    sources: Sequence[ManifestSource], want: ManifestColumns, snapshot_id: int
) -> tuple[ManifestEntries, ManifestEntries]:
    """Return the chosen entries as they will be written, and as they were stored."""
    stored = decode_manifests([(s.location, s.data) for s in sources], want)
    entries = inherit(stored, Manifests.concat(s.manifest for s in sources))
    status = pa.concat_arrays([s.status.cast(pa.int32()) for s in sources])
    if len(status) != entries.num_rows:
        raise InvalidInput(f"cannot rewrite {entries.num_rows} entries by {len(status)} new statuses")
    new = {
        "status": status,
        "snapshot_id": pc.if_else(pc.equal(status, DELETED), snapshot_id, entries.snapshot_id),
    }
    for name in ("sequence_number", "file_sequence_number"):
        new[name] = pc.if_else(pc.equal(status, ADDED), stored[name], entries[name])
    chosen = status.is_valid()
    return entries.replaced(new).filter(chosen), stored.filter(chosen)
