"""A table is created once, whatever becomes of the answer."""

import pytest
from tests.commit.faults import LosesReplies

import icefield
from icefield.ambient import SeededAmbient
from icefield.errors import AlreadyExists, CommitStateUnknown
from icefield.lake import Lake


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:", ambient=SeededAmbient(1))


def through(lake: Lake, catalog: LosesReplies) -> Lake:
    return Lake(catalog, lake.store, lake.warehouse, lake.ambient)


@pytest.mark.parametrize("lands", [True, False], ids=["reply lost", "request lost"])
def test_a_lost_answer_is_settled(lake: Lake, lands: bool) -> None:
    made = through(lake, LosesReplies(lake.catalog, times=1, lands=lands)).create_table("a.t", "id long")
    assert lake.table("a.t").metadata_location == made.metadata_location


def test_whoever_came_first_keeps_the_name_and_nothing_is_left_of_the_other(lake: Lake) -> None:
    before = {f.location for f in lake.store.list(lake.warehouse)}
    broken = LosesReplies(lake.catalog, times=1, lands=False, then=lambda: lake.create_table("a.t", "x int"))
    with pytest.raises(AlreadyExists, match="somebody else"):
        through(lake, broken).create_table("a.t", "id long")
    assert [f.name for f in lake.table("a.t").schema.fields] == ["x"]
    left = {f.location for f in lake.store.list(lake.warehouse)} - before
    assert left == {lake.table("a.t").metadata_location}


def test_a_catalog_that_goes_silent_leaves_the_outcome_open_and_every_file(lake: Lake) -> None:
    broken = LosesReplies(lake.catalog, times=9, lands=True)
    broken.then = lambda: setattr(broken, "silent", True)
    with pytest.raises(CommitStateUnknown):
        through(lake, broken).create_table("a.t", "id long")
    assert lake.table("a.t").count() == 0
