"""Rows of files, put in an order by tasks in Python workers: the JVM moves them in blocks, and looks at none of them.

    files of a partition -> task: rows -> ranges of the order -> a block of Arrow data for each range
    blocks of some ranges, one after another -> task: a range is sorted in memory -> files

A range is cut at a sample, and small enough for the memory of a task; a task writes the ranges of about one file. A
partition that fits in memory as a whole is sorted by one task, without a shuffle.
"""

import math
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.taskcontext import TaskContext

from icefield.codec.manifest.rows import DataFiles
from icefield.engine.engine import Site
from icefield.engine.file_works import NO_POSITIONS
from icefield.errors import IcefieldError
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.data_files import no_data_files
from icefield.parquet.write.plan import WritePlan
from icefield.parquet.write.row_order import RowOrder
from icefield.parquet.write.write import DataWriter
from icefield.spark.file_work import group_files, run_work
from icefield.spark.session.arrow_frame import create_frame
from icefield.spark.session.worker_errors import explain_worker_error
from icefield.spark.session.workers import check_workers
from icefield.spark.write.order_works import SampleRows, SortFiles
from icefield.spark.write.row_ranges import RowRanges
from icefield.spark.write.settings import one_row_at_once
from icefield.spark.write.task import RESULT_SCHEMA, packed_files
from icefield.spark.write.write import files_of_tasks, remove_files_of_write
from icefield.storage.store import Store

PartitionId = tuple[int, bytes]
RANGE_BYTES = 32 * 1024 * 1024  # of compressed files, that are sorted in memory at once
MOST_RANGE_BYTES = 4 * RANGE_BYTES  # if many rows have the same place in the order
VALUE_BYTES, COMPRESSION = 8, 4  # of a value in memory; how much smaller files are
BLOCK_BYTES = 64 * 1024 * 1024  # of rows in memory, that are divided at once
MOST_BLOCKS = 100_000
SAMPLED_FILES, SAMPLED_ROWS = 64, 20_000
_BLOCKS = "task int, piece int, rows binary, error binary"
_BLOCKS_ARROW = pa.schema([("task", pa.int32()), ("piece", pa.int32()), ("rows", pa.binary()), ("error", pa.binary())])
_ERROR = -1  # the piece of a block that has an error instead of rows


@dataclass(frozen=True)
class Pieces:
    """How the rows of one partition are divided; picklable. tasks: which task writes each range."""

    ranges: RowRanges
    tasks: tuple[int, ...]


@dataclass(frozen=True)
class DivideTask:
    """Runs in an executor's Python worker: pickled groups of file tasks in, blocks of rows out."""

    plan: WritePlan
    store: Store
    files: TableFiles
    pieces: Mapping[PartitionId, Pieces]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                try:
                    yield from self._divide(pickle.loads(row["tasks"]))  # noqa: S301 - of our own driver
                except IcefieldError as error:
                    if error.retryable:
                        raise
                    yield _block(0, _ERROR, None, pickle.dumps(error))

    def _divide(self, tasks: Sequence[FileTask]) -> Iterator[pa.RecordBatch]:
        """Divide the rows of files of one partition."""
        own = self.pieces[tasks[0].partition_identity]
        held, held_bytes = list[pa.RecordBatch](), 0
        for reader, task in Site(self.store, self.files, "").read(tasks):
            for batch in reader.read_without(task, self.plan.schema, NO_POSITIONS):
                held.append(batch)
                held_bytes += batch.nbytes
                if held_bytes >= BLOCK_BYTES:
                    yield from _divided(held, own)
                    held, held_bytes = [], 0
        yield from _divided(held, own)


@dataclass(frozen=True)
class WriteInOrder:
    """Runs in an executor's Python worker: blocks of rows in, in the order of their ranges; files out."""

    plan: WritePlan
    store: Store
    order: RowOrder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        name = f"{context.partitionId():05d}-{context.taskAttemptId()}" if context else "00000-0"
        yield packed_files(DataWriter(self.plan, self.store, name), self._in_order(batches))

    def _in_order(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blocks = (batch.slice(at, 1) for batch in batches for at in range(batch.num_rows))
        for _, own in groupby(blocks, key=lambda block: block["piece"][0].as_py()):
            rows = [batch for block in own for batch in _rows_of(block)]
            yield from self.order.sorted(pa.Table.from_batches(rows), self.plan.schema).to_batches()


@dataclass(frozen=True)
class FilesInOrder:
    """What is put in order: the files of one spec, by partition; and where."""

    session: SparkSession
    store: Store
    files: TableFiles
    plan: WritePlan
    order: RowOrder

    def write(self, tasks: Sequence[FileTask]) -> DataFiles | None:
        """Write the rows of files, which are ordered by partition; None if Spark has to sort them."""
        partitions = [list(own) for _, own in groupby(tasks, key=lambda task: task.partition_identity)]
        small = [own for own in partitions if self._size(own) <= RANGE_BYTES]
        large = [own for own in partitions if self._size(own) > RANGE_BYTES]
        pieces = self._pieces(large) if large and self._can_divide(large) else {}
        if len(pieces) < len(large):
            return None
        try:
            done = [*self._sort_each(small), *self._divide(large, pieces)]
        except BaseException as error:
            remove_files_of_write(self.store, self.plan)
            if explained := explain_worker_error(error):
                raise explained from error
            raise
        return DataFiles.concat([no_data_files(self.plan.spec, self.plan.schema), *done])

    def _size(self, tasks: Sequence[FileTask]) -> int:
        """Return the size of files, or of the rows in memory by the usual ratio, if these are well compressed."""
        rows = sum(task.record_count for task in tasks)
        least = rows * len(self.plan.schema.leaves) * VALUE_BYTES // COMPRESSION
        return max(least, sum(task.file_size_bytes or 0 for task in tasks))

    def _can_divide(self, large: Sequence[Sequence[FileTask]]) -> bool:
        blocks = sum(_count(self._size(own), RANGE_BYTES) * len(list(group_files(own))) for own in large)
        return blocks <= MOST_BLOCKS and hasattr(DataFrame, "repartitionById") and _has_ids(self.session)

    def _sort_each(self, small: Sequence[Sequence[FileTask]]) -> Iterator[DataFiles]:
        """Sort partitions that fit in memory; several of them are one task."""
        groups, held = list[list[FileTask]](), RANGE_BYTES
        for own in small:
            if held + self._size(own) > RANGE_BYTES:
                groups.append([])
                held = 0
            groups[-1] += own
            held += self._size(own)
        done = run_work(self.session, SortFiles(self.plan, self.order), groups, self.files, self.store)
        yield from (each.files for each in done)

    def _divide(self, large: Sequence[Sequence[FileTask]], pieces: Mapping[PartitionId, Pieces]) -> Iterator[DataFiles]:
        """Divide the rows of partitions that do not fit in memory, and sort each range."""
        if not large:
            return
        groups = [pickle.dumps(group) for own in large for group in group_files(own)]
        check_workers(self.session)
        frame = create_frame(self.session, pa.table([groups], ["tasks"]))
        frame = frame if len(groups) == 1 else frame.repartition(len(groups))
        divide = DivideTask(self.plan, self.store, self.files, pieces)
        tasks = 1 + max(each.tasks[-1] for each in pieces.values())
        blocks = frame.mapInArrow(divide, _BLOCKS).repartitionById(tasks, F.col("task"))
        if any(len(each.tasks) > len(set(each.tasks)) for each in pieces.values()):
            blocks = blocks.sortWithinPartitions("piece")
        with one_row_at_once(self.session):
            results = blocks.mapInArrow(WriteInOrder(self.plan, self.store, self.order), RESULT_SCHEMA).collect()
        yield files_of_tasks(self.store, self.plan, ((result.files, result.error) for result in results))

    def _pieces(self, large: Sequence[Sequence[FileTask]]) -> dict[PartitionId, Pieces]:
        """Return how partitions are divided, without those that have too many rows with the same place in the order."""
        schema, made, tasks = self.plan.schema, dict[PartitionId, Pieces](), 0
        some = [task for own in large for task in own[:: max(1, len(own) // SAMPLED_FILES)]]
        most = max(1, SAMPLED_ROWS * len(large) // len(some))
        work = SampleRows(schema, self.order.columns(schema), most)
        samples = list(run_work(self.session, work, group_files(some), self.files, self.store))
        for own in large:
            mine = [sample for sample in samples if sample.partition == own[0].partition_identity]
            rows = pa.concat_tables([sample.rows for sample in mine] or [pa.table({})])
            weights = np.repeat([sample.weight for sample in mine], [sample.rows.num_rows for sample in mine])
            writing = _count(sum(task.file_size_bytes or 0 for task in own), self.plan.target_file_size_bytes)
            # As many ranges for each task, so that a task writes whole ones.
            count = writing * _count(_count(self._size(own), RANGE_BYTES), writing)
            ranges = RowRanges.of_sample(self.order, schema, rows, weights, count)
            if ranges.largest_share(rows, weights) * self._size(own) <= MOST_RANGE_BYTES:
                owners = (tasks + at * writing // ranges.count for at in range(ranges.count))
                made[own[0].partition_identity] = Pieces(ranges, tuple(owners))
                tasks += writing
        return made


def _has_ids(spark: SparkSession) -> bool:
    """Return whether the server of a session has `repartitionById`, too."""
    return tuple(int(part) for part in spark.version.split(".")[:2]) >= (4, 1)


def _divided(held: Sequence[pa.RecordBatch], pieces: Pieces) -> Iterator[pa.RecordBatch]:
    """Yield a block for each range that has some of the rows."""
    if not held:
        return
    rows = pa.Table.from_batches(held).combine_chunks()
    numbers = np.concatenate([pieces.ranges.numbers(batch) for batch in rows.to_batches()])
    order = np.argsort(numbers, kind="stable")
    rows = rows.take(pa.array(order))
    present, starts = np.unique(numbers[order], return_index=True)
    for number, start, end in zip(present.tolist(), starts, [*starts[1:], rows.num_rows], strict=True):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows.slice(start, end - start))
        yield _block(pieces.tasks[number], number, sink.getvalue(), None)


def _block(task: int, piece: int, rows: pa.Buffer | None, error: bytes | None) -> pa.RecordBatch:
    # The rows are not copied into an array.
    ends = pa.py_buffer(np.array([0, rows.size], np.int32)) if rows is not None else None
    held = pa.nulls(1, pa.binary()) if rows is None else pa.Array.from_buffers(pa.binary(), 1, [None, ends, rows])
    numbers = (pa.array([number], pa.int32()) for number in (task, piece))
    return pa.RecordBatch.from_arrays([*numbers, held, pa.array([error], pa.binary())], schema=_BLOCKS_ARROW)


def _rows_of(block: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if (error := block["error"][0]).is_valid:
        raise pickle.loads(error.as_py())  # noqa: S301 - our own tasks pickled it
    yield from pa.ipc.open_stream(block["rows"][0].as_buffer())


def _count(size: int, part: int) -> int:
    return max(1, math.ceil(size / part))
