"""The bounds of a request, each by itself: what is not read to the end, and why."""

import gzip
import itertools
import os
import signal
import threading
import tracemalloc
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.catalog.test_rest_hostile import CONFIG, FLOODS, OK, drip, raw_server, whole

from icefield.ambient import SystemAmbient
from icefield.catalog.rest.auth import ClientCredentials, OAuthTokens
from icefield.catalog.rest.http import FAILURE_BYTES, MAX_IDLE, HttpClient, Request
from icefield.errors import CommitStateUnknown

MAX_BYTES = 1_000
TOO_LARGE = "it has more than 1,000 bytes"
LONG_ENOUGH_S = 60.0  # also on a machine that is busy
FAILED = b"HTTP/1.1 500 Oh\r\n"


@pytest.mark.parametrize(
    ("pieces", "fault"),
    [
        (FLOODS["announced"], TOO_LARGE),
        (FLOODS["endless"], TOO_LARGE),
        (FLOODS["chunked"], TOO_LARGE),
        (FLOODS["bomb"], TOO_LARGE),
        (FLOODS["other encoding"], "it is encoded as 'br', which was not asked for"),
        (lambda: [whole(b"x" * MAX_BYTES)], None),
        (lambda: [whole(gzip.compress(b" " * MAX_BYTES), b"Content-Encoding: gzip")], None),
    ],
)
def test_an_answer_has_a_bound(pieces: Callable[[], Iterable[bytes]], fault: str | None) -> None:
    client = HttpClient(LONG_ENOUGH_S, SystemAmbient())
    with raw_server(lambda _: pieces()) as url:
        answer = client.send(Request("GET", url, max_bytes=MAX_BYTES))
    assert (answer.error, len(answer.body)) == (fault, 0 if fault else MAX_BYTES)
    # What was not read would be taken for the next answer.
    assert sum(map(len, client._idle.values())) == (0 if fault else 1)
    client.close()


def test_the_words_of_a_server_that_fails_have_a_smaller_bound() -> None:
    body = FAILED + b"Connection: close\r\n\r\n" + b"x" * (FAILURE_BYTES + 1)
    client = HttpClient(LONG_ENOUGH_S, SystemAmbient())
    with raw_server(lambda _: [body]) as url:
        assert client.send(Request("GET", url)).error == "it has more than 1,048,576 bytes"
    client.close()


def test_a_compressed_answer_is_not_inflated_beyond_its_bound() -> None:
    # It does not say how long it is, and comes as one piece.
    bomb = OK + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n" + gzip.compress(b" " * (40 << 20))
    assert len(bomb) < 1 << 16
    client = HttpClient(LONG_ENOUGH_S, SystemAmbient())
    with raw_server(lambda _: [bomb]) as url:
        tracemalloc.start()
        try:
            client.send(Request("GET", url, max_bytes=MAX_BYTES))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 10 << 20
    client.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        (lambda: [whole(gzip.compress(CONFIG)[:-9], b"Content-Encoding: gzip")], "the compressed body is truncated"),
        (lambda: [OK + b"Content-Length: 100\r\n\r\n{"], "IncompleteRead"),
        (lambda: itertools.chain([OK + b"Content-Length: 60\r\n\r\n"], drip()), "TimeoutError"),
        (lambda: itertools.chain([OK + b"X-A: "], itertools.islice(drip(), 60), [b"\r\n\r\n"]), "TimeoutError"),
    ],
)
def test_an_answer_that_is_not_whole_or_not_in_time_is_none(pieces: Callable[[], Iterable[bytes]], why: str) -> None:
    client = HttpClient(1.0, SystemAmbient())
    with raw_server(lambda _: pieces()) as url, pytest.raises(CommitStateUnknown, match=why):
        client.send(Request("GET", url))
    client.close()


def test_a_bounded_number_of_connections_is_kept() -> None:
    requests = MAX_IDLE + 2
    together = threading.Barrier(requests)

    def answer(_: bytes) -> list[bytes]:
        together.wait()  # until every request has a connection of its own
        return [whole(b"x")]

    client = HttpClient(LONG_ENOUGH_S, SystemAmbient())
    with raw_server(answer) as url, ThreadPoolExecutor(requests) as pool:
        answers = list(pool.map(client.send, [Request("GET", url)] * requests))
    assert [answer.body for answer in answers] == [b"x"] * requests
    assert [len(kept) for kept in client._idle.values()] == [MAX_IDLE]
    client.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_threads_of_its_parent() -> None:
    client = HttpClient(LONG_ENOUGH_S, SystemAmbient())
    with raw_server(lambda _: [whole(b'{"access_token": "t"}')]) as url:
        tokens = OAuthTokens(ClientCredentials(url, "me:secret"), client, SystemAmbient())
        with tokens._lock, client._lock:  # as if two threads of the parent were at work
            if (child := os.fork()) == 0:
                signal.alarm(int(LONG_ENOUGH_S))  # kills a child that waits for ever
                os._exit(0 if _token_of(tokens) == "Bearer t" else 1)
            _, status = os.waitpid(child, 0)
    assert status == 0
    client.close()


def _token_of(tokens: OAuthTokens) -> str | None:
    try:
        return tokens.headers()["Authorization"]
    except BaseException:
        return None
