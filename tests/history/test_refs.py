"""Branches and tags: renamed, kept, protected, moved back and forth, checked before they are published."""

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.history.test_publish import ALL, make, values

import icefield
from icefield.errors import AlreadyExists, CheckFailed, ConcurrentChange, InvalidInput, NoSuchSnapshot
from icefield.history.refs import find_previous_head
from icefield.table.table import Table
from icefield.table.versions import history


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all().column("id").to_pylist())


@pytest.fixture
def table() -> Table:
    made = icefield.connect("memory:").create_table("t.t", "id long not null")
    made.append(rows(1))
    made.create_branch("staging")
    return made


def test_a_branch_is_renamed_with_its_retention_and_keys(table: Table) -> None:
    table.set_retention("staging", min_snapshots_to_keep=3)
    staging = table.at("staging")
    staging.append(rows(2), idempotency_key="k")
    table.rename_branch("staging", "audit ✓/b")
    assert ids(table.at("audit ✓/b")) == [1, 2]
    assert table.refs()["audit ✓/b"].min_snapshots_to_keep == 3
    table.at("audit ✓/b").append(rows(2), idempotency_key="k")
    assert ids(table.at("audit ✓/b")) == [1, 2]
    assert "staging" not in table.refs()
    table.create_tag("t")
    table.rename_tag("t", "u")
    with pytest.raises(AlreadyExists):
        table.rename_tag("u", "audit ✓/b")
    with pytest.raises(InvalidInput, match="keeps its name"):
        table.rename_branch("main", "x")
    with pytest.raises(InvalidInput, match="rename_tag"):
        table.rename_branch("u", "x")


def test_retention_rules_are_set_and_removed(table: Table) -> None:
    table.set_retention("staging", max_ref_age_ms=5, min_snapshots_to_keep=2)
    table.set_retention("staging", max_ref_age_ms=None)
    assert table.refs()["staging"].max_ref_age_ms is None
    assert table.refs()["staging"].min_snapshots_to_keep == 2
    with pytest.raises(InvalidInput, match="has no rule"):
        table.set_retention("staging", age=1)


def test_a_protected_branch_is_only_written_and_published_to(table: Table) -> None:
    first = table.metadata.current_snapshot_id
    assert first is not None
    table.set_properties({"icefield.history.protected-refs": "main, staging"})
    table.append(rows(3))
    table.at("staging").append(rows(4))
    table.publish("staging")
    assert ids(table) == [1, 3, 4]
    changes: list[Callable[[], object]] = [
        lambda: table.rollback(first),
        table.undo,
        lambda: table.drop_branch("staging"),
        lambda: table.rename_branch("staging", "x"),
        lambda: table.at("staging").rebase(),
        lambda: table.at("staging").rollback(first),
    ]
    for change in changes:
        with pytest.raises(InvalidInput, match="protected"):
            change()


def test_a_protected_branch_or_tag_does_not_expire(table: Table) -> None:
    table.create_tag("kept")
    table.create_tag("old")
    table.append(rows(2))
    table.set_properties({"icefield.history.protected-refs": "staging, kept", "history.expire.max-ref-age-ms": "1"})
    table.set_retention("staging", max_ref_age_ms=1)
    time.sleep(0.01)
    table.expire_snapshots(dry_run=True)
    table.expire_snapshots()
    assert sorted(table.refs()) == ["kept", "main", "staging"]
    table.set_properties({}, removals=["icefield.history.protected-refs"])
    table.expire_snapshots()
    assert list(table.refs()) == ["main"]


def test_a_rollback_goes_back_and_forward_and_can_be_undone(table: Table) -> None:
    first = table.metadata.current_snapshot_id
    assert first is not None
    table.create_tag("first")
    table.append(rows(2))
    second = table.metadata.current_snapshot_id
    assert second is not None
    table.rollback("first")
    assert ids(table) == [1]
    table.rollback(second)
    assert ids(table) == [1, 2]
    table.undo()
    assert ids(table) == [1]
    table.undo()
    assert ids(table) == [1, 2]
    assert [e.snapshot_id for e in table.history()] == [first, second, first, second, first, second]
    staging = table.at("staging")
    staging.append(rows(9))
    staging.undo()
    assert ids(staging) == [1]
    with pytest.raises(InvalidInput, match="not an ancestor"):
        staging.rollback(second)


def test_the_status_of_refs_counts_snapshots(table: Table) -> None:
    table.append(rows(2))
    table.at("staging").append(rows(3))
    table.at("staging").append(rows(4))
    main, staging = table.ref_status()
    assert (main.name, main.ahead, main.behind) == ("main", 0, 0)
    assert (staging.name, staging.ahead, staging.behind) == ("staging", 2, 1)
    table.publish("staging")
    assert [(s.ahead, s.behind) for s in table.ref_status()] == [(0, 0), (0, 2)]


def test_checks_are_run_before_a_branch_is_published(table: Table) -> None:
    table.set_properties({"icefield.check.small": "id > 100"})
    staging = table.at("staging")
    staging.append(rows(7, 200, 300))
    with pytest.raises(CheckFailed, match=r"breaks 1 of 2 check.*2 row\(s\), such as id = 200; id = 300") as error:
        table.publish("staging", checks={"positive": "id < 0"})
    (failure,) = error.value.failures
    assert (failure.name, failure.rows) == ("small", 2)
    assert [row["id"] for row in failure.sample] == [200, 300]
    assert ids(table) == [1]
    staging.delete(where="id > 100")
    table.publish("staging", checks={"positive": "id < 0"})
    assert ids(table) == [1, 7]
    with pytest.raises(InvalidInput, match="already"):
        table.publish("staging", checks={"small": "id < 0"})


def test_a_branch_that_moved_after_its_checks_is_not_published(table: Table) -> None:
    table.at("staging").append(rows(2))
    checked = table.refs()["staging"].snapshot_id
    table.at("staging").append(rows(-1))
    with pytest.raises(ConcurrentChange, match="since its rows were checked"):
        table._replay(False, None).publish("staging", checked)
    with pytest.raises(ConcurrentChange, match="since its rows were checked"):
        table._replay(False, None).fast_forward("staging", checked)


def test_an_undo_does_not_take_back_a_write_that_it_did_not_see(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(rows(2))

    def find(*arguments: Any) -> int:
        found = find_previous_head(*arguments)
        table.append(rows(3))
        return found

    monkeypatch.setattr(history, "find_previous_head", find)
    with pytest.raises(ConcurrentChange, match="changed concurrently"):
        table.undo()
    assert ids(table) == [1, 2, 3]


@pytest.mark.parametrize("name", ["", " ", "\n"])
def test_a_name_that_cannot_be_seen_is_refused(table: Table, name: str) -> None:
    empty = icefield.connect("memory:").create_table("t.t", "id long")
    changes: list[Callable[[], object]] = [
        lambda: table.create_branch(name),
        lambda: table.create_tag(name),
        lambda: table.rename_branch("staging", name),
        lambda: empty.create_branch(name),
    ]
    for change in changes:
        with pytest.raises(InvalidInput, match="needs a name"):
            change()


@pytest.mark.parametrize(
    "name", ["a/b", "ünï ✓", "a,b", " x", "..", "2026-01-01", "12345", "%2F", "--force", "a'b", "x" * 300]
)
def test_names_with_odd_characters_work_everywhere(table: Table, name: str) -> None:
    table.create_branch(name)
    table.at(name).append(rows(2))
    table.append(rows(3))
    assert table.diff("main", name).rows_added == 1
    table.publish(name)
    table.rename_branch(name, f"{name}2")
    table.at(f"{name}2").rebase()
    assert ids(table.at(f"{name}2")) == ids(table) == [1, 2, 3]
    table.drop_branch(f"{name}2")


def test_an_expired_snapshot_cannot_be_picked_or_reverted(table: Table) -> None:
    first = table.metadata.current_snapshot_id
    assert first is not None
    table.drop_branch("staging")
    table.append(rows(2))
    second = table.metadata.current_snapshot_id
    assert second is not None
    table.append(rows(3))
    table.expire_snapshots(snapshot_ids=[first])
    with pytest.raises(NoSuchSnapshot, match="has expired"):
        table.revert(second)
    with pytest.raises(NoSuchSnapshot):
        table.cherry_pick(first)


def test_rows_with_an_identifier_that_both_sides_added_collide() -> None:
    table = icefield.connect("memory:").create_table("t.t", "id long not null")
    with table.evolve() as change:
        change.set_identifier_fields(["id"])
    table.append(rows(1))
    table.create_branch("staging")
    table.at("staging").append(rows(5, 6))
    table.append(rows(5, 7))
    with pytest.raises(ConcurrentChange, match="added on both sides") as error:
        table.publish("staging")
    (collision,) = error.value.collisions
    assert collision.keys == ("id = 5",)
    table.delete(where="id = 5")
    table.publish("staging")
    assert ids(table) == [1, 5, 6, 7]


@pytest.mark.parametrize(("version", "mode"), ALL)
def test_a_revert_leaves_rows_alone_that_the_snapshot_only_moved(version: int, mode: str) -> None:
    table = make(version, mode)
    wrong = table.delete(where="id = 0").snapshot  # copy-on-write moves rows 1 to 3 to another file
    assert wrong is not None
    table.update({"value": "'later'"}, where="id = 1")
    table.delete(where="id = 2")
    made = table.revert(wrong.snapshot_id)
    assert made is not None
    # Without row-level deletes, the file that has the reverted row is written again, too.
    assert made.summary["added-records"] == ("2" if version == 1 else "1")
    assert values(table) == {0: "old", 1: "later", **dict.fromkeys(range(3, 8), "old")}
