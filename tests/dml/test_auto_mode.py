"""Mode auto: each touched file ends in its own way, and what was copied must not have changed since."""

from typing import Any

import pyarrow as pa
import pytest
from tests.commit.racing import race

from icefield.engine import file_ends
from icefield.errors import ConcurrentChange
from icefield.lake import Lake
from icefield.table.table import Table

LARGE, SMALL = range(10), range(100, 103)  # the ids of two files: one row is a tenth of one, and a third of the other


@pytest.fixture(autouse=True)
def _count_shares_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_ends, "SMALL_FILE_BYTES", 0)


def make(lake: Lake, version: int = 3) -> Table:
    table = lake.create_table("t.t", "id long, n long", format_version=version)
    for ids in (LARGE, SMALL):
        table.append(pa.table({"id": list(ids), "n": [0] * len(ids)}))
    return table


def rows_of(table: Table) -> dict[int, int]:
    read = table.scan().to_arrow().read_all()
    assert read.num_rows == len(set(read["id"].to_pylist()))
    return dict(zip(read["id"].to_pylist(), read["n"].to_pylist(), strict=True))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_file_is_dropped_rewritten_or_gets_a_delete_file(memory_lake: Lake, version: int) -> None:
    table = make(memory_lake, version)
    result = table.update({"n": 1}, "id in (3, 101)", mode="auto")
    vectors = int(version > 1)
    assert (result.files_rewritten, result.files_dropped, result.delete_files_added) == (2 - vectors, 0, vectors)
    assert result.rows_copied == 2 + (0 if vectors else 9)
    gone = table.delete("id >= 100 and n < 2", mode="auto")
    assert (gone.files_dropped, gone.rows_deleted) == (1, 3)
    assert rows_of(table) == {i: int(i == 3) for i in LARGE}


@pytest.mark.parametrize(("rival", "lands"), [("id = 4", True), ("id = 3", False), ("id = 102", False)])
@pytest.mark.parametrize("version", [2, 3])
def test_a_concurrent_delete_conflicts_with_the_same_row_and_with_a_copied_file(
    memory_lake: Lake, rival: str, lands: bool, version: int
) -> None:
    table = make(memory_lake, version)

    def change() -> Any:
        return table.update({"n": 1}, "id in (3, 101)", mode="auto")

    def delete() -> Any:
        return memory_lake.table("t.t").delete(rival, mode="merge-on-read")

    gone = int(rival.removeprefix("id = "))
    everything = {*LARGE, *SMALL} - {gone}
    if lands:
        race(memory_lake, delete, change)
        assert rows_of(table) == {i: int(i in (3, 101)) for i in everything}
    else:
        with pytest.raises(ConcurrentChange, match="concurrently"):
            race(memory_lake, delete, change)
        assert rows_of(table) == dict.fromkeys(everything, 0)


def test_a_conflict_is_retried_on_the_new_version(memory_lake: Lake) -> None:
    table = make(memory_lake)
    race(
        memory_lake,
        lambda: memory_lake.table("t.t").update({"n": "n + 10"}, "id = 3", mode="merge-on-read"),
        lambda: table.update({"n": "n + 1"}, "id in (3, 101)", mode="auto", retry_conflicts=1),
    )
    assert (rows_of(table)[3], rows_of(table)[101], rows_of(table)[4]) == (11, 1, 0)


def test_two_racing_merges_do_not_both_insert_a_key(memory_lake: Lake) -> None:
    table = make(memory_lake)
    new = pa.table({"id": [500], "n": [5]})

    def insert() -> Any:
        return memory_lake.table("t.t").merge(new, on=["id"]).when_not_matched().insert_all().execute(retry_conflicts=1)

    race(memory_lake, insert, insert)
    assert rows_of(table)[500] == 5
    other = pa.table({"id": [501], "n": [5]})

    def append() -> Any:
        return memory_lake.table("t.t").append(other)

    with pytest.raises(ConcurrentChange):
        race(memory_lake, append, table.merge(other, on=["id"]).when_not_matched().insert_all().execute)
