"""What a publish that fails says: the file, the rows, who changed them, and which columns."""

from collections.abc import Callable

import pyarrow as pa
import pytest

import icefield
from icefield.commit.replay.collisions import Collision, CollisionKind
from icefield.errors import ConcurrentChange
from icefield.table.table import Table

ADDRESS = pa.struct([pa.field("id", pa.int64(), nullable=False), ("town", pa.string())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("amount", pa.float64()),
        ("note", pa.string()),
        ("marks", pa.list_(pa.int32())),
        pa.field("address", ADDRESS, nullable=False),
    ]
)
COLUMNS = (
    "id long not null, amount double, note string, marks list<int>, "
    "address struct<id: long not null, town: string> not null"
)


def rows(*ids: int) -> pa.Table:
    columns = {"id": ids, "amount": [1.0] * len(ids), "note": ["x"] * len(ids), "marks": [[1]] * len(ids)}
    return pa.table({**columns, "address": [{"id": each, "town": "Ulm"} for each in ids]}, schema=SCHEMA)


def make(version: int, identifier: str | None) -> Table:
    table = icefield.connect("memory:").create_table("t.t", COLUMNS, format_version=version)
    if identifier is not None:
        with table.evolve() as change:
            change.set_identifier_fields([identifier])
    table.append(rows(*range(6)))
    table.create_branch("staging")
    return table


def collide(table: Table) -> Collision:
    before = table.metadata
    with pytest.raises(ConcurrentChange) as error:
        table.publish("staging")
    assert table.metadata == before
    (found,) = [each for each in error.value.collisions if each.kind is CollisionKind.ROWS]
    assert isinstance(found, Collision)
    assert str(found) in str(error.value)
    return found


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("identifier", [None, "id", "address.id"])
@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_collision_names_rows_snapshots_and_the_columns_of_each_side(
    version: int, identifier: str | None, is_compacted: bool
) -> None:
    table = make(version, identifier)
    table.at("staging").update({"amount": "7", "note": "'q'"}, where="id in (3, 4)")
    changed = table.update({"amount": "8", "address.town": "'Rom'"}, where="id in (3, 4)").snapshot
    assert changed is not None
    if is_compacted:
        table.append(rows(50))
        table.compact(options={"min-input-files": "2"})
    found = collide(table)
    assert found.rows == 2
    assert found.snapshots == (changed.snapshot_id,)
    whole = "id = {0}, amount = 1.0, note = 'x', marks = [1], address = {{'id': {0}, 'town': 'Ulm'}}"
    expected = [whole.format(each) if identifier is None else f"{identifier} = {each}" for each in (3, 4)]
    assert found.keys == tuple(expected)
    is_known = version == 3 or identifier is not None
    assert found.our_columns == (("amount", "address") if is_known else ())
    assert found.their_columns == (("amount", "note") if is_known else ())
    assert found.as_dict()["columns"] == {"ours": list(found.our_columns), "theirs": list(found.their_columns)}


@pytest.mark.parametrize("version", [2, 3])
def test_of_a_row_that_one_side_deleted_only_the_other_has_columns(version: int) -> None:
    table = make(version, "id")
    table.at("staging").delete(where="id = 3")
    table.update({"note": "'y'"}, where="id = 3")
    found = collide(table)
    assert (found.our_columns, found.their_columns) == (("note",), ())


@pytest.mark.parametrize("identifier", ["id", "address.id"])
def test_a_key_that_both_sides_added_has_its_snapshot(identifier: str) -> None:
    table = make(2, identifier)
    table.at("staging").append(rows(50))
    added = table.append(rows(50, 51))
    assert added is not None
    with pytest.raises(ConcurrentChange, match=f"{identifier} = 50") as error:
        table.publish("staging")
    (found,) = error.value.collisions
    assert (found.kind, found.rows, found.snapshots) == ("keys", 1, (added.snapshot_id,))


@pytest.mark.parametrize(("version", "is_offered"), [(2, False), (3, True)])
def test_on_collision_is_offered_where_it_can_decide(version: int, is_offered: bool) -> None:
    table = make(version, None)
    for branch in ("main", "staging"):
        table.at(branch).update({"amount": "9"}, where="id = 1")
    table.append(rows(9))
    head = table.metadata.ref_head("staging")
    assert head is not None
    verbs: list[Callable[[], object]] = [
        lambda: table.publish("staging"),
        lambda: table.cherry_pick(head.snapshot_id),
        lambda: table.at("staging").rebase(),
    ]
    for verb in verbs:
        with pytest.raises(ConcurrentChange) as error:
            verb()
        assert ("on_collision" in (error.value.hint or "")) == (is_offered and verb != verbs[-1])


def test_a_long_row_is_cut() -> None:
    table = icefield.connect("memory:").create_table("t.t", "id long, text string", format_version=3)
    table.append(pa.table({"id": [1], "text": ["a b " * 1000]}))
    table.create_branch("staging")
    for branch in ("main", "staging"):
        table.at(branch).update({"id": "2"}, where="id = 1")
    (text,) = collide(table).keys
    assert len(text) <= 200
