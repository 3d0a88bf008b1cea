"""Load the deletes of a data file: positions from deletion vectors and position delete files, keys from equality
delete files. (spec: Delete Formats)

A delete file may apply to many data files, so loaded deletes are cached, up to a limit.
Raises MissingFile, CorruptFile.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.puffin.deletion_vector import decode_deletion_vector
from icefield.errors import CorruptFile
from icefield.parquet.read.task import DeleteFile, DeleteType, FileTask
from icefield.storage.store import Store
from icefield.types.arrow_keys import NOT_FOUND, KeyIndex
from icefield.types.metadata_columns import DELETED_FILE, DELETED_POSITION
from icefield.types.schema import Schema

KEPT_BYTES = 256 * 1024 * 1024
POSITION_DELETES = Schema((DELETED_FILE, DELETED_POSITION))
Positions = npt.NDArray[np.int64]

# Reads a delete file as one table with the columns of a schema; passed in by the reader.
ReadWhole = Callable[[DeleteFile, Schema], pa.Table]


@dataclass(frozen=True)
class EqualityDeletes:
    """The keys of deleted rows, over some fields."""

    fields: Schema
    index: KeyIndex

    def deleted(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Return a mask of the deleted rows of a batch; the batch has the key columns, named by their ids."""
        columns = [_at_path(batch, self.fields.paths[leaf.field.field_id]) for leaf in self.fields.leaves]
        return np.not_equal(self.index.find(columns, batch.num_rows), NOT_FOUND)


@dataclass(frozen=True)
class DeletedRows:
    """The deletes of one data file: positions, ascending and distinct, and keys."""

    positions: Positions
    keys: Sequence[EqualityDeletes]


NOTHING_DELETED = DeletedRows(np.zeros(0, np.int64), ())


class DeleteLoader:
    """Loads deletes for one scan; not shared between threads."""

    def __init__(self, store: Store, read_whole: ReadWhole, key_schema: Callable[[Sequence[int]], Schema]) -> None:
        self._store = store
        self._read_whole = read_whole
        self._key_schema = key_schema
        self._kept: OrderedDict[str, pa.Table] = OrderedDict()
        self._indexed: tuple[list[DeleteFile], list[EqualityDeletes]] = ([], [])

    def load(self, task: FileTask) -> DeletedRows:
        """Load the deletes of a file."""
        return DeletedRows(self.positions(task), self._keys(task)) if task.deletes else NOTHING_DELETED

    def positions(self, task: FileTask) -> Positions:
        """Load the deleted positions of a file, ascending and distinct, without equality deletes."""
        deletes = [delete for delete in task.deletes if delete.kind is not DeleteType.EQUALITY]
        found = [self._positions_in(delete, task) for delete in deletes]
        if len(found) == 1 and deletes[0].kind is DeleteType.VECTOR:
            return found[0]
        return np.unique(np.concatenate(found)) if found else NOTHING_DELETED.positions

    def key_table(self, delete: DeleteFile) -> pa.Table:
        """Load the keys of an equality delete file."""
        return self._load(delete, self._key_schema(tuple(sorted(delete.equality_ids))))

    def _keys(self, task: FileTask) -> list[EqualityDeletes]:
        """Return the keys of a file's deleted rows, one index for each set of key fields.

        Files of one snapshot and partition have the same equality deletes, so the last indexes are kept.
        """
        deletes = [delete for delete in task.deletes if delete.kind is DeleteType.EQUALITY]
        if deletes != self._indexed[0]:
            groups: dict[tuple[int, ...], list[DeleteFile]] = {}
            for delete in deletes:
                groups.setdefault(tuple(sorted(delete.equality_ids)), []).append(delete)
            self._indexed = deletes, [self._equality_of(ids, files) for ids, files in groups.items()]
        return self._indexed[1]

    def _positions_in(self, delete: DeleteFile, task: FileTask) -> Positions:
        if delete.kind is DeleteType.VECTOR:
            blob = self._store.read_range(
                delete.location, delete.content_offset, delete.content_size_bytes, of_size=delete.file_size_bytes
            )
            return decode_deletion_vector(blob, delete.location, cardinality=delete.record_count)
        table = self._load(delete, POSITION_DELETES)
        hit = table.filter(pc.equal(table.column(DELETED_FILE.name), task.location))
        if hit.column(DELETED_POSITION.name).null_count:
            raise CorruptFile(delete.location, "a position in it is null")
        return hit.column(DELETED_POSITION.name).to_numpy()  # type: ignore[no-any-return]

    def _equality_of(self, ids: tuple[int, ...], files: Sequence[DeleteFile]) -> EqualityDeletes:
        fields = self._key_schema(ids)
        keys = pa.concat_tables([self.key_table(f) for f in files]).combine_chunks()
        columns = [_at_path(keys, fields.paths[leaf.field.field_id]) for leaf in fields.leaves]
        return EqualityDeletes(fields, KeyIndex(columns, keys.num_rows))

    def _load(self, delete: DeleteFile, schema: Schema) -> pa.Table:
        location = delete.location
        if location in self._kept:
            self._kept.move_to_end(location)
            return self._kept[location]
        table = self._read_whole(delete, schema)
        self._kept[location] = table
        while len(self._kept) > 1 and sum(t.nbytes for t in self._kept.values()) > KEPT_BYTES:
            self._kept.popitem(last=False)
        return table


def _at_path(rows: pa.RecordBatch | pa.Table, path: tuple[str, ...]) -> pa.Array:
    column = rows.column(path[0])
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column
