"""Executors with disks of their own: what they write is not committed, because this process does not see it."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.taskcontext import TaskContext

from icefield.errors import Unsupported
from icefield.lake import Lake
from icefield.spark.change import small_merge
from icefield.storage.local import LocalStore
from icefield.storage.local_new_file import LocalNewFile

pytestmark = pytest.mark.spark


class DiskOfEach(LocalStore):
    """A store that executors have another directory of; they read that of this process."""

    def open_new(self, location: str) -> LocalNewFile:
        return super().open_new(self._here(location))

    def put_new(self, location: str, data: bytes) -> None:
        super().put_new(self._here(location), data)

    def _here(self, location: str) -> str:
        return location if TaskContext.get() is None else location.replace("/lake/", "/lake/elsewhere/")


ROWS = pa.table({"id": pa.array([1, 7], pa.int64()), "x": ["new", "new"]})
VERBS: dict[str, Any] = {
    "append of a DataFrame": lambda table, spark: table.append(spark.range(3)),
    "delete": lambda table, spark: table.delete("id = 2", engine="spark"),
    "upsert": lambda table, spark: table.upsert(ROWS, on=["id"], engine="spark"),
    "overwrite": lambda table, spark: table.overwrite(ROWS, engine="spark"),
    "overwrite of a filter": lambda table, spark: table.overwrite(ROWS, where="id < 9", engine="spark"),
    "compact": lambda table, spark: table.compact(engine="spark"),
}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_files_that_this_process_does_not_see_are_not_committed(
    lake: Lake, spark: SparkSession, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_merge, "MOST_FILES", 0)  # the files of a small merge are written by this process
    modes = {"write.delete.mode": mode, "write.merge.mode": mode}
    table = lake.create_table("a.t", "id long, x string", properties=modes)
    for first in (0, 3):
        table.append(pa.table({"id": pa.array(range(first, first + 3), pa.int64()), "x": ["old"] * 3}))
    before, here = table.snapshots(), _files(lake)
    apart = Lake(lake.backend.on(DiskOfEach()), lake.warehouse).table("a.t")
    for verb, change in VERBS.items():
        with pytest.raises(Unsupported, match=r"executors wrote \S+, but this process does not see it"):
            change(apart, spark)
        assert (table.snapshots(), _files(lake)) == (before, here), verb
    assert apart.scan(where="x = 'old'").count(engine="spark") == 6


def _files(lake: Lake) -> set[str]:
    root = Path(lake.warehouse.removeprefix("file://"))
    found = (os.path.relpath(path, root) for path in root.rglob("*.parquet"))
    return {path for path in found if not path.startswith("elsewhere")}
