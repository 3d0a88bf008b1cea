"""Read Parquet data files as Arrow batches with a table's schema, by field id. (spec: Column Projection)

    file → row groups that the filter cannot rule out → rows not deleted → the table's columns → rows that match

Row positions are those of the whole file, whatever was skipped: deletes and row ids depend on them. Memory is bounded
by the batches in flight and the deletes of one file, not by the file size.

Raises MissingFile, CorruptFile (with the file's location), Unsupported for files whose columns cannot be identified.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.json.name_mapping import NameMapping, find_name_mapping, map_schema
from icefield.errors import CorruptFile, Unsupported
from icefield.expr.bind.bound import TRUE, Bound, columns_of, complement
from icefield.expr.render.arrow import arrow_filter
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.deletes import NOTHING_DELETED, DeletedRows, DeleteLoader, Positions
from icefield.parquet.read.layout import Layouts
from icefield.parquet.read.open_file import OpenFile
from icefield.parquet.read.project import Projection, fields_by_id
from icefield.parquet.read.task import DeleteFile, FileTask
from icefield.storage.store import Store
from icefield.types.arrow import arrow_schema
from icefield.types.schema import Schema


@dataclass(frozen=True)
class TableFiles:
    """What a reader needs from a table to read its files; small and picklable.

    history: every schema of the table, newest first; equality deletes may refer to columns that were dropped since.
    """

    history: tuple[Schema, ...]
    mapping: NameMapping | None = None

    @classmethod
    def of(cls, metadata: TableMetadata) -> "TableFiles":
        """Build it from a table's metadata."""
        return cls(metadata.schemas_newest_first, find_name_mapping(metadata.properties))

    def reader(self, store: Store) -> "TableReader":
        """Return a reader of the table's files."""
        return TableReader(store, self)


def table_reader(store: Store, metadata: TableMetadata) -> "TableReader":
    """Return a reader of a table's files."""
    return TableFiles.of(metadata).reader(store)


class TableReader:
    """Reads files of one table; caches deletes between files, so it must be used by one thread."""

    def __init__(self, store: Store, files: TableFiles) -> None:
        self._store = store
        self._history = files.history
        self._layouts = Layouts(files.mapping)
        self._last: _Query | None = None
        self._deletes = DeleteLoader(store, self._read_whole, self.key_schema)

    def read(self, task: FileTask, schema: Schema, select: Sequence[str], where: Bound) -> Iterator[pa.RecordBatch]:
        """Yield the file's rows that match, with the selected columns of the schema."""
        query = self._prepared(schema, select, where)
        batches = self._matching(task, query.wanted, where, query.matches)
        return batches if query.narrow is None else map(query.narrow.project, batches)

    def read_candidates(
        self, task: FileTask, schema: Schema, select: Sequence[str], where: Bound
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected columns of the rows that may match: the live rows of row groups that may hold matches."""
        return self._open_rows(task, self._prepared(schema, select, TRUE).wanted, where, self._deletes.load(task))

    def read_non_matching(self, task: FileTask, schema: Schema, where: Bound) -> Iterator[pa.RecordBatch]:
        """Yield the file's rows that do not match, with all columns: those for which the filter is false or null."""
        rest = complement(where)
        return self._matching(task, schema, rest, _matches(rest, schema))

    def read_without(self, task: FileTask, schema: Schema, positions: Positions) -> Iterator[pa.RecordBatch]:
        """Yield the file's rows, with all columns, except those at some positions."""
        deleted = self._deletes.load(task)
        both = DeletedRows(np.union1d(deleted.positions, positions), deleted.keys)
        return self._open_rows(task, schema, TRUE, both)

    def deleted_positions(self, task: FileTask) -> Positions:
        """Return the positions of a file that position deletes and deletion vectors delete."""
        return self._deletes.positions(task)

    def delete_keys(self, delete: DeleteFile) -> pa.Table:
        """Return the keys in an equality delete file."""
        return self._deletes.key_table(delete)

    def key_schema(self, field_ids: Sequence[int]) -> Schema:
        """Return the schema of some fields, from the newest schema of the table that has them all."""
        for schema in self._history:
            if schema.by_id.keys() >= set(field_ids):
                return schema.select([schema.name_of(i) for i in field_ids])
        raise Unsupported(f"no version of the table has all the fields {list(field_ids)} that an equality delete names")

    def _prepared(self, schema: Schema, select: Sequence[str], where: Bound) -> "_Query":
        """Prepare the query of a file, which is mostly the same as that of the previous file."""
        last = self._last
        if last is None or last.schema is not schema or last.select is not select or last.where is not where:
            output = schema.select(select)
            wanted = schema.select([*select, *(schema.name_of(i) for i in sorted(columns_of(where)))])
            narrow = None if output == wanted else Projection(output, fields_by_id(arrow_schema(wanted)))
            self._last = last = _Query(schema, select, where, wanted, narrow, _matches(where, wanted))
        return last

    def _matching(
        self, task: FileTask, wanted: Schema, where: Bound, matches: pc.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        # Live rows of the row groups that may contain matches, whether they match or not.
        batches = self._open_rows(task, wanted, where, self._deletes.load(task))
        if matches is None:
            return batches
        # As tables: filtering all rows out of an Arrow batch fails for UUIDs inside other types.
        tables = (pa.Table.from_batches([batch]) for batch in batches)
        return (kept for table in tables for kept in table.filter(matches).to_batches())

    def _open_rows(
        self, task: FileTask, wanted: Schema, where: Bound, deleted: DeletedRows
    ) -> Iterator[pa.RecordBatch]:
        try:
            yield from OpenFile(self._store, task, self._layouts).rows(wanted, where, deleted)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise CorruptFile(task.location, f"its Parquet data does not decode: {error}") from error

    def _read_whole(self, delete: DeleteFile, schema: Schema) -> pa.Table:
        """Read a delete file; its columns are matched by their ids, or else by their names."""
        location = delete.location
        try:
            task = FileTask(location, delete.record_count, 0, 0, file_size_bytes=delete.file_size_bytes)
            opened = OpenFile(self._store, task, Layouts(map_schema(schema)))
            return pa.Table.from_batches(opened.rows(schema, TRUE, NOTHING_DELETED), arrow_schema(schema))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise CorruptFile(location, f"it is not a valid delete file: {error}") from error


@dataclass(frozen=True)
class _Query:
    """Selected columns and a filter. wanted: the columns of both. narrow: drops those used only by the filter."""

    schema: Schema
    select: Sequence[str]
    where: Bound
    wanted: Schema
    narrow: Projection | None
    matches: pc.Expression | None


def _matches(where: Bound, schema: Schema) -> pc.Expression | None:
    """Return the filter for rows of a schema, or None if all match."""
    return None if where == TRUE else arrow_filter(where, lambda reference: schema.paths[reference.field_id])
