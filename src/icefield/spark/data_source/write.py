"""Writing through `format("icefield")`: tasks write files, and the driver's worker commits them once.

A Python source cannot ask Spark to cluster rows by partition, so each task opens a file for every partition that it
encounters; `table.append(df)` distributes rows first.

    writer()  the rows' schema is checked, the base version of the change is fixed, and its lease is taken if needed
    write()   in executors: files are written, and the lease is renewed; an error in the rows is returned as a value, so
              that Spark does not retry it
    commit()  one commit under an idempotency key, so that a repeated commit is not applied twice
    abort()   after a task failed: written files are removed, and the lease lapses
"""

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import types as spark_types
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from icefield.ambient import SystemAmbient
from icefield.codec.manifest.rows import DataFiles
from icefield.commit.action import CommitTarget
from icefield.commit.open_write import HandedWrite, OpenWrite
from icefield.commit.operations.tables import TableVersion
from icefield.commit.validate.idempotency_key import check_idempotency_key, find_landed
from icefield.dml.verbs import OVERWRITE
from icefield.dml.write import TableWrite, open_write
from icefield.errors import IcefieldError, LeaseLost
from icefield.lake import Lake
from icefield.model.snapshot import MAIN, Snapshot
from icefield.parquet.write.conform import check_schema
from icefield.parquet.write.plan import WritePlan
from icefield.policy.inline import compact_inline
from icefield.spark.data_source.options import SourceOptions
from icefield.spark.types import schema_from_spark
from icefield.spark.write.task import WriteTask
from icefield.spark.write.write import files_of_tasks, remove_files_of_write
from icefield.storage.store import Store


@dataclass
class TaskResult(WriterCommitMessage):
    """The files of one task, or its error; as returned by `WriteTask`."""

    files: bytes | None
    error: bytes | None


@dataclass
class SourceWriter(DataSourceArrowWriter):
    """One write; it is pickled to executors, and back to the driver for the commit.

    base: the version that the change starts from, pickled, because tasks do not need it.
    """

    options: SourceOptions
    overwrites: bool
    by_partition: bool
    target: CommitTarget
    logical: spark_types.StructType
    base: bytes
    store: Store
    plan: WritePlan
    handed: HandedWrite
    is_done: bool

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows."""
        if self.is_done:
            return TaskResult(None, None)
        try:
            with self.handed.renewed(self.store, SystemAmbient()):
                (result,) = (batch.to_pylist()[0] for batch in WriteTask(self.plan, self.store)(iterator))
        except LeaseLost as error:
            return TaskResult(None, pickle.dumps(error))
        return TaskResult(**result)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks as one snapshot."""
        if self.is_done:
            return
        known: TableVersion = pickle.loads(self.base)  # noqa: S301 - our own driver pickled it
        with self.options.open_lake() as lake:
            write = _begin(lake, self.options, known, self.target, self.logical)
            # The same files may have been committed by an earlier call: nothing must be removed before this is known.
            if find_landed(write.head.load().metadata, self.target.ref, self.target.idempotency_key) is not None:
                return
            write.opened.append(OpenWrite(lake.backend, self.handed))
            with self._removing_files():
                results = [message for message in messages if isinstance(message, TaskResult)]
                files = files_of_tasks(self.store, self.plan, ((r.files or b"", r.error) for r in results))
            made = self._commit(write, files)
            compact_inline(write.head, self.target.ref, made)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove the files of all tasks.

        Spark also calls this after a failed commit, when every task has a result. Only the commit itself knows whether
        its files may be removed: it may have succeeded although the response was lost.
        """
        if not self.is_done and None in messages:
            remove_files_of_write(self.store, self.plan)

    def _commit(self, write: TableWrite, files: DataFiles) -> Snapshot | None:
        """Commit files; remove them if that certainly failed, except those that another call has committed."""
        if self.overwrites and self.by_partition:
            return write.commit(lambda: write.replacing_partitions(files, write.plan_by_partition()), files)
        if self.overwrites:
            return write.commit(lambda: write.replacing(files, write.read_set(write.plan(), OVERWRITE)), files)
        return write.append_files(files)

    @contextmanager
    def _removing_files(self) -> Iterator[None]:
        """Remove written files if a task returned an error."""
        try:
            yield
        except IcefieldError as error:
            if error.cleanable:
                remove_files_of_write(self.store, self.plan)
            raise


def begin_write(options: SourceOptions, logical: spark_types.StructType, *, overwrite: bool) -> SourceWriter:
    """Check what can be checked before any task runs, and fix the version that the change starts from."""
    by_partition = options.replaces_partitions
    with options.open_lake() as lake:
        known, opened = open_write(lake.head(options.table), options.branch)
        if options.branch != MAIN:
            known.metadata.ref_head(options.branch)  # raises an error that lists the refs
        idempotency_key = options.given.get("idempotency-key") or f"spark-{lake.ambient.random_uuid().hex}"
        check_idempotency_key(idempotency_key)
        target = CommitTarget(options.branch, idempotency_key)
        write = replace(_begin(lake, options, known, target, logical), opened=opened)
        check_schema(schema_from_spark(logical), write.base.schema)
        plan, is_done = write.write_plan(moves_rows=False), write.landed is not None
        if is_done:
            write.opened[0].close()
        return SourceWriter(
            options=options,
            overwrites=overwrite,
            by_partition=by_partition,
            target=target,
            logical=logical,
            base=pickle.dumps(known),
            store=lake.store,
            plan=plan,
            handed=write.opened[0].hand_over(known.metadata),
            is_done=is_done,
        )


def _begin(
    lake: Lake, options: SourceOptions, known: TableVersion, target: CommitTarget, logical: spark_types.StructType
) -> TableWrite:
    """Return the change, which is the same each time it is started on the same version."""
    head = lake.head(options.table, known)
    write = TableWrite(head, target, known.metadata, options.write_properties)
    return write.merging(logical)[0] if options.merges_schema else write
