"""A branch that began before the table was replaced does not bring back what the table was."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.history.test_publish import make, rows

import icefield
from icefield.errors import ConcurrentChange, InvalidInput, NoSuchSnapshot
from icefield.table.table import Table

Verb = Callable[[Table], object]
SCHEMAS = ("id long, value string", "value string, id long, x int", "other string")
VERBS: dict[str, Verb] = {
    "publish": lambda table: table.publish("staging"),
    "dry run": lambda table: table.publish("staging", dry_run=True),
    "fast-forward": lambda table: table.publish("staging", fast_forward_only=True),
    "rebase": lambda table: table.at("staging").rebase(),
}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("has_rows", [False, True])
@pytest.mark.parametrize("verb", VERBS)
def test_an_old_branch_is_not_published_to_the_new_table(version: int, schema: str, has_rows: bool, verb: str) -> None:
    table = make(version, "copy-on-write")
    table.at("staging").append(rows(100))
    table.replace(schema)
    if has_rows:
        table.append(rows(1) if "id" in schema else pa.table({"other": ["new"]}))
    before = table.metadata_location
    with pytest.raises((ConcurrentChange, NoSuchSnapshot)):
        VERBS[verb](table)
    assert table.metadata_location == before
    assert table.scan().count() == int(has_rows)


def test_both_sides_may_begin_with_a_table_without_rows() -> None:
    table = icefield.connect("memory:").create_table("t.t", "id long, value string")
    table.create_branch("staging")
    table.at("staging").append(rows(1))
    table.append(rows(2))
    table.publish("staging")
    assert table.scan().count() == 2


def test_a_lake_wide_publish_names_the_replaced_table_and_works_without_it() -> None:
    lake = icefield.connect("memory:")
    for name in ("n.a", "n.b"):
        lake.create_table(name, "id long, value string").append(rows(1))
    work = lake.branch("work")
    work.table("n.a").append(rows(2))
    lake.table("n.b").replace("id long, value string")
    with pytest.raises(ConcurrentChange, match="n.b: cannot publish 'work': it began before the table was replaced"):
        work.publish()
    lake.table("n.b").drop_branch("work")
    assert work.publish() == ["n.a"]
    assert [lake.table(name).scan().count() for name in ("n.a", "n.b")] == [2, 0]


MOVES: dict[str, Callable[[Table, int], object]] = {
    "rollback": lambda table, to: table.rollback(to),
    "set_current_snapshot": lambda table, to: table.set_current_snapshot(to),
    "create_branch": lambda table, to: table.create_branch("old", at=to),
    "replace a branch": lambda table, to: table.create_branch("b", at=to, replace=True),
}


@pytest.mark.every_case
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("schema", ["id long, key long not null", "id long not null"])
def test_no_branch_is_at_a_version_that_the_schema_cannot_read(move: str, schema: str) -> None:
    lake = icefield.connect("memory:")
    table = lake.create_table("t.t", "id long")
    old = table.append(pa.table({"id": pa.array([None, 2], pa.int64())}))
    assert old is not None
    table = lake.create_table("t.t", schema, replace=True)
    table.create_branch("b")
    before = table.refs()
    with pytest.raises(InvalidInput, match="is (now )?required, but .* make the column optional first"):
        MOVES[move](table, old.snapshot_id)
    assert table.refs() == before
    table.create_tag("old", at=old.snapshot_id)
    assert table.scan(as_of="old").to_arrow().read_all().to_pylist() == [{"id": None}, {"id": 2}]
    with table.evolve() as change:
        change.make_optional("key" if "key" in schema else "id")
    table.drop_tag("old")
    MOVES[move](table, old.snapshot_id)
