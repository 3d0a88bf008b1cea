"""REST servers that flood, drip or send the client elsewhere: bounded, and no credentials go along."""

import gzip
import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote

import msgspec
import pytest
from tests.rest_server import RestServer, running_server

import icefield
from icefield.catalog.rest.catalog import RestCatalog, open_rest_catalog
from icefield.catalog.rest.object_store import store_properties
from icefield.catalog.rest.settings import RestSettings
from icefield.errors import CatalogError, CommitStateUnknown, IcefieldError, InvalidInput
from icefield.model.names import TableName, parse_table_name
from icefield.storage.memory import MemoryStore

OK = b"HTTP/1.1 200 OK\r\n"
CONFIG = json.dumps({"defaults": {}, "overrides": {}}).encode()


@contextmanager
def raw_server(answer: Callable[[bytes], Iterable[bytes]]) -> Iterator[str]:
    """A server that sends pieces of bytes in answer to whatever it hears."""
    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def serve(client: socket.socket) -> None:
        with client:
            heard = b""
            while b"\r\n\r\n" not in heard:
                heard += client.recv(65536) or b"\r\n\r\n"
            try:
                for piece in answer(heard):
                    if stopped.is_set():
                        return
                    client.sendall(piece)
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stopped.set()
        listener.close()


def whole(body: bytes, *headers: bytes) -> bytes:
    return OK + b"".join(h + b"\r\n" for h in headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body


def open_at(url: str, **properties: str) -> RestCatalog:
    named = {key.replace("_", "-"): value for key, value in properties.items()}
    return open_rest_catalog(url, settings=RestSettings(None, {"rest-timeout-seconds": "1", **named}))


def drip() -> Iterator[bytes]:
    pause = threading.Event()
    for byte in itertools.cycle([b"x"]):
        pause.wait(0.05)
        yield byte


FLOODS: dict[str, Callable[[], Iterable[bytes]]] = {
    "announced": lambda: [OK + b"Content-Length: 99999999999\r\n\r\n"],
    "endless": lambda: itertools.chain([OK + b"Connection: close\r\n\r\n"], itertools.repeat(b" " * 65536)),
    "chunked": lambda: itertools.chain(
        [OK + b"Transfer-Encoding: chunked\r\n\r\n"], itertools.repeat(b"10000\r\n" + b" " * 65536 + b"\r\n")
    ),
    "bomb": lambda: [whole(gzip.compress(b" " * (80 << 20)), b"Content-Encoding: gzip")],
    "header": lambda: itertools.chain([OK], itertools.repeat(b"X-A: " + b"a" * 60_000 + b"\r\n")),
    "body drips": lambda: itertools.chain([OK + b"Content-Length: 100000\r\n\r\n"], drip()),
    "header drips": lambda: itertools.chain([OK + b"X-A: "], drip()),
    "other encoding": lambda: [whole(b"x", b"Content-Encoding: br")],
    "cut short": lambda: [OK + b"Content-Length: 100\r\n\r\n{"],
    "half of gzip": lambda: [whole(gzip.compress(CONFIG)[:-9], b"Content-Encoding: gzip")],
}


@pytest.mark.slow
@pytest.mark.parametrize("flood", FLOODS)
def test_a_server_that_floods_or_drips_is_left(flood: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefield.catalog.rest.session.TRIES", 2)
    monkeypatch.setattr("icefield.catalog.rest.session.FIRST_PAUSE_SECONDS", 0.0)
    with raw_server(lambda _: FLOODS[flood]()) as url, pytest.raises(CatalogError, match="open the catalog"):
        open_at(url)


def test_a_compressed_answer_is_read() -> None:
    with raw_server(lambda _: [whole(gzip.compress(CONFIG), b"Content-Encoding: gzip")]) as url:
        open_at(url).close()


def test_metadata_has_a_bound_that_can_be_set_and_small_answers_another() -> None:
    body = json.dumps({"metadata-location": "memory://x", "metadata": {"a": "x" * 5000}}).encode()

    def answer(heard: bytes) -> Iterable[bytes]:
        return [whole(CONFIG if b"/config" in heard else body)]

    table = parse_table_name("a.t")
    with raw_server(answer) as url:
        catalog = open_at(url, rest_max_answer_bytes="4000")
        with pytest.raises(CatalogError, match=r"more than 4,000 bytes.*rest-max-answer-bytes"):
            catalog.tables.load(table)
        with pytest.raises(CommitStateUnknown, match="more than 4,000 bytes"):
            catalog.create_namespace(("a",))
        catalog.close()
        catalog = open_at(url, rest_max_answer_bytes="6000")
        loaded = catalog.tables.load(table)
        assert loaded is not None
        assert loaded.location == "memory://x"
        catalog.close()


@pytest.fixture
def server() -> Iterator[RestServer]:
    with running_server(MemoryStore(), "memory://lake") as made:
        yield made


@pytest.mark.parametrize("where", ["overrides", "defaults"])
@pytest.mark.parametrize("properties", [{"token": "secret-token"}, {"credential": "a:secret"}, {}], ids=str)
def test_a_server_cannot_send_the_client_to_another(where: str, properties: dict[str, str], server: RestServer) -> None:
    heard: list[bytes] = []

    def other(request: bytes) -> Iterable[bytes]:
        heard.append(request)
        return [whole(CONFIG)]

    with raw_server(other) as url:
        server.clients = {"a": "secret"} if "credential" in properties else None
        setattr(server, where, {"uri": url})
        with pytest.raises(CatalogError, match="redirects to .* rest-trusted-origins"):
            open_at(server.url, **properties)
        assert heard == []
        catalog = open_at(server.url, **properties, rest_trusted_origins=f"https://other.example, {url}")
        assert catalog.list_namespaces() == []
        catalog.close()
        assert len(heard) == 1


@pytest.mark.parametrize(
    "uri",
    [
        "https://{host}:{port}",
        "http://{host}:1",
        "http://localhost:{port}",
        "http://u:p@{host}:{port}",
        "ftp://{host}",
        "//x",
    ],
)
def test_another_scheme_host_or_port_is_another_server(uri: str, server: RestServer) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    server.overrides = {"uri": uri.format(host=host, port=port)}
    with pytest.raises(IcefieldError):
        open_at(server.url, token="secret-token")


def test_the_same_server_under_another_path_is_fine(server: RestServer) -> None:
    server.overrides = {"uri": server.url + "/"}
    open_at(server.url, token="secret-token").close()


@pytest.mark.parametrize("prefix", ["..", "a/../../b", "%2e%2e/b", "%252e%252e", "a//b", "a/./b", "a\\..\\b", "a\nb"])
def test_a_prefix_stays_below_the_catalogs_address(prefix: str, server: RestServer) -> None:
    server.prefix = ""
    server.overrides = {"prefix": prefix}
    with pytest.raises(CatalogError, match="prefix"):
        open_at(server.url)


@pytest.mark.parametrize("name", [".", ".."])
def test_names_cannot_leave_their_place(name: str, server: RestServer) -> None:
    catalog = open_at(server.url)
    asked = len(server.requests)
    for act in (
        lambda: catalog.tables.load(TableName(("a",), name)),
        lambda: catalog.tables.load(TableName((name,), "t")),
        lambda: catalog.list_tables((name,)),
    ):
        with pytest.raises(InvalidInput, match="cannot be part of a name"):
            act()
    assert len(server.requests) == asked
    catalog.close()


def test_the_users_credentials_go_to_no_object_store_that_the_server_names(server: RestServer) -> None:
    endpoint, keys = "http://elsewhere.example", {"s3.access-key-id": "id", "s3.secret-access-key": "key"}
    server.overrides = {"s3.endpoint": endpoint}
    for own in ({}, keys):
        with pytest.raises(InvalidInput, match=r"elsewhere.example:80, which would receive your credentials"):
            icefield.connect(server.url, properties=own)
        for more in ({"rest-trusted-origins": endpoint}, {"s3.endpoint": "http://mine.example"}):
            icefield.connect(server.url, properties={**own, **more}).close()
    server.overrides = {"s3.endpoint": endpoint, **keys}
    icefield.connect(server.url).close()


@pytest.mark.parametrize("name", ["session-token", "access-key-id", "secret-access-key", "aws-session-token"])
def test_credentials_of_user_and_server_are_not_mixed(name: str) -> None:
    endpoint, own = "http://elsewhere.example", {f"s3.{name}": "the user's"}
    servers = {"s3.access-key-id": "id", "s3.secret-access-key": "key", "s3.session-token": "token"}
    said = {"s3.endpoint": endpoint, "s3.region": "x", **servers}
    with pytest.raises(InvalidInput, match="which would receive your credentials"):
        store_properties(said, own, ())
    expected = {"s3.endpoint": endpoint, "s3.region": "x", **own}
    assert store_properties(said, own, {f"{endpoint}:80"}) == expected
    public = {"s3.region": "mine", "s3.allow-http": "true", "gs.token": "of another store"}
    assert store_properties(said, public, ()) == {**said, **public}
    assert store_properties({**said, **own}, own, {f"{endpoint}:80"}) == expected


def test_a_session_token_of_the_environment_goes_to_no_store_of_the_server(
    server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[bytes] = []

    def store(request: bytes) -> Iterable[bytes]:
        heard.append(request.lower())
        return [b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"]

    for name in ("AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "planted-by-the-user")
    keys = {"s3.access-key-id": "of-the-server", "s3.secret-access-key": "key", "s3.region": "x"}
    with raw_server(store) as url:
        server.overrides = {"s3.endpoint": url, **keys}
        with icefield.connect(server.url) as lake, pytest.raises(IcefieldError):
            lake.store.read("s3://bucket/key")
        server.overrides["s3.session-token"] = "token-of-the-server"
        with icefield.connect(server.url) as lake, pytest.raises(IcefieldError):
            lake.store.read("s3://bucket/key")
    assert not any(b"planted" in request for request in heard)
    assert [b"of-the-server" in request for request in heard] == [True, True]
    assert [b"x-amz-security-token: token-of-the-server" in request for request in heard] == [False, True]


def test_pages_end(server: RestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count()

    def answer(heard: bytes) -> Iterable[bytes]:
        if b"/config" in heard:
            return [whole(CONFIG)]
        return [whole(msgspec.json.encode({"namespaces": [], "next-page-token": str(next(numbers))}))]

    monkeypatch.setattr("icefield.catalog.rest.session.MAX_PAGES", 20)
    with raw_server(answer) as url:
        catalog = open_at(url)
        with pytest.raises(CatalogError, match="more than 20 pages"):
            catalog.list_namespaces()
        catalog.close()


def nest(path: str) -> list[list[str]]:
    parent = parse_qs(path.partition("?")[2]).get("parent", [""])[0]
    return [[*parent.split("\x1f"), "x"] if parent else ["x"]]


NAMESPACES: dict[str, tuple[Callable[[str], list[list[str]]], list[str] | None]] = {
    "one level": (lambda path: [] if "parent=" in path else [["a"], ["b"]], ["a.t", "b.t"]),
    "parent is ignored": (lambda _: [["a"], ["b"]], ["a.t", "b.t"]),
    "parent is its own child": (lambda _: [["a"]], ["a.t"]),
    "no name": (lambda _: [[]], []),
    "all at once": (lambda _: [["a"], ["a", "b"]], ["a.t", "a.b.t"]),
    "ever deeper": (nest, None),
}


@pytest.mark.parametrize("case", NAMESPACES)
def test_namespaces_end(case: str) -> None:
    said, tables = NAMESPACES[case]

    def answer(heard: bytes) -> Iterable[bytes]:
        path = heard.split()[1].decode()
        if "/config" in path:
            return [whole(CONFIG)]
        if "/tables" in path:
            space = unquote(path.split("/")[-2]).split("\x1f")
            return [whole(msgspec.json.encode({"identifiers": [{"namespace": space, "name": "t"}]}))]
        return [whole(msgspec.json.encode({"namespaces": said(path)}))]

    with raw_server(answer) as url, icefield.connect(url) as lake:
        if tables is None:
            with pytest.raises(CatalogError, match="more than 100 levels"):
                lake.tables()
            with pytest.raises(CatalogError, match="more than 100 levels"):
                lake.catalog.entries()
        else:
            assert lake.tables() == tables
