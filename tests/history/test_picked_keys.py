"""In a table with an identifier, a pick adds no row whose key the branch has and only the source has deleted."""

from collections.abc import Callable

import pytest
from tests.history.evolving import arrow, rows_of

import icefield
from icefield.commit.replay.collisions import CollisionKind
from icefield.errors import ConcurrentChange
from icefield.table.table import Table

OLD = dict.fromkeys(range(4), "old")
Change = Callable[[Table], object]

GONE: dict[str, Change] = {
    "copy-on-write": lambda table: table.delete("id = 1", mode="copy-on-write"),
    "merge-on-read": lambda table: table.delete("id = 1", mode="merge-on-read"),
    "whole file": lambda table: table.delete("id >= 0", mode="merge-on-read"),
    "by an equality delete": lambda table: [
        table.upsert(arrow({1: "upserted"}), mode="equality"),
        table.delete("id = 1", mode="merge-on-read"),
    ],
}
SINCE: dict[str, Change] = {
    "nothing": lambda table: None,
    "a compaction": lambda table: table.compact(order_by=["value"]),
    "another row": lambda table: table.append(arrow({9: "other"})),
    "a delete of another row": lambda table: table.delete("id = 2", mode="merge-on-read"),
}


def make(version: int) -> Table:
    table = icefield.connect("memory:").create_table(
        "t.t", "id long not null, part int, value string", format_version=version
    )
    with table.evolve() as change:
        change.set_identifier_fields(["id"])
    table.append(arrow(OLD))
    table.create_branch("b")
    return table


@pytest.mark.every_case
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("since", SINCE)
@pytest.mark.parametrize("gone", GONE)
def test_a_key_that_only_the_source_has_deleted_is_not_picked(gone: str, since: str, version: int) -> None:
    table = make(version)
    GONE[gone](table.at("b"))
    added = table.at("b").append(arrow({1: "new"}))
    assert added is not None
    SINCE[since](table)
    before = rows_of(table)
    with pytest.raises(ConcurrentChange) as refused:
        table.cherry_pick(added.snapshot_id)
    (collision,) = refused.value.collisions
    assert (collision.kind, collision.rows, collision.keys) == (CollisionKind.KEYS, 1, ("id = 1",))
    assert rows_of(table) == before
    table.delete("id = 1")
    table.cherry_pick(added.snapshot_id)
    assert rows_of(table) == {**before, 1: "new"}
