"""What only a ZooKeeper server can get wrong: lost answers, sessions that expire, concurrent transactions, logins."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pyarrow as pa
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from tests.catalog.dropping_proxy import DroppingProxy, Loss
from tests.effort import DEEP
from tests.zookeeper import ZOOKEEPER, ZooKeeperServer, running_ensemble

import icefield
from icefield.ambient import SystemAmbient
from icefield.catalog.catalog import Catalog, Entry, Kind, PointerSwap
from icefield.catalog.nodes import NodeCatalog, Transaction
from icefield.catalog.zookeeper import ZooKeeperNodes, open_zookeeper_catalog
from icefield.errors import (
    CatalogError,
    CommitConflict,
    CommitStateUnknown,
    IcefieldError,
    InvalidInput,
    NoSuchNamespace,
    Unsupported,
)
from icefield.model.names import TableName, parse_table_name

pytestmark = ZOOKEEPER

T, U, V = (parse_table_name(f"a.{name}") for name in "tuv")
WRITERS, APPENDS = 4, 12
FORK_WORKER = Path(__file__).with_name("fork_worker.py")


def open_at(url: str, timeout_s: float = 15.0) -> NodeCatalog:
    return open_zookeeper_catalog(url, "default", SystemAmbient(), timeout_s)


@pytest.fixture
def catalog(zookeeper_url: str) -> Iterator[NodeCatalog]:
    with closing(open_at(zookeeper_url)) as catalog:
        catalog.create_namespace(("a",), {"k": "v"})
        catalog.swap([PointerSwap(T, None, "0"), PointerSwap(U, None, "u")])
        yield catalog


def is_transaction(data: bytes) -> bool:
    return has_request(data, 14)


def has_request(data: bytes, wanted: int) -> bool:
    """Return whether one of the requests (length, id, type, ...) in the data is of a type."""
    while data:
        length, kind = int.from_bytes(data[:4]), int.from_bytes(data[8:12])
        if kind == wanted:
            return True
        data = data[4 + length :]
    return False


@pytest.fixture
def proxy(zookeeper_server: ZooKeeperServer) -> Iterator[DroppingProxy]:
    with closing(DroppingProxy(zookeeper_server.port, is_commit=is_transaction)) as proxy:
        yield proxy


CHANGES: dict[str, tuple[Callable[[Catalog], None], Callable[[Catalog], bool]]] = {
    "swap": (lambda c: c.swap([PointerSwap(T, "0", "1")]), lambda c: c.pointer(T) == "1"),
    "swap of two": (
        lambda c: c.swap([PointerSwap(T, "0", "1"), PointerSwap(U, "u", "v")]),
        lambda c: c.pointers([T, U]) == {T: "1", U: "v"},
    ),
    "create": (lambda c: c.swap([PointerSwap(V, None, "v")]), lambda c: c.find(V) == Entry(Kind.TABLE, "v")),
    "drop": (lambda c: c.swap([PointerSwap(T, "0", None)]), lambda c: c.find(T) is None),
    "rename": (lambda c: c.rename_table(U, V), lambda c: c.list_tables(("a",)) == [T, V]),
    "create namespace": (lambda c: c.create_namespace(("b",)), lambda c: c.list_namespaces() == [("a",), ("b",)]),
    "properties": (
        lambda c: c.update_namespace_properties(("a",), ["k"], {"l": "w"}),
        lambda c: c.namespace_properties(("a",)) == {"l": "w"},
    ),
}


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("change", CHANGES)
def test_a_lost_answer_is_an_unknown_outcome_whatever_happened(
    zookeeper_url: str, catalog: NodeCatalog, proxy: DroppingProxy, loss: Loss, change: str
) -> None:
    make, is_made = CHANGES[change]
    path = zookeeper_url.rpartition("/")[2]
    with closing(open_at(f"zookeeper://127.0.0.1:{proxy.port}/{path}")) as unlucky:
        assert unlucky.pointer(T) == "0"
        proxy.next_loss = loss
        with pytest.raises(CommitStateUnknown) as unknown:
            make(unlucky)
        assert (unknown.value.retryable, unknown.value.cleanable, proxy.losses) == (False, False, 1)
        assert is_made(catalog) is is_made(unlucky) is (loss is Loss.REPLY)


def test_an_append_whose_answer_is_lost_is_made_once(zookeeper_url: str, proxy: DroppingProxy, tmp_path: Path) -> None:
    url = f"zookeeper://127.0.0.1:{proxy.port}/{zookeeper_url.rpartition('/')[2]}"
    with icefield.connect(url, warehouse=tmp_path / "lake", durable=False) as lake:
        table = lake.create_table("a.t", "id long")
        proxy.next_loss = Loss.REPLY
        table.append(pa.table({"id": [1, 2]}))
        table.append(pa.table({"id": [3]}))
        assert (proxy.losses, lake.table("a.t").count(), len(table.snapshots())) == (1, 3, 2)
    with icefield.connect(zookeeper_url, warehouse=tmp_path / "lake") as again:
        assert again.table("a.t").count() == 3


class Between(ZooKeeperNodes):
    """Something happens between what the first transaction reads and its commit."""

    event: Callable[[], object] | None = None
    commits = 0

    def commit(self, transaction: Transaction) -> bool:
        self.commits += 1
        event, self.event = self.event, None
        if event:
            event()
        return super().commit(transaction)


@pytest.fixture
def slow(zookeeper_url: str, catalog: NodeCatalog) -> Iterator[tuple[NodeCatalog, Between]]:
    nodes = Between(zookeeper_url, "default", 2.0, SystemAmbient())
    with closing(NodeCatalog(nodes, "default", ambient=SystemAmbient())) as slow:
        yield slow, nodes


def test_a_server_that_dies_before_during_and_after_a_swap(
    zookeeper_server: ZooKeeperServer, catalog: NodeCatalog, slow: tuple[NodeCatalog, Between]
) -> None:
    slow[0].swap([PointerSwap(T, "0", "1")])
    slow[1].event = zookeeper_server.kill
    try:
        with pytest.raises(CommitStateUnknown):
            slow[0].swap([PointerSwap(T, "1", "2")])
        for call in (lambda: slow[0].pointer(T), lambda: slow[0].swap([PointerSwap(T, "1", "3")])):
            with pytest.raises(CatalogError, match="Nothing was changed") as refused:
                call()
            assert refused.value.cleanable
    finally:
        zookeeper_server.start()
    assert catalog.pointer(T) == slow[0].pointer(T) == "1"
    slow[0].swap([PointerSwap(T, "1", "4")])
    assert catalog.pointer(T) == "4"


def expire(zookeeper_server: ZooKeeperServer, nodes: ZooKeeperNodes) -> None:
    """End the session of a catalog, as the server does with one that it has not heard of for too long."""
    rival = KazooClient(f"127.0.0.1:{zookeeper_server.port}", client_id=nodes._connect().client_id)
    rival.start()
    rival.stop()
    rival.close()


def test_a_session_that_has_expired_is_replaced(
    zookeeper_server: ZooKeeperServer, catalog: NodeCatalog, slow: tuple[NodeCatalog, Between]
) -> None:
    for pointer in ("0", "1", "2"):
        session = slow[1]._connect().client_id
        expire(zookeeper_server, slow[1])
        assert slow[0].pointer(T) == pointer
        assert slow[1]._connect().client_id != session
        slow[0].swap([PointerSwap(T, pointer, str(int(pointer) + 1))])
    assert catalog.pointer(T) == "3"


def test_a_session_that_expires_before_the_commit_is_never_an_error_that_says_nothing_was_changed(
    zookeeper_server: ZooKeeperServer, catalog: NodeCatalog, slow: tuple[NodeCatalog, Between]
) -> None:
    slow[0].pointer(T)
    slow[1].event = lambda: expire(zookeeper_server, slow[1])
    with suppress(CommitStateUnknown):
        slow[0].swap([PointerSwap(T, "0", "1")])
        assert catalog.pointer(T) == "1"
    slow[0].swap([PointerSwap(T, catalog.pointer(T), "2")])
    assert catalog.pointer(T) == "2"


def test_a_table_that_is_dropped_and_created_again_is_another_one(
    catalog: NodeCatalog, slow: tuple[NodeCatalog, Between]
) -> None:
    def replace() -> None:
        catalog.swap([PointerSwap(T, "0", None)])
        catalog.swap([PointerSwap(T, None, "other")])  # at version 0, as the first one was

    slow[1].event = replace
    with pytest.raises(CommitConflict, match="from 0 to other"):
        slow[0].swap([PointerSwap(T, "0", "1")])
    assert catalog.pointer(T) == "other"


def test_of_two_swaps_that_each_need_the_pointer_of_the_other_to_stay_one_lands(
    catalog: NodeCatalog, slow: tuple[NodeCatalog, Between]
) -> None:
    slow[1].event = lambda: catalog.swap([PointerSwap(T, "0", "1"), PointerSwap(U, "u", "u")])
    with pytest.raises(CommitConflict):
        slow[0].swap([PointerSwap(T, "0", "0"), PointerSwap(U, "u", "v")])
    assert catalog.pointers([T, U]) == {T: "1", U: "u"}


def test_no_table_is_created_in_a_namespace_that_is_concurrently_dropped(
    catalog: NodeCatalog, slow: tuple[NodeCatalog, Between]
) -> None:
    catalog.create_namespace(("b",))
    slow[1].event = lambda: catalog.drop_namespace(("b",))
    with pytest.raises(NoSuchNamespace):
        slow[0].swap([PointerSwap(parse_table_name("b.t"), None, "x")])
    assert catalog.list_namespaces() == [("a",)]


def test_a_table_and_a_view_that_are_created_concurrently_do_not_share_a_name(
    catalog: NodeCatalog, slow: tuple[NodeCatalog, Between]
) -> None:
    slow[1].event = lambda: catalog.swap([PointerSwap(V, None, "view", Kind.VIEW)])
    with pytest.raises(IcefieldError, match="used by a view"):
        slow[0].swap([PointerSwap(V, None, "table")])
    assert catalog.entries()[V] == Entry(Kind.VIEW, "view")


def test_a_rename_takes_along_a_concurrent_commit(catalog: NodeCatalog, slow: tuple[NodeCatalog, Between]) -> None:
    slow[1].event = lambda: catalog.swap([PointerSwap(T, "0", "1")])
    slow[0].rename_table(T, V)
    assert catalog.pointers([T, V]) == {V: "1"}


def test_concurrent_changes_of_properties_are_all_kept(catalog: NodeCatalog, slow: tuple[NodeCatalog, Between]) -> None:
    slow[1].event = lambda: catalog.update_namespace_properties(("a",), [], {"x": "1"})
    slow[0].update_namespace_properties(("a",), ["k"], {"y": "2"})
    assert catalog.namespace_properties(("a",)) == {"x": "1", "y": "2"}


def test_a_move_that_meets_one_of_another_table_lands_at_once(
    catalog: NodeCatalog, slow: tuple[NodeCatalog, Between]
) -> None:
    slow[1].event = lambda: catalog.swap([PointerSwap(T, "0", "1")])
    slow[0].swap([PointerSwap(U, "u", "v")])
    assert (catalog.pointers([T, U]), slow[1].commits) == ({T: "1", U: "v"}, 1)


@pytest.mark.parametrize("rival", ["create", "guarded move", "rename"])
def test_a_guard_sees_what_comes_in_between(
    catalog: NodeCatalog, slow: tuple[NodeCatalog, Between], rival: str
) -> None:
    new = parse_table_name("a.new")
    rivals: dict[str, tuple[Callable[[], None], Any]] = {
        "create": (lambda: catalog.swap([PointerSwap(V, None, "v")]), {T: "0", U: "u", V: "v"}),
        "guarded move": (
            lambda: catalog.swap([PointerSwap(T, "0", "1", guard=lambda _: None)]),
            {T: "1", U: "u"},
        ),
        "rename": (lambda: catalog.rename_table(T, V), {V: "0", U: "u"}),
    }
    seen: list[dict[TableName, str]] = []

    def guard(entries: Any) -> None:
        seen.append({name: entry.pointer for name, entry in entries.items()})

    slow[1].event, expected = rivals[rival]
    slow[0].swap([PointerSwap(new, None, "n", guard=guard)])
    assert seen == [{T: "0", U: "u"}, expected]
    assert catalog.pointer(new) == "n"


def test_a_guard_that_refuses_changes_nothing(catalog: NodeCatalog) -> None:
    def refuse(_: Any) -> None:
        raise InvalidInput("no")

    with pytest.raises(InvalidInput, match="no"):
        catalog.swap([PointerSwap(T, "0", "1"), PointerSwap(V, None, "v", guard=refuse)])
    assert catalog.pointers([T, V]) == {T: "0"}


def test_a_reader_of_two_tables_sees_no_half_of_a_swap_that_comes_in_between(
    catalog: NodeCatalog, zookeeper_url: str
) -> None:
    class BetweenReads(ZooKeeperNodes):
        reads = 0

        def read(self, names: Any, *, with_names: bool) -> Any:
            reading = super().read(names, with_names=with_names)
            self.reads += 1
            if self.reads == 1:
                catalog.swap([PointerSwap(T, "0", "1"), PointerSwap(U, "u", "v")])
            return reading

    nodes = BetweenReads(zookeeper_url, "default", 15.0, SystemAmbient())
    with closing(NodeCatalog(nodes, "default", ambient=SystemAmbient())) as reader:
        assert (reader.pointers([T, U]), nodes.reads) == ({T: "1", U: "v"}, 3)


@pytest.mark.parametrize("part", ["zookeeper", "a:b", "%2E", "a%", "~", "\ue000", "\U0001f9ca", "ü" * 127, "table:x"])
def test_any_name_is_a_name_of_a_node(catalog: NodeCatalog, part: str) -> None:
    name = TableName((part,), part)
    catalog.create_namespace((part,), {part: part})
    catalog.swap([PointerSwap(name, None, part)])
    catalog.swap([PointerSwap(name, part, f"{part}1")])
    assert catalog.entries()[name] == Entry(Kind.TABLE, f"{part}1")
    assert (catalog.list_tables((part,)), catalog.namespace_properties((part,))) == ([name], {part: part})


def test_names_that_cannot_be_are_not_found(catalog: NodeCatalog) -> None:
    for name in (TableName((), ""), TableName(("",), ""), TableName(("a.t",), "x"), TableName((), "a.t")):
        assert catalog.find(name) is None
    assert catalog.find(TableName(("a",), "\ud800")) is None


def test_two_catalogs_at_one_path_are_apart(zookeeper_url: str, catalog: NodeCatalog) -> None:
    with closing(open_zookeeper_catalog(zookeeper_url, "o/ther", SystemAmbient())) as other:
        assert (other.list_namespaces(), other.entries()) == ([], {})
        other.create_namespace(("b",))
        assert other.identity != catalog.identity
    assert catalog.list_namespaces() == [("a",)]


def change_by_hand(server: ZooKeeperServer, url: str, change: Callable[[KazooClient, str], object]) -> None:
    client = KazooClient(f"127.0.0.1:{server.port}")
    client.start()
    change(client, f"/{url.rpartition('/')[2]}/catalog:default")
    client.stop()
    client.close()


@pytest.mark.parametrize(
    "node",
    [
        *("table:", "table:a..b", "table:a.", "table:a.b c", "table:a.%2e", "table:a.%zz", "table:a.%ED%A0%80"),
        *("view:a.t", "namespace:", "namespace:a.", "namespace:ä"),
    ],
)
def test_a_node_that_was_named_by_hand_is_one_clear_error(
    zookeeper_server: ZooKeeperServer, zookeeper_url: str, catalog: NodeCatalog, node: str
) -> None:
    change_by_hand(zookeeper_server, zookeeper_url, lambda client, root: client.create(f"{root}/{node}", b"{}"))
    calls: list[Callable[[], object]] = [
        lambda: catalog.list_tables(("a",)),
        catalog.list_namespaces,
        catalog.entries,
        lambda: catalog.swap([PointerSwap(V, None, "v")]),
    ]
    for call in calls:
        with pytest.raises(CatalogError, match=r"the node \S.* (does not have the name|has the name of another)"):
            call()
    catalog.swap([PointerSwap(U, "u", "v")])
    assert catalog.pointer(U) == "v"
    change_by_hand(zookeeper_server, zookeeper_url, lambda client, root: client.delete(f"{root}/{node}"))
    assert catalog.list_tables(("a",)) == [T, U]


def test_nodes_of_other_kinds_are_left_alone(
    zookeeper_server: ZooKeeperServer, zookeeper_url: str, catalog: NodeCatalog
) -> None:
    change_by_hand(zookeeper_server, zookeeper_url, lambda client, root: client.create(f"{root}/lock", b"x"))
    catalog.swap([PointerSwap(V, None, "v")])
    assert catalog.list_tables(("a",)) == [T, U, V]


@pytest.mark.parametrize("size_bytes", [700_000, 801_000, 1_048_576, 5_000_000])
def test_what_is_too_large_for_a_request_is_refused_before_it_is_sent(catalog: NodeCatalog, size_bytes: int) -> None:
    tables = [PointerSwap(parse_table_name(f"a.{n}"), None, "x" * 100) for n in range(size_bytes // 300)]
    changes: list[Callable[[], None]] = [
        lambda: catalog.update_namespace_properties(("a",), [], {"k": "x" * size_bytes}),
        lambda: catalog.create_namespace(("b",), {"k": "x" * size_bytes}),
        lambda: catalog.swap([PointerSwap(V, None, "x" * size_bytes)]),
        lambda: catalog.swap(tables),
    ]
    before = catalog.entries(), catalog.namespace_properties(("a",))
    for change in changes:
        if size_bytes < ZooKeeperNodes.most_bytes:
            change()
            continue
        with pytest.raises(Unsupported, match="Nothing was changed"):
            change()
        assert (catalog.entries(), catalog.namespace_properties(("a",))) == before


class HastyClock(SystemAmbient):
    """A clock that is a second later whenever it is looked at."""

    seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1
        return self.seconds


def test_a_long_read_goes_on_as_long_as_the_server_answers(zookeeper_url: str, catalog: NodeCatalog) -> None:
    catalog.swap([PointerSwap(parse_table_name(f"a.t{n}"), None, "x") for n in range(50)])
    with closing(open_zookeeper_catalog(zookeeper_url, "default", HastyClock(), 10.0)) as hasty:
        assert len(hasty.entries()) == 52


def test_a_read_whose_sync_was_lost_is_repeated(
    catalog: NodeCatalog, zookeeper_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = ZooKeeperNodes(zookeeper_url, "default", 15.0, SystemAmbient())
    with closing(NodeCatalog(nodes, "default", ambient=SystemAmbient())) as reader:
        client = nodes._connect()
        sync, syncs = client.sync_async, list[str]()

        def lose_first(path: str) -> Any:
            syncs.append(path)
            if len(syncs) > 1:
                return sync(path)
            lost = client.handler.async_result()
            lost.set_exception(ConnectionLoss())
            return lost

        monkeypatch.setattr(client, "sync_async", lose_first)
        assert (reader.pointer(T), len(syncs)) == ("0", 2)


@pytest.mark.parametrize(("node", "data"), [("table:a.t", b"\xff"), ("table:a.t", b""), ("namespace:a", b"{")])
def test_a_node_that_was_overwritten_is_one_clear_error(
    zookeeper_server: ZooKeeperServer, zookeeper_url: str, catalog: NodeCatalog, node: str, data: bytes
) -> None:
    change_by_hand(zookeeper_server, zookeeper_url, lambda client, root: client.set(f"{root}/{node}", data))
    with pytest.raises(CatalogError, match=f"the node {node} "):
        catalog.pointer(T) if node.startswith("table") else catalog.namespace_properties(("a",))


def test_no_log_shows_the_password(zookeeper_server: ZooKeeperServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    url = zookeeper_server.url().replace("://", "://me:hunt%2Fer2@")
    with closing(open_at(url)) as catalog:
        catalog.create_namespace(("a",))
        assert "hunt" not in f"{catalog!r}{vars(catalog)!r}{vars(catalog._store)!r}"
    assert "Sending request" in caplog.text
    assert "hunt" not in caplog.text


def test_nodes_belong_to_the_login_that_created_them(zookeeper_server: ZooKeeperServer) -> None:
    place = zookeeper_server.url().removeprefix("zookeeper://")
    login = "me:hunt%2Fer2@"
    with (
        closing(open_at(f"zookeeper://{login}{place}")) as own,
        closing(open_at(f"zookeeper://{login}{place}")) as same,
    ):
        own.create_namespace(("a",))
        same.swap([PointerSwap(T, None, "0")])
        assert own.pointer(T) == "0"
        for other in ("", "me:hunter3@"):
            with closing(open_at(f"zookeeper://{other}{place}")) as stranger:
                with pytest.raises(CatalogError, match="NoAuth") as unread:
                    stranger.pointer(T)
                with pytest.raises(CatalogError, match="NoAuth") as unwritten:
                    stranger.create_namespace(("b",))
                assert "hunt" not in f"{unread.value}{unwritten.value}"
        assert "hunt" not in f"{own.identity}{own!r}"


def test_a_forked_child_opens_a_session_of_its_own(zookeeper_url: str) -> None:
    command = [sys.executable, str(FORK_WORKER), "guarded", zookeeper_url]
    assert subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=100).stdout.strip() == "2"


def test_a_closed_catalog_says_so(catalog: NodeCatalog) -> None:
    catalog.close()
    for call in (lambda: catalog.pointer(T), lambda: catalog.swap([PointerSwap(T, "0", "1")])):
        with pytest.raises(CatalogError, match="was closed"):
            call()


@pytest.mark.skipif(not DEEP, reason="three servers take long to start: make deep")
def test_writers_that_race_while_the_leader_dies_lose_and_repeat_nothing(tmp_path: Path) -> None:
    with running_ensemble() as servers:
        url = f"zookeeper://{','.join(f'127.0.0.1:{server.port}' for server in servers)}/lake"
        with icefield.connect(url, warehouse=tmp_path / "lake", durable=False) as lake:
            lake.create_table("a.t", "id long")
        outcomes: dict[int, IcefieldError | None] = {}

        def append(writer: int) -> None:
            with icefield.connect(url, warehouse=tmp_path / "lake", durable=False) as own:
                table = own.table("a.t")
                for number in range(writer * 100, writer * 100 + APPENDS):
                    try:
                        table.append(pa.table({"id": [number]}))
                        outcomes[number] = None
                    except IcefieldError as error:
                        outcomes[number] = error

        threads = [Thread(target=append, args=(writer,)) for writer in range(WRITERS)]
        for thread in threads:
            thread.start()
        while len(outcomes) < WRITERS * APPENDS // 4:
            sleep(0.05)
        leader = next(server for server in servers if b"Mode: leader" in server.ask(b"srvr"))
        leader.kill()
        while len(outcomes) < WRITERS * APPENDS // 2:
            sleep(0.05)
        leader.start()
        for thread in threads:
            thread.join()
        with icefield.connect(url, warehouse=tmp_path / "lake") as lake:
            found = sorted(lake.table("a.t").scan().to_arrow().read_all().column("id").to_pylist())
        assert len(outcomes) == WRITERS * APPENDS
        assert len(found) == len(set(found))
        assert {number for number, error in outcomes.items() if error is None} <= set(found)
        assert not {number for number, error in outcomes.items() if error is not None and error.cleanable} & set(found)
