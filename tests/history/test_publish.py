"""Branches that have diverged: what each changed is in the result, or the publish fails whole."""

import pyarrow as pa
import pytest

import icefield
from icefield.errors import ConcurrentChange
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


def make(version: int, mode: str, *, first: int = 8) -> Table:
    lake = icefield.connect("memory:")
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
