"""Write position deletes: deletion vectors in Puffin files, or Parquet files of positions. (spec: Delete Formats)

Version 3 tables get only deletion vectors, older tables only Parquet files. A vector refers to one data file; those of
several data files share a Puffin file. A Parquet file refers to one data file, or, with `write.delete.granularity` =
`partition`, to all data files of one partition in which a task deletes rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
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
# A delete file as some of the columns of a manifest entry, and under DATA_FILES the data files that it refers to.
DeleteEntry = dict[str, object]
DATA_FILES = "data_files"


@dataclass(frozen=True)
class DeleteDestination:
    """The location and names of delete files, like those of the data files of the same write.

    by_partition: whether the positions of several data files of one partition share a Parquet file.
    """

    layout: FileLayout
    name: str
    by_partition: bool = False

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
    _held: dict[tuple[int, bytes] | None, dict[str, Positions]] = field(default_factory=dict)
    _held_positions: int = 0
    _number: int = 0

    def add(self, path: str, deleted: Positions, partition: tuple[int, bytes] | None = None) -> None:
        """Add the deletes of a data file; for a deletion vector, `deleted` includes earlier deletes.

        partition: that of the data file; without it the data file gets a delete file of its own.
        """
        is_shared = self.has_vectors or (self.place.by_partition and partition is not None)
        group = self._held.setdefault(None if self.has_vectors else partition, {})
        group[path] = deleted
        self._held_positions += len(deleted)
        if not is_shared or len(group) >= MOST_VECTORS or self._held_positions >= MOST_VECTOR_POSITIONS:
            self._flush()

    def close(self) -> list[DeleteEntry]:
        """Finish, and return the files that were written."""
        self._flush()
        return self._entries

    def abort(self) -> None:
        """Remove the files that were written, or may have been."""
        for number in range(1, self._number + 1):
            with suppress(IcefieldError):
                self.store.delete(self.place.location(number, PUFFIN_FILE if self.has_vectors else PARQUET_FILE))

    def _flush(self) -> None:
        write = write_vectors if self.has_vectors else write_positions
        for positions in self._held.values():
            self._number += 1
            self._entries += write(self.store, self.place, self._number, positions)
        self._held, self._held_positions = {}, 0


def delete_locations(entries: Iterable[DeleteEntry]) -> list[str]:
    """Return the locations of delete files; several vectors share one."""
    return list(dict.fromkeys(str(entry["file_path"]) for entry in entries))


def data_files_of(entry: DeleteEntry) -> tuple[str, ...]:
    """Return the data files that a delete file refers to."""
    files: Any = entry[DATA_FILES]
    return tuple(files)


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
            DATA_FILES: (path,),
        }
        for (path, deleted), blob in zip(positions.items(), footer.blobs, strict=True)
    ]


def write_positions(
    store: Store, place: DeleteDestination, number: int, positions: Mapping[str, Positions]
) -> list[DeleteEntry]:
    """Write the deleted positions of some data files as one Parquet file, ordered by file and position."""
    paths = sorted(positions)  # (spec: Position Delete Files)
    deleted = np.concatenate([positions[path] for path in paths])
    files = pa.array(np.repeat(np.arange(len(paths), dtype=np.int32), [len(positions[path]) for path in paths]))
    names = pa.DictionaryArray.from_arrays(files, pa.array(paths, pa.string())).dictionary_decode()
    table = pa.table([names, pa.array(deleted)], schema=_COLUMNS)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    data = sink.getvalue().to_pybytes()
    location = place.location(number, PARQUET_FILE)
    store.put_new(location, data)
    # The path's bounds are not truncated: if they are equal, they tell readers the data file. (spec: the same)
    lower, upper = (
        [
            (DELETED_FILE.field_id, encode_value(path, StringType())),
            (DELETED_POSITION.field_id, encode_value(int(end), LongType())),
        ]
        for path, end in ((paths[0], deleted.min()), (paths[-1], deleted.max()))
    )
    entry: DeleteEntry = {
        "content": POSITION_DELETES,
        "file_path": location,
        "file_format": PARQUET,
        "record_count": len(deleted),
        "file_size_in_bytes": len(data),
        "value_counts": [(field_id, len(deleted)) for field_id, _ in lower],
        "null_value_counts": [(field_id, 0) for field_id, _ in lower],
        "lower_bounds": lower,
        "upper_bounds": upper,
        "referenced_data_file": paths[0] if len(paths) == 1 else None,
        DATA_FILES: tuple(paths),
    }
    return [entry]


def as_delete_columns(
    rows: Sequence[DeleteEntry], partitions: ManifestEntries, spec: PartitionSpec, schema: Schema
) -> DataFiles:
    """Return delete files of one spec as columns of manifest entries.

    partitions: a data file that each deletes from, in the same order, with the partition values that they share.
    """
    wanted = data_file_arrow_schema(spec.columns(schema))
    given = set(partitions.column_names)
    columns = [
        partitions[f.name] if f.name in given else pa.array([r.get(f.name) for r in rows], f.type) for f in wanted
    ]
    return DataFiles(pa.Table.from_arrays(columns, schema=wanted))
