"""A conversation with one REST catalog: its configuration, the addresses of things in it, requests with their rights.

Reads are sent again when the server is busy or the line broke; changes are not, for their outcome is unknown then. When
a token is not taken, a new one is asked for and the request is sent again, once: it was refused before it did anything.

Raises CatalogError, CommitStateUnknown, and what `rest_errors` says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import msgspec

from icefield.ambient import Ambient
from icefield.catalog.rest_auth import Authorization
from icefield.catalog.rest_errors import Verb, error_of
from icefield.catalog.rest_http import Answer, HttpClient, Request, check_url
from icefield.errors import CatalogError, CommitStateUnknown, IcefieldError, NotFound
from icefield.model.names import Namespace, TableName

TRIES = 4
FIRST_PAUSE_SECONDS = 0.2
BUSY = (429, 502, 503, 504)
NOT_AUTHORISED = (401, 419)
UNIT_SEPARATOR = "\x1f"
TRANSACTIONS = "POST /v1/{prefix}/transactions/commit"
METRICS = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"
VIEWS = "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"
REGISTER_VIEW = "POST /v1/{prefix}/namespaces/{namespace}/register-view"
# What a server is taken to have that does not say what it has. (rest-catalog-open-api.yaml: getConfig)
ASSUMED = frozenset({TRANSACTIONS, METRICS})
# How a client that knows better says so. (Iceberg's catalog properties)
ASSUME_VIEWS = "view-endpoints-supported"

T = TypeVar("T")


class _Config(msgspec.Struct, rename="kebab"):
    defaults: dict[str, str | None] = {}
    overrides: dict[str, str | None] = {}
    endpoints: list[str] | None = None
    idempotency_key_lifetime: str | None = None


@dataclass(frozen=True)
class RestConfig:
    """What the server and the client agreed on."""

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    endpoints: frozenset[str] = ASSUMED
    takes_idempotency_keys: bool = False

    @property
    def separator(self) -> str:
        """What stands between the parts of a namespace in an address."""
        return unquote(self.properties.get("namespace-separator", "")) or UNIT_SEPARATOR


@dataclass(frozen=True)
class RestSession:
    """Requests to one catalog."""

    url: str
    http: HttpClient
    authorization: Authorization
    ambient: Ambient
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    config: RestConfig = field(default_factory=RestConfig)

    def supports(self, endpoint: str) -> bool:
        """Say whether the server has an endpoint, in the words of the specification."""
        return endpoint in self.config.endpoints

    def path(self, *parts: str) -> str:
        """Return an address below the catalog's prefix; every part is one segment, whatever is in it."""
        prefix = self.config.properties.get("prefix", "").strip("/")
        segments = [quote(part, safe="") for part in parts]
        return "/".join([self.url, "v1", *([quote(prefix, safe="/%")] if prefix else []), *segments])

    def namespace_path(self, namespace: Namespace, *below: str) -> str:
        """Return the address of a namespace, or of something in it."""
        return self.path("namespaces", self.joined(namespace), *below)

    def table_path(self, table: TableName, *below: str) -> str:
        """Return the address of a table, or of something of it."""
        return self.namespace_path(table.namespace, "tables", table.name, *below)

    def view_path(self, view: TableName) -> str:
        """Return the address of a view."""
        return self.namespace_path(view.namespace, "views", view.name)

    def joined(self, namespace: Namespace) -> str:
        """Write a namespace as one text."""
        return self.config.separator.join(namespace)

    def read(self, url: str, doing: str, missing: type[IcefieldError] = NotFound, **more: Any) -> Answer:
        """Ask for something, again and again while the server is busy. more: query, headers."""
        return self._checked(Request("GET", url, **more), doing, Verb.READ, missing)

    def change(self, request: Request, doing: str, missing: type[IcefieldError] = NotFound) -> Answer:
        """Have something changed."""
        return self._checked(request, doing, Verb.CHANGE, missing)

    def commit(self, request: Request, doing: str, missing: type[IcefieldError] = NotFound) -> Answer:
        """Have something changed, if what it rests on still holds."""
        return self._checked(request, doing, Verb.COMMIT, missing)

    def pages(self, url: str, doing: str, query: Mapping[str, str]) -> Iterator[bytes]:
        """Yield the pages of a list. (rest-catalog-open-api.yaml: PageToken)"""
        seen: set[str] = set()
        while True:
            answer = self.read(url, doing, query=query)
            yield answer.body
            token = decode_answer(answer.body, _Page, doing).next_page_token
            if not token:
                return
            if token in seen:
                raise CatalogError(f"cannot {doing}: the catalog gives the same page again and again")
            seen.add(token)
            query = {**query, "pageToken": token}

    def _checked(self, request: Request, doing: str, verb: Verb, missing: type[IcefieldError]) -> Answer:
        answer = self._authorised(request, doing)
        if answer.is_success or (answer.status == 304 and verb is Verb.READ):
            return answer
        raise error_of(answer, doing, verb, missing)

    def _authorised(self, request: Request, doing: str) -> Answer:
        rights = self.authorization.headers()
        answer = self._patient(_with_headers(request, {**self.headers, **rights}), doing)
        if answer.status in NOT_AUTHORISED and self.authorization.renew(rights):
            again = {**self.headers, **self.authorization.headers()}
            return self._patient(_with_headers(request, again), doing)
        return answer

    def _patient(self, request: Request, doing: str) -> Answer:
        if not request.is_repeatable:
            return self.http.send(request)
        for wait in range(TRIES - 1):
            answer = self._try(request)
            if answer is not None and answer.status not in BUSY:
                return answer
            self.ambient.sleep(self.ambient.uniform(0, FIRST_PAUSE_SECONDS * 2**wait))
        try:
            return self.http.send(request)
        except CommitStateUnknown as lost:
            raise CatalogError(f"cannot {doing}: {lost.message}") from lost

    def _try(self, request: Request) -> Answer | None:
        try:
            return self.http.send(request)
        except (CatalogError, CommitStateUnknown):
            return None


def load_config(session: RestSession, settings: Mapping[str, str]) -> RestSession:
    """Ask the server for its configuration; what it overrides counts, then what the client says, then its defaults."""
    query = {"warehouse": settings["warehouse"]} if "warehouse" in settings else {}
    doing = f"open the catalog at {session.url}"
    answer = session.read(f"{session.url}/v1/config", doing, query=query)
    said = decode_answer(answer.body, _Config, doing)
    merged = {**_present(said.defaults), **settings, **_present(said.overrides)}
    endpoints = ASSUMED if said.endpoints is None else frozenset(said.endpoints)
    if merged.get(ASSUME_VIEWS) == "true":
        endpoints |= {VIEWS}
    config = RestConfig(merged, endpoints, said.idempotency_key_lifetime is not None)
    url = check_url(merged.get("uri", session.url))
    return RestSession(url, session.http, session.authorization, session.ambient, session.headers, config)


def decode_answer(body: bytes, kind: type[T], doing: str) -> T:
    """Decode the body of an answer."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"cannot {doing}: the catalog's answer does not decode: {error}") from error


class _Page(msgspec.Struct, rename="kebab"):
    next_page_token: str | None = None


def _present(said: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in said.items() if value is not None}


def _with_headers(request: Request, headers: Mapping[str, str]) -> Request:
    merged = {**headers, **request.headers}
    return Request(request.method, request.url, request.query, merged, request.body, request.form)
