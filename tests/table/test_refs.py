"""Branches and tags: written apart, seen apart, published at once."""

from typing import Any

import pyarrow as pa
import pytest

import icefield
from icefield.errors import AlreadyExists, ConcurrentChange, InvalidInput, NoSuchSnapshot
from icefield.lake import Lake
from icefield.model.snapshot import RefKind
from icefield.table.table import Table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all().column("id").to_pylist())


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table("t.t", "id long")
    made.append(rows(1, 2))
    return made


def test_a_branch_is_written_apart_and_published_at_once(table: Table) -> None:
    table.create_branch("staging")
    staging = table.at("staging")
    staging.append(rows(3))
    staging.overwrite(rows(9), where="id = 1", check_rows=False)
    assert ids(staging) == [2, 3, 9]
    assert ids(table) == [1, 2]
    assert staging.count() == 3
    table.publish("staging")
    assert ids(table) == [2, 3, 9]
    assert [e.snapshot_id for e in table.history()][-1] == table.refs()["staging"].snapshot_id


def test_histories_that_parted_cannot_be_fast_forwarded(table: Table) -> None:
    table.create_branch("staging")
    table.at("staging").append(rows(3))
    table.append(rows(4))
    with pytest.raises(ConcurrentChange, match="not in the history of staging"):
        table.publish("staging", fast_forward_only=True)
    assert ids(table) == [1, 2, 4]


def test_a_tag_stands_still(table: Table) -> None:
    table.create_tag("q1", max_ref_age_ms=1000)
    table.append(rows(3))
    assert ids(table.at("q1")) == [1, 2]
    assert table.refs()["q1"].kind is RefKind.TAG
    with pytest.raises(InvalidInput, match="it is a tag"):
        table.at("q1").append(rows(4))
    assert ids(table) == [1, 2, 3]


def test_refs_are_made_at_any_version_and_dropped(table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    table.append(rows(3))
    table.create_branch("old", at=first, min_snapshots_to_keep=2)
    assert ids(table.at("old")) == [1, 2]
    with pytest.raises(AlreadyExists, match="branch 'old'"):
        table.create_tag("old")
    with pytest.raises(InvalidInput, match="it is a branch") as caught:
        table.drop_tag("old")
    assert "drop_branch('old')" in str(caught.value)
    table.drop_branch("old")
    with pytest.raises(NoSuchSnapshot, match="old"):
        table.at("old")
    for refused in ("main", "nothing"):
        with pytest.raises((InvalidInput, NoSuchSnapshot)):
            table.drop_branch(refused)
    table.create_tag("first", at=first)
    with pytest.raises(InvalidInput, match="it is a tag"):
        table.drop_branch("first")
    table.drop_tag("first")
    assert list(table.refs()) == ["main"]


@pytest.mark.parametrize("rule", [{"max_age": 1}, {"max_ref_age_ms": 0}, {"min_snapshots_to_keep": "1"}])
def test_rules_that_make_no_sense_are_refused(table: Table, rule: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        table.create_branch("b", **rule)
    with pytest.raises(InvalidInput, match="a tag has no rule"):
        table.create_tag("t", min_snapshots_to_keep=1)


def test_a_branch_that_is_replaced_moves_and_keeps_its_rules(table: Table) -> None:
    first = table.metadata.current_snapshot_id
    table.append(rows(3))
    table.create_branch("b", at=first, max_ref_age_ms=5, min_snapshots_to_keep=2)
    table.create_branch("b", replace=True, max_ref_age_ms=7)
    found = table.refs()["b"]
    assert (found.max_ref_age_ms, found.min_snapshots_to_keep) == (7, 2)
    assert ids(table.at("b")) == [1, 2, 3]
    table.create_tag("g", replace=True)
    table.create_tag("g", at=first, replace=True)
    assert table.refs()["g"].snapshot_id == first
    with pytest.raises(InvalidInput, match="it is a tag, not a branch"):
        table.create_branch("g", replace=True)


def test_a_branch_of_an_empty_table_begins_with_an_empty_snapshot(lake: Lake) -> None:
    table = lake.create_table("t.empty", "id long")
    table.create_branch("b", max_ref_age_ms=9)
    table.at("b").append(rows(1))
    assert (ids(table.at("b")), ids(table)) == ([1], [])
    assert table.refs()["b"].max_ref_age_ms == 9
    with pytest.raises(AlreadyExists):
        table.create_branch("b")
    table.publish("b")
    assert ids(table) == [1]


def test_an_empty_table_has_nothing_to_name(lake: Lake) -> None:
    with pytest.raises(NoSuchSnapshot, match="the table has no snapshots"):
        lake.create_table("t.empty", "id long").create_tag("t")


def test_a_branch_rolls_back_to_its_own_ancestors_only(table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    table.append(rows(3))
    table.create_branch("other")
    table.at("other").append(rows(4))
    elsewhere = table.refs()["other"].snapshot_id
    table.rollback(first)
    assert ids(table) == [1, 2]
    with pytest.raises(InvalidInput, match="not an ancestor of main"):
        table.rollback(elsewhere)
    table.append(rows(5))
    assert ids(table) == [1, 2, 5]


def test_writers_of_two_branches_do_not_conflict(lake: Lake, table: Table) -> None:
    table.create_branch("a")
    table.create_branch("b")
    one, other = lake.table("t.t").at("a"), lake.table("t.t").at("b")
    one.overwrite(rows(10), where="id = 1", check_rows=False)
    other.overwrite(rows(20), where="id = 1", check_rows=False)
    assert (ids(one), ids(other), ids(table)) == ([2, 10], [2, 20], [1, 2])


def test_rows_that_match_are_deleted(table: Table) -> None:
    table.append(rows(3, 4))
    snapshot = table.delete("id = 3").snapshot
    assert snapshot is not None
    assert snapshot.operation == "overwrite"
    assert ids(table) == [1, 2, 4]
    whole = table.delete("id <= 2").snapshot
    assert whole is not None
    assert whole.operation == "delete"
    assert "added-data-files" not in whole.summary
    assert table.delete("id > 100").snapshot is None


def test_files_without_a_matching_row_are_left_alone(table: Table) -> None:
    table.append(rows(1, 3, 5))
    before = set(table.scan().files()["file_path"].to_pylist())
    assert table.delete("id = 4").snapshot is None
    assert set(table.scan().files()["file_path"].to_pylist()) == before
    table.delete("id = 3")
    assert len(before & set(table.scan().files()["file_path"].to_pylist())) == 1
    assert ids(table) == [1, 1, 2, 5]


def test_properties_are_set_and_removed(table: Table) -> None:
    table.set_properties({"owner": "ada", "team": "x"})
    table.set_properties({"owner": "grace"}, removals=["team"])
    assert table.properties == {"owner": "grace"}
    with pytest.raises(InvalidInput, match=r"commit\.retry\.num-retries"):
        table.set_properties({"commit.retry.num-retries": "many"})


def test_a_branch_moves_to_any_snapshot_and_has_the_idempotency_keys_of_its_history(table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    table.create_branch("other")
    table.at("other").append(rows(3), idempotency_key="three")
    elsewhere = table.refs()["other"].snapshot_id
    moved = table.set_current_snapshot(elsewhere)
    assert moved is not None
    assert (moved.snapshot_id, ids(table)) == (elsewhere, [1, 2, 3])
    table.append(rows(3), idempotency_key="three")
    assert ids(table) == [1, 2, 3]
    table.set_current_snapshot(first)
    with pytest.raises(InvalidInput, match="which is not in the history of main"):
        table.append(rows(3), idempotency_key="three")
    table.append(rows(4))
    assert (ids(table), table.snapshots()[-1].parent_snapshot_id) == ([1, 2, 4], first)
    with pytest.raises(NoSuchSnapshot):
        table.set_current_snapshot(12345)
