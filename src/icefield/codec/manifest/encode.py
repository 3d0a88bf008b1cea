"""Encode a table of entries as a manifest. (spec: Manifests)

The table has the columns of `manifest.schema.entry_arrow_schema`; optional ones may be missing.
Raises InvalidInput for entries that the format version does not allow.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.avro.compression import DEFLATE
from icefield.codec.avro.container import CODEC_KEY, SCHEMA_KEY, encode_container
from icefield.codec.avro.encode import encode_rows
from icefield.codec.avro.program import Path
from icefield.codec.avro.schema import Record, parse_schema
from icefield.codec.manifest.header import ManifestHeader
from icefield.codec.manifest.partition import partition_record
from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import (
    ADDED,
    DATA,
    DATA_FILE_FIELDS,
    PARTITION_ID,
    PATHS,
    entry_schema_json,
    partition_column,
)
from icefield.errors import InvalidInput
from icefield.properties.format_versions import FORMAT_VERSIONS
from icefield.types.datatypes import NestedField

# The value that Iceberg Java writes for v1's block_size_in_bytes, which no reader uses.
_V1_BLOCK_SIZE_BYTES = 64 * 1024 * 1024


def encode_manifest(
    entries: ManifestEntries,
    header: ManifestHeader,
    partition: Sequence[NestedField],
    location: str,
    codec: str = DEFLATE,
) -> bytes:
    """Encode entries as the manifest at a location; `partition` is the spec's tuple with its types."""
    return encode_entries(entries, header, partition_record(partition), location, codec)


def encode_entries(
    entries: ManifestEntries, header: ManifestHeader, partition: Record, location: str, codec: str
) -> bytes:
    """Encode entries, with the partition tuple as an Avro record."""
    check_entries(entries, header.format_version)
    ids = [field.field_id for field in partition.fields if field.field_id is not None]
    paths = PATHS | {partition_column(field_id): (PARTITION_ID, field_id) for field_id in ids}
    names = set(entries.column_names)
    columns = {path: _column(entries, name) for name, path in paths.items() if name in names}
    if "file_format" in names and pa.types.is_string(entries.file_format.type):
        # The spec writes formats in lower case, Iceberg Java in upper case, and some readers accept only that.
        columns[PATHS["file_format"]] = pc.utf8_upper(columns[PATHS["file_format"]])
    columns[PATHS["block_size_in_bytes"]] = pa.repeat(_V1_BLOCK_SIZE_BYTES, entries.num_rows)
    return write_manifest(columns, header, partition, location, codec)


def write_manifest(
    columns: Mapping[Path, pa.Array], header: ManifestHeader, partition: Record, location: str, codec: str
) -> bytes:
    """Encode a manifest from columns by field id; columns that the version does not have are omitted."""
    schema = entry_schema_json(header.format_version, partition)
    rows = len(columns[PATHS["status"]])
    raw, row_ends = encode_rows(_parsed(schema), columns, rows)
    metadata = {SCHEMA_KEY: schema, CODEC_KEY: codec} | header.metadata()
    return encode_container(metadata, raw, row_ends.tolist(), location)


def check_entries(entries: ManifestEntries, version: int) -> None:
    """Refuse entries that are invalid in a manifest of this version."""
    if version not in FORMAT_VERSIONS:
        raise InvalidInput(f"cannot write a manifest of format version {version}")
    if "status" not in entries or not pa.types.is_integer(entries.status.type):
        raise InvalidInput("cannot write entries without a status as an integer")
    for known in DATA_FILE_FIELDS:
        if known.name in entries and not known.is_in(version):
            _check_droppable(entries[known.name], known.name, version)
    needs_numbers = pc.not_equal(entries.status, ADDED)
    if version > 1 and pc.any(needs_numbers).as_py():
        for name in ("sequence_number", "file_sequence_number"):
            # (spec: Sequence Number Inheritance)
            missing = entries[name].is_null() if name in entries else True
            if pc.any(pc.and_(needs_numbers, missing)).as_py():
                raise InvalidInput(f"cannot write existing and deleted entries without their {name}")


def _check_droppable(column: pa.ChunkedArray, name: str, version: int) -> None:
    holds = pc.not_equal(column, DATA) if name == "content" else column.is_valid()
    if pc.any(holds).as_py():
        raise InvalidInput(f"cannot write {name} to a manifest of format version {version}")


@lru_cache(maxsize=64)
def _parsed(schema: str) -> Record:
    return parse_schema(schema.encode(), {})


def _column(entries: ManifestEntries, name: str) -> pa.Array:
    column = entries[name].combine_chunks()
    return column.storage if isinstance(column, pa.ExtensionArray) else column
