"""The REST client: configuration, addresses, pages, rights, and the words of a server that refuses."""

import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest
from tests.rest_server import Reply, RestServer, answer, failure, lose_reply, lose_request, running_server

from icefield.ambient import SeededAmbient
from icefield.catalog.catalog import Kind, PointerSwap
from icefield.catalog.rest.catalog import RestCatalog, open_rest_catalog
from icefield.catalog.rest.settings import RestSettings
from icefield.errors import (
    AlreadyExists,
    CatalogError,
    CommitStateUnknown,
    IcefieldError,
    InvalidInput,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NotFound,
    Unsupported,
)
from icefield.model.names import TableName, parse_table_name
from icefield.storage.memory import MemoryStore

SECRET = "hunter2:and:colons"
T = parse_table_name("a.t")


@pytest.fixture
def server() -> Iterator[RestServer]:
    with running_server(MemoryStore(), "memory://lake") as made:
        yield made


class Connect:
    """Opens catalogs, and closes them all in the end."""

    def __init__(self, opened: ExitStack) -> None:
        self._opened = opened

    def __call__(self, server: RestServer, ambient: SeededAmbient | None = None, **properties: str) -> RestCatalog:
        named = {key.replace("_", "-").replace("header-", "header."): value for key, value in properties.items()}
        return self.to(server.url, RestSettings(None, named), ambient or SeededAmbient(1))

    def to(self, url: str, settings: RestSettings, ambient: SeededAmbient | None = None) -> RestCatalog:
        catalog = open_rest_catalog(url, settings=settings, ambient=ambient)
        self._opened.callback(catalog.close)
        return catalog


@pytest.fixture
def connect() -> Iterator[Connect]:
    with ExitStack() as opened:
        yield Connect(opened)


@pytest.mark.parametrize("prefix", ["", "main", "a/b"])
def test_the_server_names_the_prefix_and_the_client_may(connect: Connect, server: RestServer, prefix: str) -> None:
    server.prefix = prefix
    connect(server).create_namespace(("a",))
    assert connect(server).list_namespaces() == [("a",)]


def test_configuration_is_defaults_then_the_client_then_overrides(connect: Connect, server: RestServer) -> None:
    server.defaults = {"s3.endpoint": "default", "client.region": "default"}
    server.overrides = {"s3.access-key-id": "override"}
    settings = RestSettings("lake", {"client.region": "mine", "s3.access-key-id": "mine"})
    catalog = connect.to(f"{server.url}/v1/", settings)
    found = catalog.properties
    assert (found["s3.endpoint"], found["client.region"], found["s3.access-key-id"]) == ("default", "mine", "override")
    assert server.asked("GET", "/v1/config?warehouse=lake")
    assert "mine" not in repr(catalog) + repr(settings)


def test_the_separator_of_namespaces_is_the_servers(connect: Connect, server: RestServer) -> None:
    for separator in ("\x1f", ".", "$%"):
        server.separator = separator
        catalog = connect(server)
        catalog.create_namespace(("x", "y"), {"of": separator})
        assert catalog.list_namespaces(("x",)) == [("x", "y")]
        assert catalog.namespace_properties(("x", "y")) == {"of": separator}
        catalog.drop_namespace(("x", "y"))


def test_names_are_one_segment_whatever_is_in_them(connect: Connect, server: RestServer) -> None:
    catalog = connect(server)
    name = TableName(("a b+c%2F?#&",), "d e+f%20;ü=")
    catalog.create_namespace(name.namespace)
    with pytest.raises(NoSuchTable):
        catalog.pointer(name)
    path = server.asked("GET", "/tables/")[0][0]
    assert path.endswith("/namespaces/a%20b%2Bc%252F%3F%23%26/tables/d%20e%2Bf%2520%3B%C3%BC%3D")


@pytest.mark.parametrize("by_client", [True, False], ids=["the client asks", "the server insists"])
def test_lists_come_in_pages(connect: Connect, server: RestServer, by_client: bool) -> None:
    server.page_size = None if by_client else 2
    catalog = connect.to(server.url, RestSettings(None, {"rest-page-size": "3"} if by_client else {}))
    for number in range(7):
        catalog.create_namespace((f"n{number}",))
    assert len(catalog.list_namespaces()) == 7
    assert len(server.asked("GET", "/namespaces?")) in (3, 4)


def test_a_server_that_gives_the_same_page_for_ever_is_found_out(connect: Connect, server: RestServer) -> None:
    catalog = connect(server)
    server.fail("GET", "/namespaces", lambda _: Reply(body={"namespaces": [["a"]], "next-page-token": "x"}), times=9)
    with pytest.raises(CatalogError, match="repeatedly"):
        catalog.list_namespaces()


def test_parents_are_made_where_the_server_wants_them(connect: Connect, server: RestServer) -> None:
    catalog = connect(server)
    server.fail("POST", "/namespaces", lambda _: failure(404, "NoSuchNamespaceException", "no parent"))
    catalog.create_namespace(("a", "b"))
    made = [body for _, _, body in server.asked("POST", "/namespaces")]
    assert [b'["a","b"]' in body for body in made] == [True, False, True]


@pytest.mark.parametrize("status", [429, 502, 503, 504, "cut"])
def test_reads_are_sent_again_while_a_server_is_busy(connect: Connect, server: RestServer, status: int | str) -> None:
    catalog = connect(server)
    fault = lose_request if isinstance(status, str) else answer(status)
    server.fail("GET", "/namespaces", fault, times=3)
    assert catalog.list_namespaces() == []
    server.fail("GET", "/namespaces", fault, times=4)
    with pytest.raises(CatalogError, match="cannot list the namespaces"):
        catalog.list_namespaces()


@pytest.mark.parametrize("fault", [lose_reply, lose_request, answer(500), answer(503)])
def test_changes_are_not_sent_again(connect: Connect, server: RestServer, fault: Any) -> None:
    catalog = connect(server)
    server.fail("POST", "/namespaces", fault)
    with pytest.raises(CommitStateUnknown):
        catalog.create_namespace(("a",))
    assert len(server.asked("POST", "/namespaces")) == 1


def test_a_server_that_is_not_there_changed_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(CatalogError, match="cannot open the catalog|cannot reach") as error:
            open_rest_catalog(f"http://127.0.0.1:{taken.getsockname()[1]}", ambient=SeededAmbient(1))
    assert error.value.cleanable


def test_a_connection_that_the_server_closed_while_idle_costs_nothing(connect: Connect, server: RestServer) -> None:
    catalog = connect(server)
    catalog.list_namespaces()
    (connection,) = (c for kept in catalog._session.http._idle.values() for c in kept)
    far_end = connection.sock.getpeername()
    connection.sock.shutdown(socket.SHUT_RDWR)
    catalog.create_namespace(("a",))
    assert len(server.asked("POST", "/namespaces")) == 1
    assert far_end


def test_threads_have_connections_of_their_own(connect: Connect, server: RestServer) -> None:
    catalog = connect(server)
    catalog.create_namespace(("a",))
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for each in range(10):
                catalog.create_namespace(("a", f"n{number}x{each}"))
                assert ("a", f"n{number}x{each}") in catalog.list_namespaces(("a",))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(catalog.list_namespaces(("a",))) == 60


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (404, "NoSuchTableException", NoSuchTable),
        (404, "", NoSuchTable),
        (404, "NoSuchNamespaceException", NoSuchNamespace),
        (401, "NotAuthorizedException", CatalogError),
        (403, "ForbiddenException", CatalogError),
        (406, "UnsupportedOperationException", Unsupported),
        (405, "", Unsupported),
        (400, "BadRequestException", CatalogError),
        (500, "NoSuchTableException", CatalogError),
        (501, "", Unsupported),
    ],
)
def test_the_servers_words_become_our_errors(
    connect: Connect, server: RestServer, status: int, kind: str, error: type[IcefieldError]
) -> None:
    catalog = connect(server)
    server.fail("GET", "/tables/t", lambda _: failure(status, kind, "because"))
    with pytest.raises(error, match=f"cannot load table a.t: the catalog responded with {status}: because") as raised:
        catalog.pointer(T)
    assert type(raised.value) is error


@pytest.mark.parametrize("body", [b"<html>", b"", b'{"error": 7}', b'{"metadata": {}}', b"[" * 9999])
def test_answers_that_make_no_sense_are_errors_of_the_catalog(
    connect: Connect, server: RestServer, body: bytes
) -> None:
    catalog = connect(server)

    server.fail("GET", "/tables/t", lambda _: Reply(200, msgspec.Raw(body)))
    with pytest.raises(CatalogError):
        catalog.pointer(T)


def test_conflicts_of_names(connect: Connect, server: RestServer) -> None:
    catalog = connect(server)
    catalog.create_namespace(("a",))
    with pytest.raises(AlreadyExists):
        catalog.create_namespace(("a",))
    catalog.create_namespace(("a", "b"))
    with pytest.raises(NamespaceNotEmpty):
        catalog.drop_namespace(("a",))
    with pytest.raises(NoSuchTable):
        catalog.rename_table(T, parse_table_name("a.u"))
    with pytest.raises(NoSuchTable):
        catalog.swap([PointerSwap(T, "x", None)])
    with pytest.raises(NotFound):
        catalog.pointer(T, Kind.VIEW)


def test_headers_go_with_every_request(connect: Connect, server: RestServer) -> None:
    connect(server, header_X_Who="me").list_namespaces()
    assert {headers["x-who"] for _, _, headers, _ in server.requests} == {"me"}


def test_a_token_goes_with_every_request(connect: Connect, server: RestServer) -> None:
    server.clients = {}
    connect(server, token=server.new_token()).list_namespaces()
    with pytest.raises(CatalogError, match="401") as error:
        connect(server, token="wrong-secret")
    assert "wrong-secret" not in str(error.value)
    assert "Check the token" in str(error.value)


def test_a_credential_gets_a_token_once(connect: Connect, server: RestServer) -> None:
    server.clients = {"me": SECRET}
    catalog = connect(server, credential=f"me:{SECRET}", scope="all of it", audience="you")
    catalog.list_namespaces()
    ((_, _, form),) = server.asked("POST", "/oauth/tokens")
    assert b"scope=all+of+it" in form
    assert b"audience=you" in form


def test_a_token_is_renewed_before_it_expires(connect: Connect, server: RestServer) -> None:
    server.clients, server.token_seconds = {"me": SECRET}, 600
    ambient = SeededAmbient(1)
    catalog = connect(server, ambient, credential=f"me:{SECRET}")
    ambient.sleep(500)
    catalog.list_namespaces()
    assert len(server.asked("POST", "/oauth/tokens")) == 1
    ambient.sleep(60)
    catalog.list_namespaces()
    assert len(server.asked("POST", "/oauth/tokens")) == 2


@pytest.mark.parametrize("status", [401, 419])
def test_a_token_that_is_not_taken_any_more_is_renewed_once(connect: Connect, server: RestServer, status: int) -> None:
    server.clients = {"me": SECRET}
    catalog = connect(server, credential=f"me:{SECRET}")
    server.tokens.clear()
    server.fail("POST", "/namespaces", answer(status, "AuthenticationTimeoutException"))
    catalog.create_namespace(("a",))
    assert len(server.asked("POST", "/oauth/tokens")) == 2
    server.fail("GET", "/namespaces", answer(status), times=2)
    with pytest.raises(CatalogError, match=str(status)):
        catalog.list_namespaces()
    assert catalog.list_namespaces() == [("a",)], "a failure once is not one for ever"


def test_a_server_of_tokens_that_fails_once_is_asked_again(connect: Connect, server: RestServer) -> None:
    server.clients, server.token_seconds = {"me": SECRET}, 100
    ambient = SeededAmbient(1)
    catalog = connect(server, ambient, credential=f"me:{SECRET}")
    ambient.sleep(100)
    server.fail("POST", "/oauth/tokens", lose_request)
    with pytest.raises(CatalogError, match="no response from the token endpoint"):
        catalog.list_namespaces()
    assert catalog.list_namespaces() == []


def test_a_refused_credential_shows_in_no_message(connect: Connect, server: RestServer) -> None:
    server.clients = {"me": "another"}
    with pytest.raises(CatalogError, match="invalid_client") as error:
        connect(server, credential=f"me:{SECRET}")
    assert SECRET not in str(error.value)
    assert "***" in str(error.value)


def test_tokens_come_from_where_the_setting_says(connect: Connect, server: RestServer) -> None:
    with running_server(MemoryStore(), "memory://other") as giver:
        giver.clients = server.clients = {"me": SECRET}
        server.tokens = giver.tokens
        uri = f"{giver.url}/v1/oauth/tokens"
        connect(server, credential=f"me:{SECRET}", oauth2_server_uri=uri).list_namespaces()
        assert (len(giver.requests), len(server.asked("POST", "/oauth/tokens"))) == (1, 0)


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"token": "t-hidden", "credential": "c-hidden"}, "not both"),
        ({"oauth2-server-uri": "http://hidden"}, "requires a"),
        ({"rest-page-size": "hidden"}, "must be a number"),
        ({"rest-timeout-seconds": "0"}, "more than 0"),
        ({"header.bad name": "hidden"}, "not a valid header name"),
        ({"header.X": "hidden\r\nX-Other: 1"}, "not valid in a header"),
    ],
)
def test_wrong_settings_are_refused_without_showing_values(properties: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as error:
        RestSettings(None, properties)
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://me:pass@x", "http://x?token=secret", "x"])
def test_wrong_addresses_are_refused_without_showing_them(url: str) -> None:
    with pytest.raises(InvalidInput) as error:
        open_rest_catalog(url)
    assert not any(word in str(error.value) for word in ("pass", "secret"))


def test_an_empty_credential_is_refused(connect: Connect, server: RestServer) -> None:
    with pytest.raises(InvalidInput, match="client-id:secret"):
        connect(server, credential=":")


def test_a_server_that_does_not_say_what_it_has_is_taken_to_have_the_usual(
    connect: Connect, server: RestServer
) -> None:
    server.endpoints = None
    catalog = connect(server)
    catalog.create_namespace(("a",))
    assert catalog.swaps_many
    assert catalog.list_views(("a",)) == []
    assert catalog.find(T) is None
    assert not server.asked("GET", "/views")
    assert connect(server, view_endpoints_supported="true").views.are_there


def test_a_catalog_with_connections_is_not_pickled(connect: Connect, server: RestServer) -> None:
    with pytest.raises(Unsupported, match="Open it there"):
        pickle.dumps(connect(server))


def test_a_child_process_does_not_use_its_parents_connections(connect: Connect, server: RestServer) -> None:
    catalog = connect(server)
    http = catalog._session.http
    (before,) = (connection for kept in http._idle.values() for connection in kept)
    http._process = -1  # as after a fork
    catalog.list_namespaces()
    assert before.sock is None
