"""A change under an idempotency key is made once, also if its branches are published, rebased and picked from."""

import datetime

import pyarrow as pa
import pytest

import icefield
from icefield import StreamBatch
from icefield.errors import ConcurrentChange, InvalidInput
from icefield.table.table import Table

LATER = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(row["id"] for row in table.scan().to_arrow().read_all().to_pylist())


def batch(number: int) -> StreamBatch:
    return StreamBatch("clicks", number)


def head(table: Table) -> int:
    snapshot = table.current_snapshot
    assert snapshot is not None
    return snapshot.snapshot_id


@pytest.fixture
def table() -> Table:
    table = icefield.connect("memory:").create_table("t.t", "id long")
    table.append(rows(1), idempotency_key=batch(1))
    return table


def write_batch_2_again(table: Table) -> None:
    first = head(table)
    table.append(rows(2), idempotency_key=batch(2))
    table.create_branch("b")
    table.rollback(first)
    table.append(rows(2), idempotency_key=batch(2))


@pytest.mark.parametrize("verb", ["publish", "rebase", "squash"])
def test_a_batch_that_both_branches_have_is_not_there_twice(table: Table, verb: str) -> None:
    write_batch_2_again(table)
    branch = table.at("b")
    branch.append(rows(3), idempotency_key=batch(3))

    def run() -> None:
        if verb == "publish":
            table.publish("b")
        else:
            branch.rebase(squash=verb == "squash")

    with pytest.raises(ConcurrentChange, match="both sides have made batch 2 of stream 'clicks'"):
        run()
    assert ids(table) == [1, 2]
    assert ids(branch) == [1, 2, 3]
    table.revert(head(table))
    run()
    assert ids(table if verb == "publish" else branch) == [1, 2, 3]


def test_a_batch_that_the_branch_has_is_not_picked(table: Table) -> None:
    write_batch_2_again(table)
    with pytest.raises(InvalidInput, match="of main is batch 2 of stream 'clicks' already"):
        table.cherry_pick(head(table.at("b")))
    assert ids(table) == [1, 2]


def test_a_change_that_was_picked_is_not_made_again_under_its_key(table: Table) -> None:
    table.create_branch("b")
    branch = table.at("b")
    branch.append(rows(2), idempotency_key="once")
    table.append(rows(3))
    picked = table.cherry_pick(head(branch))
    assert table.append(rows(2), idempotency_key="once") == picked
    table.drop_branch("b")
    table.append(rows(4))
    table.expire_snapshots(LATER, keep_last=1)
    assert table.append(rows(2), idempotency_key="once") is None
    assert ids(table) == [1, 2, 3, 4]


def test_a_pick_that_is_rolled_back_forgets_its_key(table: Table) -> None:
    table.create_branch("b")
    first = head(table)
    table.at("b").append(rows(2), idempotency_key=batch(2))
    table.cherry_pick(head(table.at("b")))
    table.append(rows(2), idempotency_key=batch(2))
    assert ids(table) == [1, 2]
    table.rollback(first)
    table.append(rows(2), idempotency_key=batch(2))
    assert ids(table) == [1, 2]


def test_a_picked_batch_does_not_stand_for_those_before_it(table: Table) -> None:
    table.create_branch("b")
    branch = table.at("b")
    for number in (2, 3):
        branch.append(rows(number), idempotency_key=batch(number))
    table.cherry_pick(head(branch))
    table.append(rows(2), idempotency_key=batch(2))
    assert ids(table) == [1, 2, 3]


def test_a_branch_whose_change_was_picked_is_published_without_it(table: Table) -> None:
    table.create_branch("b")
    branch = table.at("b")
    for number in (2, 3):
        branch.append(rows(number), idempotency_key=batch(number))
    table.append(rows(9))
    table.cherry_pick(table.at("b").log("b")[1].snapshot.snapshot_id)
    table.publish("b")
    assert ids(table) == [1, 2, 3, 9]
    assert table.properties["icefield.stream.clicks@main"] == "3"
