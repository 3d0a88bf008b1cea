"""HTTP for the REST catalog: kept-alive connections, and a clear outcome for every request.

A request has one deadline, from connecting to the last byte of the response, and a response has a size limit, also when
it is compressed: a server that sends slowly or without end cannot exhaust time or memory.

Raises CatalogError (the request was never sent, so it changed nothing), CommitStateUnknown (it was sent, and no
response arrived). Responses of any status are returned. Redirects are not followed: they would forward the token.
"""

import http.client
import io
import os
import select
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec

from icefield.ambient import Ambient
from icefield.errors import CatalogError, CommitStateUnknown, InvalidInput
from icefield.storage.process_lock import ProcessLock

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_IDLE = 8
SMALL_ANSWER_BYTES = 64 << 20  # configurations, tokens, pages of names
FAILURE_BYTES = 1 << 20  # error responses
_CHUNK_BYTES = 1 << 16
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True)
class Request:
    """One request; the body is JSON, or form fields. max_bytes: the size limit of the response."""

    method: str
    url: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Any = field(default=None, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    max_bytes: int = SMALL_ANSWER_BYTES

    @property
    def is_repeatable(self) -> bool:
        """Whether the request is idempotent."""
        return self.method in ("GET", "HEAD")


@dataclass(frozen=True)
class Answer:
    """A response. error: why its body was not read to the end."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    error: str | None = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class HttpClient:
    """Sends requests to any host, one at a time per connection; thread-safe and fork-safe.

    timeout_seconds: how long a request may take in total.
    """

    def __init__(self, timeout_seconds: float, ambient: Ambient) -> None:
        self._timeout = timeout_seconds
        self._ambient = ambient
        self._lock = ProcessLock()
        self._idle: dict[tuple[str, str], list[http.client.HTTPConnection]] = {}
        self._process = os.getpid()

    def send(self, request: Request) -> Answer:
        """Send a request and wait for the response."""
        url = urlsplit(request.url)
        deadline = Deadline(self._ambient, self._timeout)
        connection = self._take(url, deadline)
        try:
            answer = _exchange(connection, url, request, deadline)
        except BaseException:
            connection.close()
            raise
        if answer.error is not None:
            connection.close()
        self._give_back(url, connection)
        return answer

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            kept = [connection for connections in self._idle.values() for connection in connections]
            self._idle.clear()
        for connection in kept:
            connection.close()

    def _take(self, url: SplitResult, deadline: "Deadline") -> http.client.HTTPConnection:
        if self._process != os.getpid():
            # The connections belong to the parent; if both used them, responses would be mixed up.
            self._process = os.getpid()
            self.close()
        with self._lock:
            kept = self._idle.get((url.scheme, url.netloc), [])
            connection = kept.pop() if kept else None
        if connection is not None and not _was_closed(connection):
            return connection
        if connection is not None:
            connection.close()
        return _connect(url, deadline)

    def _give_back(self, url: SplitResult, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            kept = self._idle.setdefault((url.scheme, url.netloc), [])
            if connection.sock is not None and len(kept) < MAX_IDLE:
                kept.append(connection)
                return
        connection.close()


class Deadline:
    """The time by which a request must be finished."""

    def __init__(self, ambient: Ambient, seconds: float) -> None:
        self._ambient = ambient
        self._seconds = seconds
        self._end = ambient.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds left; raises TimeoutError if there are none."""
        left = self._end - self._ambient.monotonic()
        if left <= 0:
            raise TimeoutError(f"it took longer than {self._seconds:g} s")
        return left


def check_url(url: str) -> str:
    """Reject an invalid URL, or one with a password in it; return it without a trailing slash."""
    origin_of(url)
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            "the URL of a REST catalog must not contain a user, a query or a fragment",
            hint="Pass the token or credential as a separate property",
        )
    return url.rstrip("/")


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL. (RFC 6454, section 4)"""
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme not in DEFAULT_PORTS or not host or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput("the URL of a REST catalog must be http://host/path or https://host/path")
    return f"{scheme}://{host.lower()}:{port or DEFAULT_PORTS[scheme]}"


def _connect(url: SplitResult, deadline: Deadline) -> http.client.HTTPConnection:
    assert url.hostname is not None
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname, url.port or DEFAULT_PORTS[url.scheme], timeout=deadline.remaining())
    try:
        connection.connect()
    except OSError as error:
        raise CatalogError(f"cannot reach {url.scheme}://{url.netloc}: {error}") from error
    return connection


def _was_closed(connection: http.client.HTTPConnection) -> bool:
    # An idle connection has nothing to read, unless the server closed it. Noticed now, that costs nothing; noticed
    # after the request was sent, its outcome would be unknown.
    return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])


def _exchange(connection: http.client.HTTPConnection, url: SplitResult, request: Request, deadline: Deadline) -> Answer:
    target = url.path or "/"
    if request.query:
        target = f"{target}?{urlencode(request.query)}"
    body, headers = _encode(request)
    try:
        connection.sock.settimeout(deadline.remaining())
        connection.request(request.method, target, body, headers)
        connection.response_class = partial(_TimedResponse, deadline)  # type: ignore[assignment]
        response = connection.getresponse()
        data, unread = _read(response, request.max_bytes)
    except (OSError, http.client.HTTPException, zlib.error) as error:
        raise CommitStateUnknown(
            f"no response from {url.netloc} to {request.method} {url.path}: {type(error).__name__}: {error}"
        ) from error
    headers = {key.lower(): value for key, value in response.getheaders()}
    return Answer(response.status, headers, data, unread)


class _TimedReader(io.RawIOBase):
    """A socket reader with a deadline for all reads together."""

    def __init__(self, sock: Any, deadline: Deadline) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._deadline.remaining())
        found: int | None = self._raw.readinto(buffer)
        return found

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    """A response with a deadline, from its first line on."""

    def __init__(self, deadline: Deadline, sock: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self.fp = io.BufferedReader(_TimedReader(sock, deadline))


def _read(response: http.client.HTTPResponse, max_bytes: int) -> tuple[bytes, str | None]:
    """Read a body, or return why it could not be read."""
    limit = max_bytes if response.status < 400 else min(max_bytes, FAILURE_BYTES)
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", ""):
        return b"", f"it is encoded as {encoding!r}, which was not asked for"
    too_large = f"it has more than {limit:,} bytes"
    if response.length is not None and response.length > limit:
        return b"", too_large
    inflate = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
    found = bytearray()
    while chunk := response.read(_CHUNK_BYTES):
        found += chunk if inflate is None else inflate.decompress(chunk, limit + 1 - len(found))
        if len(found) > limit:
            return b"", too_large
    if inflate is not None and not inflate.eof:
        raise zlib.error("the compressed body is truncated")
    if response.length:
        raise http.client.IncompleteRead(bytes(found), response.length)
    return bytes(found), None


def _encode(request: Request) -> tuple[bytes | None, dict[str, str]]:
    headers = {"Accept": "application/json", "User-Agent": "icefield", **request.headers}
    if request.form is not None:
        return urlencode(request.form).encode(), {**headers, "Content-Type": "application/x-www-form-urlencoded"}
    if request.body is not None:
        return msgspec.json.encode(request.body), {**headers, "Content-Type": "application/json"}
    return None, headers
