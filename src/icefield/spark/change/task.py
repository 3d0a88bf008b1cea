"""The last stage of a change, in an executor's Python worker: new rows to data files, positions to the ends of files.

A task gets all positions of its data files, sorted by file, and after them its new rows, in the order in which they are
written. The first row of each data file has its pickled `FileTask`. Where a source row is inserted unless it matches,
both are in one task: its number, if it matched, and before all new rows; and the row to insert, with that number.
"""

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.taskcontext import TaskContext

from icefield.engine.change import Changed, ChangeSettings
from icefield.engine.engine import Site
from icefield.engine.file_ends import FileEnds
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.conform import conform_batch
from icefield.parquet.write.string_check import check_text
from icefield.parquet.write.write import DataWriter
from icefield.spark.task_result import packed_result
from icefield.storage.store import Store

PART, CLAUSE, FILE, POS, TASK, SOURCE, SPLIT = "part", "clause", "file", "pos", "task", "source", "split"
FIXED = (PART, CLAUSE, FILE, POS, TASK, SOURCE, SPLIT)  # the columns before those of new rows
POSITION_PART, MATCHED_PART, ROW_PART = 0, 1, 2
NO_CLAUSE = -1  # of a matched row that stays as it is


@dataclass(frozen=True)
class Row:
    """The place of a row of the table."""

    file: str
    position: int


@dataclass(frozen=True)
class TaskResult:
    """The result of one task.

    counts: rows of the table by clause. rows: new rows by clause. twice: a row of the table that two source rows match.
    """

    changed: Changed
    counts: Mapping[int, int] = field(default_factory=dict)
    rows: Mapping[int, int] = field(default_factory=dict)
    twice: Row | None = None


@dataclass(frozen=True)
class ApplyTask:
    """Applies the rows of one shuffle partition. names: of the columns of new rows.

    refuses_twice: two matches of one row are an error; otherwise they are one.
    """

    settings: ChangeSettings
    names: tuple[str, ...]
    store: Store
    files: TableFiles
    refuses_twice: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        name = f"{context.partitionId():05d}-{context.taskAttemptId()}" if context else "00000-0"
        applied = _Applied(self, Site(self.store, self.files, name))

        def run() -> TaskResult:
            for batch in batches:
                applied.add(batch)
            return applied.close()

        yield packed_result(run, applied.abort)


class _Applied:
    """One task in progress."""

    def __init__(self, task: ApplyTask, site: Site) -> None:
        self._task = task
        self._ends = FileEnds(task.settings, site)
        self._writer = DataWriter(task.settings.rows, site.store, site.name)
        self._counts, self._rows = Counter[int](), Counter[int]()
        self._file: FileTask | None = None
        self._held: list[tuple[np.ndarray, np.ndarray]] = []  # positions of that file, and their clauses
        self._twice: Row | None = None
        self._matched = pa.chunked_array([], pa.int64())  # numbers of source rows

    def add(self, batch: pa.RecordBatch) -> None:
        parts = batch.column(PART).to_numpy()
        first_match, first_row = np.searchsorted(parts, [MATCHED_PART, ROW_PART]).tolist()
        self._add_positions(batch.slice(0, first_match))
        if first_match < batch.num_rows:
            self._end_file()
        if first_match < first_row:
            matched = batch.column(SOURCE).slice(first_match, first_row - first_match)
            self._matched = pa.chunked_array([*self._matched.chunks, matched])
        if first_row < batch.num_rows:
            self._add_rows(self._without_matched(batch.slice(first_row)))

    def close(self) -> TaskResult:
        self._end_file()
        if self._twice is not None:
            self.abort()
            return TaskResult(Changed(), twice=self._twice)
        ended, rows = self._ends.close(), self._writer.close()
        files = [*ended.files, *([rows] if rows.num_rows else [])]
        return TaskResult(replace(ended, files=files), self._counts, self._rows)

    def abort(self) -> None:
        self._ends.abort()
        self._writer.abort()

    def _add_positions(self, batch: pa.RecordBatch) -> None:
        tasks, positions, clauses = (batch.column(name) for name in (TASK, POS, CLAUSE))
        begins = np.flatnonzero(tasks.is_valid().to_numpy(zero_copy_only=False)).tolist()
        start = 0
        for end, begin in zip([*begins, batch.num_rows], [*begins, None], strict=True):
            held = (column.slice(start, end - start).to_numpy(zero_copy_only=False) for column in (positions, clauses))
            at, which = held
            if len(at):
                self._held.append((at, which))
            if begin is not None:
                self._end_file()
                self._file = pickle.loads(tasks[begin].as_py())  # noqa: S301 - our own driver pickled it
                start = begin + 1

    def _end_file(self) -> None:
        if not self._held:
            return
        assert self._file is not None, "positions without their data file"
        positions, clauses = (np.concatenate(arrays) for arrays in zip(*self._held, strict=True))
        self._held = []
        is_first = np.append(True, positions[1:] != positions[:-1])
        if self._task.refuses_twice and not is_first.all():
            self._twice = self._twice or Row(self._file.location, int(positions[np.flatnonzero(~is_first)[0]]))
        positions, clauses = positions[is_first], clauses[is_first]
        self._counts.update(_count(clauses))
        touched = positions[clauses != NO_CLAUSE]
        if len(touched) and self._twice is None:
            self._ends.add(self._file, touched)

    def _without_matched(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Drop rows to insert whose source rows matched."""
        if not len(self._matched):
            return batch
        # Other new rows have no number.
        is_matched = pc.is_in(batch.column(SOURCE), value_set=self._matched)
        return batch.filter(pc.invert(is_matched))

    def _add_rows(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        names = self._task.names
        self._rows.update(_count(batch.column(CLAUSE).to_numpy()))
        columns = [batch.column(at) for at in range(len(FIXED), len(FIXED) + len(names))]
        rows = check_text(pa.RecordBatch.from_arrays(columns, names=list(names)))
        if self._task.settings.is_dry_run:
            conform_batch(rows, self._task.settings.rows.schema)
        else:
            self._writer.write(rows)


def _count(clauses: np.ndarray) -> dict[int, int]:
    found, counts = np.unique(clauses, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))
