"""Write position deletes: deletion vectors in Puffin files, or Parquet files of positions. (spec: Delete Formats)

Tables of version 3 have vectors alone, older ones know none. Either way a delete file is of one data file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from icefield.codec.deletion_vector import deletion_vector_blob
from icefield.codec.manifest_schema import POSITION_DELETES, data_file_arrow_schema
from icefield.codec.puffin import encode_puffin
from icefield.model.partition import PartitionSpec
from icefield.parquet.deletes import Positions
from icefield.parquet.file_layout import FileLayout
from icefield.storage.store import Store
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import LongType, StringType
from icefield.types.metadata_columns import DELETED_FILE, DELETED_POSITION
from icefield.types.schema import Schema
from icefield.types.single_value import encode_value

PUFFIN, PARQUET = "PUFFIN", "PARQUET"
CREATED_BY = {"created-by": "icefield"}
_COLUMNS = arrow_schema(Schema((DELETED_FILE, DELETED_POSITION)))
_Row = dict[str, object]


@dataclass(frozen=True)
class DeletePlace:
    """Where delete files go, and how they are called: like the data files of the same write."""

    layout: FileLayout
    name: str

    def location(self, number: int, extension: str) -> str:
        """Return the location of one file."""
        return self.layout.location(f"{self.name}-{number:05d}-deletes.{extension}")


def write_vectors(store: Store, place: DeletePlace, number: int, positions: Mapping[str, Positions]) -> list[_Row]:
    """Write the deletion vectors of several data files as one Puffin file."""
    blobs = [deletion_vector_blob(deleted, path) for path, deleted in positions.items()]
    data, footer = encode_puffin(blobs, CREATED_BY)
    location = place.location(number, "puffin")
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


def write_positions(store: Store, place: DeletePlace, number: int, path: str, deleted: Positions) -> _Row:
    """Write the deleted positions of one data file as a Parquet file, in order."""
    table = pa.table([pa.repeat(pa.scalar(path), len(deleted)), pa.array(deleted)], schema=_COLUMNS)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    data = sink.getvalue().to_pybytes()
    location = place.location(number, "parquet")
    store.put_new(location, data)
    # The bounds of the path are whole: by them a reader sees which data file is meant. (spec: Position Delete Files)
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


def as_delete_columns(rows: Sequence[_Row], partitions: pa.Table, spec: PartitionSpec, schema: Schema) -> pa.Table:
    """Return delete files of one spec as columns of manifest entries.

    partitions: the data files that they delete from, in the same order, with the partition values that they share.
    """
    wanted = data_file_arrow_schema(spec.columns(schema))
    given = set(partitions.column_names)
    columns = [
        partitions.column(f.name) if f.name in given else pa.array([r.get(f.name) for r in rows], f.type)
        for f in wanted
    ]
    return pa.Table.from_arrays(columns, schema=wanted)
