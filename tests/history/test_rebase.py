"""A rebase moves the snapshots of a branch one by one, or all of them as one."""

import pytest
from tests.history.test_publish import ALL, make, rows, values

import icefield
from icefield.errors import ConcurrentChange
from icefield.history.log import list_log
from icefield.model.snapshot import Snapshot
from icefield.table.table import Table


def new_snapshots(table: Table, branch: str) -> list[Snapshot]:
    """Return the snapshots of a branch that main does not have, oldest first."""
    metadata = table.metadata
    own = metadata.ref_head(branch)
    assert own is not None
    known = {each.snapshot_id for each in metadata.ancestors(metadata.current_snapshot)}
    return [each for each in metadata.ancestors(own) if each.snapshot_id not in known][::-1]


@pytest.mark.parametrize(("version", "mode"), ALL)
def test_snapshots_are_kept_one_by_one_with_their_notes(version: int, mode: str) -> None:
    table = make(version, mode)
    staging = table.at("staging")
    staging.noting(author="Ada", message="new rows").append(rows(100, 101))
    staging.noting(message="wrong rows").delete(where="id in (1, 100)")
    if version > 1:  # where rows of main are deleted in the new files
        staging.compact()
    staging.update({"value": "'staged'"}, where="id = 101")
    old = new_snapshots(table, "staging")
    table.append(rows(200))
    table.delete(where="id = 5")
    made = staging.rebase()
    assert values(staging) == {**dict.fromkeys([0, 2, 3, 4, 6, 7], "old"), 101: "staged", 200: "new"}
    new = new_snapshots(table, "staging")
    assert made == new[-1]
    assert [each.summary["icefield.merged-snapshot-id"] for each in new] == [str(each.snapshot_id) for each in old]
    assert [each.operation for each in new] == [each.operation for each in old]
    nothing = [None] * (len(new) - 2)
    assert [each.summary.get("icefield.author") for each in new] == ["Ada", None, *nothing]
    assert [each.summary.get("icefield.message") for each in new] == ["new rows", "wrong rows", *nothing]
    assert table.scan(as_of=new[0].snapshot_id).count() == 10  # every step has the rows of main
    assert not table.fsck().findings
    table.publish("staging")
    assert table.metadata.current_snapshot_id == new[-1].snapshot_id  # a fast-forward


@pytest.mark.parametrize(("version", "mode"), ALL)
def test_a_squashed_branch_is_one_snapshot(version: int, mode: str) -> None:
    table = make(version, mode)
    staging = table.at("staging")
    staging.append(rows(100))
    staging.delete(where="id = 100")
    staging.append(rows(101))
    table.append(rows(200))
    staging.rebase(squash=True, message="all of it")
    assert [each.summary["icefield.message"] for each in new_snapshots(table, "staging")] == ["all of it"]
    assert sorted(values(staging)) == [*range(8), 101, 200]


def test_a_dry_run_says_where_the_branch_would_be_and_writes_nothing() -> None:
    table = make(2, "merge-on-read")
    staging = table.at("staging")
    staging.append(rows(100))
    staging.delete(where="id = 1")
    table.append(rows(200))
    before = table.metadata
    planned = staging.rebase(dry_run=True)
    assert planned is not None
    assert planned.summary["total-records"] == "10"
    assert table.metadata == before


def test_one_step_that_collides_leaves_the_branch_as_it_was() -> None:
    table = make(2, "copy-on-write")
    staging = table.at("staging")
    staging.append(rows(100))
    staging.update({"value": "'staged'"}, where="id = 1")
    staging.append(rows(101))
    table.update({"value": "'main'"}, where="id = 1")
    before = table.metadata
    with pytest.raises(ConcurrentChange, match="cannot rebase") as error:
        staging.rebase()
    assert error.value.collisions
    assert table.metadata == before


def test_what_a_branch_added_and_took_back_collides_only_step_by_step() -> None:
    table = icefield.connect("memory:").create_table("t.t", "id long not null, value string")
    with table.evolve() as change:
        change.set_identifier_fields(["id"])
    table.append(rows(1))
    table.create_branch("staging")
    staging = table.at("staging")
    staging.append(rows(100))
    staging.delete(where="id = 100")
    staging.append(rows(101))
    table.append(rows(100))
    with pytest.raises(ConcurrentChange, match="rebase"):
        staging.rebase()
    staging.rebase(squash=True)
    assert sorted(values(staging)) == [1, 100, 101]


def test_a_branch_with_a_publish_inside_is_rebased() -> None:
    table = make(3, "merge-on-read")
    staging = table.at("staging")
    staging.append(rows(100))
    table.delete(where="id = 1")
    staging.publish("main")
    staging.update({"value": "'staged'"}, where="id = 2")
    table.append(rows(200))
    staging.rebase()
    assert values(staging) == {**dict.fromkeys([0, 3, 4, 5, 6, 7], "old"), 2: "staged", 100: "new", 200: "new"}


def test_a_rebased_branch_can_be_rebased_and_published_again() -> None:
    table = make(2, "merge-on-read")
    staging = table.at("staging")
    table.create_branch("other", at="staging")
    for round_ in range(3):
        staging.append(rows(100 + round_))
        staging.delete(where=f"id = {round_}")
        table.append(rows(200 + round_))
        staging.rebase()
    table.publish("staging")
    assert sorted(values(table)) == [*range(3, 8), 100, 101, 102, 200, 201, 202]
    table.at("other").publish("main")
    assert values(table.at("other")) == values(table)


def test_the_log_draws_a_rebased_branch_as_one_line() -> None:
    table = make(2, "copy-on-write")
    staging = table.at("staging")
    staging.append(rows(100))
    staging.append(rows(101))
    table.append(rows(200))
    staging.rebase()
    entries = list_log(table.metadata)
    assert [entry.graph() for entry in entries][:3] == ["*", "*", "*"]
    assert entries[0].note.startswith("rebased ")
    assert [entry.snapshot.snapshot_id for entry in table.log("staging")] == [
        each.snapshot_id for each in table.metadata.ancestors(table.metadata.ref_head("staging"))
    ]
    assert [entry.refs for entry in table.log("main")][:1] == [("main",)]
    assert [(each.name, each.ahead, each.behind) for each in table.ref_status()] == [("main", 0, 0), ("staging", 2, 0)]
    staging.append(rows(102))
    table.append(rows(201))
    staging.rebase(squash=True)
    assert [(each.ahead, each.behind) for each in table.ref_status()] == [(0, 0), (1, 0)]
