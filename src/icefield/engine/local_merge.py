"""A MERGE in this process: planned files are read one after another, and their rows matched with the source by key.

    batch of a file -> rows that may have a key of the source -> pending rows
    pending rows    -> pairs with source rows -> WHEN MATCHED clauses
                    -> rows without a pair    -> WHEN NOT MATCHED BY SOURCE clauses
    at the end      -> source rows without a pair -> WHEN NOT MATCHED clauses

Only the columns that the clauses need are read: the keys alone, if all columns are replaced. Memory is bounded by the
source and by the pending rows. Raises InvalidInput for two source rows that match one row of the table.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np
import pyarrow as pa

from icefield.engine.apply_clauses import ClauseResults, Places
from icefield.engine.bind_clauses import ClauseBinder, columns_of_side
from icefield.engine.change import Changed, ChangePlan, ChangeSettings, Merge, MergeSource, When, show_row
from icefield.engine.engine import Site
from icefield.engine.file_works import PENDING_ROWS, MergeRead
from icefield.engine.key_join import KeyJoin
from icefield.engine.merge_source import key_columns, one_batch
from icefield.engine.row_values import Column, Rows, Side
from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.bind.bound import Bound
from icefield.parquet.read.task import FileTask
from icefield.types.arrays import Longs
from icefield.types.metadata_columns import POSITION, ROW_ID, with_free_names
from icefield.types.schema import Schema

PENDING_BYTES = 64 * 1024 * 1024


def merge_here(source: MergeSource, merge: Merge, plan: ChangePlan, site: Site) -> Changed:
    """Match source rows with the rows of planned files, and apply the clauses."""
    work = LocalMerge(source, merge, MergeTarget.of(plan), site)
    try:
        return work.run(work.candidates(plan.scan.tasks(plan.scan.files)))
    except BaseException:
        work.results.abort()
        raise


@dataclass(frozen=True)
class MergeTarget:
    """The table of a MERGE; picklable. where: a filter for the rows that it may change, or must look at."""

    schema: Schema
    where: Bound
    settings: ChangeSettings

    @classmethod
    def of(cls, plan: ChangePlan) -> "MergeTarget":
        """Return what a plan says of the table."""
        return cls(plan.scan.version.schema, plan.scan.where, plan.settings)

    def binder(self, merge: Merge, incoming: Schema) -> ClauseBinder:
        """Return the binder of clauses. incoming: the columns of the source."""
        settings = self.settings
        return ClauseBinder(
            self.schema, settings.rows.schema, merge.target_name, merge.source_name, incoming, settings.moment
        )


class LocalMerge:
    """One MERGE in progress."""

    def __init__(self, source: MergeSource, merge: Merge, target: MergeTarget, site: Site) -> None:
        if not merge.keys:
            raise NeedsSpark("an ON condition that compares no column of the table with one of the source by `=`")
        self._merge, self._target, self._site = merge, target, site
        binder = target.binder(merge, source.incoming)
        self._clauses = {when: binder.bind(merge.clauses, when) for when in When}
        self._rest = binder.condition(merge.rest, When.MATCHED)
        self._source = one_batch(source.rows)
        self.keys = key_columns(source.rows, merge.keys, target.schema)
        self._join = KeyJoin(self.keys, source.rows.num_rows, source.key_index)
        self._has_pair = np.zeros(source.rows.num_rows, np.bool_)
        self._schema, (self._position, self._row_id) = with_free_names(target.schema, (POSITION, ROW_ID))
        self.results = ClauseResults(target.settings, site, merge.target_name)
        self._pending: list[tuple[int, pa.RecordBatch]] = []
        self._pending_rows = self._pending_bytes = 0
        self._matched = 0

    @cached_property
    def read(self) -> MergeRead:
        """What is read of the table's files."""
        keys = tuple(pair.target for pair in self._merge.keys)
        return MergeRead(self._schema, self._columns_to_read(), keys, self._target.where)

    def candidates(self, tasks: Iterable[FileTask]) -> Iterator[tuple[FileTask, Iterable[pa.RecordBatch]]]:
        """Read planned files here: yield each with the rows that may match."""
        read = self.read
        for reader, task in self._site.read(tasks):
            yield task, reader.read_candidates(task, read.schema, read.columns, read.where)

    def run(self, files: Iterable[tuple[FileTask, Iterable[pa.RecordBatch]]]) -> Changed:
        """Match the rows of files, and apply the clauses. files: each once, with all rows that match."""
        most_rows = max(PENDING_ROWS, self._join.distinct)  # a lookup costs as much as the keys that it looks among
        finished: dict[int, FileTask] = {}
        for number, (task, batches) in enumerate(files):
            for batch in batches:
                self._add(number, batch)
                if self._pending_rows >= most_rows or self._pending_bytes >= PENDING_BYTES:
                    self._match_pending()
                    self._end_files(finished)
            finished[number] = task
        self._match_pending()
        self._end_files(finished)
        self._insert()
        return self.results.close(self._matched)

    def _columns_to_read(self) -> list[str]:
        """Return the columns of the table that are needed, as names for a reader."""
        used: set[Column] = {Column(self._merge.target_name, pair.target) for pair in self._merge.keys}
        used = used.union(*(clause.columns for clauses in self._clauses.values() for clause in clauses))
        used |= self._rest.columns if self._rest else set()
        names = columns_of_side(self._merge.target_name, used)
        names.add(self._position)
        if self._keeps_row_ids:
            names.add(self._row_id)
        return [self._schema.name_of(f.field_id) for f in self._schema.fields if f.name in names]

    @property
    def _keeps_row_ids(self) -> bool:
        return ROW_ID.field_id in self._target.settings.rows.schema.by_id

    def _add(self, number: int, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch that may be changed, or may have a pair, to the pending rows."""
        if not self._clauses[When.NOT_MATCHED_BY_SOURCE]:
            mask = self._join.may_match(self.read.keys_of(batch), batch.num_rows)
            if not mask.any():
                return
            batch = batch if mask.all() else batch.take(pa.array(np.flatnonzero(mask)))
        if batch.num_rows:
            self._pending.append((number, batch))
            self._pending_rows += batch.num_rows
            self._pending_bytes += batch.nbytes

    def _match_pending(self) -> None:
        """Apply the clauses to the pending rows."""
        if not self._pending:
            return
        batch = one_batch(pa.Table.from_batches([rows for _, rows in self._pending]))
        numbers, counts = zip(*((number, rows.num_rows) for number, rows in self._pending), strict=True)
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0
        places = Places(
            np.repeat(np.array(numbers, np.int64), counts),
            batch.column(self._position).to_numpy(),
            batch.column(self._row_id) if self._keeps_row_ids else None,
        )
        has_pair = np.zeros(batch.num_rows, np.bool_)
        for pairs in self._pairs(batch):
            has_pair[pairs.sides[self._merge.target_name].numbers] = True
            self.results.apply(self._clauses[When.MATCHED], pairs, places)
        self._matched += int(has_pair.sum())
        if self._clauses[When.NOT_MATCHED_BY_SOURCE]:
            alone = np.flatnonzero(~has_pair)
            rows = Rows({self._merge.target_name: Side(batch, alone)}, len(alone))
            self.results.apply(self._clauses[When.NOT_MATCHED_BY_SOURCE], rows, places)

    def _pairs(self, batch: pa.RecordBatch) -> Iterator[Rows]:
        """Yield the matches of a batch: each row of the table at most once."""
        target, source = self._merge.target_name, self._merge.source_name
        for ours, theirs in self._join.pairs(self.read.keys_of(batch), batch.num_rows):
            pairs = Rows({target: Side(batch, ours), source: Side(self._source, theirs)}, len(ours))
            if self._rest is not None:
                pairs = pairs.where(self._rest.evaluate(pairs).fill_null(False).to_numpy(zero_copy_only=False))
            ours, theirs = pairs.sides[target].numbers, pairs.sides[source].numbers
            self._has_pair[theirs] = True
            again = np.flatnonzero(ours[1:] == ours[:-1]) + 1
            if len(again) and self._merge.refuses_double_matches:
                self._refuse(batch, int(ours[again[0]]), theirs[again[0] - 1 : again[0] + 1])
            if len(again):
                is_first = np.ones(len(ours), np.bool_)
                is_first[again] = False
                pairs = pairs.where(is_first)
            yield pairs

    def _refuse(self, batch: pa.RecordBatch, row: int, sources: Longs) -> NoReturn:
        key = {pair.target: batch.column(pair.target)[row].as_py() for pair in self._merge.keys}
        first, second = (show_row(self._source.slice(number, 1).to_pylist()[0]) for number in sources.tolist())
        raise InvalidInput(
            f"two source rows match the row of the table with the key {key}: {first} and {second}",
            hint="Keep one source row for each row of the table, or extend the ON condition",
        )

    def _end_files(self, finished: dict[int, FileTask]) -> None:
        for number, task in finished.items():
            self.results.end_file(number, task)
        finished.clear()

    def _insert(self) -> None:
        """Apply the clauses for source rows that match no row of the table."""
        alone = np.flatnonzero(~self._has_pair)
        rows = Rows({self._merge.source_name: Side(self._source, alone)}, len(alone))
        for some in rows.slices(PENDING_ROWS):
            self.results.apply(self._clauses[When.NOT_MATCHED], some)
