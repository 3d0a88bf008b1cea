"""What a writing task runs in an executor's Python worker; it loads as little as it can, for it starts often."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.taskcontext import TaskContext

from icefield.errors import IcefieldError
from icefield.parquet.write import DataWriter, WritePlan
from icefield.storage.store import Store

RESULT_SCHEMA = "files binary, error binary"


@dataclass(frozen=True)
class WriteTask:
    """What runs in an executor's Python worker."""

    plan: WritePlan
    store: Store

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        attempt = f"{context.partitionId():05d}-{context.taskAttemptId()}" if context else "00000-0"
        writer = DataWriter(self.plan, self.store, attempt)
        try:
            for batch in batches:
                writer.write(batch)
            yield _result(files=_as_stream(writer.close()))
        except IcefieldError as error:
            writer.abort()
            if error.retryable:
                raise
            yield _result(error=pickle.dumps(error))
        except BaseException:
            writer.abort()
            raise


def _result(files: bytes | None = None, error: bytes | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([files], pa.binary()), pa.array([error], pa.binary())], names=["files", "error"]
    )


def _as_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
