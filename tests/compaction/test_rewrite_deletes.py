"""Position deletes are rewritten as fewer files: the rows stay the same, and other writers do not notice."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.commit.racing import files_of, race, reachable
from tests.dml.test_convert_deletes import contents_of, delete_files_of, rows, rows_of

import icefield
from icefield.codec.puffin.puffin import decode_footer
from icefield.commit.actions.rewrite_deletes import RewriteDeletes
from icefield.compaction.delete_result import DeleteRewriteResult
from icefield.lake import Lake
from icefield.table.table import Table

BY_FILE = {"write.delete.mode": "merge-on-read", "write.delete.granularity": "file"}
BY_PARTITION = {**BY_FILE, "write.delete.granularity": "partition"}
LEFT = [(i, "a" if i < 10 else "b", 0) for i in (0, 4, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 18, 19)]


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


def make(lake: Lake, version: int, properties: dict[str, str] = BY_FILE, name: str = "t.t") -> Table:
    """Two partitions with two files each; six rows are deleted, each by a commit of its own."""
    table = lake.create_table(
        name, "id long, p string, n long", partition_by=["p"], properties=properties, format_version=version
    )
    for start in (0, 5, 10, 15):
        table.append(rows(*((i, "a" if i < 10 else "b", 0) for i in range(start, start + 5))))
    for i in (1, 2, 3, 5, 10, 11):
        table.delete(f"id = {i}")
    return table


def numbers(table: Table) -> list[int]:
    entries = table.inspect("entries").to_arrow().read_all().to_pylist()
    return [e["sequence_number"] for e in entries if e["data_file"]["content"] == 1 and e["status"] != 2]


def test_a_data_file_gets_one_delete_file(lake: Lake) -> None:
    table = make(lake, 2)
    before = files_of(lake)
    plan = table.rewrite_deletes(dry_run=True)
    assert (plan.plan.files, plan.plan.files_good, plan.plan.files_to_rewrite, plan.plan.files_dangling) == (6, 1, 5, 0)
    assert plan.as_dict()["reasons"] == {"several for one data file": 5}
    assert files_of(lake) == before
    newest = max(numbers(table))
    done = table.rewrite_deletes()
    assert rows_of(table) == LEFT
    assert sorted(f["record_count"] for f in delete_files_of(table)) == [1, 2, 3]
    assert all(f["referenced_data_file"] for f in delete_files_of(table))
    assert done.snapshot is not None
    summary = done.snapshot.summary
    assert (summary["operation"], summary["removed-delete-files"], summary["added-delete-files"]) == (
        "replace",
        "5",
        "2",
    )
    assert summary["total-position-deletes"] == "6"
    assert max(numbers(table)) == newest < table.metadata.last_sequence_number, "they are as old as what they replace"
    assert rows_of(table, as_of=done.snapshot.parent_snapshot_id) == LEFT
    again = table.rewrite_deletes()
    assert (again.snapshots, again.plan.is_empty) == ((), True)
    assert files_of(lake) >= reachable(table)


def test_a_partition_gets_one_delete_file(lake: Lake) -> None:
    table = make(lake, 2, BY_PARTITION)
    done = table.rewrite_deletes()
    assert rows_of(table) == LEFT
    assert sorted(f["record_count"] for f in delete_files_of(table)) == [2, 4]
    assert done.as_dict()["reasons"] == {"small": 6}
    assert table.rewrite_deletes().snapshots == ()
    # The data file that the shared delete file names first or last is removed: its positions go.
    removed = sorted(f for f in table.scan(where="id in (0, 6)").files()["file_path"].to_pylist())[0]
    table.delete_files([removed])
    left = rows_of(table)
    assert table.rewrite_deletes().as_dict()["reasons"] == {"of removed data files": 1}
    assert rows_of(table) == left
    assert sum(f["record_count"] for f in delete_files_of(table)) < 6


def test_vectors_share_one_puffin_file(lake: Lake) -> None:
    table = make(lake, 3)
    assert len({f["file_path"] for f in delete_files_of(table)}) == 3
    done = table.rewrite_deletes()
    assert rows_of(table) == LEFT
    (location,) = {f["file_path"] for f in delete_files_of(table)}
    footer = decode_footer(lake.store.read(location), location)
    assert sorted(blob.properties["cardinality"] for blob in footer.blobs) == ["1", "2", "3"]
    assert done.as_dict()["reasons"] == {"small": 3}
    assert table.rewrite_deletes().snapshots == ()
    # Vectors of removed data files are dropped with them; their blobs when most of a Puffin file is dead.
    table.delete_files(table.scan(where="p = 'a'").files()["file_path"].to_pylist())
    assert table.rewrite_deletes().as_dict()["reasons"] == {"of removed data files": 1}
    (location,) = {f["file_path"] for f in delete_files_of(table)}
    assert len(decode_footer(lake.store.read(location), location).blobs) == 1
    assert rows_of(table) == [row for row in LEFT if row[1] == "b"]


@pytest.mark.parametrize("properties", [BY_FILE, BY_PARTITION], ids=["by file", "by partition"])
def test_position_delete_files_of_an_upgraded_table_become_vectors(lake: Lake, properties: dict[str, str]) -> None:
    table = make(lake, 2, properties)
    table.upgrade_format_version(3)
    table.delete("id = 4")  # a vector, which replaces the position deletes of its data file
    table.rewrite_deletes()
    assert rows_of(table) == [row for row in LEFT if row[0] != 4]
    files = delete_files_of(table)
    assert {f["file_format"] for f in files} == {"PUFFIN"}
    assert sorted(f["record_count"] for f in files) == [1, 2, 4]
    assert len({f["referenced_data_file"] for f in files}) == len(files)


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_removed_data_files_are_dropped(lake: Lake, version: int) -> None:
    table = make(lake, version)
    table.delete_files(table.scan(where="p = 'a'").files()["file_path"].to_pylist())
    if version == 2:  # vectors go with their data files
        plan = table.rewrite_deletes(dry_run=True).plan
        assert (plan.files_dangling, plan.bytes_dangling > 0) == (4, True)
    table.rewrite_deletes()
    assert rows_of(table) == [row for row in LEFT if row[1] == "b"]
    assert sum(f["record_count"] for f in delete_files_of(table)) == 2


def test_a_filter_chooses_what_is_rewritten(lake: Lake) -> None:
    table = make(lake, 2)
    table.rewrite_deletes("p = 'b'")
    assert sorted(f["record_count"] for f in delete_files_of(table)) == [1, 1, 1, 1, 2]
    assert rows_of(table) == LEFT


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_are_converted_if_asked_for(lake: Lake, version: int) -> None:
    table = make(lake, version)
    table.upsert(rows((4, "a", 7)), on=["id"], mode="equality")
    expected = sorted([*(row for row in LEFT if row[0] != 4), (4, "a", 7)])
    assert table.rewrite_deletes(dry_run=True).plan.equality_files == 1
    table.rewrite_deletes()
    assert rows_of(table) == expected
    assert 2 in [content for content, _ in contents_of(table)]
    done = table.rewrite_deletes(convert_equality=True)
    assert rows_of(table) == expected
    assert 2 not in [content for content, _ in contents_of(table)]
    assert sorted(f["record_count"] for f in delete_files_of(table)) == [1, 2, 4], done


RIVALS: dict[str, tuple[Callable[[Table], object], Callable[[list[Any]], list[Any]]]] = {
    "delete": (lambda t: t.delete("id = 4"), lambda left: [r for r in left if r[0] != 4]),
    "copy-on-write delete": (
        lambda t: t.delete("id = 4", mode="copy-on-write"),
        lambda left: [r for r in left if r[0] != 4],
    ),
    "compact": (lambda t: t.compact(), lambda left: left),
    "rewrite deletes": (lambda t: t.rewrite_deletes(), lambda left: left),
    "equality upsert": (
        lambda t: t.upsert(rows((4, "a", 7)), on=["id"], mode="equality"),
        lambda left: sorted([*(r for r in left if r[0] != 4), (4, "a", 7)]),
    ),
    "upgrade": (lambda t: t.upgrade_format_version(3), lambda left: left),
    "expire": (lambda t: t.expire_snapshots("2100-01-01"), lambda left: left),
}


@pytest.mark.parametrize("properties", [BY_FILE, BY_PARTITION], ids=["by file", "by partition"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("is_first", [True, False], ids=["rival first", "rival second"])
def test_it_meets_other_changes(
    lake: Lake, rival: str, version: int, properties: dict[str, str], is_first: bool
) -> None:
    table, other = make(lake, version, properties), lake.table("t.t")
    change, effect = RIVALS[rival]
    if is_first:
        race(lake, lambda: change(other), table.rewrite_deletes)
    else:
        race(lake, table.rewrite_deletes, lambda: change(other))
    assert rows_of(table) == effect(LEFT)
    table.rewrite_deletes()
    assert rows_of(table) == effect(LEFT)
    assert files_of(lake) >= reachable(table)
    assert table.fsck(deep=True).is_healthy


def test_deletes_that_came_meanwhile_are_rewritten_in_the_next_round(lake: Lake) -> None:
    table = make(lake, 3)
    done: list[DeleteRewriteResult] = []
    race(lake, lambda: lake.table("t.t").delete("id = 4"), lambda: done.append(table.rewrite_deletes()))
    assert len(done[0].snapshots) == 2
    assert len({f["file_path"] for f in delete_files_of(table)}) == 1


def test_what_the_check_of_replaced_deletes_prevents(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, a vector that another writer has written since is replaced by one that lacks its rows."""
    table = make(lake, 3)
    entries = RewriteDeletes._entries

    def careless(action: RewriteDeletes, plan: Any, base: Any, context: Any) -> Any:
        return entries(action, action.read_set.plan, base, context)

    monkeypatch.setattr(RewriteDeletes, "_entries", careless)
    race(lake, lambda: lake.table("t.t").delete("id = 4"), table.rewrite_deletes)
    assert (4, "a", 0) in rows_of(table), "the row that another writer deleted is back"


def test_a_table_without_deletes_is_left_alone(lake: Lake) -> None:
    table = lake.create_table("t.u", "id long")
    assert table.rewrite_deletes().plan.files == 0
    table.append(pa.table({"id": [1]}))
    before = (files_of(lake), table.metadata_location)
    assert table.rewrite_deletes(convert_equality=True).snapshots == ()
    assert (files_of(lake), table.metadata_location) == before


def test_deletes_of_older_specs_and_of_renamed_columns_are_rewritten(lake: Lake) -> None:
    table = make(lake, 2)
    with table.evolve() as change:
        change.rename_column("n", "m")
        change.drop_partition_field("p")
    table.append(pa.table({"id": [30, 31, 32], "p": ["a"] * 3, "m": [0] * 3}))
    for i in (30, 31):
        table.delete(f"id = {i}")
    table.rewrite_deletes()
    assert sorted(f["record_count"] for f in delete_files_of(table)) == [1, 2, 2, 3]
    assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [*(r[0] for r in LEFT), 32]
