"""Taking snapshots out of a history: what retention rules keep, and what happens to refs that race with it."""

import datetime

import pyarrow as pa
import pytest
from tests.commit.racing import files_of, race

import icefield
from icefield.errors import CommitConflict, InvalidInput, NoSuchSnapshot
from icefield.lake import Lake
from icefield.model import apply as model_apply
from icefield.model.updates import RemoveSnapshots
from icefield.table.table import Table

FUTURE = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table("t.t", "id long")
    for number in range(5):
        made.append(pa.table({"id": [number]}))
    return made


def ids(table: Table) -> list[int]:
    return [s.snapshot_id for s in table.snapshots()]


def test_only_the_head_of_a_branch_is_sure_to_stay(lake: Lake, table: Table) -> None:
    before = ids(table)
    files = files_of(lake)
    assert list(table.expire_snapshots(FUTURE).snapshot_ids) == sorted(before[:-1])
    assert ids(table) == before[-1:]
    assert table.count() == 5
    assert files <= files_of(lake), "no file is removed with its snapshot"


def test_a_dry_run_says_what_would_go(table: Table) -> None:
    before = ids(table)
    assert list(table.expire_snapshots(FUTURE, keep_last=2, dry_run=True).snapshot_ids) == sorted(before[:-2])
    assert ids(table) == before


def test_young_snapshots_stay(table: Table) -> None:
    before = ids(table)
    assert table.expire_snapshots().snapshot_ids == ()
    assert ids(table) == before


def test_a_branch_keeps_as_many_as_it_says(table: Table) -> None:
    before = ids(table)
    table.create_branch("b", at=before[3], min_snapshots_to_keep=3)
    table.expire_snapshots(FUTURE)
    assert ids(table) == before[1:]


def test_the_age_of_a_branch_comes_before_the_time_that_is_given(table: Table) -> None:
    before = ids(table)
    table.create_branch("b", at=before[3], max_snapshot_age_ms=10**9)
    table.expire_snapshots(FUTURE)
    assert ids(table) == before


def test_a_tag_keeps_its_snapshot_and_no_other(table: Table) -> None:
    before = ids(table)
    table.create_tag("q", at=before[1])
    table.expire_snapshots(FUTURE)
    assert ids(table) == [before[1], before[-1]]


def test_refs_past_their_age_go(lake: Lake, table: Table) -> None:
    before = ids(table)
    table.create_tag("q", at=before[1], max_ref_age_ms=1)
    lake.ambient.sleep(0.01)
    table.expire_snapshots(FUTURE)
    assert (set(table.refs()), ids(table)) == ({"main"}, before[-1:])


def test_snapshots_that_no_ref_leads_to_go_by_their_age(table: Table) -> None:
    before = ids(table)
    table.rollback(before[2])
    assert table.expire_snapshots(keep_last=1).snapshot_ids == ()
    table.expire_snapshots(FUTURE, keep_last=9)
    assert ids(table) == before[:3]


def test_r08_a_tag_that_comes_concurrently_keeps_its_snapshot(lake: Lake, table: Table) -> None:
    before = ids(table)
    race(lake, lambda: lake.table("t.t").create_tag("q", at=before[1]), lambda: table.expire_snapshots(FUTURE))
    assert ids(table) == [before[1], before[-1]]
    assert table.scan(as_of="q").count() == 2


def test_r08_a_tag_on_a_snapshot_that_goes_concurrently_fails(lake: Lake, table: Table) -> None:
    before = ids(table)
    with pytest.raises(NoSuchSnapshot):
        race(lake, lambda: lake.table("t.t").expire_snapshots(FUTURE), lambda: table.create_tag("q", at=before[1]))
    assert set(table.refs()) == {"main"}


def test_r08_a_snapshot_that_a_ref_points_at_cannot_be_removed_even_by_name(table: Table) -> None:
    before = ids(table)
    table.create_tag("q", at=before[1])
    with pytest.raises(InvalidInput, match="the tag 'q' points at it"):
        table.remove_snapshots([before[1]])
    with pytest.raises(CommitConflict):
        model_apply.apply(table.metadata, [RemoveSnapshots(frozenset([before[1]]))], 0)
    table.remove_snapshots([before[0], before[2]])
    assert ids(table) == [before[1], before[3], before[4]]


def test_r09_what_a_branch_was_rolled_back_to_stays(lake: Lake, table: Table) -> None:
    before = ids(table)
    race(lake, lambda: lake.table("t.t").rollback(before[1]), lambda: table.expire_snapshots(FUTURE))
    assert ids(table) == [before[1]]
    assert table.count() == 2


def test_r09_a_roll_back_to_what_expires_concurrently_fails(lake: Lake, table: Table) -> None:
    before = ids(table)
    with pytest.raises(NoSuchSnapshot):
        race(lake, lambda: lake.table("t.t").expire_snapshots(FUTURE), lambda: table.rollback(before[1]))
    assert table.count() == 5


def test_writers_go_on_where_history_was_cut(lake: Lake, table: Table) -> None:
    race(
        lake,
        lambda: lake.table("t.t").expire_snapshots(FUTURE),
        lambda: table.overwrite(pa.table({"id": [9]}), where="id < 3", check_rows=False),
    )
    assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [3, 4, 9]
