"""A table is created once, whatever becomes of the answer."""

from collections.abc import Callable

import pytest
from tests.commit.faults import LosesReplies

import icefield
from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.errors import CommitStateUnknown
from icefield.lake import Lake


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:", ambient=SeededAmbient(1))


def through(lake: Lake, catalog: LosesReplies) -> Lake:
    return Lake(Backend(catalog, lake.store, lake.ambient), lake.warehouse)


def files(lake: Lake) -> set[str]:
    return {f.location for f in lake.store.list(lake.warehouse)}


def test_a_lost_answer_is_settled(lake: Lake) -> None:
    made = through(lake, LosesReplies(lake.catalog, times=1, lands=True)).create_table("a.t", "id long")
    assert lake.table("a.t").metadata_location == made.metadata_location


def test_a_creation_is_never_sent_again_while_its_name_is_free(lake: Lake) -> None:
    broken = LosesReplies(lake.catalog, times=1, lands=False)
    with pytest.raises(CommitStateUnknown):
        through(lake, broken).create_table("a.t", "id long")
    assert not lake.has_table("a.t")
    assert len(files(lake)) == 1  # its metadata: the request may still arrive


def drop(lake: Lake) -> None:
    lake.drop_table("a.t")


def rename(lake: Lake) -> None:
    lake.rename_table("a.t", "a.u")


def take_the_name(lake: Lake) -> None:
    lake.create_table("a.t", "x int")


@pytest.mark.parametrize(
    ("since", "left"),
    [
        ([drop], {}),
        ([rename], {"a.u": "id"}),
        ([drop, take_the_name], {"a.t": "x"}),
        ([rename, take_the_name], {"a.u": "id", "a.t": "x"}),
    ],
    ids=["dropped", "renamed", "dropped and the name taken", "renamed and the name taken"],
)
def test_a_table_that_moved_on_before_its_creation_was_settled_is_left_alone(
    lake: Lake, since: list[Callable[[Lake], None]], left: dict[str, str]
) -> None:
    broken = LosesReplies(lake.catalog, times=1, lands=True, then=lambda: [each(lake) for each in since])
    with pytest.raises(CommitStateUnknown):
        through(lake, broken).create_table("a.t", "id long")
    assert {name: lake.table(name).schema.fields[0].name for name in lake.tables()} == left
    pointers = [lake.table(name).metadata_location for name in lake.tables()]
    assert len(set(pointers)) == len(pointers)


def test_another_table_under_the_name_does_not_prove_that_ours_was_never_created(lake: Lake) -> None:
    broken = LosesReplies(lake.catalog, times=1, lands=False, then=lambda: take_the_name(lake))
    with pytest.raises(CommitStateUnknown):
        through(lake, broken).create_table("a.t", "id long")
    assert lake.table("a.t").schema.fields[0].name == "x"
    assert len(files(lake)) == 2


def test_a_catalog_that_goes_silent_leaves_the_outcome_open_and_every_file(lake: Lake) -> None:
    broken = LosesReplies(lake.catalog, times=9, lands=True)
    broken.then = lambda: setattr(broken, "silent", True)
    with pytest.raises(CommitStateUnknown):
        through(lake, broken).create_table("a.t", "id long")
    assert lake.table("a.t").count() == 0
