"""The local engine: rows as Arrow batches in this process, one file after another, without a JVM.

Memory is bounded by the batches in flight, not by the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

import pyarrow as pa

from icefield.codec.manifest.rows import DataFiles
from icefield.deferred import deferred_imports
from icefield.engine.change import Changed, ChangePlan, Clause, Merge, MergeSource
from icefield.engine.engine import FileWork, Site, T
from icefield.engine.file_works import NO_POSITIONS, write_batches
from icefield.engine.rows import arrow_batches
from icefield.errors import InvalidInput
from icefield.expr.prune.residual import residual
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.read_ahead import read_ahead
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.conform import check_arrow_schema
from icefield.parquet.write.plan import WritePlan
from icefield.parquet.write.row_order import RowOrder
from icefield.parquet.write.string_check import check_text
from icefield.plan.partition.keys import PARTITION_KEY
from icefield.plan.plan import ScanPlan
from icefield.storage.store import Store
from icefield.types.arrow import arrow_schema
from icefield.types.schema import Schema

with deferred_imports(__name__):
    from icefield.engine.change_files import change_files
    from icefield.engine.equality_upsert import EqualityFiles, EqualityPlan, write_equality_here
    from icefield.engine.local_merge import merge_here

MOST_SORTED_BYTES = 1024 * 1024 * 1024  # of compressed files


@dataclass(frozen=True)
class LocalEngine:
    """Rows in this process."""

    store: Store
    base: TableMetadata
    width: int = 1

    def group(self, tasks: Iterable[FileTask]) -> Iterable[Iterable[FileTask]]:
        """Return all files as one group."""
        return [tasks]

    def run(self, work: FileWork[T], groups: Iterable[Iterable[FileTask]]) -> Iterator[T]:
        """Run work on one group after another."""
        for number, tasks in enumerate(groups):
            yield from work.run(tasks, self._site(number))

    def write(self, rows: object, plan: WritePlan, replaced: Sequence[ScanPlan] = ()) -> DataFiles:
        """Write Arrow data, and the remaining rows of partially replaced files, to data files."""
        schema, batches = arrow_batches(rows)
        check_arrow_schema(schema, self.base.schema)
        batches = map(check_text, batches)
        batches = plan.check.checked(batches) if plan.check else batches
        return write_batches(
            plan, chain(batches, self._rows_that_stay(plan.schema, replaced)), self.store, local_name()
        )

    def write_in_order(self, scan: ScanPlan, plan: WritePlan, order: RowOrder) -> DataFiles:
        """Write the rows of planned files in an order, one partition after another; each is sorted in memory."""
        return write_batches(
            replace(plan, order=order.sort), self._rows_in_order(scan, plan.schema, order), self.store, local_name()
        )

    def upsert_by_equality(self, rows: object, plan: EqualityPlan) -> EqualityFiles:
        """Write Arrow data to data files, and its keys to equality delete files."""
        _, batches = arrow_batches(rows)
        return write_equality_here(map(check_text, batches), plan, self.store, local_name())

    def merge(self, source: MergeSource, merge: Merge, plan: ChangePlan) -> Changed:
        """Match source rows with the rows of planned files, and apply the clauses."""
        return merge_here(source, merge, plan, self._site(0))

    def change_matching(self, clause: Clause, plan: ChangePlan) -> Changed:
        """Apply a clause to the rows of planned files that match the filter of the plan and its condition."""
        work = change_files(clause, plan)
        return Changed.total(self.run(work, self.group(plan.scan.tasks(plan.scan.files))))

    def _rows_in_order(self, scan: ScanPlan, schema: Schema, order: RowOrder) -> Iterator[pa.RecordBatch]:
        files = scan.files.sort_by("spec_id", PARTITION_KEY)
        for _, tasks in groupby(scan.tasks(files), lambda task: task.partition_identity):
            held = list(tasks)
            size = sum(task.file_size_bytes or 0 for task in held)
            if size > MOST_SORTED_BYTES:
                raise InvalidInput(
                    f"cannot put a partition of {size:,} bytes in order in this process: it must fit in memory",
                    hint="Use engine='spark', or a filter that selects fewer files",
                )
            rows = (
                batch
                for reader, task in read_ahead(self.store, self.base, held)
                for batch in reader.read_without(task, schema, NO_POSITIONS)
            )
            table = pa.Table.from_batches(rows, arrow_schema(schema))
            yield from order.sorted(table, schema).to_batches()

    def _site(self, number: int) -> Site:
        return Site(self.store, TableFiles.of(self.base), local_name(number))

    def _rows_that_stay(self, schema: Schema, replaced: Iterable[ScanPlan]) -> Iterator[pa.RecordBatch]:
        for plan in replaced:
            for reader, task in read_ahead(self.store, self.base, plan.tasks(plan.partial_files)):
                yield from reader.read_non_matching(task, schema, residual(plan.where, task.residual_code))


def local_name(number: int = 0) -> str:
    """Return the prefix of new file names of this process."""
    return f"{number:05d}-0"
