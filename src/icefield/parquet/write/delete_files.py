"""Write position deletes: deletion vectors in Puffin files, or Parquet files of positions. (spec: Delete Formats)

Version 3 tables get only deletion vectors, older tables only Parquet files. Each delete file refers to one data file;
the vectors of several data files share a Puffin file.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icefield.codec.manifest.rows import DataFiles, ManifestEntries
from icefield.codec.manifest.schema import PARQUET, POSITION_DELETES, PUFFIN, data_file_arrow_schema
from icefield.codec.puffin.deletion_vector import deletion_vector_blob
from icefield.codec.puffin.puffin import encode_puffin
from icefield.errors import IcefieldError
from icefield.model.partition import PartitionSpec
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.task import DeleteFile, DeleteType
from icefield.parquet.write.file_layout import FileLayout
from icefield.storage.store import Store
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import LongType, StringType
from icefield.types.metadata_columns import DELETED_FILE, DELETED_POSITION
from icefield.types.schema import Schema
from icefield.types.values.binary import encode_value

PUFFIN_FILE, PARQUET_FILE = "puffin", "parquet"
CREATED_BY = {"created-by": "icefield"}
MOST_VECTORS = 1_000  # in one Puffin file, and
MOST_VECTOR_POSITIONS = 32 * 1024 * 1024  # as many positions: a quarter of a gigabyte in memory
_COLUMNS = arrow_schema(Schema((DELETED_FILE, DELETED_POSITION)))
# A delete file as some of the columns of a manifest entry; `referenced_data_file` is always present.
DeleteEntry = dict[str, object]


@dataclass(frozen=True)
class DeleteDestination:
    """The location and names of delete files, like those of the data files of the same write."""

    layout: FileLayout
    name: str

    def location(self, number: int, extension: str) -> str:
        """Return the location of one file."""
        return self.layout.location(f"{self.name}-{number:05d}-deletes.{extension}")


@dataclass
class DeleteFileWriter:
    """Writes the position deletes of one task, data file by data file.

    has_vectors: whether the table has deletion vectors.
    """

    place: DeleteDestination
    store: Store
    has_vectors: bool
    _entries: list[DeleteEntry] = field(default_factory=list)
    _vectors: dict[str, Positions] = field(default_factory=dict)
    _number: int = 0

    def add(self, path: str, deleted: Positions) -> None:
        """Write the deletes of a data file; for a deletion vector, `deleted` includes earlier deletes."""
        if not self.has_vectors:
            self._number += 1
            self._entries.append(write_positions(self.store, self.place, self._number, path, deleted))
            return
        self._vectors[path] = deleted
        held = sum(len(positions) for positions in self._vectors.values())
        if len(self._vectors) >= MOST_VECTORS or held >= MOST_VECTOR_POSITIONS:
            self._flush()

    def close(self) -> list[DeleteEntry]:
        """Finish, and return the files that were written."""
        if self._vectors:
            self._flush()
        return self._entries

    def abort(self) -> None:
        """Remove the files that were written, or may have been."""
        for number in range(1, self._number + 1):
            with suppress(IcefieldError):
                self.store.delete(self.place.location(number, PUFFIN_FILE if self.has_vectors else PARQUET_FILE))

    def _flush(self) -> None:
        self._number += 1
        self._entries += write_vectors(self.store, self.place, self._number, self._vectors)
        self._vectors = {}


def delete_locations(entries: Iterable[DeleteEntry]) -> list[str]:
    """Return the locations of delete files; several vectors share one."""
    return list(dict.fromkeys(str(entry["file_path"]) for entry in entries))


def open_entry(entry: DeleteEntry) -> DeleteFile:
    """Return a written delete file as a reader needs it."""
    known: dict[str, Any] = entry
    return DeleteFile(
        DeleteType.VECTOR if known["file_format"] == PUFFIN else DeleteType.POSITIONS,
        known["file_path"],
        content_offset=known.get("content_offset", 0),
        content_size_bytes=known.get("content_size_in_bytes", 0),
        record_count=known["record_count"],
        file_size_bytes=known["file_size_in_bytes"],
    )


def write_vectors(
    store: Store, place: DeleteDestination, number: int, positions: Mapping[str, Positions]
) -> list[DeleteEntry]:
    """Write the deletion vectors of several data files as one Puffin file."""
    blobs = [deletion_vector_blob(deleted, path) for path, deleted in positions.items()]
    data, footer = encode_puffin(blobs, CREATED_BY)
    location = place.location(number, PUFFIN_FILE)
    store.put_new(location, data)
    return [
        {
            "content": POSITION_DELETES,
            "file_path": location,
            "file_format": PUFFIN,
            "record_count": len(deleted),
            "file_size_in_bytes": len(data),
            "referenced_data_file": path,
            "content_offset": blob.offset,
            "content_size_in_bytes": blob.length,
        }
        for (path, deleted), blob in zip(positions.items(), footer.blobs, strict=True)
    ]


def write_positions(store: Store, place: DeleteDestination, number: int, path: str, deleted: Positions) -> DeleteEntry:
    """Write the deleted positions of one data file as a Parquet file, in order."""
    table = pa.table([pa.repeat(pa.scalar(path), len(deleted)), pa.array(deleted)], schema=_COLUMNS)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    data = sink.getvalue().to_pybytes()
    location = place.location(number, PARQUET_FILE)
    store.put_new(location, data)
    # The path's bounds are not truncated: they tell readers the data file. (spec: Position Delete Files)
    lower, upper = (
        [
            (DELETED_FILE.field_id, encode_value(path, StringType())),
            (DELETED_POSITION.field_id, encode_value(int(end), LongType())),
        ]
        for end in (deleted[0], deleted[-1])
    )
    return {
        "content": POSITION_DELETES,
        "file_path": location,
        "file_format": PARQUET,
        "record_count": len(deleted),
        "file_size_in_bytes": len(data),
        "value_counts": [(field_id, len(deleted)) for field_id, _ in lower],
        "null_value_counts": [(field_id, 0) for field_id, _ in lower],
        "lower_bounds": lower,
        "upper_bounds": upper,
        "referenced_data_file": path,
    }


def as_delete_columns(
    rows: Sequence[DeleteEntry], partitions: ManifestEntries, spec: PartitionSpec, schema: Schema
) -> DataFiles:
    """Return delete files of one spec as columns of manifest entries.

    partitions: the data files that they delete from, in the same order, with the partition values that they share.
    """
    wanted = data_file_arrow_schema(spec.columns(schema))
    given = set(partitions.column_names)
    columns = [
        partitions[f.name] if f.name in given else pa.array([r.get(f.name) for r in rows], f.type) for f in wanted
    ]
    return DataFiles(pa.Table.from_arrays(columns, schema=wanted))
