"""Commits to views: races, lost replies, and what is left behind."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.commit.faults import LosesReplies, RacingCatalog, RecordingStore

from icefield.backend import Backend
from icefield.catalog.catalog import Kind
from icefield.commit.operations.views import load_view_metadata
from icefield.commit.view import ViewCommitter
from icefield.errors import AlreadyExists, CommitConflict, CommitStateUnknown, NotFound
from icefield.lake import Lake
from icefield.model.view import (
    SqlRepresentation,
    ViewDefinition,
    ViewMetadata,
    replace_version,
    set_properties,
)
from icefield.types.text import parse_schema

NAME = "shop.v"


def definition(sql: str) -> ViewDefinition:
    return ViewDefinition(parse_schema("id long"), (SqlRepresentation(sql, "spark"),), ("shop",))


def to(sql: str) -> Callable[[ViewMetadata, int], ViewMetadata]:
    return lambda base, now_ms: replace_version(base, definition(sql), now_ms)


@pytest.fixture
def lake(memory_lake: Lake) -> Lake:
    memory_lake.create_view(NAME, "SELECT 1", schema="id long")
    return memory_lake


def committer(lake: Lake, catalog: Any = None, store: Any = None) -> ViewCommitter:
    view = lake.view(NAME)._name
    return ViewCommitter(Backend(catalog or lake.catalog, store or lake.store, lake.ambient), view)


def replace_by(lake: Lake, sql: str) -> None:
    committer(lake).edit(to(sql), lake.view(NAME).metadata.view_uuid)


def queries(lake: Lake) -> list[str | None]:
    return [version.find_sql("spark") for version in lake.view(NAME).versions()]


def test_a_replacement_that_loses_the_race_is_made_again_on_the_new_base(lake: Lake) -> None:
    racing = RacingCatalog(lake.catalog, [lambda: replace_by(lake, "SELECT 2"), lambda: replace_by(lake, "SELECT 3")])
    store = RecordingStore(lake.store)
    committer(lake, racing, store).edit(to("SELECT 9"), lake.view(NAME).metadata.view_uuid)
    assert queries(lake) == ["SELECT 1", "SELECT 2", "SELECT 3", "SELECT 9"]
    assert racing.swaps == 3
    assert set(store.deleted) == set(store.written) - {lake.view(NAME).metadata_location}


def test_the_same_definition_is_no_commit(lake: Lake) -> None:
    before = lake.view(NAME).metadata_location
    replace_by(lake, "SELECT 1")
    assert lake.view(NAME).metadata_location == before


@pytest.mark.parametrize("lands", [True, False])
def test_a_lost_reply_is_settled_by_looking(lake: Lake, lands: bool) -> None:
    losing = LosesReplies(lake.catalog, times=1, lands=lands)
    committer(lake, losing).edit(to("SELECT 2"), lake.view(NAME).metadata.view_uuid)
    assert queries(lake) == ["SELECT 1", "SELECT 2"]


@pytest.mark.parametrize("lands", [True, False])
def test_a_lost_reply_is_settled_by_the_version_log_when_others_moved_on(lake: Lake, lands: bool) -> None:
    losing = LosesReplies(lake.catalog, times=1, lands=lands, then=lambda: replace_by(lake, "SELECT 3"))
    store = RecordingStore(lake.store)
    committer(lake, losing, store).edit(to("SELECT 2"), lake.view(NAME).metadata.view_uuid)
    # It landed before the rival, once; or was lost, and made again after it.
    assert queries(lake) == (["SELECT 1", "SELECT 2", "SELECT 3"] if lands else ["SELECT 1", "SELECT 3", "SELECT 2"])
    assert len(store.deleted) == (0 if lands else 1)


def test_properties_leave_no_trace_so_the_outcome_stays_unknown(lake: Lake) -> None:
    losing = LosesReplies(lake.catalog, times=1, lands=True, then=lambda: replace_by(lake, "SELECT 3"))
    store = RecordingStore(lake.store)
    with pytest.raises(CommitStateUnknown, match="view's history"):
        committer(lake, losing, store).edit(
            lambda base, _: set_properties(base, {"a": "1"}), lake.view(NAME).metadata.view_uuid
        )
    assert store.deleted == []


def test_a_view_that_always_loses_gives_up(lake: Lake) -> None:
    rivals = [lambda n=n: replace_by(lake, f"SELECT {n}") for n in range(2, 9)]
    with pytest.raises(CommitConflict, match="gave up"):
        committer(lake, RacingCatalog(lake.catalog, rivals)).edit(
            lambda base, now_ms: to("SELECT 99")(set_properties(base, {}), now_ms), limited(lake)
        )


def limited(lake: Lake) -> Any:
    """Let the view retry twice only."""
    uuid = lake.view(NAME).metadata.view_uuid
    committer(lake).edit(lambda base, _: set_properties(base, {"commit.retry.num-retries": "2"}), uuid)
    return uuid


def test_a_view_recreated_is_another_view(lake: Lake) -> None:
    old = lake.view(NAME)
    uuid = old.metadata.view_uuid
    lake.drop_view(NAME)
    gone = ViewCommitter(Backend(lake.catalog, lake.store, lake.ambient), old._name)
    with pytest.raises(NotFound, match="there is no view"):
        gone.edit(to("SELECT 2"), uuid)
    lake.create_view(NAME, "SELECT 5", schema="id long")
    with pytest.raises(NotFound, match="recreated"):
        committer(lake).edit(to("SELECT 2"), uuid)
    with pytest.raises(NotFound, match="recreated"):
        old.refresh()


def test_a_creation_that_is_refused_leaves_no_file(lake: Lake) -> None:
    store = RecordingStore(lake.store)
    with pytest.raises(AlreadyExists, match="already used by a view"):
        committer(lake, None, store).create("memory://lake/x", definition("SELECT 1"), {})
    assert store.deleted == store.written
    assert len(store.written) == 1


def test_metadata_files_count_up_and_lie_where_the_view_says(lake: Lake) -> None:
    replace_by(lake, "SELECT 2")
    location = lake.view(NAME).metadata_location
    view = load_view_metadata(lake.store, lake.catalog.pointer(lake.view(NAME)._name, Kind.VIEW))
    assert location.startswith(f"{view.location}/metadata/00001-")
    assert location.endswith(".metadata.json")
