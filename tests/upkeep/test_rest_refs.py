"""Branches and tags that race an expiry behind a REST catalog: what is named stays readable, or is refused."""

from collections.abc import Callable

import pytest
from tests.rest_server import Effect, Reply
from tests.upkeep.fixtures import AT_ONCE, FUTURE, ids, rows
from tests.upkeep.test_rest import Place, place

from icefield.errors import IcefieldError, NotFound
from icefield.table.table import Table

__all__ = ["place"]
COMMIT = ("POST", "/tables/t")
NAME_IT: dict[str, Callable[[Table, int], object]] = {
    "tag": lambda table, snapshot_id: table.create_tag("kept", at=snapshot_id),
    "branch": lambda table, snapshot_id: table.create_branch("kept", at=snapshot_id),
    "rollback": lambda table, snapshot_id: table.rollback(snapshot_id),
}


def table_with_an_old_snapshot(place: Place) -> tuple[Table, int]:
    table = place.lake.create_table("t.t", "id long, n long", properties=AT_ONCE)
    old = table.append(rows(1))
    table.overwrite(rows(2))
    assert old is not None
    return table, old.snapshot_id


def before_the_next_commit(place: Place, change: Callable[[], object]) -> None:
    """Let somebody else be first, once."""

    def late(effect: Effect) -> Reply:
        place.server.faults.clear()
        change()
        return effect()

    place.server.fail(*COMMIT, late)


@pytest.mark.every_case
@pytest.mark.parametrize("verb", NAME_IT)
def test_r08_a_snapshot_that_is_named_before_its_expiry_lands_is_kept(place: Place, verb: str) -> None:
    table, old = table_with_an_old_snapshot(place)
    before_the_next_commit(place, lambda: NAME_IT[verb](place.other.table("t.t"), old))
    table.expire_snapshots(FUTURE)
    ref = "main" if verb == "rollback" else "kept"
    assert ids(place.other.table("t.t").at(ref)) == [1]
    table.remove_orphans(unsafe=True)
    table.sweep()
    assert ids(place.other.table("t.t").at(ref)) == [1]
    assert not table.fsck().findings


@pytest.mark.every_case
@pytest.mark.parametrize("verb", NAME_IT)
def test_r09_a_snapshot_that_expires_before_it_is_named_is_refused(place: Place, verb: str) -> None:
    table, old = table_with_an_old_snapshot(place)
    before_the_next_commit(place, lambda: table.expire_snapshots(FUTURE))
    with pytest.raises(NotFound, match="no snapshot"):
        NAME_IT[verb](place.other.table("t.t"), old)
    assert "kept" not in table.refs()
    assert ids(place.other.table("t.t")) == [2]
    assert not table.fsck().findings


def test_a_publish_of_a_branch_whose_snapshot_expires_is_refused_whole(place: Place) -> None:
    table, _ = table_with_an_old_snapshot(place)
    table.create_branch("staging")
    table.at("staging").append(rows(3))
    table.append(rows(4))

    def drop() -> None:
        place.other.table("t.t").drop_branch("staging")
        place.other.table("t.t").expire_snapshots(FUTURE)

    before_the_next_commit(place, drop)
    with pytest.raises(IcefieldError):
        table.publish("staging")
    assert ids(place.other.table("t.t")) == [2, 4]
    assert not table.fsck().findings
