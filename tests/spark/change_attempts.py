"""Tasks of row-level changes that fail, are slow or lose their executor after they have written something.

    for each verb and fault: the rows once, the counts of the result, and no file twice

The store disturbs the first attempt of a task, as soon as it has begun a file. See test_write_attempts.py.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from icefield.dml.result import ChangeResult
from icefield.lake import Lake
from icefield.spark.change import range_merge, small_merge
from icefield.storage.local import LocalStore
from icefield.storage.local_new_file import LocalNewFile
from icefield.table.table import Table

FILES, ROWS_OF_A_FILE = 4, 500
ROWS = FILES * ROWS_OF_A_FILE
NEW = 100  # rows that the source has in addition
FAULTS = ("fail", "slow", "kill")


class FaultyStore(LocalStore):
    """Disturbs tasks that have begun a file. marks: a directory, where attempts leave marks."""

    def __init__(self, marks: str, fault: str) -> None:
        super().__init__()
        self.marks, self.fault = marks, fault

    def open_new(self, location: str) -> LocalNewFile:
        made = super().open_new(location)
        self._disturb()
        return made

    def put_new(self, location: str, data: bytes) -> None:
        super().put_new(location, data)
        self._disturb()

    def _disturb(self) -> None:
        context = TaskContext.get()
        if context is None:
            return
        first = context.attemptNumber() == 0
        if self.fault == "fail" and first:
            self._mark(f"failed-{context.partitionId()}")
            raise OSError("the first attempt fails")
        if self.fault == "slow" and first and self._mark("slow"):
            while True:  # until Spark kills it, because the second attempt has ended
                time.sleep(0.1)
        if self.fault == "kill" and self._mark("killed"):
            os.kill(_parent_of(_parent_of(os.getpid())), signal.SIGKILL)

    def _mark(self, name: str) -> bool:
        """Return whether it is the first to do so."""
        try:
            Path(self.marks, name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def check_changes(lake: Lake, spark: SparkSession, directory: Path, cases: Iterable[tuple[str, str, str]]) -> None:
    """Run changes with faults, and print what is wrong. cases: verb, mode, fault."""
    # Small merges write nothing in tasks.
    small_merge.MOST_FILES = -1
    range_merge.GROUP_BYTES = 1
    # One task for each data file.
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    for verb, mode, fault in cases:
        # Upserts by ranges of keys, merges by a shuffle.
        range_merge.MOST_RANGED_FILES = 0 if verb == "merge" else 10_000
        marks = directory / f"{verb} {mode} {fault}"
        marks.mkdir()
        table = lake.create_table(
            f"changes.{verb}_{mode}_{fault}".replace("-", "_"), "id long, n long", format_version=3
        )
        for at in range(FILES):
            ids = range(at * ROWS_OF_A_FILE, (at + 1) * ROWS_OF_A_FILE)
            table.append(pa.table({"id": ids, "n": [0] * ROWS_OF_A_FILE}), engine="local")
        disturbed = Lake(lake.backend.on(FaultyStore(str(marks), fault)), lake.warehouse).table(table.name)
        run, expected = VERBS[verb]
        done = run(disturbed, spark, mode)
        wrong = list(_find_wrong(table, done, expected))
        print(verb, mode, fault, "disturbed" if any(marks.iterdir()) else "NOT DISTURBED", wrong, flush=True)


def _find_wrong(table: Table, done: ChangeResult, expected: dict[int, int]) -> Iterator[str]:
    rows = table.scan().to_arrow().read_all()
    found = list(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True))
    if sorted(found) != sorted(expected.items()):
        yield f"rows: {list((Counter(found) - Counter(expected.items())).items())[:5]} too many, {len(found)} in all"
    counts = (done.rows_updated, done.rows_deleted, done.rows_inserted)
    old = dict.fromkeys(range(ROWS), 0)
    updated = sum(n != old[key] for key, n in expected.items() if key in old)
    if counts != (updated, len(old.keys() - expected.keys()), len(expected.keys() - old.keys())):
        yield f"counts: {counts}"
    files = table.scan().files()["file_path"].to_pylist()
    if len(files) != len(set(files)):
        yield "a data file twice"
    vectors = table.inspect("delete_files").to_arrow().read_all()["referenced_data_file"].to_pylist()
    if len(vectors) != len(set(vectors)):
        yield "two vectors of one data file"
    if len(vectors) != done.delete_files_added:
        yield f"{len(vectors)} vectors, {done.delete_files_added} in the result"


def _parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _source(spark: SparkSession) -> Any:
    """Every second row of the table, and new rows; from Python workers, in several tasks."""
    return spark.range(0, ROWS + 2 * NEW, 2, 4).mapInArrow(_with_ones, "id long, n long")


def _with_ones(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([batch.column(0), pa.array([1] * batch.num_rows)], names=["id", "n"])


def _upsert(table: Table, spark: SparkSession, mode: str) -> ChangeResult:
    return table.upsert(_source(spark), ["id"], mode=mode, engine="spark")


def _merge(table: Table, spark: SparkSession, mode: str) -> ChangeResult:
    rows = pa.table({"id": range(0, ROWS + 2 * NEW, 2), "n": [1] * (ROWS // 2 + NEW)})
    begun = table.merge(rows, "target.id = source.id", mode=mode, engine="spark")
    begun = begun.when_matched("target.id % 4 = 0").delete().when_matched().update({"n": "target.n + source.n"})
    return begun.when_not_matched().insert_all().execute()


VERBS: dict[str, tuple[Callable[[Table, SparkSession, str], ChangeResult], dict[int, int]]] = {
    "delete": (
        lambda table, spark, mode: table.delete("id % 2 = 0", mode=mode, engine="spark"),
        dict.fromkeys(range(1, ROWS, 2), 0),
    ),
    "update": (
        lambda table, spark, mode: table.update({"n": "n + 1"}, "id % 2 = 0", mode=mode, engine="spark"),
        {key: int(key % 2 == 0) for key in range(ROWS)},
    ),
    "merge": (
        _merge,
        dict.fromkeys(range(1, ROWS, 2), 0)
        | dict.fromkeys(range(2, ROWS, 4), 1)
        | dict.fromkeys(range(ROWS, ROWS + 2 * NEW, 2), 1),
    ),
    "upsert": (
        _upsert,
        {key: int(key % 2 == 0) for key in range(ROWS)} | dict.fromkeys(range(ROWS, ROWS + 2 * NEW, 2), 1),
    ),
}
