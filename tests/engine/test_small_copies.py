"""Copy-on-write in many small files: the rows that remain are written together, by partition."""

from pathlib import Path

import pyarrow as pa
import pytest

from icefield import InvalidInput, Lake, Table

COPY_ON_WRITE = {"write.delete.mode": "copy-on-write", "write.update.mode": "copy-on-write"}
FILES = 5


def small_files(lake: Lake, *, version: int = 2, order: tuple[str, ...] = ()) -> Table:
    """Return a table with a file of three rows for each append, in two partitions."""
    table = lake.create_table(
        "s.t",
        "id long, p long",
        partition_by=["p"],
        order_by=order,
        properties=COPY_ON_WRITE,
        format_version=version,
    )
    for at in range(FILES):
        table.append(pa.table({"id": [3 * at, 3 * at + 1, 3 * at + 2], "p": [at % 2] * 3}))
    return table


def test_the_rows_that_remain_of_small_files_are_one_file_for_each_partition(memory_lake: Lake) -> None:
    table = small_files(memory_lake)
    result = table.delete("id % 3 = 0")
    assert (result.rows_deleted, result.rows_copied, result.files_rewritten) == (FILES, 2 * FILES, FILES)
    assert len(table.scan().files()) == 2
    assert sorted(row["id"] for row in table.scan()) == [i for i in range(3 * FILES) if i % 3]


def test_files_of_a_sorted_table_are_rewritten_one_by_one(memory_lake: Lake) -> None:
    table = small_files(memory_lake, order=("id",))
    table.delete("id % 3 = 0")
    assert len(table.scan().files()) == FILES


def test_rows_that_are_written_together_keep_their_ids(memory_lake: Lake) -> None:
    table = small_files(memory_lake, version=3)
    before = {row["id"]: row["_row_id"] for row in table.scan(select=["id", "_row_id"])}
    table.delete("id % 3 = 0")
    after = {row["id"]: row["_row_id"] for row in table.scan(select=["id", "_row_id"])}
    assert after == {key: row_id for key, row_id in before.items() if key % 3}


def test_a_change_that_fails_leaves_no_file(lake: Lake, tmp_path: Path) -> None:
    table = small_files(lake)
    known = set(tmp_path.rglob("*.parquet"))
    # Rows of the first file are written before the division fails in the last one.
    with pytest.raises(InvalidInput):
        table.update({"id": "id % (id - 13)"}, where="id % 3 = 1")
    assert set(tmp_path.rglob("*.parquet")) == known
