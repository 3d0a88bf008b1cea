"""The Spark engine: rows in executors; the driver sees file lists and small results."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.rows import DataFiles
from icefield.engine.change import Changed, ChangePlan, Clause, Merge, MergeSource
from icefield.engine.change_files import change_files
from icefield.engine.engine import FileWork, T
from icefield.engine.equality_upsert import EqualityFiles, EqualityPlan
from icefield.engine.rows import arrow_batches
from icefield.errors import NeedsSpark
from icefield.expr.bind.bound import TRUE
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.conform import check_arrow_schema, check_schema, conform_batch
from icefield.parquet.write.plan import WritePlan
from icefield.parquet.write.row_order import RowOrder
from icefield.parquet.write.string_check import check_text
from icefield.plan.partition.keys import PARTITION_KEY
from icefield.plan.plan import ScanPlan
from icefield.properties.table import DISTRIBUTE_RANGE
from icefield.spark.arrow_rows import frame_of_arrow
from icefield.spark.change.change import SparkChange, change_matching
from icefield.spark.change.expressions import check_ansi, expressions_of
from icefield.spark.change.merge import SparkMerge
from icefield.spark.change.range_merge import merge_ranges
from icefield.spark.change.relations import opened_relations
from icefield.spark.change.small_merge import merge_small
from icefield.spark.change.source import rows_of_source
from icefield.spark.equality_upsert import write_equality
from icefield.spark.file_work import group_files, run_work
from icefield.spark.read.native_read import FilesToRead
from icefield.spark.read.read import read_files
from icefield.spark.read.task import Rows
from icefield.spark.types import schema_from_spark
from icefield.spark.write.ordered import FilesInOrder
from icefield.spark.write.write import write_frames
from icefield.types.arrow import arrow_schema

WIDTH = 64


@dataclass(frozen=True)
class SparkRowEngine:
    """Rows on Spark."""

    session: SparkSession
    context: ReadContext
    base: TableMetadata
    width: int = WIDTH

    def group(self, tasks: Iterable[FileTask]) -> Iterable[Iterable[FileTask]]:
        """Split files into groups, one for each Spark task."""
        return group_files(tasks)

    def run(self, work: FileWork[T], groups: Iterable[Iterable[FileTask]]) -> Iterator[T]:
        """Run work on groups of files, in executors."""
        return run_work(self.session, work, groups, TableFiles.of(self.base), self.context.store)

    def write(self, rows: object, plan: WritePlan, replaced: Sequence[ScanPlan] = ()) -> DataFiles:
        """Write a DataFrame or Arrow data, and the remaining rows of partially replaced files."""
        if isinstance(rows, DataFrame):
            check_schema(schema_from_spark(rows.schema), self.base.schema)
        frames = [rows if isinstance(rows, DataFrame) else self._frame_of_whole_rows(rows)]
        for scan in replaced:
            if scan.partial_files.num_rows:
                partial = FilesToRead(self.context, self.base, scan, scan.partial_files, plan.schema)
                frames.append(read_files(self.session, partial, scan.where, Rows.NON_MATCHING))
        return write_frames(frames, plan, self.base.sort_order, self.context.store)

    def write_in_order(self, scan: ScanPlan, plan: WritePlan, order: RowOrder) -> DataFiles:
        """Write the rows of planned files in an order: a range of it to each task."""
        if set(scan.files.spec_id.to_pylist()) == {self.base.spec.spec_id}:
            tasks = list(scan.tasks(scan.files.sort_by(PARTITION_KEY)))
            own = replace(plan, order=order.sort if order.is_known(plan.schema) else plan.order)
            work = FilesInOrder(self.session, self.context.store, TableFiles.of(self.base), own, order)
            if (done := work.write(tasks)) is not None:
                return done
        all_rows = scan.files.replaced({"residual_code": pa.array(np.zeros(scan.files.num_rows, np.int64))})
        request = FilesToRead(self.context, self.base, replace(scan, where=TRUE), all_rows, plan.schema)
        frame = read_files(self.session, request, TRUE)
        return write_frames([frame], replace(plan, distribution=DISTRIBUTE_RANGE), order, self.context.store)

    def upsert_by_equality(self, rows: object, plan: EqualityPlan) -> EqualityFiles:
        """Write a DataFrame or Arrow data to data files, and its keys to equality delete files."""
        frame = rows if isinstance(rows, DataFrame) else self._frame_of_whole_rows(rows)
        return write_equality(frame, plan, self.base, self.context.store)

    def merge(self, source: MergeSource, merge: Merge, plan: ChangePlan) -> Changed:
        """Match source rows with planned files, and apply the clauses."""
        for attempt in (merge_small, merge_ranges):
            done = attempt(self.session, self.context, self.base, (source, merge, plan))
            if done is not None:
                return done
        rows = rows_of_source(self.session, source, merge, self.base.schema)
        count = rows.frame.count() if source.row_count is None else source.row_count
        names = tuple(f.name for f in source.incoming.fields)
        with opened_relations(self.session, plan.relations) as reads_whole_table:
            done = SparkMerge(self._change(plan), rows, names, merge, count).run()
        return replace(done, reads_whole_table=reads_whole_table)

    def change_matching(self, clause: Clause, plan: ChangePlan) -> Changed:
        """Apply a clause to the rows of planned files that match its condition."""
        change = self._change(plan)
        try:
            return self._change_by_file(change, clause)
        except NeedsSpark:  # an expression, or a value of a row that only Spark can evaluate
            with opened_relations(self.session, plan.relations) as reads_whole_table:
                return replace(change_matching(change, clause), reads_whole_table=reads_whole_table)

    def _change_by_file(self, change: SparkChange, clause: Clause) -> Changed:
        plan = change.plan
        check_ansi(self.session, expressions_of([clause]))
        work = change_files(clause, plan)
        try:
            return Changed.total(self.run(work, self.group(plan.scan.tasks(plan.scan.files))))
        except BaseException:
            change.remove_files()
            raise

    def _change(self, plan: ChangePlan) -> SparkChange:
        return SparkChange(self.session, self.context, self.base, plan)

    def _frame_of_whole_rows(self, rows: object) -> DataFrame:
        given, batches = arrow_batches(rows)
        schema = self.base.schema
        check_arrow_schema(given, schema)
        whole = (conform_batch(check_text(batch), schema) for batch in batches)
        return frame_of_arrow(self.session, pa.RecordBatchReader.from_batches(arrow_schema(schema), whole), schema)
