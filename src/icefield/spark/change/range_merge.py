"""A MERGE of a table whose files have separate ranges of keys: tasks merge one range each, as the local engine does.

    plan     bounds of a key column in manifests -> groups of files whose ranges do not overlap (`key_ranges`)
    shuffle  source rows, each to the group that its key belongs to; and the list of files of each group
    task     `LocalMerge` of the source rows and the files of one group -> files

Only the source passes through Spark. The rows of the table are read, matched and written by one worker, without a join,
and a task that has all source rows for its files knows which of them match nothing. A table in which keys are spread
over all files is one group, if it is small enough. All other merges take the shuffle of `merge`: those of large groups,
of rows that would become many small files, with a sort order, or with expressions for Spark alone.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark_types
from pyspark.taskcontext import TaskContext

from icefield.cache.reading import ReadContext
from icefield.engine.bind_clauses import field_at, find_spark_only
from icefield.engine.change import Changed, ChangePlan, Merge, MergeSource, When
from icefield.engine.engine import Site
from icefield.engine.local_merge import LocalMerge, MergeTarget
from icefield.errors import NeedsSpark
from icefield.expr.render.spark_sql import spark_literal
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.task import FileTask
from icefield.properties.table import DISTRIBUTE_RANGE
from icefield.spark.change.change import SparkChange
from icefield.spark.change.expressions import check_ansi, expressions_of, named, null_of
from icefield.spark.change.key_ranges import KeyRange, load_bounds, pack_ranges
from icefield.spark.change.source import ROW_NUMBER, rows_of_source, rows_with_types
from icefield.spark.change.suits_local import suits_local
from icefield.spark.read.logical_columns import select_all
from icefield.spark.session.arrow_frame import create_frame
from icefield.spark.session.workers import check_workers
from icefield.spark.task_result import RESULTS, packed_result, unpacked_results
from icefield.spark.types import logical_field
from icefield.storage.store import Store
from icefield.types.datatypes import NestedField, PrimitiveType, Value
from icefield.types.schema import Schema

MOST_RANGED_FILES = 10_000
GROUP_BYTES = 16 * 1024 * 1024  # of data files
MOST_GROUP_BYTES = 256 * 1024 * 1024
MOST_SOURCE_ROWS = 1_000_000  # of one group
MOST_SOURCE_BYTES = 256 * 1024 * 1024
MORE_PARTITIONS = 8  # beyond those of its files that the new rows of one of several groups may be in
HAS_REPARTITION_BY_ID = hasattr(DataFrame, "repartitionById")  # since Spark 4.1
GROUP, FILES = "icefield_group", "icefield_files"
_FIXED = spark_types.StructType(
    [
        spark_types.StructField(GROUP, spark_types.IntegerType()),
        spark_types.StructField(FILES, spark_types.BinaryType()),
    ]
)


def merge_ranges(
    session: SparkSession, context: ReadContext, base: TableMetadata, given: tuple[MergeSource, Merge, ChangePlan]
) -> Changed | None:
    """Run a MERGE by ranges of keys; None if that is not possible, or if rows show that it is not.

    That is so if one range has too many source rows, or if a value is one that only Spark can evaluate. No file is left
    then.
    """
    source, merge, plan = given
    change = SparkChange(session, context, base, plan)
    work = RangeMerge(change, source, merge)
    if not work.is_possible():
        return None
    try:
        return work.run()
    except NeedsSpark:
        return None


@dataclass(frozen=True)
class RangeMerge:
    """One MERGE by ranges of keys."""

    change: SparkChange
    source: MergeSource
    merge: Merge

    def is_possible(self) -> bool:
        """Return whether the table, its files and the clauses allow it."""
        change, merge = self.change, self.merge
        plan = change.plan
        if (
            not 0 < plan.scan.files.num_rows <= MOST_RANGED_FILES
            or not merge.keys
            or not suits_local(plan, change.base)
        ):
            return False
        if plan.settings.rows.distribution == DISTRIBUTE_RANGE or self._has_copies or self._needs_spark():
            return False
        return self._ranges is not None

    def run(self) -> Changed:
        """Run it. Raises NeedsSpark if rows show that it is not possible; no file is left then."""
        key, ranges = self._chosen
        if self._row_count > MOST_SOURCE_ROWS and self._most_rows(key, ranges) > MOST_SOURCE_ROWS:
            raise NeedsSpark("a source with very many rows for one range of keys")
        check_workers(self.change.session)
        task = MergeGroup(
            self.merge,
            MergeTarget.of(self.change.plan),
            self.source.incoming,
            self.change.context.store,
            TableFiles.of(self.change.base),
            MOST_SOURCE_BYTES,
            None if len(ranges) == 1 else MORE_PARTITIONS,
        )
        with self.change.clean_up():
            done = self._shuffled(key, ranges).mapInArrow(task, RESULTS).collect()
            results: list[Changed] = list(unpacked_results(done))
            self.change.check_visible(results)
        return Changed.total(results)

    def _needs_spark(self) -> bool:
        merge = self.merge
        expressions = [*expressions_of(merge.clauses), *([] if merge.rest is None else [merge.rest])]
        try:
            check_ansi(self.change.session, expressions)
        except NeedsSpark:
            return True
        binder = MergeTarget.of(self.change.plan).binder(merge, self.source.incoming)
        return find_spark_only(binder, merge.clauses, merge.rest) is not None

    @cached_property
    def _rows(self) -> DataFrame:
        return rows_of_source(self.change.session, self.source, self.merge, self.change.base.schema).frame

    @property
    def _has_copies(self) -> bool:
        return len(self._rows.columns) != len(self.source.incoming.fields) + 1

    @cached_property
    def _row_count(self) -> int:
        return self._rows.count() if self.source.row_count is None else self.source.row_count

    @property
    def _chosen(self) -> tuple[str, list[KeyRange]]:
        assert self._ranges is not None, "not possible"
        return self._ranges

    @cached_property
    def _ranges(self) -> tuple[str, list[KeyRange]] | None:
        """Return the groups of files by a key, and an expression for the number of a source row's group."""
        places = {f.name: at for at, f in enumerate(self.source.incoming.fields)}
        for pair in self.merge.keys:
            key = field_at(self.change.base.schema, (pair.target,))
            column = f"c{places[pair.source]}"
            if not _is_compared_alike(self._rows.schema[column].dataType, key):
                continue
            bounds = load_bounds(self.change.context, self.change.base, self.change.plan.scan, key)
            if bounds is None:
                continue
            ranges = pack_ranges(bounds, GROUP_BYTES)
            sizes = (sum(bounds[number].size_bytes for number in each.numbers) for each in ranges)
            if max(sizes) <= MOST_GROUP_BYTES and self._keeps_files_together(ranges):
                return group_of_key(column, [each.start for each in ranges[1:]], key), ranges
        return None

    def _keeps_files_together(self, ranges: Sequence[KeyRange]) -> bool:
        """Return whether groups have partitions of their own, but for one that a group shares with the next."""
        files = self.change.plan.scan.files
        partitions = list(zip(files.spec_id.to_pylist(), files.partition_key.to_pylist(), strict=True))
        of_groups = sum(len({partitions[number] for number in each.numbers}) for each in ranges)
        return of_groups <= len(set(partitions)) + len(ranges)

    def _most_rows(self, key: str, ranges: Sequence[KeyRange]) -> int:
        if len(ranges) == 1:
            return self._row_count
        counts = self._rows.groupBy(F.expr(key).alias(GROUP)).count()
        most = counts.agg(F.max("count")).first()
        return int(most[0]) if most is not None and most[0] is not None else 0

    def _shuffled(self, key: str, ranges: Sequence[KeyRange]) -> DataFrame:
        """Return the source rows and the files of each group, in one partition for each group."""
        rows = self._rows.drop(ROW_NUMBER)
        tagged = rows.selectExpr("*", f"{key} AS {GROUP}", f"CAST(NULL AS BINARY) AS {FILES}")
        tasks = list(self.change.plan.scan.tasks(self.change.plan.scan.files))
        packed = [pickle.dumps([tasks[number] for number in each.numbers]) for each in ranges]
        files = create_frame(
            self.change.session, pa.table([pa.array(range(len(ranges)), pa.int32()), packed], [GROUP, FILES]), _FIXED
        )
        nulls = [named(null_of(f.dataType), f.name) for f in rows.schema.fields]
        both = tagged.union(select_all(files, [*nulls, GROUP, FILES]))
        if HAS_REPARTITION_BY_ID:
            by_group: DataFrame = both.repartitionById(len(ranges), GROUP)
            return by_group
        return both.repartition(len(ranges), GROUP)  # a task may get several groups


def group_of_key(column: str, starts: Sequence[Value], key: NestedField) -> str:
    """Return in SQL the number of the group that a key belongs to. starts: of all groups but the first, ascending.

    >>> from icefield.types.datatypes import IntegerType
    >>> group_of_key("c0", [10, 20, 30], NestedField(1, "id", IntegerType()))
    'IF(c0 < 20, IF(c0 < 10, 0, 1), IF(c0 < 30, 2, 3))'
    """
    assert isinstance(key.type, PrimitiveType)
    literals = [spark_literal(start, key.type) for start in starts]

    def search(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last) // 2
        return f"IF({column} < {literals[middle]}, {search(first, middle)}, {search(middle + 1, last)})"

    return search(0, len(starts))


def _is_compared_alike(given: spark_types.DataType, key: NestedField) -> bool:
    """Return whether Spark compares source keys with bounds as the table does."""
    wanted = logical_field(key).dataType
    return given == wanted or (given, wanted) == (spark_types.IntegerType(), spark_types.LongType())


@dataclass(frozen=True)
class MergeGroup:
    """Runs in an executor's Python worker.

    most_bytes: of source rows. more_partitions: beyond those of its files that new rows may be in; None for all.
    """

    merge: Merge
    target: MergeTarget
    incoming: Schema
    store: Store
    files: TableFiles
    most_bytes: int
    more_partitions: int | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        merging = _Merging(self, context.taskAttemptId() if context else 0)
        yield packed_result(lambda: merging.run(batches), merging.abort)


class _Merging:
    """One task in progress."""

    def __init__(self, group: MergeGroup, attempt: int) -> None:
        self._group = group
        self._attempt = attempt
        self._begun: list[LocalMerge] = []

    def run(self, batches: Iterator[pa.RecordBatch]) -> Changed:
        """Merge the groups whose files and source rows are in the batches."""
        files: dict[int, list[FileTask]] = {}
        held: list[pa.RecordBatch] = []
        held_bytes = 0
        for batch in batches:
            is_row = np.ones(batch.num_rows, np.bool_)
            for at in np.flatnonzero(batch.column(FILES).is_valid().to_numpy(zero_copy_only=False)).tolist():
                files[batch.column(GROUP)[at].as_py()] = pickle.loads(batch.column(FILES)[at].as_py())  # noqa: S301 - of our own driver
                is_row[at] = False
            rows = batch if is_row.all() else batch.filter(pa.array(is_row))
            held.append(rows.drop_columns([FILES]))
            held_bytes += rows.nbytes
            if held_bytes > self._group.most_bytes:
                raise NeedsSpark("a source with very many bytes for one range of keys")
        if not held:
            return Changed()
        rows = pa.Table.from_batches(held)
        groups = rows.column(GROUP).to_numpy()
        source = rows.drop_columns([GROUP]).rename_columns([f.name for f in self._group.incoming.fields])
        return Changed.total(
            self._merge(number, source if len(files) == 1 else source.filter(pa.array(groups == number)), tasks)
            for number, tasks in sorted(files.items())
        )

    def abort(self) -> None:
        """Remove what was written."""
        for work in self._begun:
            work.results.abort()

    def _merge(self, number: int, source: pa.Table, tasks: Sequence[FileTask]) -> Changed:
        group = self._group
        if not source.num_rows and not group.merge.has(When.NOT_MATCHED_BY_SOURCE):
            return Changed()
        checked = rows_with_types(source, group.incoming)
        if checked is None:
            raise NeedsSpark("a column of the source that Arrow has with another type")
        site = Site(group.store, group.files, f"{number:05d}-{self._attempt}")
        work = LocalMerge(MergeSource(checked, group.incoming), group.merge, group.target, site)
        self._begun.append(work)
        done = work.run(work.candidates(tasks))
        if group.more_partitions is not None:
            partitions = len({task.partition_identity for task in tasks}) + group.more_partitions
            if sum(files.num_rows for files in done.files) > partitions + len(done.rewritten):
                raise NeedsSpark("rows of one range of keys that belong to very many partitions")
        return done
