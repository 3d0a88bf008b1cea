"""Rows with the same identifier that both sides added: together they would be two rows with one key.

Only tables with identifier fields are checked. The keys of the rows that a change adds are looked for in the files that
the other side added since, without rows that the change deletes. A rewrite may have moved new rows to its files. To the
branch of a cherry-pick they are also looked for among rows that were deleted before the snapshot, but not there:

    branch    a: key 5
    staging   a: key 5 is deleted by position, then the snapshot to pick adds b: key 5
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from icefield.commit.action import WriteContext
from icefield.commit.replay.collisions import SHOWN, Collision, CollisionKind
from icefield.commit.replay.difference import Difference
from icefield.commit.replay.rows import AppliedRows
from icefield.commit.snapshot.moved_rows import NO_POSITIONS
from icefield.expr.bind.bound import TRUE
from icefield.model.metadata import TableMetadata
from icefield.parquet.nan_columns import column_at
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.read_ahead import read_ahead
from icefield.parquet.read.task import FileTask
from icefield.showing import row_text
from icefield.types.arrow import arrow_type
from icefield.types.arrow_keys import NOT_FOUND, KeyIndex
from icefield.types.metadata_columns import POSITION, with_free_names


def find_shared_keys(
    mine: Sequence[tuple[FileTask, Positions]],
    ours: Difference,
    rows: AppliedRows,
    reader: "KeyReader",
    back: Sequence[tuple[FileTask, Positions]] = (),
) -> list[Collision]:
    """Find the keys that both sides added.

    mine: files with the rows that a change adds, and positions to leave out. back: files of both sides, with the rows
    that only the other side has.
    """
    if not (reader.names and mine):
        return []
    others = [(task, NO_POSITIONS) for task in ours.after.tasks(ours.added)]
    others += [(task, np.setdiff1d(np.arange(task.record_count), there)) for task, there in back]
    places = [
        (task, np.union1d(out, rows.deleted.get(task.location, NO_POSITIONS)))
        for task, out in others
        if task.location not in rows.removed
    ]
    if not places:
        return []
    keys = pa.concat_tables([reader.empty, *reader.read(mine)]).combine_chunks()
    index = KeyIndex([keys.column(name).combine_chunks() for name in reader.names], keys.num_rows)
    listed = ours.after.files.at([task.location for task, _ in places])
    added_by = dict(zip(listed.file_path.to_pylist(), listed.snapshot_id.to_pylist(), strict=True))
    return [replace(each, snapshots=(added_by[each.file],)) for each in reader.collide(index, places)]


@dataclass(frozen=True)
class KeyReader:
    """Reads the identifier of rows."""

    metadata: TableMetadata
    context: WriteContext

    @property
    def names(self) -> list[str]:
        """The identifier fields."""
        schema = self.metadata.schema
        return [schema.name_of(each) for each in sorted(schema.identifier_field_ids)]

    @property
    def empty(self) -> pa.Table:
        """No keys."""
        schema = self.metadata.schema
        fields = [schema.find_field(name) for name in self.names]
        return pa.schema(
            [(name, arrow_type(field.type)) for name, field in zip(self.names, fields, strict=True)]
        ).empty_table()

    def read(self, files: Sequence[tuple[FileTask, Positions]]) -> Iterator[pa.Table]:
        """Yield the keys of each file, without those at some positions."""
        schema, (position,) = with_free_names(self.metadata.schema, (POSITION,))
        gone = {task.location: positions for task, positions in files}
        select = [*self.names, position]
        tasks = [task for task, _ in files]
        for opened, task in read_ahead(self.context.store, self.metadata, tasks):
            batches = opened.read(task, schema, select, TRUE)
            tables = [pa.Table.from_batches([batch]) for batch in batches]
            kept = [t.filter(pa.array(~np.isin(t.column(position).to_numpy(), gone[task.location]))) for t in tables]
            yield pa.concat_tables([self.empty, *map(self.keys_of, kept)])

    def keys_of(self, rows: pa.Table) -> pa.Table:
        """Return the identifier fields of rows, also those inside structs, as one column each."""
        schema = self.metadata.schema
        paths = [schema.paths[field_id] for field_id in sorted(schema.identifier_field_ids)]
        return pa.table([column_at(rows, path) for path in paths], names=self.names)

    def collide(self, index: KeyIndex, files: Sequence[tuple[FileTask, Positions]]) -> Iterator[Collision]:
        """Yield a collision for each file that has one of the keys."""
        for (task, _), table in zip(files, self.read(files), strict=True):
            columns = [table.column(name).combine_chunks() for name in self.names]
            hit = table.filter(pa.array(index.find(columns, table.num_rows) != NOT_FOUND))
            if hit.num_rows:
                some = tuple(row_text(row) for row in hit.slice(0, SHOWN).to_pylist())
                yield Collision(CollisionKind.KEYS, task.location, hit.num_rows, keys=some)
