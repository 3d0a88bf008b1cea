"""Branches that have diverged: what each changed is in the result, or the publish fails whole."""

import pyarrow as pa
import pytest

import icefield
from icefield.errors import ConcurrentChange, InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table

VERSIONS = (1, 2, 3)
MODES = ("copy-on-write", "merge-on-read")


def rows(*ids: int, value: str = "new") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "value": pa.array([value] * len(ids))})


def values(table: Table) -> dict[int, str]:
    found = table.scan().to_arrow().read_all().to_pylist()
    kept = {row["id"]: row["value"] for row in found}
    assert len(kept) == len(found), "a row is there twice"
    return kept


def make(version: int, mode: str, *, first: int = 8, lake: Lake | None = None) -> Table:
    lake = lake or icefield.connect("memory:")
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")} if version > 1 else {}
    table = lake.create_table("t.t", "id long, value string", format_version=version, properties=properties)
    table.append(rows(*range(first // 2), value="old"))
    table.append(rows(*range(first // 2, first), value="old"))
    table.create_branch("staging")
    return table


ALL = [(version, mode) for version in VERSIONS for mode in MODES if version > 1 or mode == MODES[0]]


@pytest.mark.parametrize(("version", "mode"), ALL)
def test_changes_of_different_files_are_published(version: int, mode: str) -> None:
    table = make(version, mode)
    staging = table.at("staging")
    staging.append(rows(100))
    staging.delete(where="id = 1")
    staging.update({"value": "'staged'"}, where="id = 2")
    table.append(rows(200))
    table.delete(where="id = 5")
    expected = {0: "old", 2: "staged", 3: "old", 4: "old", 6: "old", 7: "old", 100: "new", 200: "new"}
    planned = table.publish("staging", dry_run=True)
    assert 100 not in values(table)
    made = table.publish("staging")
    assert values(table) == expected
    assert made is not None
    assert planned is not None
    assert {k: v for k, v in made.summary.items() if "size" not in k} == {
        k: v for k, v in planned.summary.items() if "size" not in k
    }
    assert not table.fsck().findings
    assert table.publish("staging") == made  # nothing is left to publish
    assert values(table) == expected


@pytest.mark.parametrize(("version", "mode"), ALL)
@pytest.mark.parametrize("who", ["main", "staging", "both"])
def test_compaction_of_either_side_is_no_collision(version: int, mode: str, who: str) -> None:
    table = make(version, mode)
    staging = table.at("staging")
    staging.append(rows(100))
    table.append(rows(200))
    if who in ("main", "both"):
        table.compact()
    if who in ("staging", "both"):
        staging.compact()
    if version == 1 and who != "staging":
        staging.delete(where="id = 100")
        if who == "main":
            table.publish("staging")
            assert values(table).keys() == {*range(8), 200}
        return
    staging.delete(where="id = 1")
    table.delete(where="id = 5")
    if version == 1:
        with pytest.raises(ConcurrentChange):
            table.publish("staging")
        return
    table.publish("staging")
    assert values(table).keys() == {0, 2, 3, 4, 6, 7, 100, 200}
    assert not table.fsck().findings


@pytest.mark.parametrize(("version", "mode"), [each for each in ALL if each[0] > 1])
def test_changes_of_one_row_collide(version: int, mode: str) -> None:
    table = make(version, mode)
    table.at("staging").update({"value": "'staged'"}, where="id = 2")
    table.update({"value": "'main'"}, where="id = 2")
    before = values(table)
    with pytest.raises(ConcurrentChange, match="changed on both sides") as error:
        table.publish("staging")
    (collision,) = error.value.collisions
    assert collision.snapshots == (table.metadata.current_snapshot_id,)
    assert collision.rows == 1
    assert values(table) == before


@pytest.mark.parametrize(("version", "mode"), [each for each in ALL if each[0] > 1])
def test_different_rows_of_one_file_do_not_collide(version: int, mode: str) -> None:
    table = make(version, mode)
    table.at("staging").update({"value": "'staged'"}, where="id = 2")
    table.update({"value": "'main'"}, where="id = 1")
    table.publish("staging")
    assert values(table) == {0: "old", 1: "main", 2: "staged", **dict.fromkeys(range(3, 8), "old")}
    assert not table.fsck().findings


@pytest.mark.parametrize(("version", "mode"), [each for each in ALL if each[0] > 1])
@pytest.mark.parametrize("moves", [(), ("main",), ("staging",), ("main", "staging")])
def test_a_row_that_both_sides_deleted_does_not_collide(version: int, mode: str, moves: tuple[str, ...]) -> None:
    table = make(version, mode)
    for branch, where in (("main", "id in (1, 2)"), ("staging", "id in (2, 3, 4, 5, 6, 7)")):
        if branch in moves:
            table.at(branch).compact(options={"min-input-files": "2"})
        table.at(branch).delete(where=where)
        if branch in moves:
            table.at(branch).compact(order_by=["value"])
    table.publish("staging")
    assert values(table) == {0: "old"}
    assert not [f for f in table.fsck().findings if f.check != "dangling-deletes"]


@pytest.mark.parametrize(("version", "mode"), [each for each in ALL if each[0] > 1])
@pytest.mark.parametrize("who", ["main", "staging"])
def test_a_row_that_one_side_deleted_and_the_other_changed_collides(version: int, mode: str, who: str) -> None:
    table = make(version, mode)
    for branch in ("main", "staging"):
        if branch == who:
            table.at(branch).update({"value": "'changed'"}, where="id = 2")
        else:
            table.at(branch).delete(where="id = 2")
    before = values(table)
    with pytest.raises(ConcurrentChange, match="changed on both sides"):
        table.publish("staging")
    assert values(table) == before


def test_a_snapshot_that_was_picked_is_not_published_again() -> None:
    table = make(2, "copy-on-write")
    staging = table.at("staging")
    picked = staging.append(rows(100))
    staging.append(rows(101))
    table.append(rows(200))
    assert picked is not None
    table.cherry_pick(picked.snapshot_id)
    with pytest.raises(InvalidInput, match="already"):
        table.cherry_pick(picked.snapshot_id)
    table.publish("staging")
    assert values(table).keys() == {*range(8), 100, 101, 200}


def test_a_rewrite_is_neither_picked_nor_reverted() -> None:
    table = make(2, "copy-on-write")
    table.at("staging").compact()
    rewrite = table.metadata.ref_head("staging")
    assert rewrite is not None
    assert table.cherry_pick(rewrite.snapshot_id) is None
    assert table.at("staging").revert(rewrite.snapshot_id) is None


def test_a_revert_is_reverted() -> None:
    table = make(3, "merge-on-read")
    deleted = table.delete(where="id < 2").snapshot
    assert deleted is not None
    back = table.revert(deleted.snapshot_id)
    assert values(table).keys() == set(range(8))
    with pytest.raises(InvalidInput, match="has reverted it already"):
        table.revert(deleted.snapshot_id)
    assert back is not None
    table.revert(back.snapshot_id)
    assert values(table).keys() == set(range(2, 8))


def test_rows_keep_their_ids_when_they_are_published_and_restored() -> None:
    table = make(3, "copy-on-write")

    def row_ids() -> dict[int, int]:
        found = table.scan(select=["id", "_row_id"]).to_arrow().read_all().to_pylist()
        return {row["id"]: row["_row_id"] for row in found}

    before = row_ids()
    table.at("staging").update({"value": "'x'"}, where="id = 1")
    table.append(rows(200))
    table.publish("staging")
    assert {key: row_ids()[key] for key in before} == before
    deleted = table.delete(where="id = 3").snapshot
    assert deleted is not None
    table.revert(deleted.snapshot_id)
    assert {key: row_ids()[key] for key in before} == before
    assert len(set(row_ids().values())) == 9


def test_two_publishes_at_once_apply_one_after_the_other() -> None:
    lake = icefield.connect("memory:")
    table = make(2, "merge-on-read", lake=lake)
    table.create_branch("other")
    table.at("staging").delete(where="id = 1")
    table.at("other").delete(where="id = 2")
    table.append(rows(200))
    with lake.transaction() as transaction:
        transaction.table("t.t").publish("staging")
        table.publish("other")
    assert values(table).keys() == {0, *range(3, 8), 200}


def test_a_publish_after_main_was_rolled_back_has_the_branch_alone() -> None:
    table = make(2, "copy-on-write")
    base = table.metadata.current_snapshot_id
    assert base is not None
    table.append(rows(200))
    table.at("staging").append(rows(100))
    table.rollback(base)
    table.publish("staging")
    assert values(table).keys() == {*range(8), 100}


def test_a_key_of_a_published_branch_is_forgotten_with_a_rollback() -> None:
    table = make(2, "copy-on-write")
    table.at("staging").append(rows(100), idempotency_key="k")
    main = table.append(rows(200))
    published = table.publish("staging")
    table.append(rows(100), idempotency_key="k")
    assert values(table).keys() == {*range(8), 100, 200}
    assert main is not None
    table.rollback(main.snapshot_id)
    assert published is not None
    table.rollback(published.snapshot_id)
    table.append(rows(100), idempotency_key="k")
    assert values(table).keys() == {*range(8), 100, 200}
    table.rollback(main.snapshot_id)
    with pytest.raises(InvalidInput, match="not in the history of main"):
        table.append(rows(100), idempotency_key="k")
