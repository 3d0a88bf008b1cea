"""Changes that both sides contain are not applied twice: merges of merges, cherry-picks, rebases, added files."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.history.test_publish import ALL, make, rows, values

import icefield
from icefield.errors import ConcurrentChange
from icefield.table.table import Table

Change = Callable[[Table], object]
APPEND: Change = lambda table: table.append(rows(100, 101))  # noqa: E731 - a table of changes
DELETE: Change = lambda table: table.delete(where="id = 1")  # noqa: E731
UPDATE: Change = lambda table: table.update({"value": "'changed'"}, where="id in (1, 2)")  # noqa: E731
COMPACT: Change = lambda table: table.compact()  # noqa: E731
CHANGES = {"append": APPEND, "delete": DELETE, "update": UPDATE, "compact": COMPACT}
AFTER = {
    "append": {**dict.fromkeys(range(8), "old"), 100: "new", 101: "new"},
    "delete": {key: "old" for key in range(8) if key != 1},
    "update": {**dict.fromkeys(range(8), "old"), 1: "changed", 2: "changed"},
    "compact": dict.fromkeys(range(8), "old"),
}


@pytest.mark.parametrize(("version", "mode"), ALL)
@pytest.mark.parametrize("what", CHANGES)
def test_branches_that_have_published_to_each_other_publish_again(version: int, mode: str, what: str) -> None:
    table = make(version, mode)
    staging = table.at("staging")
    CHANGES[what](table)
    table.create_tag("main then")
    staging.append(rows(300))
    table.create_tag("staging then", at="staging")
    table.publish("staging then")
    staging.publish("main then")
    table.append(rows(301))
    staging.append(rows(302))
    table.publish("staging")
    assert values(table) == {**AFTER[what], 300: "new", 301: "new", 302: "new"}
    staging.publish("main")
    assert values(staging) == values(table)
    assert not [f for f in table.fsck().findings if f.check != "dangling-deletes"]


@pytest.mark.parametrize(("version", "mode"), ALL)
@pytest.mark.parametrize("what", ["append", "delete", "update"])
@pytest.mark.parametrize("compacts", [False, True])
def test_a_change_that_was_picked_is_not_published_again(version: int, mode: str, what: str, compacts: bool) -> None:
    table = make(version, mode)
    staging = table.at("staging")
    CHANGES[what](staging)
    picked = table.refs()["staging"].snapshot_id
    table.append(rows(300))
    table.cherry_pick(picked)
    if compacts:
        table.compact()
    staging.append(rows(301))
    table.publish("staging")
    assert values(table) == {**AFTER[what], 300: "new", 301: "new"}


@pytest.mark.parametrize(("version", "mode"), [each for each in ALL if each[0] > 1])
@pytest.mark.parametrize("compacts", [False, True])
def test_rows_of_a_file_that_was_picked_are_changed_later(version: int, mode: str, compacts: bool) -> None:
    table = make(version, mode)
    staging = table.at("staging")
    APPEND(staging)
    picked = table.refs()["staging"].snapshot_id
    table.append(rows(300))
    table.cherry_pick(picked)
    if compacts:
        table.compact()
    staging.update({"value": "'later'"}, where="id = 100")
    table.publish("staging")
    assert values(table) == {**AFTER["append"], 100: "later", 300: "new"}


@pytest.mark.parametrize(("version", "mode"), ALL)
@pytest.mark.parametrize("what", CHANGES)
def test_a_branch_that_was_rebased_is_published_where_it_was_before(version: int, mode: str, what: str) -> None:
    table = make(version, mode)
    table.create_branch("other")
    staging, other = table.at("staging"), table.at("other")
    other.append(rows(300))
    CHANGES[what](staging)
    table.append(rows(301))
    other.publish("staging")
    staging.rebase()
    other.publish("staging")
    assert values(other) == {**AFTER[what], 300: "new", 301: "new"}
    assert values(staging) == {**AFTER[what], 301: "new"}


@pytest.mark.parametrize("deletes", [False, True])
def test_a_file_that_was_added_to_both_sides_is_there_once(tmp_path: Path, deletes: bool) -> None:
    table = make(2, "merge-on-read", lake=icefield.connect(str(tmp_path)))
    pq.write_table(rows(900, 901), tmp_path / "x.parquet")
    for ref in ("main", "staging"):
        table.at(ref).add_files([str(tmp_path / "x.parquet")])
    if deletes:
        table.at("staging").delete(where="id = 900")
    table.append(rows(300))
    table.publish("staging")
    assert values(table).keys() == {*range(8), 300, 901, *(() if deletes else (900,))}


def test_a_pick_that_came_with_another_branch_is_not_picked_again() -> None:
    table = make(2, "copy-on-write")
    table.create_branch("other")
    APPEND(table.at("staging"))
    picked = table.refs()["staging"].snapshot_id
    table.append(rows(300))
    table.at("other").append(rows(301))
    table.at("other").cherry_pick(picked)
    table.publish("other")
    table.publish("staging")
    assert values(table) == {**AFTER["append"], 300: "new", 301: "new"}


def test_branches_that_began_with_an_empty_table_are_published() -> None:
    table = icefield.connect("memory:").create_table("t.t", "id long, value string")
    table.create_branch("staging")
    table.append(rows(1))
    table.at("staging").append(rows(2))
    table.publish("staging")
    assert values(table).keys() == {1, 2}


def test_a_base_that_has_expired_is_not_an_empty_table() -> None:
    table = make(2, "copy-on-write")
    table.append(rows(300))
    table.at("staging").append(rows(301))
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots()[:2])
    table.expire_snapshots(snapshot_ids=[first, second])
    with pytest.raises(ConcurrentChange, match="no snapshot in common"):
        table.publish("staging")


@pytest.mark.parametrize(("version", "mode"), ALL)
@pytest.mark.parametrize("compacts", [False, True])
def test_a_delete_of_rows_that_the_branch_has_never_had_is_not_picked(version: int, mode: str, compacts: bool) -> None:
    table = make(version, mode)
    staging = table.at("staging")
    staging.append(rows(100, 101))
    if compacts:
        staging.compact()
    gone = staging.delete(where="id in (1, 100)" if version > 1 else "id = 100").snapshot
    assert gone is not None
    with pytest.raises(ConcurrentChange, match="pick the snapshots that added these rows first") as error:
        table.cherry_pick(gone.snapshot_id)
    assert sum(each.rows for each in error.value.collisions) == 1
    table.append(rows(300))
    staging.rebase()
    assert values(staging) == {key: value for key, value in values(table).items() if key != 1 or version == 1} | {
        101: "new"
    }


@pytest.mark.parametrize(("version", "mode"), ALL)
def test_a_delete_of_rows_that_the_branch_has_deleted_is_picked(version: int, mode: str) -> None:
    table = make(version, mode)
    table.at("staging").compact()
    gone = table.at("staging").delete(where="id in (1, 2)").snapshot
    table.delete(where="id = 1" if version > 1 else "id in (1, 2)")
    assert gone is not None
    table.cherry_pick(gone.snapshot_id)
    assert values(table).keys() == {0, *range(3, 8)}
