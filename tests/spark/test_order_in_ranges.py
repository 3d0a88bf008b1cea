"""Rows that do not fit in the memory of a task are put in order in ranges, which Spark moves in blocks."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.test_row_order import lineage, make, some_rows

from icefield.codec.manifest.rows import DataFiles
from icefield.errors import MissingFile
from icefield.parquet.write.row_order import RowOrder
from icefield.spark.session.arrow_frame import ROWS_OF_BATCH
from icefield.spark.write import ordered
from icefield.table.table import Table

pytestmark = pytest.mark.spark

ORDERS: tuple[dict[str, Any], ...] = (
    {"order_by": ["b", "s desc nulls last", "d", "t desc", "id"]},
    {"order_by": ["bucket(4, s)", "day(t) desc", "x nulls last"]},
    {"cluster_by": ["x", "s"]},
)
SMALL_FILES = {"target-file-size-bytes": "40000"}


@pytest.fixture(autouse=True)
def in_small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tasks sort few bytes at once, so that a small table has many ranges."""
    for name, size in {"RANGE_BYTES": 8_000, "MOST_RANGE_BYTES": 32_000, "BLOCK_BYTES": 16_000}.items():
        monkeypatch.setattr(ordered, name, size)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[RowOrder | None]:
    """The orders in which rows were put in ranges; None if Spark sorted them."""
    found: list[RowOrder | None] = []
    real = ordered.FilesInOrder.write

    def write(work: ordered.FilesInOrder, tasks: Any) -> DataFiles | None:
        done = real(work, tasks)
        found.append(None if done is None else work.order)
        return done

    monkeypatch.setattr(ordered.FilesInOrder, "write", write)
    return found


def check_order(table: Table, order: RowOrder) -> None:
    """Check that the files of each partition, one after another, are sorted."""
    schema = table.metadata.schema
    parts: dict[str, list[pa.Table]] = {}
    for file in table.scan().files().to_pylist():
        path = file["file_path"].removeprefix("file://")
        parts.setdefault(file["partition"], []).append(pq.read_table(path, partitioning=None))
    for files in parts.values():
        first = order.indices(pa.concat_tables(file.slice(0, 1) for file in files), schema)
        assert first is not None
        found = order.indices(pa.concat_tables(files[at] for at in first.to_pylist()), schema)
        assert found is not None
        assert (found.to_numpy() == np.arange(len(found))).all()


@pytest.mark.parametrize("partitioned", [False, True])
def test_files_have_the_same_rows_and_follow_each_other_in_the_order(
    tmp_path: Path, spark: SparkSession, used: list[RowOrder | None], *, partitioned: bool
) -> None:
    """Several ranges to a file, and several files."""
    table = make(tmp_path, some_rows(3_000), partition_by=["p"] if partitioned else [])
    table.delete("id in (3, 77)", mode="merge-on-read")
    before, batches = lineage(table), spark.conf.get(ROWS_OF_BATCH)
    for how in ORDERS:
        done = table.compact(**how, engine="spark", options=SMALL_FILES)
        assert done.groups_done == (2 if partitioned else 1)
        assert done.files_added > 2
        assert lineage(table) == before
        order = used[-1]
        assert order is not None
        check_order(table, order)
    assert spark.conf.get(ROWS_OF_BATCH) == batches


def test_too_many_rows_with_one_place_are_left_to_spark(
    tmp_path: Path, spark: SparkSession, used: list[RowOrder | None]
) -> None:
    table = make(tmp_path, some_rows(2_000))
    before = lineage(table)
    table.compact(order_by=["b"], engine="spark", options=SMALL_FILES)
    assert (used, lineage(table)) == ([None], before)


def test_an_error_of_a_task_is_raised_and_leaves_no_file(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path, some_rows(2_000))
    path = Path(table.scan().files()["file_path"].to_pylist()[1].removeprefix("file://"))
    data, sampled = path.read_bytes(), ordered.FilesInOrder._pieces
    files = set(path.parent.iterdir())

    def lose(work: ordered.FilesInOrder, large: Any) -> Any:
        pieces = sampled(work, large)
        path.unlink()
        return pieces

    monkeypatch.setattr(ordered.FilesInOrder, "_pieces", lose)
    with pytest.raises(MissingFile, match=path.name):
        table.compact(order_by=["s"], engine="spark", options=SMALL_FILES)
    path.write_bytes(data)
    assert set(path.parent.iterdir()) == files
    assert table.count() == 2_000
