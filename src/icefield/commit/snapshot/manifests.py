"""Write manifests, and build the manifest list row of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.json.schema import encode_schema, encode_spec_fields
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.decode import MANIFEST_COLUMN, decode_manifests
from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.header import DATA_MANIFEST, ManifestHeader
from icefield.codec.manifest.inherit import inherit
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rewrite import ManifestSource, OpenedSources, open_sources
from icefield.codec.manifest.rows import DataFiles, ManifestEntries, Manifests
from icefield.codec.manifest.schema import ADDED, DELETED, EXISTING, data_file_arrow_schema, partition_column
from icefield.commit.action import WriteContext
from icefield.commit.validate.references import remove_quietly
from icefield.commit.validate.schema_compatibility import check_fits
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.plan.manifest_list import find_spec
from icefield.plan.partition.keys import Partition, partition_keys
from icefield.properties.table import MANIFEST_CODEC
from icefield.storage.read_ahead import ReadAhead, Wanted
from icefield.storage.sizes import read_sized
from icefield.types.arrow import python_values
from icefield.types.datatypes import DoubleType, FloatType, NestedField, PrimitiveType
from icefield.types.schema import Schema
from icefield.types.values.binary import encode_value

ENTRIES_PER_MANIFEST = 20_000
# Where a name of Iceberg is not that of Avro.
AVRO_CODECS = {"gzip": "deflate", "uncompressed": "null", "zstd": "zstandard"}
COUNTS = tuple(f"{what}_{of}_count" for what in ("added", "existing", "deleted") for of in ("files", "rows"))
ManifestRow = dict[str, object]
# The columns needed to rewrite a manifest with other statuses.
REWRITTEN = ManifestColumns(
    (
        "status",
        "snapshot_id",
        "sequence_number",
        "content",
        "file_path",
        "record_count",
        "file_size_in_bytes",
        "referenced_data_file",
        "content_size_in_bytes",
    )
)


@dataclass(frozen=True)
class ManifestShape:
    """What all entries of a manifest have in common."""

    schema: Schema
    spec: PartitionSpec
    content: int = DATA_MANIFEST

    def header(self, format_version: int) -> ManifestHeader:
        return ManifestHeader(
            schema_json=msgspec.json.encode(encode_schema(self.schema)).decode(),
            partition_spec_json=msgspec.json.encode(encode_spec_fields(self.spec)).decode(),
            partition_spec_id=self.spec.spec_id,
            schema_id=self.schema.schema_id,
            format_version=format_version,
            content=self.content,
        )

    @property
    def partition(self) -> tuple[NestedField, ...]:
        return self.spec.columns(self.schema)


@dataclass(frozen=True)
class AddedFiles:
    """Data files or delete files that a snapshot adds, all with one spec and schema.

    sequence_number: the data sequence number of the files, if it is older than the snapshot's; None to inherit it.
    """

    columns: DataFiles
    shape: ManifestShape
    sequence_number: int | None = None

    @property
    def partitions(self) -> frozenset[Partition]:
        """The distinct partitions that the files belong to; all files of an unpartitioned table share one."""
        spec = self.shape.spec
        return frozenset((spec.spec_id, key) for key in partition_keys(self.columns, spec).unique().to_pylist())

    @property
    def locations(self) -> list[str]:
        found: list[str] = self.columns.file_path.to_pylist()
        return found


class AddedManifests:
    """The manifests of a snapshot's new files, written once for all attempts.

    Values that depend on the base are inherited, so that the manifests can be reused after a conflict.
    (spec: Sequence Number Inheritance)
    """

    def __init__(self, *groups: AddedFiles) -> None:
        self._groups = groups
        self.snapshot_id: int | None = None  # generated when they are first written
        self._was_proposed = False
        self._format_version = 0
        self._rows: list[ManifestRow] | None = None

    @property
    def locations(self) -> list[str]:
        return [str(row["manifest_path"]) for row in self._rows or ()]

    def are_in(self, base: TableMetadata) -> bool:
        """Return whether an earlier proposal was committed: an action that is committed again is applied once."""
        was_proposed, self._was_proposed = self._was_proposed, True
        return was_proposed and self.snapshot_id is not None and base.snapshots.find(self.snapshot_id) is not None

    def write(self, base: TableMetadata, context: WriteContext) -> tuple[list[ManifestRow], int]:
        """Return their manifest list rows and the id of their snapshot; write them if necessary."""
        for group in self._groups:
            if group.columns.num_rows:
                check_fits(group.shape.schema, base)
        if self.snapshot_id is None:
            self.snapshot_id = context.ambient.random_id()
        if self._rows is not None and self._format_version == 1 < base.format_version:
            # Entries of a v1 manifest have sequence number 0 for ever: they cannot be new in an upgraded table.
            remove_quietly(context.store, self.locations)
            self._rows = None
        if self._rows is None:
            self._format_version = base.format_version
            self._rows = [row for group in self._groups for row in write_added(group, base, context, self.snapshot_id)]
        return self._rows, self.snapshot_id


def write_added(files: AddedFiles, base: TableMetadata, context: WriteContext, snapshot_id: int) -> list[ManifestRow]:
    """Write the manifests of new files."""
    return [
        write_manifest(_added_entries(files, start, base, snapshot_id), files.shape, base, context)
        for start in range(0, files.columns.num_rows, ENTRIES_PER_MANIFEST)
    ]


def _added_entries(files: AddedFiles, start: int, base: TableMetadata, snapshot_id: int) -> ManifestEntries:
    entries = files.columns.slice(start, ENTRIES_PER_MANIFEST).table
    inherited = pa.nulls(entries.num_rows, pa.int64())
    age = pa.array([files.sequence_number] * entries.num_rows, pa.int64())
    # (spec: Manifest Entry Fields; version 1 requires the snapshot id.)
    known = pa.array([snapshot_id] * entries.num_rows, pa.int64())
    entries = entries.add_column(0, "file_sequence_number", inherited)
    entries = entries.add_column(0, "sequence_number", age)
    entries = entries.add_column(0, "snapshot_id", known if base.format_version == 1 else inherited)
    return ManifestEntries(entries.add_column(0, "status", pa.array(np.full(entries.num_rows, ADDED, np.int32))))


def write_manifest(
    entries: ManifestEntries, shape: ManifestShape, base: TableMetadata, context: WriteContext
) -> ManifestRow:
    """Write entries as one manifest; the sequence numbers of the row are filled in when its snapshot is built."""
    location = _new_location(base, context)
    header = shape.header(base.format_version)
    data = encode_manifest(entries, header, shape.partition, location, manifest_codec(base))
    context.store.put_new(location, data)
    return describe_manifest(location, len(data), entries, shape)


def load_entries(manifest: Manifests, context: WriteContext) -> tuple[bytes, ManifestEntries]:
    """Load the manifest of one row: its bytes, and its columns REWRITTEN with inherited values applied."""
    (data,), entries = load_many_entries(manifest, context)
    return data, entries.without([MANIFEST_COLUMN])


def load_many_entries(manifests: Manifests, context: WriteContext) -> tuple[list[bytes], ManifestEntries]:
    """Load manifests of one spec in the same way; the column MANIFEST_COLUMN counts them."""
    known = (manifests[name].to_pylist() for name in ("manifest_path", "manifest_length"))
    listed = list(zip(*known, strict=True))
    with ReadAhead(context.store, (Wanted(at, length) for at, length in listed)) as near:
        files = [(at, read_sized(near, at, length)) for at, length in listed]
    return [data for _, data in files], inherit(decode_manifests(files, REWRITTEN), manifests)


def complete_manifests(manifests: Manifests, base: TableMetadata, context: WriteContext) -> Manifests:
    """Fill in the counts that rows from format version 1 may lack, by reading those manifests.

    Later versions require them, and row ids are assigned by them. (spec: Manifest Lists)
    """
    lacks = np.zeros(manifests.num_rows, np.bool_)
    for name in COUNTS:
        lacks |= manifests[name].is_null().to_numpy()
    if not lacks.any():
        return manifests
    rows = manifests.to_pylist()
    for at in np.flatnonzero(lacks).tolist():
        manifest = manifests.slice(at, 1)
        data, entries = load_entries(manifest, context)
        spec = find_spec(base, rows[at]["partition_spec_id"])
        shape = ManifestShape(base.schema_of_spec(spec), spec)
        found = describe_manifest(rows[at]["manifest_path"], len(data), entries, shape)
        rows[at] |= {name: found[name] for name in (*COUNTS, "partitions")}
        rows[at]["added_snapshot_id"] = _adding_snapshot(entries, rows[at]["added_snapshot_id"])
    return Manifests(pa.Table.from_pylist(rows, schema=MANIFEST_LIST_ARROW_SCHEMA))


@dataclass(frozen=True)
class ManifestMerge:
    """The selected entries of several manifests of one spec, to be written as one or more others."""

    opened: OpenedSources
    selected: ManifestEntries
    shape: ManifestShape

    def size(self, base: TableMetadata) -> int:
        """Return the size of a manifest with all entries."""
        return len(self.opened.encode("", manifest_codec(base)))

    def write(self, rows: pa.Array | None, base: TableMetadata, context: WriteContext) -> ManifestRow:
        """Write entries, by number, as one manifest; None for all."""
        location = _new_location(base, context)
        data = self.opened.encode(location, manifest_codec(base), rows)
        context.store.put_new(location, data)
        entries = self.selected if rows is None else self.selected.take(rows)
        return describe_manifest(location, len(data), entries, self.shape)


def open_merge(
    sources: Sequence[ManifestSource], entries: ManifestEntries, base: TableMetadata, snapshot_id: int
) -> ManifestMerge:
    """Open the selected entries of several manifests of one spec; `entries` are those of all, in order."""
    first = sources[0].manifest
    spec = find_spec(base, first.partition_spec_id[0].as_py())
    shape = ManifestShape(base.schema_of_spec(spec), spec, first.content[0].as_py())
    opened = open_sources(sources, shape.header(base.format_version), shape.partition, snapshot_id)
    status = pa.chunked_array([source.status for source in sources])
    return ManifestMerge(opened, entries.replaced({"status": status}).filter(status.is_valid()), shape)


def manifest_codec(base: TableMetadata) -> str:
    """Return the Avro codec of the table's manifests and manifest lists."""
    codec = MANIFEST_CODEC.read(base.properties)
    return AVRO_CODECS.get(codec, codec)


def _new_location(base: TableMetadata, context: WriteContext) -> str:
    return context.metadata_location(base, f"{context.unique()}-m0.avro")


def describe_manifest(location: str, length: int, entries: ManifestEntries, shape: ManifestShape) -> ManifestRow:
    """Build the manifest list row of a manifest."""
    row: ManifestRow = {
        "manifest_path": location,
        "manifest_length": length,
        "partition_spec_id": shape.spec.spec_id,
        "content": shape.content,
        "partitions": [_summary(entries[partition_column(f.field_id)], f.type) for f in shape.partition],
    }
    statuses, rows = entries.status.to_numpy(), pc.fill_null(entries.record_count, 0).to_numpy()
    for word, status in (("added", ADDED), ("existing", EXISTING), ("deleted", DELETED)):
        is_part = statuses == status
        row[f"{word}_files_count"] = int(np.count_nonzero(is_part))
        row[f"{word}_rows_count"] = int(rows[is_part].sum())
    # None while an added entry has not inherited its sequence number.
    numbers = entries.sequence_number.filter(pa.array(statuses != DELETED))
    row["min_sequence_number"] = None if numbers.null_count or not len(numbers) else pc.min(numbers).as_py()
    return row


def _adding_snapshot(entries: ManifestEntries, otherwise: int) -> int:
    """Find the snapshot that added a manifest: the one that added or deleted its files, else the newest."""
    changed = np.flatnonzero(entries.status.to_numpy() != EXISTING)
    if len(changed):
        return int(entries.snapshot_id[int(changed[0])].as_py())
    return int(pc.max(entries.snapshot_id).as_py()) if entries.num_rows else otherwise


def with_sequence(row: ManifestRow, snapshot_id: int, sequence_number: int) -> ManifestRow:
    """Fill in what depends on the snapshot that adds the manifest."""
    lowest = row["min_sequence_number"]
    return {
        **row,
        "sequence_number": sequence_number,
        "added_snapshot_id": snapshot_id,
        "min_sequence_number": sequence_number if lowest is None else lowest,
    }


def _summary(column: pa.ChunkedArray, kind: object) -> Mapping[str, object]:
    """Summarise a partition field; bounds are exact. (spec: Manifest Lists, field_summary)"""
    assert isinstance(kind, PrimitiveType)
    values = column.combine_chunks()
    known = values.drop_null()
    contains_nan = False
    if isinstance(kind, FloatType | DoubleType):
        nans = pc.is_nan(known)
        contains_nan = bool(pc.any(nans).as_py())
        known = known.filter(pc.invert(nans))
    summary: dict[str, object] = {"contains_null": values.null_count > 0, "contains_nan": contains_nan}
    if len(known):
        lower, upper = _bounds(known, kind)
        summary |= {"lower_bound": lower, "upper_bound": upper}
    return summary


def _bounds(known: pa.Array, kind: PrimitiveType) -> tuple[bytes, bytes]:
    distinct: list[Any] = list(python_values(known.unique(), kind))
    lower, upper = min(distinct), max(distinct)
    if isinstance(kind, FloatType | DoubleType):
        # -0.0 sorts before 0.0, though they compare as equal: widen a zero bound. (spec: Manifests)
        lower, upper = lower or -0.0, upper or 0.0
    return encode_value(lower, kind), encode_value(upper, kind)


def as_data_files(entries: ManifestEntries, spec: PartitionSpec, base: TableMetadata) -> DataFiles:
    """Return the files of manifest entries of one spec, as they are added again."""
    target = data_file_arrow_schema(spec.columns(base.schema_of_spec(spec)))
    rows = entries.num_rows
    columns = [
        entries[field.name] if field.name in entries else pa.chunked_array([pa.nulls(rows, field.type)])
        for field in target
    ]
    return DataFiles(
        pa.Table.from_arrays([column.cast(f.type) for column, f in zip(columns, target, strict=True)], schema=target)
    )
