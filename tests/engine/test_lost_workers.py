"""A Python worker that is killed in the middle of a verb: one clear error, and the table is as before."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.taskcontext import TaskContext
from tests.engine.test_other_disks import VERBS
from tests.spark.merge_paths import MergePath, take_path

from icefield.errors import WorkerLost
from icefield.lake import Lake
from icefield.storage.local import LocalStore
from icefield.storage.local_new_file import LocalNewFile

pytestmark = pytest.mark.spark


class DeadlyStore(LocalStore):
    """A store that kills the worker that writes to it."""

    def open_new(self, location: str) -> LocalNewFile:
        if TaskContext.get() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().open_new(location)


@pytest.mark.parametrize("path", [MergePath.RANGES, MergePath.SHUFFLE])
def test_a_worker_that_is_killed_while_it_writes(
    lake: Lake, spark: SparkSession, path: MergePath, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    take_path(monkeypatch, path)
    table = lake.create_table("a.t", "id long, x string")
    for first in (0, 3):
        table.append(pa.table({"id": pa.array(range(first, first + 3), pa.int64()), "x": ["old"] * 3}))
    before, files = table.snapshots(), set(tmp_path.rglob("*.parquet"))
    deadly = Lake(lake.backend.on(DeadlyStore()), lake.warehouse).table("a.t")
    for verb, change in VERBS.items():
        with pytest.raises(WorkerLost, match="a Python worker of Spark ended in the middle of its work"):
            change(deadly, spark)
        assert (table.snapshots(), set(tmp_path.rglob("*.parquet"))) == (before, files), verb


def test_a_source_whose_worker_is_killed(lake: Lake, spark: SparkSession) -> None:
    def die(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    table = lake.create_table("a.t", "id long, x string")
    table.append(pa.table({"id": [1], "x": ["old"]}))
    with pytest.raises(WorkerLost):
        table.upsert(spark.sql("SELECT 1L AS id, 'new' AS x").mapInArrow(die, "id long, x string"), ["id"])
    assert len(table.snapshots()) == 1
