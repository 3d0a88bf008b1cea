"""`write.delete.granularity`: position delete files of one data file, or of a whole partition."""

import io
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.commit.racing import files_of, race, reachable

import icefield
from icefield.errors import ConcurrentChange, InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table

BY_PARTITION = {
    "write.delete.granularity": "partition",
    "write.delete.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}
Row = tuple[int, str, int]


def rows(*given: Row) -> pa.Table:
    return pa.table({name: [r[at] for r in given] for at, name in enumerate(("id", "p", "n"))})


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all()["id"].to_pylist())


def delete_files_of(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.inspect("delete_files").to_arrow().read_all().to_pylist()
    return found


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


def make(lake: Lake, version: int = 2, partition_by: tuple[str, ...] = ("p",)) -> Table:
    """Partition a has three files, b has two."""
    table = lake.create_table(
        "t.t",
        "id long, p string, n long",
        partition_by=partition_by,
        properties=BY_PARTITION,
        format_version=version,
    )
    for first in (0, 10, 20):
        table.append(rows(*((first + at, "a", at) for at in range(5))))
    for first in (30, 40):
        table.append(rows(*((first + at, "b", at) for at in range(5))))
    return table


def test_one_file_has_the_sorted_positions_of_all_data_files_of_a_partition(lake: Lake) -> None:
    table = make(lake)
    table.delete("n in (1, 3)")
    assert table.snapshots()[-1].summary["added-position-delete-files"] == "2"
    assert ids_of(table) == [first + at for first in (0, 10, 20, 30, 40) for at in (0, 2, 4)]
    partitions = set()
    for file in delete_files_of(table):
        held = pq.read_table(io.BytesIO(table._context.store.read(file["file_path"])))
        pairs = list(zip(held["file_path"].to_pylist(), held["pos"].to_pylist(), strict=True))
        assert pairs == sorted(pairs)
        assert (len(pairs), file["record_count"]) == (file["record_count"], len(pairs))
        assert file["referenced_data_file"] is None
        partitions.add(file["partition"]["p"])
    assert partitions == {"a", "b"}
    assert files_of(lake) >= reachable(table)


def test_a_partition_with_one_changed_file_names_it(lake: Lake) -> None:
    table = make(lake)
    table.delete("id = 1")
    (file,) = delete_files_of(table)
    assert file["referenced_data_file"] in table.scan().files()["file_path"].to_pylist()


def test_an_unpartitioned_table_has_one_file_for_all(lake: Lake) -> None:
    table = make(lake, partition_by=())
    table.delete("n = 1")
    assert [f["record_count"] for f in delete_files_of(table)] == [5]
    assert len(ids_of(table)) == 20


def test_the_default_is_a_file_for_each_data_file(lake: Lake) -> None:
    table = make(lake)
    table.set_properties({}, removals=["write.delete.granularity"])
    table.delete("n = 1")
    assert len(delete_files_of(table)) == 5


def test_version_3_has_vectors_whatever_it_says(lake: Lake) -> None:
    table = make(lake, version=3)
    table.delete("n = 1")
    assert {(f["file_format"], f["record_count"]) for f in delete_files_of(table)} == {("PUFFIN", 1)}
    assert len(delete_files_of(table)) == 5


def test_an_upsert_and_a_second_delete_add_to_it(lake: Lake) -> None:
    table = make(lake)
    table.delete("n = 1")
    table.upsert(rows((0, "b", 9), (10, "b", 9)), on=["id"])
    table.delete("n = 2")
    assert ids_of(table) == sorted([0, 3, 4, 10, 13, 14, 20, 23, 24, 30, 33, 34, 40, 43, 44])
    table.compact()
    assert len(ids_of(table)) == 15


@pytest.mark.parametrize("second", ["delete", "upsert", "compact", "upgrade"])
def test_other_rows_of_the_same_files_do_not_conflict(lake: Lake, second: str) -> None:
    table = make(lake)

    def other() -> None:
        theirs = lake.table("t.t")
        match second:
            case "delete":
                theirs.delete("n = 2")
            case "upsert":
                theirs.upsert(rows((2, "a", 2), (12, "a", 2)), on=["id"])
            case "compact":
                theirs.append(rows((50, "c", 2)))
            case _:
                theirs.upgrade_format_version(3)

    race(lake, other, lambda: table.delete("n in (1, 3)"))
    left = [at for at in (0, 2, 4) if second != "delete" or at != 2]
    expected = [first + at for first in (0, 10, 20, 30, 40) for at in left]
    assert ids_of(table) == sorted([*expected, *([50] if second == "compact" else [])])
    if second == "upgrade":
        assert {f["file_format"] for f in delete_files_of(table)} == {"PUFFIN"}
        assert len(delete_files_of(table)) == 5
    assert files_of(lake) >= reachable(table)


def test_the_same_row_of_one_of_the_files_is_a_conflict(lake: Lake) -> None:
    table = make(lake)
    with pytest.raises(ConcurrentChange, match="concurrently deleted or changed"):
        race(
            lake,
            lambda: lake.table("t.t").delete("id in (11, 12)"),
            lambda: table.delete("id in (1, 11)"),
        )
    assert len(ids_of(table)) == 23


def test_compaction_moves_the_deletes_of_a_shared_file(lake: Lake) -> None:
    table = make(lake)
    race(lake, lambda: lake.table("t.t").delete("n in (1, 3)"), table.compact)
    assert ids_of(table) == [head + at for head in (0, 10, 20, 30, 40) for at in (0, 2, 4)]


@pytest.mark.parametrize(("where", "outcome"), [("id = 41", "lands"), ("id = 14", "fails")])
def test_a_rewrite_conflicts_only_with_deletes_of_its_own_partition(lake: Lake, where: str, outcome: str) -> None:
    """Deletes of another partition do not apply to the files that are rewritten."""
    table = make(lake)
    table.set_properties({"write.delete.mode": "copy-on-write"})

    def other() -> None:
        theirs = lake.table("t.t")
        theirs.set_properties({"write.delete.mode": "merge-on-read"})
        theirs.delete("id in (1, 22)")

    def mine() -> None:
        table.delete(where)

    if outcome == "lands":
        race(lake, other, mine)
        assert len(ids_of(table)) == 22
    else:
        with pytest.raises(ConcurrentChange, match="concurrently deleted rows of files that it rewrites"):
            race(lake, other, mine)


@pytest.mark.parametrize(("where", "outcome"), [("id = 41", "lands"), ("id = 14", "fails")])
def test_the_same_is_true_of_equality_deletes_in_a_partition(
    lake: Lake, where: str, outcome: Literal["lands", "fails"]
) -> None:
    table = make(lake)
    table.set_properties({"write.delete.mode": "copy-on-write"})

    def other() -> None:
        lake.table("t.t").upsert(rows((1, "a", 9)), on=["id", "p"], mode="equality")

    if outcome == "lands":
        race(lake, other, lambda: table.delete(where))
        assert len(ids_of(table)) == 24
    else:
        with pytest.raises(ConcurrentChange, match="concurrently deleted rows of files that it rewrites"):
            race(lake, other, lambda: table.delete(where))


def test_another_word_is_refused(lake: Lake) -> None:
    with pytest.raises(InvalidInput, match=r"write.delete.granularity cannot be 'table'"):
        lake.create_table("t.x", "id long", properties={"write.delete.granularity": "table"})
