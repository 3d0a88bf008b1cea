"""Work on files in the Python workers of executors: one task per group of files, one small row per result.

Only the results of a task's successful attempt are used; files of other attempts have other names. An error that a
retry cannot fix is returned as a value, so that Spark neither retries it nor buries it in a stack trace.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.taskcontext import TaskContext

from icefield.engine.engine import FileWork, Site, T
from icefield.errors import IcefieldError
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.task import FileTask
from icefield.spark.session.arrow_frame import create_frame
from icefield.spark.session.worker_errors import explain_worker_error
from icefield.spark.session.workers import check_workers
from icefield.spark.write.write import check_visible, remove_files_of_write
from icefield.storage.store import Store

GROUP_BYTES = 128 * 1024 * 1024
GROUP_FILES = 1_000
_GROUPS = ["number", "tasks"]
_RESULTS = "number int, results binary, error binary"
_RESULTS_ARROW = pa.schema([("number", pa.int32()), ("results", pa.binary()), ("error", pa.binary())])


@dataclass(frozen=True)
class WorkTask:
    """Runs in an executor's Python worker; its input is pickled groups of file tasks."""

    work: FileWork[Any]
    store: Store
    files: TableFiles

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        attempt = context.taskAttemptId() if context else 0
        for batch in batches:
            for row in batch.to_pylist():
                yield self._run(row["number"], pickle.loads(row["tasks"]), attempt)  # noqa: S301 - of our own driver

    def _run(self, number: int, tasks: Sequence[FileTask], attempt: int) -> pa.RecordBatch:
        done: dict[str, object] = {"number": number, "results": None, "error": None}
        try:
            results = list(self.work.run(tasks, Site(self.store, self.files, f"{number:05d}-{attempt}")))
            done["results"] = pickle.dumps(results)
        except IcefieldError as error:
            if error.retryable:
                raise
            done["error"] = pickle.dumps(error)
        return pa.RecordBatch.from_pylist([done], _RESULTS_ARROW)


def group_files(tasks: Iterable[FileTask]) -> Iterator[list[FileTask]]:
    """Split files into groups of about one size; a file is never split."""
    group: list[FileTask] = []
    held = 0
    for task in tasks:
        size = task.file_size_bytes or GROUP_BYTES
        if group and (held + size > GROUP_BYTES or len(group) >= GROUP_FILES):
            yield group
            group, held = [], 0
        group.append(task)
        held += size
    if group:
        yield group


def run_work(
    spark: SparkSession, work: FileWork[T], groups: Iterable[Iterable[FileTask]], files: TableFiles, store: Store
) -> Iterator[T]:
    """Run work on groups of files, and yield the results in the order of the groups."""
    given = [pickle.dumps(list(tasks)) for tasks in groups]
    if not given:
        return
    check_workers(spark)
    try:
        frame = create_frame(spark, pa.table([pa.array(range(len(given)), pa.int32()), given], _GROUPS))
        # One row is one task as it is; a shuffle is a job of its own.
        frame = frame if len(given) == 1 else frame.repartition(len(given))
        done = frame.mapInArrow(WorkTask(work, store, files), _RESULTS).collect()
        for row in done:
            if row["error"] is not None:
                raise pickle.loads(bytes(row["error"]))  # noqa: S301 - our own tasks pickled it
        ordered = sorted(done, key=lambda row: row["number"])
        results = [result for row in ordered for result in pickle.loads(bytes(row["results"]))]  # noqa: S301
        if work.plan is not None:
            check_visible(store, [location for result in results for location in result.locations])
    except BaseException as error:
        if work.plan is not None:
            remove_files_of_write(store, work.plan)
        if explained := explain_worker_error(error):
            raise explained from error
        raise
    yield from results
