"""What the report of a collision says about its rows: which they are, and which columns each side changed.

    base    id 3, amount 1, note a
    ours    id 3, amount 8, note a       ours changed amount,
    theirs  id 3, amount 7, note b       theirs amount and note

The rows of a side are found by their row ids, else by the identifier fields. Without either, and where a side has
deleted the rows, no columns are named.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from icefield.commit.replay.collisions import SHOWN
from icefield.commit.replay.nested_keys import encode_rows
from icefield.commit.replay.row_ids import Lost
from icefield.commit.replay.shared_keys import KeyReader
from icefield.expr.bind.bound import TRUE
from icefield.parquet.read.read_ahead import read_ahead
from icefield.parquet.read.task import FileTask
from icefield.showing import row_text
from icefield.types.arrow import arrow_schema
from icefield.types.metadata_columns import POSITION, ROW_ID, with_free_names
from icefield.types.schema import Schema

MOST_FILES, MOST_ROWS = 100, 1000  # that are described, and rows of each


@dataclass(frozen=True)
class CollidedRows:
    """Some rows, as text, and the columns that each side changed."""

    keys: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowDescriber:
    """Describes rows of the base that both sides deleted or changed. ours, theirs: the files that each side added."""

    reader: KeyReader
    ours: Sequence[FileTask]
    theirs: Sequence[FileTask]

    def describe(self, lost: Sequence[Lost]) -> dict[str, CollidedRows]:
        """Describe the rows of each file."""
        sources = [replace(each.task, deletes=()) for each in lost[:MOST_FILES]]
        tables = [pa.Table.from_batches(batches, self._schema) for batches in self._read(sources)]
        rows = [
            table.filter(pc.is_in(table[self._position], value_set=pa.array(each.positions[:MOST_ROWS])))
            for each, table in zip(lost, tables, strict=False)
        ]
        sides = [self._rows_of(files, pa.concat_tables(rows)) for files in (self.ours, self.theirs)]
        return {
            task.location: CollidedRows(self._texts(table), *(self._changed(table, side) for side in sides))
            for task, table in zip(sources, rows, strict=True)
        }

    @cached_property
    def _read_as(self) -> tuple[Schema, tuple[str, ...]]:
        """The schema with the positions of rows, and with their ids at the end if they have any."""
        metadata = self.reader.metadata
        return with_free_names(metadata.schema, (POSITION, ROW_ID) if metadata.has_row_ids else (POSITION,))

    @property
    def _schema(self) -> pa.Schema:
        return arrow_schema(self._read_as[0])

    @property
    def _position(self) -> str:
        return self._read_as[1][0]

    def _read(self, files: Sequence[FileTask]) -> Iterator[Iterator[pa.RecordBatch]]:
        """Yield the live rows of each file."""
        schema, _ = self._read_as
        for opened, task in read_ahead(self.reader.context.store, self.reader.metadata, files):
            yield opened.read(task, schema, schema.column_names, TRUE)

    def _rows_of(self, files: Sequence[FileTask], wanted: pa.Table) -> pa.Table:
        """Return the rows of the files of a side that have the ids or identifiers of wanted rows."""
        found = [self._schema.empty_table()]
        if (keys := self._keys(wanted)) is not None:
            for batch in chain.from_iterable(self._read(files)):
                table = pa.Table.from_batches([batch], self._schema)
                found.append(table.filter(pc.is_in(self._keys(table), value_set=keys, skip_nulls=True)))
        return pa.concat_tables(found)

    def _texts(self, rows: pa.Table) -> tuple[str, ...]:
        """Return some rows as text: their identifier, else all their columns."""
        some = rows.slice(0, SHOWN)
        names = [field.name for field in self.reader.metadata.schema.fields]
        shown = self.reader.keys_of(some) if self.reader.names else some.select(names)
        return tuple(map(row_text, shown.to_pylist()))

    def _keys(self, rows: pa.Table) -> pa.Array | None:
        """Return what the rows are known by on both sides; None if they cannot be known."""
        if self.reader.metadata.has_row_ids:
            return rows.column(rows.num_columns - 1).combine_chunks()
        if not self.reader.names:
            return None
        return _encoded(self.reader.keys_of(rows))

    def _changed(self, rows: pa.Table, side: pa.Table) -> tuple[str, ...]:
        """Return the columns that have other values in the rows of a side."""
        if side.num_rows == 0:
            return ()
        at = pc.index_in(self._keys(rows), value_set=self._keys(side), skip_nulls=True)
        was, now = rows.filter(at.is_valid()), side.take(at.drop_null())
        names = [field.name for field in self.reader.metadata.schema.fields]
        return tuple(name for name in names if not _encoded(was.select([name])).equals(_encoded(now.select([name]))))


def _encoded(rows: pa.Table) -> pa.Array:
    return encode_rows([column.combine_chunks() for column in rows.columns], rows.num_rows)
