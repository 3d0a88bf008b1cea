"""Apply bound clauses to rows: new rows go to data files, and the positions of changed rows to `FileEnds`.

    rows -> first clause whose condition is true -> delete: position | update: position, new row | insert: new row

Positions are collected by file; a file ends when all its rows were seen. After an error the caller calls `abort`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icefield.engine.change import Changed, ChangeSettings, Effect, RowCounts
from icefield.engine.engine import Site
from icefield.engine.file_ends import FileEnds
from icefield.engine.row_values import BoundClause, Rows
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.conform import conform_batch
from icefield.parquet.write.write import DataWriter
from icefield.types.arrays import Longs
from icefield.types.metadata_columns import ROW_ID

MOST_NEW_ROWS = 65_536  # at a time


@dataclass(frozen=True)
class Places:
    """Where the rows of a batch are: the number of the file, and the position. row_ids: None without row lineage."""

    files: Longs
    positions: Positions
    row_ids: pa.Array | None = None


class ClauseResults:
    """The results of the clauses of one task."""

    def __init__(self, settings: ChangeSettings, site: Site, target: str) -> None:
        self._settings = settings
        self._target = target
        self._writer = DataWriter(settings.rows, site.store, site.name)
        self._ends = FileEnds(settings, site)
        self._touched: dict[int, list[Positions]] = {}
        self._counts = dict.fromkeys(Effect, 0)
        lineage = settings.rows.schema.by_id.get(ROW_ID.field_id)
        self._row_id = lineage.name if lineage else None

    def apply(self, clauses: Sequence[BoundClause], rows: Rows, places: Places | None = None) -> None:
        """Apply to each row the first clause whose condition is true. places: of rows of the table."""
        for clause in clauses:
            if rows.count == 0:
                return
            if clause.condition is None:
                self._carry_out(clause, rows, places)
                return
            mask = clause.applies_to(rows)
            if mask.any():
                self._carry_out(clause, rows.where(mask), places)
            rows = rows.where(~mask)

    def end_file(self, number: int, task: FileTask) -> None:
        """End a file all of whose rows were seen."""
        if found := self._touched.pop(number, None):
            self._ends.add(task, np.sort(np.concatenate(found)))

    def close(self, matched: int | None = None) -> Changed:
        """Finish, and return what was done. matched: how many rows of the table matched; by default those changed."""
        files = self._writer.close()
        if matched is None:
            matched = self._counts[Effect.UPDATE] + self._counts[Effect.DELETE]
        counts = RowCounts(
            matched=matched,
            updated=self._counts[Effect.UPDATE],
            deleted=self._counts[Effect.DELETE],
            inserted=self._counts[Effect.INSERT],
        )
        new = Changed([files] if files.num_rows else [], counts=counts)
        return Changed.total([new, self._ends.close()])

    def abort(self) -> None:
        """Remove the files that were written, or may have been."""
        self._writer.abort()
        self._ends.abort()

    def _carry_out(self, clause: BoundClause, rows: Rows, places: Places | None) -> None:
        effect = clause.clause.effect
        self._counts[effect] += rows.count
        if effect is not Effect.INSERT:
            assert places is not None
            numbers = rows.sides[self._target].numbers
            self._touch(places.files[numbers], places.positions[numbers])
        if effect is not Effect.DELETE:
            for some in rows.slices(MOST_NEW_ROWS):
                self._write(clause.new_rows(some), self._row_ids(some, places))

    def _touch(self, files: Longs, positions: Positions) -> None:
        starts = np.flatnonzero(np.diff(files, prepend=-1))
        for number, found in zip(files[starts].tolist(), np.split(positions, starts[1:]), strict=True):
            self._touched.setdefault(number, []).append(found)

    def _row_ids(self, rows: Rows, places: Places | None) -> pa.Array | None:
        if places is None or places.row_ids is None:
            return None
        return places.row_ids.take(pa.array(rows.sides[self._target].numbers))

    def _write(self, columns: dict[str, pa.Array], row_ids: pa.Array | None) -> None:
        if row_ids is not None and self._row_id is not None:
            # An updated row keeps its id, and is updated by this commit. (spec: Row lineage assignment)
            columns = {**columns, self._row_id: row_ids}
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        if self._settings.is_dry_run:
            conform_batch(batch, self._settings.rows.schema)  # for its errors
        else:
            self._writer.write(batch)
