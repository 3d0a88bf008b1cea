"""A row that a revert restored is there once, whatever is reverted, picked, published and rebased around it."""

import contextlib
import random
from collections.abc import Callable

import pytest
from tests.effort import seeds
from tests.history.test_later_changes import VERSIONS, head, make, rows

from icefield.errors import ConcurrentChange, InvalidInput
from icefield.table.table import Table

SEEDS = seeds(15, 1000)
STEPS = 25


def keys(table: Table) -> list[int]:
    return sorted(row["id"] for row in table.scan(select=["id"]).to_arrow().read_all().to_pylist())


def deleted(table: Table) -> int:
    table.delete("id = 1")
    return head(table)


def pick_of_a_revert_where_nothing_was_deleted(table: Table) -> None:
    table.create_branch("b")
    table.revert(deleted(table))
    table.at("b").cherry_pick(head(table))


def pick_of_a_revert_where_another_one_was_made(table: Table) -> None:
    gone = deleted(table)
    table.create_branch("b")
    for branch in ("main", "b"):
        table.at(branch).revert(gone)
    table.at("b").cherry_pick(head(table))


def pick_of_a_reverted_revert_of_an_append(table: Table) -> None:
    table.append(rows(3))
    table.create_branch("b")
    for _ in range(2):
        table.revert(head(table))
    table.at("b").cherry_pick(head(table))


def pick_of_a_publish_with_a_revert(table: Table) -> None:
    table.create_branch("c")
    gone = deleted(table)
    table.create_branch("b")
    table.append(rows(4))
    table.at("b").revert(gone)
    table.publish("b")
    table.at("c").cherry_pick(head(table))


def reverts_of_a_snapshot_and_of_its_pick(table: Table) -> None:
    table.create_branch("b")
    for branch, key in (("main", 4), ("b", 5)):
        table.at(branch).append(rows(key))
    gone = deleted(table)
    picked = table.at("b").cherry_pick(gone)
    assert picked is not None
    table.revert(gone)
    table.at("b").revert(picked.snapshot_id)
    table.publish("b")


def reverts_of_a_publish_and_of_what_it_published(table: Table) -> None:
    published, gone = published_delete(table)
    table.create_branch("c")
    table.append(rows(5))
    table.revert(published)
    table.at("c").revert(gone)
    table.publish("c")


def revert_of_a_publish_after_that_of_what_it_published(table: Table) -> None:
    published, gone = published_delete(table)
    table.revert(gone)
    table.revert(published)


def revert_of_what_was_published_after_that_of_the_publish(table: Table) -> None:
    published, gone = published_delete(table)
    table.revert(published)
    table.revert(gone)


def revert_of_what_is_reverted_by_the_fourth_revert(table: Table) -> None:
    gone = deleted(table)
    for _ in range(3):
        table.revert(head(table))
    table.revert(gone)


def revert_of_what_a_picked_revert_has_taken_back(table: Table) -> None:
    gone = deleted(table)
    table.create_branch("b")
    table.append(rows(4))
    table.revert(gone)
    table.at("b").cherry_pick(head(table))
    table.at("b").revert(gone)


def revert_of_what_a_rebased_revert_has_taken_back(table: Table) -> None:
    gone = deleted(table)
    table.create_branch("b")
    table.append(rows(4))
    table.at("b").revert(gone)
    table.at("b").rebase()
    for snapshot in table.refresh().snapshots:  # the revert that was repeated
        if snapshot.summary.get("icefield.reverted-snapshot-id") and snapshot != table.at("b").current_snapshot:
            table.remove_snapshots([snapshot.snapshot_id])
    table.at("b").revert(gone)


def published_delete(table: Table) -> tuple[int, int]:
    table.create_branch("b")
    gone = deleted(table.at("b"))
    table.append(rows(4))
    table.publish("b")
    return head(table), gone


CASES: tuple[Callable[[Table], None], ...] = (
    pick_of_a_revert_where_nothing_was_deleted,
    pick_of_a_revert_where_another_one_was_made,
    pick_of_a_reverted_revert_of_an_append,
    pick_of_a_publish_with_a_revert,
    reverts_of_a_snapshot_and_of_its_pick,
    reverts_of_a_publish_and_of_what_it_published,
    revert_of_a_publish_after_that_of_what_it_published,
    revert_of_what_was_published_after_that_of_the_publish,
    revert_of_what_is_reverted_by_the_fourth_revert,
    revert_of_what_a_picked_revert_has_taken_back,
    revert_of_what_a_rebased_revert_has_taken_back,
)


@pytest.mark.every_case
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_rows_are_not_restored_where_they_are(case: Callable[[Table], None], version: int) -> None:
    table = make(version)
    table.append(rows(1, 2))
    with pytest.raises((ConcurrentChange, InvalidInput), match="restore|reverted|row-level"):
        case(table)
    for ref in table.refresh().refs:
        found = keys(table.at(ref))
        assert len(found) == len(set(found)), ref


@pytest.mark.parametrize("version", VERSIONS)
def test_a_revert_is_picked_where_the_rows_are_gone(version: int) -> None:
    table = make(version)
    table.append(rows(1, 2))
    gone = deleted(table)
    table.create_branch("b")
    table.append(rows(3))
    table.revert(gone)
    picked = table.at("b").cherry_pick(head(table))
    assert picked is not None
    assert picked.summary["icefield.reverted-snapshot-id"] == str(gone)
    assert keys(table.at("b")) == [1, 2]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_revert_is_picked_where_the_delete_was_picked(version: int) -> None:
    table = make(version)
    table.append(rows(1, 2))
    table.create_branch("b")
    gone = deleted(table)
    table.revert(gone)
    restored = head(table)
    table.at("b").cherry_pick(gone)
    table.at("b").cherry_pick(restored)
    assert keys(table.at("b")) == [1, 2]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_is_there_twice_after_a_random_history(seed: int) -> None:
    chosen = random.Random(seed)
    table = make(chosen.choice([2, 3]))
    table.append(rows(*range(4)))
    for branch in ("b", "c"):
        table.create_branch(branch)
    for step in range(STEPS):
        branch = chosen.choice(["main", "b", "c"])
        other = chosen.choice([each for each in ("main", "b", "c") if each != branch])
        with contextlib.suppress(ConcurrentChange, InvalidInput):
            change(table, branch, other, step, chosen)
        found = keys(table.at(branch))
        assert len(found) == len(set(found)), (step, branch, found)
    assert not table.fsck().findings


def change(table: Table, branch: str, other: str, step: int, chosen: random.Random) -> None:
    own, ids = table.at(branch), [each.snapshot_id for each in table.refresh().snapshots]
    match chosen.choice(
        ["append", "delete", "update", "revert", "revert", "pick", "pick", "publish", "rebase", "squash"]
    ):
        case "append":
            own.append(rows(100 + step))
        case "delete":
            own.delete(f"id % 4 = {chosen.randrange(4)}", mode=chosen.choice(["copy-on-write", "merge-on-read"]))
        case "update":
            own.update({"value": f"'{step}'"}, f"id % 4 = {chosen.randrange(4)}")
        case "revert":
            own.revert(chosen.choice(ids))
        case "pick":
            own.cherry_pick(chosen.choice(ids))
        case "publish":
            own.publish(other)
        case squash if branch != "main":
            own.rebase(other, squash=squash == "squash")
