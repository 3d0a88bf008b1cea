"""The node catalog (see `nodes`) in ZooKeeper; its root is `<path of the URL>/catalog:<name>`.

A commit is one ZooKeeper transaction. A read is a few pipelined requests, processed in order: a `sync`, so that a
server that lags behind does not return old data; the root; the nodes; the root again, whose version must be the same.
The client's threads and session do not survive a fork: a child opens its own.

Errors: a read is retried until the timeout, across reconnections and new sessions; then it is a CatalogError. A
transaction that the server refuses changed nothing. Any other failure of a transaction is a CommitStateUnknown.
"""

import os
import threading
import weakref
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import unquote

from kazoo import exceptions as kazoo
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.hosts import collect_hosts
from kazoo.security import CREATOR_ALL_ACL

from icefield.ambient import Ambient
from icefield.catalog.nodes import ROOT, Node, NodeCatalog, Reading, Transaction, encode_name
from icefield.errors import CatalogError, CommitStateUnknown, InvalidInput
from icefield.secrets import Secret

_SESSION_S, _PAUSE_S, _RETRY = 10.0, 0.05, {"max_tries": -1, "max_delay": 1.0}
_FAILURES = (kazoo.KazooException, KazooTimeoutError)
_LOST = (kazoo.ConnectionLoss, kazoo.ConnectionClosedError, kazoo.SessionExpiredError, KazooTimeoutError)
_CHECK = "Nothing was changed. Check the URL, and that ZooKeeper runs"
_UNKNOWN = "It may have landed: look at the table before trying again, and delete nothing"
_RACES = (kazoo.BadVersionError, kazoo.NoNodeError, kazoo.NodeExistsError)


def open_zookeeper_catalog(url: str, name: str, ambient: Ambient, timeout_s: float = 15.0) -> NodeCatalog:
    """Return the catalog `name` at zookeeper://user:password@host1:2181,host2:2181/path; the first call connects."""
    return NodeCatalog(ZooKeeperNodes(url, name, timeout_s, ambient), name, ambient=ambient)


class ZooKeeperNodes:
    """The nodes of one catalog. timeout_s: how long to wait for the servers."""

    most_bytes = 800_000  # the server closes the connection on a request above jute.maxbuffer, 1 MiB

    def __init__(self, url: str, name: str, timeout_s: float, ambient: Ambient) -> None:
        self._hosts, path, digest = _parse_url(url)
        self._login = {"auth_data": [("digest", digest)], "default_acl": CREATOR_ALL_ACL} if digest else {}
        self._root = f"{path}/{encode_name('catalog', (name,))}"
        self.identity = f"zookeeper:{self._hosts}{self._root}"
        self._timeout_s, self._ambient, self._is_closed = timeout_s, ambient, False
        self._begin()
        begin = weakref.WeakMethod(self._begin)
        os.register_at_fork(after_in_child=lambda: (found := begin()) and found())

    def read(self, names: Sequence[str], *, with_names: bool) -> Reading:
        while True:
            first, *found, last = self._ask(names, with_names=with_names)
            if first is None or last is None:
                raise CatalogError(f"the node {self._root} was deleted", hint="Restore it, or open the catalog again")
            if first[1].version == last[1].version:
                nodes = {name: Node(each[0], each[1].version) for name, each in zip(names, found, strict=True) if each}
                return Reading(last[1].version, nodes, last[0] if with_names else ())

    def commit(self, transaction: Transaction) -> bool:
        request = self._connect().transaction()
        for name, expected in transaction.checks.items():
            request.check(self._path(name), expected)
        for name, version, data in transaction.writes:
            if version is None:
                request.create(self._path(name), data)
            elif data is None:
                request.delete(self._path(name), version)
            else:
                request.set_data(self._path(name), data, version)
        try:
            answers = request.commit_async().get(timeout=self._timeout_s)
        except _FAILURES as error:
            self._disconnect()  # otherwise a transaction that waits for a connection may be sent much later
            raise CommitStateUnknown(f"the response of {self.identity} was lost: {error!r}", hint=_UNKNOWN) from error
        failed = [each for each in answers if isinstance(each, Exception)]
        if failed and not any(isinstance(each, _RACES) for each in failed):
            raise CatalogError(f"{self.identity} refused a transaction: {failed!r}. Nothing was changed")
        return not failed

    def close(self) -> None:
        self._is_closed = True
        self._disconnect()

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}".rstrip("/")

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._client: Any = None

    def _disconnect(self) -> None:
        with self._lock, suppress(kazoo.KazooException), ExitStack() as ends:
            client, self._client = self._client, None
            if client is not None:
                ends.callback(client.close)  # also if stop fails: its threads would try to connect forever
                client.stop()

    def _connect(self) -> Any:
        with self._lock:
            if self._is_closed:
                raise CatalogError("the catalog was closed", hint="Open it again")
            if self._client is None:
                self._client = KazooClient(self._hosts, timeout=_SESSION_S, connection_retry=_RETRY, **self._login)
                try:
                    self._client.start(self._timeout_s)
                    self._client.ensure_path_async(self._root).get(timeout=self._timeout_s)
                except _FAILURES as error:
                    self._disconnect()
                    raise CatalogError(f"cannot connect to {self.identity}: {error!r}", hint=_CHECK) from error
            return self._client

    def _answer(self, request: Any) -> Any:
        is_absent = request.wait(self._timeout_s) and isinstance(request.exception, kazoo.NoNodeError)
        return None if is_absent else request.get(block=False)

    def _ask(self, names: Sequence[str], *, with_names: bool) -> list[Any]:
        deadline = self._ambient.monotonic() + self._timeout_s
        while True:
            client, root = self._connect(), self._root
            try:
                asked = [client.sync_async(root), *(client.get_async(self._path(name)) for name in (ROOT, *names))]
                asked += [client.get_children_async(root, None, True) if with_names else client.get_async(root)]
                # Of the sync too: if it failed, a server that lags behind may have handled the later requests.
                return [self._answer(each) for each in asked][1:]
            except _FAILURES as error:
                if not isinstance(error, _LOST) or self._ambient.monotonic() >= deadline:
                    raise CatalogError(f"cannot read from {self.identity}: {error!r}", hint=_CHECK) from error
            self._ambient.sleep(_PAUSE_S)


def _parse_url(url: str) -> tuple[str, str, str]:
    scheme, _, rest = url.partition("://")
    server, slash, path = rest.partition("/")
    login, _, hosts = server.rpartition("@")
    has_hosts = False
    with suppress(ValueError):
        has_hosts = bool(hosts and collect_hosts(hosts))
    path = f"{slash}{path}".rstrip("/")
    is_path = all(part not in ("", ".", "..") and part.isprintable() for part in path.split("/")[1:])
    if scheme != "zookeeper" or not has_hosts or not is_path or set(path) & set("@?#") or (login and ":" not in login):
        raise InvalidInput("not a valid ZooKeeper URL", hint="Write zookeeper://user:password@host1:2181,host2/path")
    return hosts, path, Secret(unquote(login))  # user:password, never shown in errors or logs
