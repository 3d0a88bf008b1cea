"""A proxy before an S3 server that spoils requests: on their way there, or the answers on their way back."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


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
        self.seen: list[str] = []
        self.read_bytes = 0  # of the bodies that the server answered requests to read with

    def spoil(self, method: str, *faults: Fault) -> None:
        self.faults[method] = deque(faults)

    def next_fault(self, method: str) -> Fault:
        waiting = self.faults.get(method)
        return waiting.popleft() if waiting else Fault.NONE


@contextmanager
def running_proxy(endpoint: str) -> Iterator[tuple[S3Proxy, str]]:
    """Run a proxy before an endpoint, and give its own endpoint."""
    proxy = S3Proxy(endpoint)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield proxy, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(proxy: S3Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # Headers and body are two writes.

        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            proxy.seen.append(self.command)
            fault = proxy.next_fault(self.command)
            if fault is Fault.LOSE_REQUEST:
                self.close_connection = True
                return
            if fault in (Fault.FAIL_BEFORE, Fault.CONFLICT):
                code = "ConditionalRequestConflict" if fault is Fault.CONFLICT else "InternalError"
                self.answer(409 if fault is Fault.CONFLICT else 500, [], f"<Code>{code}</Code>".encode())
                return
            self.forward(body, fault)

        def forward(self, body: bytes, fault: Fault) -> None:
            connection = HTTPConnection(proxy.target, timeout=30)
            connection.request(self.command, self.path, body, dict(self.headers))
            response = connection.getresponse()
            data = response.read()
            connection.close()
            if self.command == "GET":
                proxy.read_bytes += len(data)
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

    return Handler


def _headers(response: HTTPResponse, data: bytes, method: str) -> list[tuple[str, str]]:
    """The headers to pass on: the body goes on in one piece, and that of HEAD is not there."""
    dropped = {"connection", "transfer-encoding"} | ({"content-length"} if method != "HEAD" else set())
    kept = [(name, value) for name, value in response.getheaders() if name.lower() not in dropped]
    return kept if method == "HEAD" else [*kept, ("Content-Length", str(len(data)))]
