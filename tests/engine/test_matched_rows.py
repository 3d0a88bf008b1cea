"""The rows that match a source row of a MERGE: what is sent to the tasks that find them, and back."""

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

from icefield.engine.engine import Site
from icefield.engine.file_works import FindMatchedRows, MatchedRows, MergeRead
from icefield.errors import NeedsSpark
from icefield.expr.bind.bound import TRUE
from icefield.lake import Lake
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.task import FileTask
from icefield.plan.plan import plan_scan
from icefield.plan.versions import resolve_version
from icefield.table.table import Table

FILES, ROWS_OF_FILE = 4, 100


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    made = memory_lake.create_table("a.t", "id long, s string")
    for start in range(0, FILES * ROWS_OF_FILE, ROWS_OF_FILE):
        made.append(pa.table({"id": range(start, start + ROWS_OF_FILE), "s": ["x" * 100] * ROWS_OF_FILE}))
    return made


def work(table: Table, keys: pa.Array, most_bytes: int = 1 << 20) -> FindMatchedRows:
    return FindMatchedRows.of(MergeRead(table.metadata.schema, ["id", "s"], ("id",), TRUE), [keys], most_bytes)


def found(lake: Lake, table: Table, find: FindMatchedRows) -> Iterator[MatchedRows]:
    reading, base = lake.backend.reading, table.metadata
    plan = plan_scan(reading, base, resolve_version(base, None), TRUE)
    return find.run(plan.tasks(plan.files), Site(reading.store, TableFiles.of(base), "task"))


def test_no_other_rows_are_pickled(memory_lake: Lake, table: Table) -> None:
    """A slice is pickled with all that it is a slice of: all rows that match would be sent for each file."""
    keys = pa.array(range(100_000))
    find = work(table, keys.slice(0, FILES * ROWS_OF_FILE))
    assert len(pickle.dumps(find)) < keys.nbytes / 10
    parts = list(found(memory_lake, table, find))
    assert [part.rows.num_rows for part in parts] == [ROWS_OF_FILE] * FILES
    assert len(pickle.dumps(parts)) < 1.2 * sum(part.rows.nbytes for part in parts)


def test_a_task_that_finds_too_much_reads_no_other_file(memory_lake: Lake, table: Table) -> None:
    """Few rows may be large: what a task holds is bounded by bytes, while it reads."""
    reading, base = memory_lake.backend.reading, table.metadata
    plan = plan_scan(reading, base, resolve_version(base, None), TRUE)
    begun = list[str]()

    def tasks() -> Iterator[FileTask]:
        for task in plan.tasks(plan.files):
            begun.append(task.location)
            yield task

    find = work(table, pa.array(range(FILES * ROWS_OF_FILE)), most_bytes=150 * ROWS_OF_FILE)
    with pytest.raises(NeedsSpark, match="very many rows"):
        list(find.run(tasks(), Site(reading.store, TableFiles.of(base), "task")))
    assert len(begun) < FILES
