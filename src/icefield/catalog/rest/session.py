"""A session with one REST catalog: its configuration, its URLs, and authorized requests.

Reads are retried when the server is busy or the connection is lost; changes are not, because their outcome is unknown.
When a token is rejected, a new one is requested and the request is sent again, once: it was rejected before it had any
effect.

Raises CatalogError, CommitStateUnknown, and the errors of `rest.errors`.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import msgspec

from icefield.ambient import Ambient
from icefield.catalog.rest.auth import Authorization
from icefield.catalog.rest.errors import Verb, error_of
from icefield.catalog.rest.http import SMALL_ANSWER_BYTES, Answer, HttpClient, Request, check_url, origin_of
from icefield.errors import CatalogError, CommitStateUnknown, IcefieldError, InvalidInput, NotFound
from icefield.model.names import Namespace, TableName
from icefield.secrets import protect, reveal, secrets_of, without_secrets

TRIES = 4
FIRST_PAUSE_SECONDS = 0.2
BUSY = (429, 502, 503, 504)
NOT_AUTHORISED = (401, 419)
UNIT_SEPARATOR = "\x1f"
TRANSACTIONS = "POST /v1/{prefix}/transactions/commit"
METRICS = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"
VIEWS = "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"
REGISTER_VIEW = "POST /v1/{prefix}/namespaces/{namespace}/register-view"
# The endpoints of a server that does not list its endpoints. (rest-catalog-open-api.yaml: getConfig)
ASSUMED = frozenset({TRANSACTIONS, METRICS})
# How a client overrides them. (Iceberg's catalog properties)
ASSUME_VIEWS = "view-endpoints-supported"

# Names of settings; `rest.settings` reads them.
MAX_ANSWER, TRUSTED = "rest-max-answer-bytes", "rest-trusted-origins"
MAX_PAGES = 10_000
_LEADS_AWAY = ("", ".", "..")

T = TypeVar("T")


class _Config(msgspec.Struct, rename="kebab"):
    defaults: dict[str, str | None] = {}
    overrides: dict[str, str | None] = {}
    endpoints: list[str] | None = None
    idempotency_key_lifetime: str | None = None


@dataclass(frozen=True)
class RestConfig:
    """The merged configuration of server and client."""

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    endpoints: frozenset[str] = ASSUMED
    takes_idempotency_keys: bool = False
    max_answer_bytes: int = SMALL_ANSWER_BYTES

    @property
    def separator(self) -> str:
        """The separator between the parts of a namespace in a URL."""
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
        """Return whether the server has an endpoint, written as in the specification."""
        return endpoint in self.config.endpoints

    def path(self, *parts: str) -> str:
        """Return a URL below the catalog's prefix; every part is one path segment, whatever it contains."""
        prefix = self.config.properties.get("prefix", "").strip("/")
        for part in parts:
            if part in _LEADS_AWAY:
                raise InvalidInput(f"{part!r} cannot be part of a name in a REST catalog")
        segments = [quote(part, safe="") for part in parts]
        return "/".join([self.url, "v1", *([quote(prefix, safe="/%")] if prefix else []), *segments])

    def namespace_path(self, namespace: Namespace, *below: str) -> str:
        """Return the URL of a namespace, or of something in it."""
        return self.path("namespaces", self.joined(namespace), *below)

    def table_path(self, table: TableName, *below: str) -> str:
        """Return the URL of a table, or of a resource below it."""
        return self.namespace_path(table.namespace, "tables", table.name, *below)

    def view_path(self, view: TableName) -> str:
        """Return the URL of a view."""
        return self.namespace_path(view.namespace, "views", view.name)

    def joined(self, namespace: Namespace) -> str:
        """Encode a namespace as one string."""
        return self.config.separator.join(namespace)

    def read(self, url: str, doing: str, missing: type[IcefieldError] = NotFound, **more: Any) -> Answer:
        """Send a read request, with retries while the server is busy. more: query, headers, max_bytes."""
        return self._checked(Request("GET", url, **more), doing, Verb.READ, missing)

    def read_metadata(self, url: str, doing: str, missing: type[IcefieldError], **more: Any) -> Answer:
        """Request the metadata of a table or a view, which may be large."""
        return self.read(url, doing, missing, max_bytes=self.config.max_answer_bytes, **more)

    def change(self, request: Request, doing: str, missing: type[IcefieldError] = NotFound) -> Answer:
        """Send a change; the response may contain metadata."""
        request = replace(request, max_bytes=self.config.max_answer_bytes)
        return self._checked(request, doing, Verb.CHANGE, missing)

    def commit(self, request: Request, doing: str, missing: type[IcefieldError] = NotFound) -> Answer:
        """Send updates with their requirements; the response may contain metadata."""
        request = replace(request, max_bytes=self.config.max_answer_bytes)
        return self._checked(request, doing, Verb.COMMIT, missing)

    def pages(self, url: str, doing: str, query: Mapping[str, str]) -> Iterator[bytes]:
        """Yield the pages of a list. (rest-catalog-open-api.yaml: PageToken)"""
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            answer = self.read(url, doing, query=query)
            yield answer.body
            token = decode_answer(answer.body, _Page, doing).next_page_token
            if not token:
                return
            if token in seen:
                raise CatalogError(f"cannot {doing}: the catalog returns the same page repeatedly")
            seen.add(token)
            query = {**query, "pageToken": token}
        raise CatalogError(f"cannot {doing}: the catalog returns more than {MAX_PAGES:,} pages")

    def secrets(self) -> list[str]:
        """Return what no message may show."""
        return [*self.authorization.secrets(), *secrets_of(self.config.properties)]

    def _checked(self, request: Request, doing: str, verb: Verb, missing: type[IcefieldError]) -> Answer:
        with without_secrets(self.secrets):
            return self._judged(self._authorised(request, doing), doing, verb, missing)

    def _judged(self, answer: Answer, doing: str, verb: Verb, missing: type[IcefieldError]) -> Answer:
        if answer.error is not None and answer.status < 400:
            kind = CatalogError if verb is Verb.READ else CommitStateUnknown
            hint = f"Set {MAX_ANSWER} if it may be that large" if "bytes" in answer.error else None
            raise kind(f"cannot {doing}: the catalog's response could not be read: {answer.error}", hint=hint)
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


def load_config(session: RestSession, trusted_origins: Container[str] = ()) -> RestSession:
    """Load the server's configuration: its overrides take precedence, then the client's properties, then its defaults.

    trusted_origins: where the server may redirect to; credentials are not sent to any other origin.
    """
    settings = session.config.properties
    query = {"warehouse": settings["warehouse"]} if "warehouse" in settings else {}
    doing = f"open the catalog at {session.url}"
    answer = session.read(f"{session.url}/v1/config", doing, query=query)
    said = decode_answer(answer.body, _Config, doing)
    merged = protect({**_present(said.defaults), **settings, **_present(said.overrides)})
    endpoints = ASSUMED if said.endpoints is None else frozenset(said.endpoints)
    if merged.get(ASSUME_VIEWS) == "true":
        endpoints |= {VIEWS}
    keys = said.idempotency_key_lifetime is not None
    config = replace(session.config, properties=merged, endpoints=endpoints, takes_idempotency_keys=keys)
    url = check_url(reveal(merged.get("uri", session.url)))
    if origin_of(url) != origin_of(session.url) and origin_of(url) not in trusted_origins:
        raise CatalogError(
            f"cannot {doing}: it redirects to {origin_of(url)}, which would receive the credentials",
            hint=f"Connect to that server directly, or add it to {TRUSTED}",
        )
    _check_prefix(merged.get("prefix", ""), doing)
    return replace(session, url=url, config=config)


def _check_prefix(prefix: str, doing: str) -> None:
    """Refuse a prefix that leads outside the paths below it."""
    plain = prefix
    while (decoded := unquote(plain)) != plain:
        plain = decoded
    segments = plain.strip("/").split("/")
    if plain.strip("/") and (any(part in _LEADS_AWAY for part in segments) or not plain.isprintable() or "\\" in plain):
        raise CatalogError(f"cannot {doing}: the prefix {prefix!r} does not name a path below it")


def decode_answer(body: bytes, kind: type[T], doing: str) -> T:
    """Decode the body of a response."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"cannot {doing}: malformed response: {error}") from error


class _Page(msgspec.Struct, rename="kebab"):
    next_page_token: str | None = None


def _present(said: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in said.items() if value is not None}


def _with_headers(request: Request, headers: Mapping[str, str]) -> Request:
    return replace(request, headers={**headers, **request.headers})
