"""The rows of the table that match a source row of a MERGE, found file by file in the tasks of an engine.

    file -> columns that the MERGE needs -> rows that have a key of the source -> back to the process that merges

So the files are read where the rows are, and only the rows that match a small source leave their task.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icefield.engine.engine import Site
from icefield.engine.key_join import KeyJoin
from icefield.engine.merge_source import one_batch
from icefield.errors import NeedsSpark
from icefield.expr.bind.bound import Bound
from icefield.parquet.read.task import FileTask
from icefield.types.schema import Schema

PENDING_ROWS = 65_536


@dataclass(frozen=True)
class MergeRead:
    """What a MERGE reads of files; picklable. columns: their names for a reader. keys: the names of key columns."""

    schema: Schema
    columns: Sequence[str]
    keys: tuple[str, ...]
    where: Bound

    def keys_of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the key columns of a batch."""
        return [batch.column(name) for name in self.keys]


@dataclass(frozen=True)
class MatchedRows:
    """Rows of one data file that match a source row; in the order of the file."""

    location: str
    rows: pa.RecordBatch


@dataclass(frozen=True)
class FindMatchedRows:
    """Finds the rows that match a source row; picklable. keys: of the source rows, as columns of the table.

    Raises NeedsSpark if the rows of a group have more than `most_bytes`.
    """

    read: MergeRead
    keys: Sequence[pa.Array]
    most_bytes: int

    @property
    def plan(self) -> None:
        """No files are written."""
        return

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[MatchedRows]:
        """Run it, and yield the rows of each file; those of a large file in several parts."""
        join = KeyJoin(self.keys, len(self.keys[0]))
        most_rows = max(PENDING_ROWS, join.distinct)  # a lookup costs as much as the keys that it looks among
        held_bytes, pending = 0, list[MatchedRows]()
        for part in self._candidates(tasks, site, join):
            pending.append(part)
            if sum(each.rows.num_rows for each in pending) >= most_rows:
                found, pending = self._matched(pending, join), []
                held_bytes += sum(each.rows.nbytes for each in found)
                self._check_size(held_bytes)
                yield from found
        found = self._matched(pending, join)
        self._check_size(held_bytes + sum(each.rows.nbytes for each in found))
        yield from found

    def _candidates(self, tasks: Iterable[FileTask], site: Site, join: KeyJoin) -> Iterator[MatchedRows]:
        """Yield the rows that may match: rows whose keys have the hash of a source row's."""
        read = self.read
        for reader, task in site.read(tasks):
            for batch in reader.read_candidates(task, read.schema, read.columns, read.where):
                mask = join.may_match(read.keys_of(batch), batch.num_rows)
                if mask.any():
                    yield MatchedRows(task.location, batch.take(pa.array(np.flatnonzero(mask))))

    def _matched(self, pending: Sequence[MatchedRows], join: KeyJoin) -> list[MatchedRows]:
        """Keep the rows that do match."""
        if not pending:
            return []
        whole = one_batch(pa.Table.from_batches([part.rows for part in pending]))
        numbers = join.matching(self.read.keys_of(whole), whole.num_rows)
        ends = np.cumsum([part.rows.num_rows for part in pending])
        places = np.searchsorted(numbers, [0, *ends])
        found = whole.take(pa.array(numbers))
        return [
            MatchedRows(part.location, found.slice(start, stop - start))
            for part, start, stop in zip(pending, places[:-1].tolist(), places[1:].tolist(), strict=True)
            if start < stop
        ]

    def _check_size(self, held_bytes: int) -> None:
        if held_bytes > self.most_bytes:
            raise NeedsSpark("a source that matches very many rows")
