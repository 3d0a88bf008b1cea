"""A proxy before an S3 server that spoils requests: on their way there, or the answers on their way back."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import Enum
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PATIENCE_S = 10


class Fault(Enum):
    """What happens to a request."""

    NONE = "none"
    LOSE_REQUEST = "the connection ends before the server hears of it"
    LOSE_REPLY = "the server does it, and the connection ends"
    FAIL_BEFORE = "the server does nothing and says 500"
    FAIL_AFTER = "the server does it and says 500"
    CONFLICT = "the server does nothing and says 409, as S3 does when conditional writes meet"


class S3Proxy:
    """Passes requests on; `faults` says what happens to the next ones of a method, in order."""

    def __init__(self, endpoint: str) -> None:
        self.target = urlsplit(endpoint).netloc
        self.faults: dict[str, deque[Fault]] = {}
        self.together: dict[str, int] = {}  # how many requests for paths with this part go on only together
        self.seen: list[str] = []
        self.paths: list[str] = []
        self.read_bytes = 0  # of the bodies that the server answered requests to read with
        self.in_flight = self.most_in_flight = 0
        self._changed = threading.Condition()

    def spoil(self, method: str, *faults: Fault) -> None:
        self.faults[method] = deque(faults)

    @contextmanager
    def counting(self, path: str) -> Iterator[None]:
        """Count a request as in flight; it goes on when there are as many as go on together, or after a while."""
        with self._changed:
            self.paths.append(path.partition("?")[0])
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            self._changed.notify_all()
            together = max((count for part, count in self.together.items() if part in path), default=0)
            self._changed.wait_for(lambda: self.most_in_flight >= together, PATIENCE_S)
        try:
            yield
        finally:
            with self._changed:
                self.in_flight -= 1
                self._changed.notify_all()

    def forget(self) -> None:
        """Count from zero, once nothing is in flight."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.in_flight == 0, PATIENCE_S)
            self.most_in_flight = 0
            self.seen.clear()
            self.paths.clear()

    def next_fault(self, method: str) -> Fault:
        waiting = self.faults.get(method)
        return waiting.popleft() if waiting else Fault.NONE


@contextmanager
def running_proxy(endpoint: str) -> Iterator[tuple[S3Proxy, str]]:
    """Run a proxy before an endpoint, and give its own endpoint."""
    proxy = S3Proxy(endpoint)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": proxy}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield proxy, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    proxy: S3Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # Headers and body are two writes.

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.proxy.seen.append(self.command)
        with self.proxy.counting(self.path):
            self.answer_to(body)

    def answer_to(self, body: bytes) -> None:
        fault = self.proxy.next_fault(self.command)
        if fault is Fault.LOSE_REQUEST:
            self.close_connection = True
            return
        if fault in (Fault.FAIL_BEFORE, Fault.CONFLICT):
            code = "ConditionalRequestConflict" if fault is Fault.CONFLICT else "InternalError"
            self.answer(409 if fault is Fault.CONFLICT else 500, [], f"<Code>{code}</Code>".encode())
            return
        self.forward(body, fault)

    def forward(self, body: bytes, fault: Fault) -> None:
        with closing(HTTPConnection(self.proxy.target, timeout=30)) as connection:
            connection.request(self.command, self.path, body, dict(self.headers))
            response = connection.getresponse()
            data = response.read()
        if self.command == "GET":
            self.proxy.read_bytes += len(data)
        if fault is Fault.LOSE_REPLY:
            self.close_connection = True
        elif fault is Fault.FAIL_AFTER:
            self.answer(500, [], b"<Code>InternalError</Code>")
        else:
            self.answer(response.status, _headers(response, data, self.command), data)

    def answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response(status)
        for name, value in headers or [("Content-Length", str(len(data)))]:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = pass_on  # noqa: N815


def _headers(response: HTTPResponse, data: bytes, method: str) -> list[tuple[str, str]]:
    """The headers to pass on: the body goes on in one piece, and that of HEAD is not there."""
    dropped = {"connection", "transfer-encoding"} | ({"content-length"} if method != "HEAD" else set())
    kept = [(name, value) for name, value in response.getheaders() if name.lower() not in dropped]
    return kept if method == "HEAD" else [*kept, ("Content-Length", str(len(data)))]
