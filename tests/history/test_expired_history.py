"""A change is never applied twice because what tells that a branch has it already has expired."""

from collections.abc import Callable

import pytest
from tests.history.test_publish import ALL, make, rows, values

from icefield.errors import ConcurrentChange
from icefield.table.table import Table

Verb = Callable[[Table, int], object]
PUBLISH: Verb = lambda table, _: table.publish("staging")  # noqa: E731 - a table of verbs
PICK: Verb = lambda table, snapshot_id: table.cherry_pick(snapshot_id)  # noqa: E731
AGAIN = {"publish": PUBLISH, "cherry-pick": PICK}
OLD = dict.fromkeys(range(8), "old")


def snapshot_id_of(table: Table, ref: str) -> int:
    return table.refs()[ref].snapshot_id


@pytest.mark.parametrize(("version", "mode"), ALL)
@pytest.mark.parametrize("brought_by", AGAIN)
@pytest.mark.parametrize("again", AGAIN)
def test_a_change_whose_merge_has_expired_is_not_applied_again(
    version: int, mode: str, brought_by: str, again: str
) -> None:
    table = make(version, mode)
    table.create_branch("other")
    table.at("staging").append(rows(100))
    change = snapshot_id_of(table, "staging")
    table.at("other").append(rows(200))
    table.append(rows(300))
    AGAIN[brought_by](table, change)
    merge = snapshot_id_of(table, "main")
    table.publish("other")  # through which main still has a snapshot in common with staging
    table.compact()
    table.expire_snapshots(snapshot_ids=[merge])
    with pytest.raises(ConcurrentChange, match="has expired"):
        AGAIN[again](table, change)
    assert values(table) == {**OLD, 100: "new", 200: "new", 300: "new"}
    table.at("staging").rebase("other")  # these two have all of their history
    assert values(table.at("staging")) == {**OLD, 100: "new", 200: "new"}


@pytest.mark.parametrize(("version", "mode"), ALL)
def test_a_branch_of_a_branch_is_contained_after_the_latter_was_published_and_expired(version: int, mode: str) -> None:
    table = make(version, mode)
    staging = table.at("staging")
    staging.append(rows(100))
    table.create_branch("child", at="staging")
    table.at("child").append(rows(200))
    head = snapshot_id_of(table, "child")
    table.append(rows(300))
    table.publish("child")
    table.compact()
    table.drop_branch("child")
    table.expire_snapshots(snapshot_ids=[head])
    before = table.current_snapshot
    assert table.publish("staging") == before
    staging.append(rows(101))
    table.publish("staging")
    assert values(table) == {**OLD, 100: "new", 101: "new", 200: "new", 300: "new"}


@pytest.mark.parametrize(("version", "mode"), ALL)
def test_a_revert_that_has_expired_is_not_repeated(version: int, mode: str) -> None:
    table = make(version, mode)
    deleted = table.delete(where="id = 1").snapshot
    assert deleted is not None
    table.create_branch("other")
    table.at("other").append(rows(200))
    revert = table.revert(deleted.snapshot_id)
    assert revert is not None
    table.publish("other")
    table.expire_snapshots(snapshot_ids=[revert.snapshot_id])
    with pytest.raises(ConcurrentChange, match="has expired"):
        table.revert(deleted.snapshot_id)
    assert values(table) == {**OLD, 200: "new"}


@pytest.mark.parametrize(("version", "mode"), ALL)
def test_changes_that_are_newer_than_what_expired_are_applied(version: int, mode: str) -> None:
    table = make(version, mode)
    first = [each.snapshot_id for each in table.snapshots()]
    table.append(rows(300))
    table.create_branch("other")
    table.at("other").append(rows(200))
    table.append(rows(301))
    table.drop_branch("staging")
    table.expire_snapshots(snapshot_ids=first)
    table.publish("other")
    picked = table.at("other").append(rows(201))
    assert picked is not None
    table.cherry_pick(picked.snapshot_id)
    table.publish("other")
    assert values(table) == {**OLD, 200: "new", 201: "new", 300: "new", 301: "new"}
