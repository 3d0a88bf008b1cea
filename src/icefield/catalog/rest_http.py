"""HTTP for the REST catalog: connections that are kept, and a clear word on what became of a request.

Raises CatalogError (the request certainly did nothing: it was never sent), CommitStateUnknown (it was sent, and the
answer did not come). Answers of any status are returned. Redirects are not followed: they would carry the token along.
"""

import http.client
import os
import select
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec

from icefield.errors import CatalogError, CommitStateUnknown, InvalidInput

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_IDLE = 8


@dataclass(frozen=True)
class Request:
    """One request; the body is JSON, or form fields."""

    method: str
    url: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Any = field(default=None, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def is_repeatable(self) -> bool:
        """Whether sending it twice is the same as once."""
        return self.method in ("GET", "HEAD")


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class HttpClient:
    """Sends requests to any host, one at a time per connection; safe for threads and forks."""

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, str], list[http.client.HTTPConnection]] = {}
        self._process = os.getpid()

    def send(self, request: Request) -> Answer:
        """Send a request and wait for the answer."""
        url = urlsplit(request.url)
        connection = self._take(url)
        try:
            answer = _exchange(connection, url, request)
        except BaseException:
            connection.close()
            raise
        self._give_back(url, connection)
        return answer

    def close(self) -> None:
        """Close the connections that are kept."""
        with self._lock:
            kept = [connection for connections in self._idle.values() for connection in connections]
            self._idle.clear()
        for connection in kept:
            connection.close()

    def _take(self, url: SplitResult) -> http.client.HTTPConnection:
        if self._process != os.getpid():
            # The connections belong to the parent; used by both, answers would be mixed up.
            self._process = os.getpid()
            self.close()
        with self._lock:
            kept = self._idle.get((url.scheme, url.netloc), [])
            connection = kept.pop() if kept else None
        if connection is not None and not _was_closed(connection):
            return connection
        if connection is not None:
            connection.close()
        return _connect(url, self._timeout)

    def _give_back(self, url: SplitResult, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            kept = self._idle.setdefault((url.scheme, url.netloc), [])
            if connection.sock is not None and len(kept) < MAX_IDLE:
                kept.append(connection)
                return
        connection.close()


def check_url(url: str) -> str:
    """Refuse what is no address of a server, or holds a password; return it without a slash at the end."""
    parts = urlsplit(url)
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise InvalidInput("the address of a REST catalog is http://host/path or https://host/path")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            "the address of a REST catalog has a user, a query or a fragment in it",
            hint="Give a token or a credential as a setting of its own",
        )
    return url.rstrip("/")


def _connect(url: SplitResult, timeout: float) -> http.client.HTTPConnection:
    assert url.hostname is not None
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname, url.port or DEFAULT_PORTS[url.scheme], timeout=timeout)
    try:
        connection.connect()
    except OSError as error:
        raise CatalogError(f"cannot reach {url.scheme}://{url.netloc}: {error}") from error
    return connection


def _was_closed(connection: http.client.HTTPConnection) -> bool:
    # An idle connection has nothing to read, unless the server hung up. Found out in time, it costs nothing; found out
    # after the request was sent, its outcome would be unknown.
    return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])


def _exchange(connection: http.client.HTTPConnection, url: SplitResult, request: Request) -> Answer:
    target = url.path or "/"
    if request.query:
        target = f"{target}?{urlencode(request.query)}"
    body, headers = _encode(request)
    try:
        connection.request(request.method, target, body, headers)
        response = connection.getresponse()
        data = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise CommitStateUnknown(
            f"the answer of {url.netloc} to {request.method} {url.path} did not come: {type(error).__name__}: {error}"
        ) from error
    return Answer(response.status, {key.lower(): value for key, value in response.getheaders()}, data)


def _encode(request: Request) -> tuple[bytes | None, dict[str, str]]:
    headers = {"Accept": "application/json", "User-Agent": "icefield", **request.headers}
    if request.form is not None:
        return urlencode(request.form).encode(), {**headers, "Content-Type": "application/x-www-form-urlencoded"}
    if request.body is not None:
        return msgspec.json.encode(request.body), {**headers, "Content-Type": "application/json"}
    return None, headers
