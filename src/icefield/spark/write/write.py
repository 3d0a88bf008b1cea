"""A DataFrame to data files: each task writes its rows with Arrow and returns a description of its files.

Rows go from Spark's executors to files; the driver sees one small row per task. Only files of a task's successful
attempt are committed; files of other attempts have other names and are never referenced.

An error in the rows (such as a null in a required column) is returned as a value, so that Spark neither retries it nor
buries it in a stack trace: it is raised here as SchemaMismatch, and a worker without this package as Unsupported.
Spark's own errors are raised unchanged. In all cases the files of the write are removed first.
"""

import pickle
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame

from icefield.ambient import SystemAmbient
from icefield.codec.manifest.rows import DataFiles
from icefield.errors import IcefieldError, MissingFile, Unsupported
from icefield.model.sort_order import SortOrder
from icefield.parquet.write.data_files import no_data_files
from icefield.parquet.write.plan import WritePlan
from icefield.parquet.write.row_order import RowOrder
from icefield.spark.session.worker_errors import explain_worker_error
from icefield.spark.session.workers import check_workers
from icefield.spark.write.distribute import distribute
from icefield.spark.write.settings import changed_task_bytes, task_bytes_of
from icefield.spark.write.task import RESULT_SCHEMA, WriteTask
from icefield.storage.sizes import check_local_size
from icefield.storage.store import Store

# Spark kills the Python worker of a task two seconds after it has stopped the task.
PAUSES_S = (0, 0.1, 0.2, 0.4, 0.8, 1.6)


def write_frames(frames: Sequence[DataFrame], plan: WritePlan, order: SortOrder | RowOrder, store: Store) -> DataFiles:
    """Write all rows, whose schemas were checked, and return one row per file, as columns of a manifest entry."""
    check_workers(frames[0].sparkSession)
    spread = distribute(frames, plan, order)
    try:
        with changed_task_bytes(frames[0].sparkSession, task_bytes_of(plan)):
            task = WriteTask(spread.plan, store, spread.names)
            results = spread.rows.mapInArrow(task, RESULT_SCHEMA).collect()
        return files_of_tasks(store, plan, ((result.files, result.error) for result in results))
    except BaseException as error:
        remove_files_of_write(store, plan)
        if explained := explain_worker_error(error):
            raise explained from error
        raise


def files_of_tasks(store: Store, plan: WritePlan, results: Iterable[tuple[bytes, bytes | None]]) -> DataFiles:
    """Combine the results of tasks; raise the error that one of them returned."""
    done = [no_data_files(plan.spec, plan.schema)]
    for files, error in results:
        if error is not None:
            raise pickle.loads(bytes(error))  # noqa: S301 - our own tasks pickled it
        done.append(DataFiles(pa.ipc.open_stream(bytes(files)).read_all()))
    written = DataFiles.concat(done)
    check_visible(store, written.file_path.to_pylist())
    return written


def check_visible(store: Store, locations: Sequence[str]) -> None:
    """Raise Unsupported if this process does not see files that executors wrote: they have another disk."""
    try:
        uris = list(store.native_uris(locations))
    except Unsupported:
        return  # not on a disk
    for location, uri in zip(locations, uris, strict=True):
        try:
            check_local_size(location, uri, None)
        except MissingFile as error:
            raise Unsupported(
                f"Spark's executors wrote {location}, but this process does not see it. Nothing was committed; the "
                "files of this write are left on their disks",
                hint="A table on a disk needs the same path in this process and in all executors: use a shared file "
                "system or an object store, or engine='local' with Arrow data",
            ) from error


def remove_files_of_write(store: Store, plan: WritePlan) -> None:
    """Remove every file of a write that will not be committed, including those of failed tasks, if the store can.

    Spark stops the other tasks of a job that failed, but does not wait for them: one may still open a file. So the
    store is listed again until no task runs, for some seconds at most.
    """
    pauses_s = PAUSES_S if _knows_tasks() else PAUSES_S[:3]
    with suppress(IcefieldError):  # the error that led here says more
        for pause_s in pauses_s:
            SystemAmbient().sleep(pause_s)
            is_last = not _may_run_tasks()
            for found in store.list(plan.layout.folder):
                if plan.write_id in found.location:
                    store.delete(found.location)
            if is_last:
                return


def _knows_tasks() -> bool:
    """Return whether this process knows which tasks run; over Spark Connect it does not."""
    return SparkContext._active_spark_context is not None  # noqa: SLF001 - the public way to ask creates one


def _may_run_tasks() -> bool:
    """Return whether executors may run tasks, of whatever job, also those of jobs that have failed.

    The status tracker knows that too, but seconds too late.
    """
    context: Any = SparkContext._active_spark_context  # noqa: SLF001
    if context is None:
        return True
    try:
        running = context._jsc.sc().taskScheduler().runningTasksByExecutors()  # noqa: SLF001
        return any(map(int, running.values().mkString(" ").split()))
    except Exception:  # the JVM is gone, and its tasks with it; the error of the write says more
        return False
