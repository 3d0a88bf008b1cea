"""Plan scans in executors, if many manifests must be decoded.

The rule is measured: a job costs as much as decoding ten manifests of 10,000 entries before it does anything, and each
worker imports the decoder first. So there must be a hundred of them, four cores, and an active session: none is started
for planning. There is one task per core, not one per manifest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from icefield.codec.manifest.rows import Manifests
from icefield.plan.metrics import ScanMetrics
from icefield.plan.plan import PlanBatch, PlannedBatch
from icefield.plan.planned_files import PlannedFiles

LEAST_COLD_BYTES = 300 * 1024 * 1024  # a hundred manifests of 10,000 entries
LEAST_CORES = 4
_WORK = "number int, manifests binary"
_DONE = "number int, files binary, metrics binary"
_DONE_ARROW = pa.schema([("number", pa.int32()), ("files", pa.binary()), ("metrics", pa.binary())])


@dataclass(frozen=True)
class SparkCluster:
    """The executors of a session."""

    session: SparkSession
    least_cold_bytes: int = LEAST_COLD_BYTES
    least_cores: int = LEAST_CORES

    def is_worthwhile(self, cold_bytes: int) -> bool:
        return cold_bytes >= self.least_cold_bytes and self._cores() >= self.least_cores

    def run(self, work: PlanBatch, batches: Sequence[Manifests]) -> list[PlannedBatch] | None:
        rows = [(number, _encode(batch.table)) for number, batch in enumerate(batches)]
        try:
            # By number: rows of one task are consecutive, so that tasks get equal shares.
            given = self.session.createDataFrame(rows, _WORK).repartitionByRange(self._cores(), "number")
            done = given.mapInArrow(PlanTask(work), _DONE).collect()
        except PySparkException:
            return None
        return [
            (PlannedFiles(_decode(row["files"])), msgspec.msgpack.decode(row["metrics"], type=ScanMetrics))
            for row in sorted(done, key=lambda row: row["number"])
        ]

    def _cores(self) -> int:
        try:
            return int(self.session.sparkContext.defaultParallelism)
        except PySparkException:  # not available in a Spark Connect session
            return 0


@dataclass(frozen=True)
class PlanTask:
    """Runs in an executor's Python worker; its input is batches of manifests."""

    work: PlanBatch

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                files, metrics = self.work(Manifests(_decode(row["manifests"])))
                done = {
                    "number": row["number"],
                    "files": _encode(files.table),
                    "metrics": msgspec.msgpack.encode(metrics),
                }
                yield pa.RecordBatch.from_pylist([done], _DONE_ARROW)


def planning_executor() -> SparkCluster | None:
    """Return the planning executor of the active session; None if there is none."""
    try:
        return SparkCluster(SparkSession.active())
    except PySparkRuntimeError:
        return None


def _encode(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _decode(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
