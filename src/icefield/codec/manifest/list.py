"""Decode, encode and splice manifest lists as Arrow tables, one row per manifest. (spec: Manifest Lists)

splice_manifest_list() adds manifests to a list without decoding it: the old file's blocks are copied.
Raises CorruptFile for bytes that are not a manifest list; InvalidInput for rows that cannot be written as one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.avro.arrow import records_array, value_array
from icefield.codec.avro.compression import CODECS, DEFLATE
from icefield.codec.avro.container import (
    BLOCK_BYTES,
    CODEC_KEY,
    DEFAULT_LIMITS,
    SCHEMA_KEY,
    Header,
    Limits,
    encode_block,
    encode_blocks,
    encode_container,
    encode_header,
    iterate_blocks,
    parse_header,
    raw_blocks,
    raw_data,
)
from icefield.codec.avro.decode import Decoded, decode, pack_rows
from icefield.codec.avro.encode import encode_rows
from icefield.codec.avro.program import Program
from icefield.codec.avro.schema import ROOT_ID
from icefield.codec.manifest.header import DATA_MANIFEST
from icefield.codec.manifest.list_schema import (
    FIELDS,
    MANIFEST_LIST_ARROW_SCHEMA,
    SUMMARY_IDS,
    list_program,
    list_record,
    list_schema_json,
)
from icefield.codec.manifest.rows import Manifests
from icefield.errors import CorruptFile, InvalidInput
from icefield.model.metadata import ROW_LINEAGE_VERSION
from icefield.properties.format_versions import FORMAT_VERSIONS

_SNAPSHOT_KEY = "snapshot-id"
_NEVER_NULL = ("manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id")
# Defaults for fields that v1 lists do not have. (spec: Manifest Lists)
_DEFAULTS = {"content": 0, "sequence_number": 0, "min_sequence_number": 0}


@dataclass(frozen=True)
class ManifestListHeader:
    """The snapshot that a manifest list belongs to. more: further keys of the file, for readers that know them."""

    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int
    format_version: int = 2
    first_row_id: int | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    def metadata(self) -> dict[str, str]:
        """Return the keys to write to the file, as Iceberg Java names them."""
        parent = "null" if self.parent_snapshot_id is None else str(self.parent_snapshot_id)
        metadata = {_SNAPSHOT_KEY: str(self.snapshot_id), "parent-snapshot-id": parent}
        if self.format_version > 1:
            metadata["sequence-number"] = str(self.sequence_number)
        if self.first_row_id is not None:
            metadata["first-row-id"] = str(self.first_row_id)
        return {**metadata, "format-version": str(self.format_version), **self.more}


def decode_manifest_list(data: bytes, location: str, limits: Limits = DEFAULT_LIMITS) -> Manifests:
    """Decode a manifest list to MANIFEST_LIST_ARROW_SCHEMA; counts that a v1 list omits are null."""
    header = parse_header(data, location)
    try:
        program = list_program(header.schema)
        decoded = decode(pack_rows([(location, raw_blocks(data, header, location, limits))], limits), program, limits)
        return Manifests(pa.table(_columns(decoded, program), schema=MANIFEST_LIST_ARROW_SCHEMA))
    except ValueError as error:
        raise CorruptFile(location, str(error)) from error


def check_list_of(snapshot_id: int, data: bytes, location: str) -> None:
    """Refuse a manifest list that was written for another snapshot, according to its header.

    The spec does not define this key, but Iceberg Java and PyIceberg write it. A list without it is accepted.
    """
    said = parse_header(data, location).metadata.get(_SNAPSHOT_KEY)
    if said is not None and said != str(snapshot_id).encode():
        raise CorruptFile(
            location,
            f"it is the manifest list of snapshot {said.decode(errors='replace')}, and metadata names it for snapshot"
            f" {snapshot_id}",
            hint="It was replaced, or the metadata is of another table; restore it from a backup",
        )


def list_property(data: bytes, location: str, key: str) -> str | None:
    """Return what the header of a manifest list says under a key."""
    said = parse_header(data, location).metadata.get(key)
    return None if said is None else said.decode(errors="replace")


def count_manifests(data: bytes, location: str) -> int:
    """Return how many manifests a list names, from its block headers alone."""
    return sum(block.rows for block in iterate_blocks(data, parse_header(data, location), location))


def encode_manifest_list(rows: Manifests, header: ManifestListHeader, location: str, codec: str = DEFLATE) -> bytes:
    """Encode rows of MANIFEST_LIST_ARROW_SCHEMA as the manifest list at a location."""
    raw, row_ends = _encode_rows(rows, header.format_version)
    return encode_container(_metadata(header, codec), raw, row_ends, location)


def is_spliceable(previous: bytes, location: str, version: int) -> bool:
    """Return whether a list has the layout that icefield writes, so that rows can be added without decoding it."""
    return parse_header(previous, location).schema == list_schema_json(version).encode()


def splice_manifest_list(
    previous: bytes, previous_location: str, new_rows: Manifests, header: ManifestListHeader, location: str
) -> bytes:
    """Encode a manifest list of the new rows followed by all rows of the previous list, which must be spliceable.

    The previous list's blocks are copied; a few new rows are added to its first block, so that many commits do not
    leave many small blocks.
    """
    old = parse_header(previous, previous_location)
    if old.codec not in CODECS:
        raise CorruptFile(previous_location, f"the codec {old.codec!r} is not one of {', '.join(CODECS)}")
    raw, row_ends = _encode_rows(new_rows, header.format_version)
    head = encode_header(_metadata(header, old.codec), old.sync)
    return head + _spliced_blocks(previous, previous_location, old, raw, row_ends)


def partition_summaries(manifests: Manifests, position: int) -> pa.Table:
    """Return the summaries of the partition field at a position: contains_null, contains_nan, lower_bound, upper_bound.

    One row per manifest; null where a manifest has no summary of that field.
    """
    column = manifests.partitions.combine_chunks()
    begins = column.offsets.to_numpy()
    absent = (np.diff(begins) <= position) | column.is_null().to_numpy(zero_copy_only=False)
    found = column.values.take(pa.array(begins[:-1] + position, mask=absent))
    return pa.table(found.flatten(), names=found.type.names)


def _columns(decoded: Decoded, program: Program) -> dict[str, pa.Array]:
    found = {column.path: column for column in program.columns}
    columns = {}
    for known in FIELDS:
        column = found.get((ROOT_ID, known.field_id))
        if column is None:
            array = pa.nulls(decoded.count, known.kind)
        elif known.name == "partitions":
            array = records_array(decoded, column, known.kind, SUMMARY_IDS)
        else:
            array = value_array(decoded, column, known.kind)
        if array.null_count and known.name in _NEVER_NULL:
            raise ValueError(f"a manifest has no {known.name}")
        is_filled = array.null_count == 0 or known.name not in _DEFAULTS
        columns[known.name] = array if is_filled else pc.fill_null(array, _DEFAULTS[known.name])
    return columns


def _encode_rows(manifests: Manifests, version: int) -> tuple[bytes, list[int]]:
    if version not in FORMAT_VERSIONS:
        raise InvalidInput(f"cannot write a manifest list of format version {version}")
    rows = _conform(manifests.table)
    _check_rows(rows, version)
    columns = {(ROOT_ID, known.field_id): rows[known.name].combine_chunks() for known in FIELDS if known.is_in(version)}
    raw, row_ends = encode_rows(list_record(version), columns, rows.num_rows)
    return raw, row_ends.tolist()


def _check_rows(rows: pa.Table, version: int) -> None:
    is_data = pc.equal(pc.fill_null(rows["content"], DATA_MANIFEST), DATA_MANIFEST)
    if version == 1 and pc.any(pc.invert(is_data)).as_py():
        raise InvalidInput("cannot write a manifest of delete files to a list of format version 1")
    # (spec: First Row ID Assignment)
    if version >= ROW_LINEAGE_VERSION and pc.any(pc.and_(is_data, rows["first_row_id"].is_null())).as_py():
        raise InvalidInput("cannot write a manifest of data files without its first_row_id")


def _conform(rows: pa.Table) -> pa.Table:
    """Order and cast columns by the schema; missing ones are null."""
    if rows.schema == MANIFEST_LIST_ARROW_SCHEMA:
        return rows
    given = frozenset(rows.column_names)
    columns = {
        known.name: rows[known.name] if known.name in given else pa.nulls(rows.num_rows, known.kind) for known in FIELDS
    }
    try:
        return pa.table(columns).cast(MANIFEST_LIST_ARROW_SCHEMA)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(f"cannot write these rows as a manifest list: {error}") from error


def _metadata(header: ManifestListHeader, codec: str) -> dict[str, str]:
    return {SCHEMA_KEY: list_schema_json(header.format_version), CODEC_KEY: codec} | header.metadata()


def _spliced_blocks(previous: bytes, location: str, old: Header, raw: bytes, row_ends: list[int]) -> bytes:
    blocks = list(iterate_blocks(previous, old, location))
    if blocks and row_ends:
        first = raw_data(blocks[0], old.codec, location)
        if len(raw) + len(first) <= BLOCK_BYTES:
            joined = encode_block(len(row_ends) + blocks[0].rows, raw + bytes(first), old.codec, old.sync)
            return joined + previous[blocks[0].next_begin :]
    return encode_blocks(raw, row_ends, old.codec, old.sync) + previous[old.end :]
