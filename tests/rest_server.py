"""A real HTTP server that speaks Iceberg's REST protocol, for tests; and fails on purpose.

    with running_server(store, warehouse) as server:
        server.fail("POST", "/tables/", lose_reply)

A fault is a function of the request's effect: it may make it, once or twice or not at all, and answer something else or
nothing. Settings are plain attributes, changed before a client connects.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlsplit

import msgspec

from icefield.ambient import Ambient, SystemAmbient
from icefield.catalog.catalog import Kind
from icefield.errors import (
    AlreadyExists,
    CommitConflict,
    IcefieldError,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NotFound,
)
from icefield.model.names import Namespace, TableName
from icefield.storage.store import Store
from tests.rest_service import Json, Loaded, RestService

V1 = "/v1/{prefix}"
NAMESPACE, TABLE = f"{V1}/namespaces/{{namespace}}", f"{V1}/namespaces/{{namespace}}/tables/{{table}}"
VIEW = f"{V1}/namespaces/{{namespace}}/views/{{view}}"
ERRORS: list[tuple[type[IcefieldError], int, str]] = [
    (NoSuchTable, 404, "NoSuchTableException"),
    (NoSuchNamespace, 404, "NoSuchNamespaceException"),
    (NotFound, 404, "NoSuchViewException"),
    (AlreadyExists, 409, "AlreadyExistsException"),
    (NamespaceNotEmpty, 409, "NamespaceNotEmptyException"),
    (CommitConflict, 409, "CommitFailedException"),
    (IcefieldError, 400, "BadRequestException"),
]


@dataclass(frozen=True)
class Reply:
    """An answer to be sent."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


Effect = Callable[[], Reply]
Fault = Callable[[Effect], Reply | None]


def lose_reply(effect: Effect) -> None:
    """Make the change and hang up."""
    effect()


def lose_request(effect: Effect) -> None:
    """Hang up without making the change."""


def twice(effect: Effect) -> Reply:
    """Make the change twice, as a gateway does that tries again, and answer for the second."""
    effect()
    return effect()


def answer(status: int, kind: str = "ServiceFailure", *, lands: bool = False) -> Fault:
    """Answer with a failure, after the change was made or without making it."""

    def fault(effect: Effect) -> Reply:
        if lands:
            effect()
        return failure(status, kind, "failed on purpose")

    return fault


def failure(status: int, kind: str, message: str) -> Reply:
    """An error in the form of the protocol. (ErrorModel)"""
    return Reply(status, {"error": {"message": message, "type": kind, "code": status}})


class RestServer:
    """The server's state and settings."""

    def __init__(self, service: RestService) -> None:
        self.service = service
        self.url = ""
        self.prefix = "warehouses/main"
        self.separator = "\x1f"
        self.endpoints: list[str] | None = [f"{method} {path}" for method, path, _ in ROUTES]
        self.defaults: dict[str, str] = {}
        self.overrides: dict[str, str] = {}
        self.takes_keys = False
        self.page_size: int | None = None
        self.clients: dict[str, str] | None = None  # id and secret; None: anybody may ask
        self.token_seconds = 3600
        self.tokens: set[str] = set()
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.replies: dict[str, Reply] = {}
        self.faults: list[tuple[str, str, Fault]] = []
        self._numbers = count(1)

    def fail(self, method: str, part: str, fault: Fault, times: int = 1) -> None:
        """Have the next requests fail whose path holds a text."""
        self.faults.extend([(method, part, fault)] * times)

    def asked(self, method: str, part: str) -> list[tuple[str, dict[str, str], bytes]]:
        """Return the requests that came: path and query, headers, body."""
        return [(path, headers, body) for m, path, headers, body in self.requests if m == method and part in path]

    def handle(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Reply | None:
        """Answer a request; None hangs up."""
        self.requests.append((method, target, headers, body))
        url = urlsplit(target)
        fault = self._take_fault(method, url.path)

        def effect() -> Reply:
            return self._keyed(headers, lambda: self._answer(method, url.path, parse_query(url.query), headers, body))

        return effect() if fault is None else fault(effect)

    def new_token(self) -> str:
        """Give out a token."""
        token = f"token-{next(self._numbers)}"
        self.tokens.add(token)
        return token

    def _take_fault(self, method: str, path: str) -> Fault | None:
        for at, (wanted, part, fault) in enumerate(self.faults):
            if wanted == method and part in path:
                del self.faults[at]
                return fault
        return None

    def _keyed(self, headers: dict[str, str], effect: Effect) -> Reply:
        key = headers.get("idempotency-key")
        if key is None or not self.takes_keys:
            return effect()
        if key not in self.replies:
            self.replies[key] = effect()
        return self.replies[key]

    def _answer(self, method: str, path: str, query: Json, headers: dict[str, str], body: bytes) -> Reply:
        if path == "/v1/oauth/tokens":
            return self._give_token(dict(parse_qsl(body.decode())))
        if self.clients is not None and headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return failure(401, "NotAuthorizedException", "no such token")
        if path == "/v1/config":
            return self._config()
        ask = Ask(self, query, headers, json.loads(body) if body else {})
        for wanted, pattern, operation in ROUTES:
            found = self._match(pattern, path)
            if wanted == method and found is not None:
                return _checked(lambda operation=operation, found=found: operation(ask, *found))  # type: ignore[misc]
        return failure(404, "", f"no route {method} {path}")

    def _match(self, pattern: str, path: str) -> list[str] | None:
        prefix = f"/{self.prefix}" if self.prefix else ""
        text = re.sub(r"\{\w+\}", "([^/]+)", pattern.replace("/{prefix}", prefix))
        found = re.fullmatch(text, path)
        return None if found is None else [unquote(part) for part in found.groups()]

    def _config(self) -> Reply:
        overrides = {**self.overrides, **({"prefix": self.prefix} if self.prefix else {})}
        if self.separator != "\x1f":
            overrides["namespace-separator"] = quote(self.separator, safe="")
        body: Json = {"defaults": self.defaults, "overrides": overrides}
        if self.endpoints is not None:
            body["endpoints"] = self.endpoints
        if self.takes_keys:
            body["idempotency-key-lifetime"] = "PT30M"
        return Reply(body=body)

    def _give_token(self, form: dict[str, str]) -> Reply:
        known = self.clients or {}
        if form.get("grant_type") != "client_credentials" or known.get(form["client_id"]) != form["client_secret"]:
            said = f"wrong secret {form.get('client_secret')}"
            return Reply(401, {"error": "invalid_client", "error_description": said})
        return Reply(body={"access_token": self.new_token(), "token_type": "bearer", "expires_in": self.token_seconds})


@dataclass(frozen=True)
class Ask:
    """One request, taken apart."""

    server: RestServer
    query: Json
    headers: dict[str, str]
    body: Json

    @property
    def service(self) -> RestService:
        return self.server.service

    def namespace(self, text: str) -> Namespace:
        return tuple(re.split(f"{re.escape(self.server.separator)}|\x1f", text))

    def name(self, namespace: str, name: str) -> TableName:
        return TableName(self.namespace(namespace), name)

    def page(self, key: str, items: list[Any]) -> Reply:
        size = int(self.query.get("pageSize") or self.server.page_size or len(items) or 1)
        if "pageToken" not in self.query and self.server.page_size is None:
            return Reply(body={key: items})
        start = int(self.query.get("pageToken") or 0)
        rest = str(start + size) if start + size < len(items) else None
        return Reply(body={key: items[start : start + size], "next-page-token": rest})

    def loaded(self, loaded: Loaded) -> Reply:
        tag = f'"{loaded.location}"'
        if self.headers.get("if-none-match") == tag:
            return Reply(304)
        return Reply(body=loaded.encode(), headers={"ETag": tag})


def _checked(effect: Effect) -> Reply:
    try:
        return effect()
    except IcefieldError as error:
        status, kind = next((s, k) for cls, s, k in ERRORS if isinstance(error, cls))
        return failure(status, kind, str(error))


def _identifiers(names: list[TableName]) -> list[Json]:
    return [{"namespace": list(name.namespace), "name": name.name} for name in names]


def _rename(ask: Ask, kind: Kind) -> Reply:
    old, new = (TableName(tuple(ask.body[k]["namespace"]), ask.body[k]["name"]) for k in ("source", "destination"))
    rename = ask.service.catalog.rename_table if kind is Kind.TABLE else ask.service.catalog.rename_view
    rename(old, new)
    return Reply(204)


def _list_namespaces(ask: Ask) -> Reply:
    parent = ask.namespace(ask.query["parent"]) if ask.query.get("parent") else None
    return ask.page("namespaces", [list(n) for n in ask.service.catalog.list_namespaces(parent)])


def _create_namespace(ask: Ask) -> Reply:
    ask.service.catalog.create_namespace(tuple(ask.body["namespace"]), ask.body.get("properties") or {})
    return Reply(body=ask.body)


def _load_namespace(ask: Ask, namespace: str) -> Reply:
    parts = ask.namespace(namespace)
    return Reply(body={"namespace": parts, "properties": ask.service.catalog.namespace_properties(parts)})


def _drop_namespace(ask: Ask, namespace: str) -> Reply:
    ask.service.catalog.drop_namespace(ask.namespace(namespace))
    return Reply(204)


def _update_namespace(ask: Ask, namespace: str) -> Reply:
    removals, updates = ask.body.get("removals") or [], ask.body.get("updates") or {}
    ask.service.catalog.update_namespace_properties(ask.namespace(namespace), removals, updates)
    return Reply(body={"updated": list(updates), "removed": removals, "missing": []})


def _list_tables(ask: Ask, namespace: str) -> Reply:
    return ask.page("identifiers", _identifiers(ask.service.catalog.list_tables(ask.namespace(namespace))))


def _list_views(ask: Ask, namespace: str) -> Reply:
    return ask.page("identifiers", _identifiers(ask.service.catalog.list_views(ask.namespace(namespace))))


def _drop(ask: Ask, namespace: str, name: str, kind: Kind) -> Reply:
    ask.service.drop(ask.name(namespace, name), kind)
    return Reply(204)


def _commit_all(ask: Ask) -> Reply:
    ask.service.commit_all(ask.body["table-changes"])
    return Reply(204)


def _report(ask: Ask, namespace: str, table: str) -> Reply:
    ask.service.reports.append(ask.body)
    return Reply(204)


def _there(ask: Ask, namespace: str, table: str) -> Reply:
    ask.service.catalog.pointer(ask.name(namespace, table))
    return Reply(204)


ROUTES: list[tuple[str, str, Callable[..., Reply]]] = [
    ("GET", f"{V1}/namespaces", _list_namespaces),
    ("POST", f"{V1}/namespaces", _create_namespace),
    ("GET", NAMESPACE, _load_namespace),
    ("DELETE", NAMESPACE, _drop_namespace),
    ("POST", f"{NAMESPACE}/properties", _update_namespace),
    ("GET", f"{NAMESPACE}/tables", _list_tables),
    ("POST", f"{NAMESPACE}/tables", lambda a, n: a.loaded(a.service.create_table(a.namespace(n), a.body))),
    ("GET", TABLE, lambda a, n, t: a.loaded(a.service.load_table(a.name(n, t)))),
    ("HEAD", TABLE, _there),
    ("POST", TABLE, lambda a, n, t: a.loaded(a.service.commit(a.name(n, t), a.body))),
    ("DELETE", TABLE, lambda a, n, t: _drop(a, n, t, Kind.TABLE)),
    ("POST", f"{TABLE}/metrics", _report),
    (
        "POST",
        f"{NAMESPACE}/register",
        lambda a, n: a.loaded(a.service.register(a.namespace(n), a.body, Kind.TABLE)),
    ),
    ("POST", f"{V1}/tables/rename", lambda a: _rename(a, Kind.TABLE)),
    ("POST", f"{V1}/transactions/commit", _commit_all),
    ("GET", f"{NAMESPACE}/views", _list_views),
    ("POST", f"{NAMESPACE}/views", lambda a, n: a.loaded(a.service.create_view(a.namespace(n), a.body))),
    ("GET", VIEW, lambda a, n, v: a.loaded(a.service.load_view(a.name(n, v)))),
    ("POST", VIEW, lambda a, n, v: a.loaded(a.service.commit_view(a.name(n, v), a.body))),
    ("DELETE", VIEW, lambda a, n, v: _drop(a, n, v, Kind.VIEW)),
    ("POST", f"{V1}/views/rename", lambda a: _rename(a, Kind.VIEW)),
    (
        "POST",
        f"{NAMESPACE}/register-view",
        lambda a, n: a.loaded(a.service.register(a.namespace(n), a.body, Kind.VIEW)),
    ),
]


def parse_query(text: str) -> Json:
    return {key: values[-1] for key, values in parse_qs(text, keep_blank_values=True).items()}


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two packets, and the second would wait for the first
    server: "_Listener"

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {key.lower(): value for key, value in self.headers.items()}
        reply = self.server.state.handle(self.command, self.path, headers, body)
        if reply is None:
            self.close_connection = True
            return
        data = b"" if reply.body is None else msgspec.json.encode(reply.body)
        self.send_response(reply.status)
        for key, value in reply.headers.items():
            self.send_header(key, value)
        if reply.status not in (204, 304):
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD" and reply.status not in (204, 304):
            self.wfile.write(data)

    do_GET = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815 - the library's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, state: RestServer) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.state = state
        self.connections: set[Any] = set()


@contextmanager
def running_server(store: Store, warehouse: str, ambient: Ambient | None = None) -> Iterator[RestServer]:
    """Run a server on a free port of the loopback interface."""
    server = RestServer(RestService(store, warehouse, ambient or SystemAmbient()))
    listener = _Listener(server)
    server.url = f"http://127.0.0.1:{listener.server_port}"
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        for connection in listener.connections:
            connection.close()
        listener.server_close()
        thread.join()
