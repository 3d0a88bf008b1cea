"""Views through a REST catalog. (What the query gives is Spark's matter; see test_views.py.)"""

from collections.abc import Callable, Iterator

import pytest
from tests.rest_server import RestServer, answer, lose_reply, lose_request, running_server

from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.catalog.rest.catalog import open_rest_catalog
from icefield.errors import AlreadyExists, CommitStateUnknown, NotFound, Unsupported
from icefield.lake import Lake
from icefield.storage.memory import MemoryStore

NAME, VIEW = "a.v", "/views/v"
ONE, TWO = "SELECT 1 AS x", "SELECT 2 AS x"


@pytest.fixture
def server() -> Iterator[RestServer]:
    with running_server(MemoryStore(), "memory://lake") as made:
        yield made


def open_lake(server: RestServer) -> Lake:
    ambient = SeededAmbient(1)
    return Lake(Backend(open_rest_catalog(server.url, ambient=ambient), server.service.store, ambient), server.url)


@pytest.fixture
def lake(server: RestServer) -> Iterator[Lake]:
    with open_lake(server) as made:
        made.create_view(NAME, ONE, schema="x int", properties={"k": "v"})
        yield made


def test_a_view_is_made_replaced_renamed_and_dropped(server: RestServer, lake: Lake) -> None:
    view = lake.view(NAME)
    assert (view.sql, view.properties, [f.name for f in view.schema.fields]) == (ONE, {"k": "v"}, ["x"])
    assert view.metadata.location.startswith("memory://lake/a/v-")
    with pytest.raises(AlreadyExists):
        lake.create_view(NAME, TWO, schema="x int")
    lake.create_view(NAME, TWO, schema="x int, y string", properties={"k": "w"}, replace=True)
    assert (view.sql, view.properties, [f.name for f in view.schema.fields]) == (TWO, {"k": "w"}, ["x", "y"])
    assert [v.version_id for v in view.versions()] == [1, 2]
    lake.create_view(NAME, ONE, schema="x int", replace=True)
    assert view.metadata.current_version_id == 1, "a query that was there before is pointed at again"
    lake.rename_view(NAME, "a.w")
    assert (lake.views("a"), lake.has_view(NAME), lake.tables("a")) == (["a.w"], False, [])
    lake.drop_view("a.w")
    with pytest.raises(NotFound):
        lake.view("a.w")


def test_a_replacement_that_changes_nothing_is_not_sent(server: RestServer, lake: Lake) -> None:
    lake.create_view(NAME, ONE, schema="x int", properties={"k": "v"}, replace=True)
    assert server.asked("POST", VIEW) == []


@pytest.mark.parametrize("fault", [lose_reply, lose_request, answer(503), answer(500, lands=True)])
def test_a_lost_answer_is_settled_by_what_shows(server: RestServer, lake: Lake, fault: Callable[..., None]) -> None:
    server.fail("POST", VIEW, fault)
    lake.create_view(NAME, TWO, schema="x int", replace=True)
    assert lake.view(NAME).sql == TWO
    assert len(lake.view(NAME).versions()) == 2


def test_a_lost_answer_that_cannot_be_settled_is_said(server: RestServer, lake: Lake) -> None:
    def overtake(_: object) -> None:
        with open_lake(server) as other:
            other.create_view(NAME, "SELECT 3 AS x", schema="x int", replace=True)

    server.fail("POST", VIEW, overtake)
    with pytest.raises(CommitStateUnknown):
        lake.create_view(NAME, TWO, schema="x int", replace=True)


def test_a_view_made_anew_is_another_one(lake: Lake) -> None:
    view = lake.view(NAME)
    lake.drop_view(NAME)
    lake.create_view(NAME, TWO, schema="x int")
    with pytest.raises(NotFound, match="recreated"):
        _ = view.sql


def test_a_server_without_views_says_so(server: RestServer) -> None:
    server.endpoints = [endpoint for endpoint in server.endpoints or [] if "view" not in endpoint]
    with open_lake(server) as lake:
        with pytest.raises(Unsupported, match="has no views"):
            lake.create_view(NAME, ONE, schema="x int")
        assert lake.views() == []
        assert not lake.has_view(NAME)
