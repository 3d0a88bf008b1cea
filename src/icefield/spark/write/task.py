"""The writing task in an executor's Python worker; it imports as little as possible, since it starts often."""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.taskcontext import TaskContext

from icefield.codec.manifest.rows import DataFiles
from icefield.errors import IcefieldError
from icefield.parquet.write.conform import conform_batch
from icefield.parquet.write.plan import WritePlan
from icefield.parquet.write.string_check import check_text
from icefield.parquet.write.write import DataWriter
from icefield.storage.store import Store

RESULT_SCHEMA = "files binary, error binary"
Names = tuple[str, ...]


@dataclass(frozen=True)
class WriteTask:
    """Runs in an executor's Python worker.

    names: the column names of each source frame, new rows first; None if rows have their own names.
    """

    plan: WritePlan
    store: Store
    names: tuple[Names, ...] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        attempt = f"{context.partitionId():05d}-{context.taskAttemptId()}" if context else "00000-0"
        writer = DataWriter(self.plan, self.store, attempt)
        yield packed_files(writer, map(self._named, batches))

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.num_rows == 0:
            return batch
        if self.names is None:
            return self._checked(batch)
        if len(self.names) == 1:
            return self._checked(batch.rename_columns(list(self.names[0])))
        return self._interleaved(batch, self.names)

    def _checked(self, new: pa.RecordBatch) -> pa.RecordBatch:
        check_text(new)
        if self.plan.check is not None:
            self.plan.check.check(new)
        return new

    def _interleaved(self, batch: pa.RecordBatch, names: tuple[Names, ...]) -> pa.RecordBatch:
        """Return rows of several frames as rows of the table, in their order."""
        parts, positions = [], []
        for number, (column, own) in enumerate(zip(batch.columns, names, strict=True)):
            at = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
            if len(at):
                rows = pa.RecordBatch.from_arrays(column.take(pa.array(at)).flatten(), names=list(own))
                # Rows of the first frame are new; those of the others are moved.
                parts.append(conform_batch(self._checked(rows) if number == 0 else rows, self.plan.schema))
                positions.append(at)
        return _in_order(parts, positions)


def packed_files(writer: DataWriter, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """Write rows, and return the row of a task, with its files or the error to raise."""
    try:
        for batch in batches:
            writer.write(batch)
        return _result(files=_as_stream(writer.close()))
    except IcefieldError as error:
        writer.abort()
        if error.retryable:
            raise
        return _result(error=pickle.dumps(error))
    except BaseException:
        writer.abort()
        raise


def _in_order(parts: list[pa.RecordBatch], positions: list[np.ndarray]) -> pa.RecordBatch:
    if len(parts) == 1:
        return parts[0]
    columns = [pa.concat_arrays(list(arrays)) for arrays in zip(*(part.columns for part in parts), strict=True)]
    order = pa.array(np.argsort(np.concatenate(positions)))
    return pa.RecordBatch.from_arrays(columns, schema=parts[0].schema).take(order)


def _result(files: bytes | None = None, error: bytes | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([files], pa.binary()), pa.array([error], pa.binary())], names=["files", "error"]
    )


def _as_stream(files: DataFiles) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, files.table.schema) as stream:
        stream.write_table(files.table)
    return bytes(sink.getvalue())
