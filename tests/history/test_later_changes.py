"""What came later stays: a revert keeps later changes, and what a branch took and gave up does not come back."""

from collections.abc import Callable

import pyarrow as pa
import pytest

import icefield
from icefield.errors import ConcurrentChange, InvalidInput
from icefield.table.table import Table

COW, MOR = "copy-on-write", "merge-on-read"
VERSIONS = (1, 2, 3)

Step = Callable[[Table], object]

LATER: dict[str, tuple[Step, list[tuple[int, str]]]] = {
    "delete": (lambda t: t.delete("id = 1", mode=COW), []),
    "merge-on-read delete": (lambda t: t.delete("id = 1", mode=MOR), []),
    "delete files": (lambda t: t.delete_files(t.scan().files()["file_path"].to_pylist()), []),
    "update": (lambda t: t.update({"value": "'later'"}, "id = 1", mode=COW), [(1, "later")]),
    "merge-on-read update": (lambda t: t.update({"value": "'later'"}, "id = 1", mode=MOR), [(1, "later")]),
    "overwrite": (lambda t: t.overwrite(rows(1, value="later"), where="id = 1"), [(1, "later")]),
    "compact": (lambda t: t.compact(strategy="sort", order_by=["value"]), [(1, "old")]),
}


def rows(*ids: int, value: str = "old") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "value": pa.array([value] * len(ids))})


def read(table: Table) -> list[tuple[int, str]]:
    return sorted((row["id"], row["value"]) for row in table.scan().to_arrow().read_all().to_pylist())


def make(version: int = 2, *, identifier: bool = False) -> Table:
    table = icefield.connect("memory:").create_table("t.t", "id long not null, value string", format_version=version)
    if identifier:
        with table.evolve() as change:
            change.set_identifier_fields(["id"])
    return table


def head(table: Table) -> int:
    assert table.current_snapshot is not None
    return table.current_snapshot.snapshot_id


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("mode", [COW, MOR])
def test_a_revert_of_a_delete_restores_the_deleted_rows_alone(version: int, later: str, mode: str) -> None:
    if version == 1 and (mode == MOR or later.startswith(MOR)):
        pytest.skip("format version 1 has no row-level deletes")
    table = make(version)
    table.append(rows(1, 2, 3))
    table.delete("id > 1", mode=mode)
    deleted = head(table)
    step, expected = LATER[later]
    step(table)
    table.revert(deleted, dry_run=True)
    table.revert(deleted)
    assert read(table) == [*expected, (2, "old"), (3, "old")]
    assert table.fsck().is_healthy


def test_a_revert_that_another_branch_made_is_not_made_again() -> None:
    table = make()
    table.append(rows(1, 2))
    table.delete("id = 1", mode=MOR)
    deleted = head(table)
    table.create_branch("b")
    table.append(rows(3))
    table.at("b").revert(deleted)
    table.publish("b")
    with pytest.raises(InvalidInput, match="has reverted it already"):
        table.revert(deleted)
    assert read(table) == [(1, "old"), (2, "old"), (3, "old")]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("away", ["revert", "delete"])
@pytest.mark.parametrize("chain", [1, 2])
def test_what_was_picked_and_given_up_is_not_published_again(
    version: int, is_first: bool, away: str, chain: int
) -> None:
    table = make(version)
    if not is_first:  # otherwise both branches begin with an empty table
        table.append(rows(1))
    for name in ("b", "c"):
        table.create_branch(name)
    table.append(rows(2))
    table.at("c").append(rows(3))
    table.at("b").append(rows(4, 5))
    source = head(table.at("b"))
    for target in ("c", "main")[-chain:]:
        table.at(target).cherry_pick(source)
        source = head(table.at(target))
    with pytest.raises(InvalidInput, match="already"):
        table.cherry_pick(head(table.at("b")))
    if away == "revert":
        table.revert(source)
    else:
        table.delete("id > 3")
    expected = read(table)
    table.at("b").append(rows(6))
    table.publish("b")
    assert read(table) == sorted([*expected, (6, "old")])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pick_of_a_publish_adds_what_the_branch_does_not_contain(version: int) -> None:
    table = make(version)
    table.append(rows(1))
    for name in ("b", "c"):
        table.create_branch(name)
    table.append(rows(2))
    table.append(rows(3))
    table.at("b").append(rows(4))
    table.at("b").publish("main")
    published = head(table.at("b"))
    table.delete("id = 3")
    assert table.cherry_pick(published) is None
    assert read(table) == [(1, "old"), (2, "old")]
    table.at("c").append(rows(5))
    table.at("c").cherry_pick(published)
    assert read(table.at("c")) == [(1, "old"), (2, "old"), (3, "old"), (5, "old")]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("who", ["main", "b", "both"])
def test_a_key_that_both_added_collides_after_compaction_too(version: int, who: str) -> None:
    table = make(version, identifier=True)
    table.append(rows(1))
    table.create_branch("b")
    for branch in ("main", "b"):
        table.at(branch).append(rows(7, value=branch))
        table.at(branch).append(rows(8 if branch == "b" else 9))
        if who in (branch, "both"):
            assert table.at(branch).compact(options={"min-input-files": "2"}).snapshot is not None
    before = read(table)
    with pytest.raises(ConcurrentChange, match="id = 7"):
        table.publish("b")
    assert read(table) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_keys_of_rows_that_both_sides_only_moved_do_not_collide(version: int) -> None:
    table = make(version, identifier=True)
    for key in (1, 2, 3):
        table.append(rows(key))
    table.create_branch("b")
    for branch, key in (("main", 4), ("b", 5)):
        table.at(branch).append(rows(key))
        table.at(branch).compact(options={"min-input-files": "2"})
    if version == 1:  # rows of the one compaction would be deleted by position
        return
    table.publish("b")
    assert read(table) == [(key, "old") for key in range(1, 6)]


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_that_both_sides_restored_are_not_there_twice(version: int) -> None:
    table = make(version)
    table.append(rows(1, 2))
    table.delete("id = 1")
    deleted = head(table)
    table.create_branch("b")
    table.append(rows(3))
    for branch in ("main", "b"):
        table.at(branch).revert(deleted)
    with pytest.raises(ConcurrentChange, match=f"both sides have reverted snapshot {deleted}"):
        table.publish("b")
    if version > 1:  # it needs row-level deletes
        table.at("b").revert(head(table.at("b")))
        table.publish("b")
    assert read(table) == [(1, "old"), (2, "old"), (3, "old")]
