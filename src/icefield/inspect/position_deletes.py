"""The metadata table of position deletes: one row for each deleted row, from delete files and deletion vectors.

Delete files are read one after another; those that a filter on the partition or on `file_path` prunes are not read.
Raises CorruptFile for a delete file that does not decode.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.json.name_mapping import map_schema
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.header import DELETE_MANIFEST
from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import POSITION_DELETES, PUFFIN
from icefield.codec.puffin.deletion_vector import decode_deletion_vector
from icefield.errors import CorruptFile
from icefield.expr.bind.bound import TRUE, Bound
from icefield.expr.prune.evaluate import might_match
from icefield.expr.prune.statistics import from_summaries
from icefield.inspect.source import Inspected, MetadataTable, Request, manifests_of_version
from icefield.model.metadata import ROW_LINEAGE_VERSION, TableMetadata
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.task import FileTask
from icefield.plan.entries import LIVE, load_batches
from icefield.plan.manifest_list import has_live_files
from icefield.plan.partition.struct import PARTITION, partition_struct, prune_by_partition
from icefield.types.arrays import Mask
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import NestedField, StringType, StructType
from icefield.types.metadata_columns import DELETED_FILE, DELETED_POSITION
from icefield.types.schema import Schema, renumber
from icefield.types.text import parse_schema

COLUMNS = ManifestColumns(
    (
        "status",
        "content",
        "file_path",
        "file_format",
        "record_count",
        "file_size_in_bytes",
        "referenced_data_file",
        "content_offset",
        "content_size_in_bytes",
    ),
    bounds=(DELETED_FILE.field_id,),
)
# What a delete file may store about a deleted row; it is optional. (spec: Position Delete Files)
ROW_FIELD_ID = 2147483544
READ = (DELETED_FILE.field_id, DELETED_POSITION.field_id, ROW_FIELD_ID)
_CONSTANTS = parse_schema("spec_id int not null, delete_file_path string not null").fields
_VECTOR = parse_schema("content_offset long, content_size_in_bytes long").fields


def position_deletes_table(source: Inspected) -> MetadataTable:
    """Return the rows that are deleted by position in the version."""
    schema, struct = _schema(source.metadata), partition_struct(source.metadata)

    def load(request: Request) -> Iterator[pa.Table]:
        for found in manifests_of_version(source):
            deletes = found.filter(pc.equal(found.content, DELETE_MANIFEST))
            keep = has_live_files(deletes) & prune_by_partition(deletes, request.where, source.metadata, schema)
            for step, entries in load_batches(source.context, deletes.choose(keep), COLUMNS, LIVE):
                entries = entries.filter(pc.equal(entries.content, POSITION_DELETES))
                entries = entries.choose(_may_name(entries, request.where))
                constants = _constants(entries, step.partition_spec_id[0].as_py())
                for field in request.columns.fields:
                    if field.name == PARTITION and isinstance(field.type, StructType):
                        constants = constants.append_column(PARTITION, struct.array(entries, field.type.fields))
                yield from _rows_of(source, entries, constants, request.columns)

    return MetadataTable(schema, load)


def _schema(metadata: TableMetadata) -> Schema:
    """Return the columns; those of deleted rows keep their ids, by which delete files are read."""
    row = NestedField(ROW_FIELD_ID, "row", StructType(metadata.schema.fields))
    vector = _VECTOR if metadata.format_version >= ROW_LINEAGE_VERSION else ()
    # Ids that no column of the table has ever had.
    fresh = iter(range(metadata.last_column_id + 1, READ[-1]))
    more = renumber((*partition_struct(metadata).column, *_CONSTANTS, *vector), lambda: next(fresh), {})
    return Schema((DELETED_FILE, DELETED_POSITION, row, *more))


def _constants(entries: ManifestEntries, spec_id: int) -> pa.Table:
    """Return the columns that are constant for a delete file."""
    return pa.table(
        {
            "spec_id": pa.repeat(pa.scalar(spec_id, pa.int32()), entries.num_rows),
            "delete_file_path": entries.file_path,
            "content_offset": entries.content_offset,
            "content_size_in_bytes": entries.content_size_in_bytes,
        }
    )


def _may_name(entries: ManifestEntries, where: Bound) -> Mask:
    """Return which delete files may name data files that match a filter on `file_path`."""
    named = entries.referenced_data_file.combine_chunks().cast(pa.binary())
    lower, upper = (
        pc.coalesce(named, entries[f"{end}.{DELETED_FILE.field_id}"].combine_chunks()) for end in ("lower", "upper")
    )
    never = pa.repeat(False, entries.num_rows)
    known = {DELETED_FILE.field_id: from_summaries(never, never, lower, upper, StringType())}
    return might_match(where, known.get, entries.num_rows)


def _rows_of(source: Inspected, entries: ManifestEntries, constants: pa.Table, columns: Schema) -> Iterator[pa.Table]:
    stored = tuple(f for f in columns.fields if f.field_id in READ)
    # Without the positions, the number of rows would be unknown.
    read = Schema(stored if DELETED_POSITION in stored else (*stored, DELETED_POSITION))
    target = arrow_schema(columns)
    for at, entry in enumerate(entries.select(COLUMNS.fields).to_pylist()):
        for rows in _deleted_rows(source, entry, read):
            first = pa.array(np.full(rows.num_rows, at))
            arrays = [
                rows.column(f.name) if f in stored else constants.column(f.name).take(first).combine_chunks()
                for f in columns.fields
            ]
            yield pa.Table.from_arrays(arrays, schema=target)


def _deleted_rows(source: Inspected, entry: dict[str, Any], read: Schema) -> Iterator[pa.RecordBatch]:
    location = entry["file_path"]
    if entry["file_format"].upper() != PUFFIN:
        reader = TableFiles((), map_schema(read)).reader(source.context.store)
        yield from reader.read(
            FileTask(location, entry["record_count"], 0, 0, file_size_bytes=entry["file_size_in_bytes"]),
            read,
            [f.name for f in read.fields],
            TRUE,
        )
        return
    offset, size = entry["content_offset"], entry["content_size_in_bytes"]
    if offset is None or size is None:
        raise CorruptFile(location, "the manifest has no offset of the deletion vector")
    blob = source.context.store.read_range(location, offset, size, of_size=entry["file_size_in_bytes"])
    positions = decode_deletion_vector(blob, location, cardinality=entry["record_count"])
    known = {
        DELETED_FILE.name: pa.repeat(pa.scalar(entry["referenced_data_file"], pa.string()), len(positions)),
        DELETED_POSITION.name: pa.array(positions, pa.int64()),
    }
    target = arrow_schema(read)
    arrays = [known[f.name] if f.name in known else pa.nulls(len(positions), f.type) for f in target]
    yield pa.RecordBatch.from_arrays(arrays, schema=target)
