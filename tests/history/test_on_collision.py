"""Rows that both sides changed, decided for one of them; what cannot be decided is refused."""

import random

import pytest
from tests.effort import seeds
from tests.history.test_publish import MODES, make, rows, values

import icefield
from icefield.errors import ConcurrentChange, InvalidInput
from icefield.table.table import Table
from icefield.table.versions.history import OnCollision

SEEDS = seeds(20, 400)
OLD = dict.fromkeys(range(8), "old")


def change(table: Table, name: str, chosen: random.Random) -> None:
    """Change, delete and move some rows, in several steps."""
    for step in range(chosen.randint(1, 3)):
        some = ", ".join(map(str, chosen.sample(range(8), 2)))
        what = chosen.choice(["update", "update", "delete", "compact", "sort"])
        if what == "update":
            table.update({"value": f"'{name} {step}'"}, where=f"id in ({some})")
        elif what == "delete":
            table.delete(where=f"id in ({some})")
        else:
            table.compact(order_by=["value"] if what == "sort" else ())


@pytest.mark.parametrize("on_collision", ["ours", "theirs"])
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_both_sides_changed_are_those_of_one_side(seed: int, on_collision: OnCollision) -> None:
    chosen = random.Random(seed)
    table = make(3, chosen.choice(MODES))
    change(table.at("staging"), "theirs", chosen)
    change(table, "ours", chosen)
    ours, theirs = values(table), values(table.at("staging"))
    expected: dict[int, str] = {}
    for key in OLD:
        sides = (theirs, ours) if on_collision == "theirs" else (ours, theirs)
        changed = [side for side in sides if side.get(key) != "old"]
        value = (changed or [OLD])[0].get(key)
        expected |= {} if value is None else {key: value}
    verb = chosen.choice(["publish", "pick"])
    base = table.history()[1].snapshot_id
    if verb == "pick" and table.metadata.snapshot_by_id(table.refs()["staging"].snapshot_id).parent_snapshot_id == base:
        table.cherry_pick(table.refs()["staging"].snapshot_id, on_collision=on_collision)
    else:
        table.publish("staging", on_collision=on_collision)
    assert values(table) == expected
    assert not [f for f in table.fsck().findings if f.check != "dangling-deletes"]


@pytest.mark.parametrize("version", [1, 2])
def test_rows_without_ids_still_collide(version: int) -> None:
    table = make(version, "copy-on-write")
    for ref in ("main", "staging"):
        table.at(ref).update({"value": f"'{ref}'"}, where="id = 1")
    with pytest.raises(ConcurrentChange, match="only about rows that have row ids"):
        table.publish("staging", on_collision="theirs")
    assert values(table)[1] == "main"


def test_rows_that_are_older_than_row_ids_still_collide() -> None:
    table = make(2, "copy-on-write")
    table.upgrade_format_version(3)
    for ref in ("main", "staging"):
        table.at(ref).update({"value": f"'{ref}'"}, where="id = 1")
    with pytest.raises(ConcurrentChange, match="only about rows that have row ids"):
        table.publish("staging", on_collision="ours")


@pytest.mark.parametrize("on_collision", ["ours", "theirs"])
def test_keys_that_both_sides_added_still_collide(on_collision: OnCollision) -> None:
    table = icefield.connect("memory:").create_table("t.t", "id long not null, value string", format_version=3)
    with table.evolve() as evolution:
        evolution.set_identifier_fields(["id"])
    table.append(rows(1))
    table.create_branch("staging")
    for ref in ("main", "staging"):
        table.at(ref).update({"value": f"'{ref}'"}, where="id = 1")
    table.publish("staging", on_collision=on_collision)
    assert values(table) == {1: "main" if on_collision == "ours" else "staging"}
    for ref in ("main", "staging"):
        table.at(ref).append(rows(100, value=ref))
    with pytest.raises(ConcurrentChange, match="added on both sides"):
        table.publish("staging", on_collision=on_collision)


def test_equality_deletes_cannot_give_way() -> None:
    table = make(3, "copy-on-write")
    table.at("staging").upsert(rows(1), on=["id"], mode="equality")
    table.append(rows(100))
    with pytest.raises(InvalidInput, match="equality deletes apply to all rows"):
        table.publish("staging", on_collision="ours")
    table.publish("staging", on_collision="theirs")
    assert values(table)[1] == "new"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("then", ["nothing", "compact", "convert"])
def test_a_row_that_an_equality_upsert_of_ours_replaced_still_collides(mode: str, then: str) -> None:
    table = make(3, mode)
    table.upsert(rows(1, value="ours"), on=["id"], mode="equality")
    table.at("staging").update({"value": "'theirs'"}, where="id = 1")
    if then != "nothing":
        table.compact() if then == "compact" else table.convert_equality_deletes()
    with pytest.raises(ConcurrentChange, match="decides only about rows that have row ids"):
        table.publish("staging", on_collision="theirs")
    table.publish("staging", on_collision="ours")
    assert values(table) == {**OLD, 1: "ours"}


def collided_files(table: Table) -> list[str]:
    """Change rows 1 and 5, which are in two files, on both sides; return the files."""
    for ref in ("main", "staging"):
        for key in (1, 5):
            table.at(ref).update({"value": f"'{ref}'"}, where=f"id = {key}")
    with pytest.raises(ConcurrentChange) as error:
        table.publish("staging")
    return [each.file for each in error.value.collisions]


@pytest.mark.parametrize("mode", MODES)
def test_each_collision_is_decided_for_itself(mode: str) -> None:
    table = make(3, mode)
    files = collided_files(table)
    one = table.scan(where="id = 1", as_of=table.history()[1].snapshot_id).files()["file_path"].to_pylist()
    decisions: dict[str, OnCollision] = {file: "ours" if file in one else "theirs" for file in files}
    with pytest.raises(ConcurrentChange, match="1 row") as error:
        table.publish("staging", on_collision={one[0]: "ours"})
    assert [each.file for each in error.value.collisions] == [file for file in files if file not in one]
    table.publish("staging", on_collision=decisions)
    assert values(table) == {**OLD, 1: "main", 5: "staging"}
    assert not [f for f in table.fsck().findings if f.check != "dangling-deletes"]


def test_a_file_that_does_not_collide_cannot_be_decided_about() -> None:
    table = make(3, "copy-on-write")
    files = collided_files(table)
    with pytest.raises(InvalidInput, match="of which no rows collide"):
        table.publish("staging", on_collision={**dict.fromkeys(files, "ours"), "elsewhere": "ours"})
    with pytest.raises(InvalidInput, match="on_collision"):
        table.publish("staging", on_collision={files[0]: "both"})  # type: ignore[dict-item]
    assert values(table)[1] == "main"


def test_only_the_two_sides_can_be_preferred() -> None:
    with pytest.raises(InvalidInput, match="on_collision"):
        make(3, "copy-on-write").publish("staging", on_collision="both")  # type: ignore[arg-type]
