"""What only a catalog of objects promises: lost answers, renames that crash, readings as of one moment."""

import itertools
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.s3_proxy import Fault, S3Proxy, running_proxy
from tests.s3_server import s3_server

from icefield.ambient import SeededAmbient
from icefield.catalog.catalog import Entry, Kind, PointerSwap
from icefield.catalog.object_store.catalog import ObjectStoreCatalog
from icefield.errors import (
    AlreadyExists,
    CatalogError,
    CommitStateUnknown,
    CorruptFile,
    IcefieldError,
    NoSuchTable,
)
from icefield.model.names import parse_table_name
from icefield.storage.location import join_location, location_of_path
from icefield.storage.object_store.conditional import Versioned
from icefield.storage.object_store.directory import DirectoryStore
from icefield.storage.object_store.store import ObjectStore

T, U, NEW = (parse_table_name(f"shop.{name}") for name in ("orders", "stock", "sales"))


class Crash(BaseException):
    """The process died here."""


class InterruptedStore(DirectoryStore):
    """Calls `before_put` with the number of each write, before it is made."""

    def __init__(self, before_put: Callable[[int], None]) -> None:
        super().__init__(durable=False)
        self.puts = 0
        self.before_put = before_put

    def put_if_match(self, location: str, data: bytes, version: str | None) -> None:
        self.puts += 1
        self.before_put(self.puts)
        super().put_if_match(location, data, version)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return location_of_path(str(tmp_path / "catalog"))


@pytest.fixture
def catalog(root: str) -> ObjectStoreCatalog:
    made = ObjectStoreCatalog(DirectoryStore(durable=False), root)
    made.create_namespace(("shop",))
    made.swap([PointerSwap(T, None, "t0")])
    return made


@pytest.fixture
def proxied() -> Iterator[tuple[S3Proxy, ObjectStoreCatalog]]:
    with running_proxy(s3_server().endpoint) as (proxy, endpoint):
        store = ObjectStore({**s3_server().properties, "s3.endpoint": endpoint}, ambient=SeededAmbient(1))
        made = ObjectStoreCatalog(store, s3_server().new_root())
        made.create_namespace(("shop",))
        made.swap([PointerSwap(T, None, "t0")])
        yield proxy, made


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_REPLY, Fault.FAIL_BEFORE, Fault.FAIL_AFTER])
def test_a_change_whose_answer_was_lost_is_found_to_have_landed(
    proxied: tuple[S3Proxy, ObjectStoreCatalog], fault: Fault
) -> None:
    proxy, catalog = proxied
    for change in (PointerSwap(T, "t0", "t1"), PointerSwap(U, None, "u0"), PointerSwap(T, "t1", None)):
        proxy.spoil("PUT", fault)
        catalog.swap([change])
        entry = catalog.find(change.table)
        assert (entry.pointer if entry else None) == change.new
    proxy.spoil("PUT", fault, fault, fault)
    catalog.rename_table(U, NEW)
    assert (catalog.find(U), catalog.find(NEW)) == (None, Entry(Kind.TABLE, "u0"))


def test_a_server_that_never_answers_leaves_the_outcome_open(proxied: tuple[S3Proxy, ObjectStoreCatalog]) -> None:
    proxy, catalog = proxied
    proxy.spoil("PUT", *[Fault.FAIL_BEFORE] * 5)
    with pytest.raises(CommitStateUnknown) as unknown:
        catalog.swap([PointerSwap(T, "t0", "t1")])
    assert not unknown.value.cleanable
    catalog.swap([PointerSwap(T, "t0", "t1")])


def test_what_was_overtaken_after_a_lost_answer_is_left_to_the_history_of_the_table(
    proxied: tuple[S3Proxy, ObjectStoreCatalog],
) -> None:
    proxy, catalog = proxied
    store = catalog._records.store
    real = store.put_if_match

    def overtake(location: str, data: bytes, version: str | None) -> None:
        store.put_if_match = real  # type: ignore[method-assign]
        try:
            real(location, data, version)
        finally:
            catalog.swap([PointerSwap(T, "t1", "t2")])

    proxy.spoil("PUT", Fault.LOSE_REPLY)
    store.put_if_match = overtake  # type: ignore[method-assign]
    with pytest.raises(CommitStateUnknown):
        catalog.swap([PointerSwap(T, "t0", "t1")])
    assert catalog.pointer(T) == "t2"


def test_a_store_that_refuses_is_an_error_of_the_catalog_and_changed_nothing() -> None:
    root = s3_server().new_root()
    wrong = ObjectStore({**s3_server().properties, "s3.secret-access-key": "wrong"})
    catalog = ObjectStoreCatalog(wrong, root)
    calls: tuple[Callable[[], object], ...] = (
        lambda: catalog.pointer(T),
        catalog.list_namespaces,
        lambda: catalog.create_namespace(("shop",)),
        lambda: catalog.swap([PointerSwap(T, None, "t0")]),
    )
    for call in calls:
        with pytest.raises(CatalogError, match="SignatureDoesNotMatch.*Check the access key") as refused:
            call()
        assert refused.value.cleanable


def test_a_record_that_is_none_is_named(catalog: ObjectStoreCatalog, root: str) -> None:
    DirectoryStore(durable=False).put_if_match(join_location(root, "shop", "stock.pointer"), b"{", None)
    with pytest.raises(CorruptFile, match="stock.pointer"):
        catalog.pointer(U)


def test_a_foreign_file_among_the_records_is_not_shown(catalog: ObjectStoreCatalog, root: str) -> None:
    DirectoryStore(durable=False).put_if_match(join_location(root, "other", "README.md"), b"x", None)
    assert catalog.list_namespaces() == [("shop",)]


@pytest.mark.parametrize("last", [1, 2, 3])
def test_a_rename_that_crashed_is_whole_for_readers_and_is_finished_by_the_next_writer(
    catalog: ObjectStoreCatalog, root: str, last: int
) -> None:
    def crash(number: int) -> None:
        if number == last:
            raise Crash

    with pytest.raises(Crash):
        ObjectStoreCatalog(InterruptedStore(crash), root).rename_table(T, NEW)
    moved = last == 3
    here, gone = (NEW, T) if moved else (T, NEW)
    assert catalog.list_tables(("shop",)) == [here]
    assert catalog.pointers([T, NEW]) == {here: "t0"}
    assert catalog.find(gone) is None
    if last == 1:
        catalog.swap([PointerSwap(T, "t0", "t1")])
        return
    with pytest.raises(NoSuchTable):
        catalog.swap([PointerSwap(T, "t0", "t1")])
    assert catalog.list_tables(("shop",)) == [NEW]
    catalog.swap([PointerSwap(NEW, "t0", "t1")])
    catalog.swap([PointerSwap(T, None, "again")])
    assert catalog.pointers([T, NEW]) == {T: "again", NEW: "t1"}


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(
    "other", ["commit", "take", "finish and drop", "finish and recreate", "drop", "commit to new", "drop new"]
)
def test_a_rename_met_by_another_change_at_any_step_ends_as_if_one_came_after_the_other(
    catalog: ObjectStoreCatalog, root: str, at: int, other: str
) -> None:
    outcome: list[str] = []

    def finish_and_drop() -> None:
        attempt(changes["commit"])
        catalog.swap([PointerSwap(NEW, "t0", None)])

    def finish_and_recreate() -> None:
        attempt(changes["commit"])
        catalog.swap([PointerSwap(T, None, "again")])

    changes: dict[str, Callable[[], object]] = {
        "commit": lambda: catalog.swap([PointerSwap(T, "t0", "t1")]),
        "take": lambda: catalog.swap([PointerSwap(NEW, None, "n0")]),
        "finish and drop": finish_and_drop,
        "finish and recreate": finish_and_recreate,
        "commit to new": lambda: catalog.swap([PointerSwap(NEW, "t0", "t1")]),
        "drop new": lambda: catalog.swap([PointerSwap(NEW, "t0", None)]),
        "drop": lambda: catalog.swap([PointerSwap(T, "t0", None)]),
    }

    def attempt(change: Callable[[], object]) -> bool:
        try:
            change()
        except IcefieldError:
            return False
        return True

    def interfere(number: int) -> None:
        if number == at:
            outcome.append("landed" if attempt(changes[other]) else "refused")

    renamed = attempt(lambda: ObjectStoreCatalog(InterruptedStore(interfere), root).rename_table(T, NEW))
    found = catalog.pointers([T, NEW])
    landed = outcome == ["landed"]
    expected = {
        "commit": {NEW: "t1"} if landed else {NEW: "t0"},
        "take": {T: "t0", NEW: "n0"} if landed else {NEW: "t0"},
        "commit to new": {NEW: "t1"} if landed else {NEW: "t0"},
        "drop new": {} if landed else {NEW: "t0"},
        "finish and drop": {} if landed else {NEW: "t1"} if at == 1 else {NEW: "t0"},
        "finish and recreate": {T: "again", NEW: "t0"} if landed else {NEW: "t1"},
        "drop": {} if landed else {NEW: "t0"},
    }[other]
    assert found == expected
    assert renamed is not (landed and other in ("take", "drop"))


def test_a_name_taken_while_a_rename_runs_ends_the_rename(catalog: ObjectStoreCatalog, root: str) -> None:
    def take(number: int) -> None:
        if number == 2:
            # The record is written as a client would whose check came before the intent.
            catalog.swap([PointerSwap(NEW, None, "n0")])

    with pytest.raises(AlreadyExists, match="already used by a table"):
        ObjectStoreCatalog(InterruptedStore(take), root).rename_table(T, NEW)
    assert catalog.pointers([T, NEW]) == {T: "t0", NEW: "n0"}
    catalog.swap([PointerSwap(T, "t0", "t1")])


class MovingStore(DirectoryStore):
    """Calls `after_read` after each reading of a record."""

    def __init__(self, after_read: Callable[[], None]) -> None:
        super().__init__(durable=False)
        self.after_read = after_read

    def read_versioned(self, location: str) -> Versioned | None:
        found = super().read_versioned(location)
        self.after_read()
        return found


def test_pointers_of_several_tables_are_those_of_one_moment(catalog: ObjectStoreCatalog, root: str) -> None:
    catalog.swap([PointerSwap(U, None, "0")])
    catalog.swap([PointerSwap(T, "t0", "0")])
    slots, one_at_a_time = iter(range(3)), threading.Lock()

    def move_both() -> None:
        with one_at_a_time:
            if (slot := next(slots, None)) is not None:
                catalog.swap([PointerSwap(T, str(slot), str(slot + 1))])
                catalog.swap([PointerSwap(U, str(slot), str(slot + 1))])

    found = ObjectStoreCatalog(MovingStore(move_both), root).pointers([T, U])
    assert found == {T: "3", U: "3"}


def test_tables_that_never_rest_are_not_read_as_of_one_moment(catalog: ObjectStoreCatalog, root: str) -> None:
    catalog.swap([PointerSwap(U, None, "u0")])
    slots, one_at_a_time = itertools.count(), threading.Lock()

    def move() -> None:
        with one_at_a_time:
            slot = next(slots)
            catalog.swap([PointerSwap(T, f"t{slot}", f"t{slot + 1}")])

    with pytest.raises(CatalogError, match="change too often"):
        ObjectStoreCatalog(MovingStore(move), root).pointers([T, U])


COUNT_UP = """
import pickle, sys
from icefield.catalog.catalog import PointerSwap
from icefield.catalog.object_store.catalog import ObjectStoreCatalog
from icefield.errors import CommitConflict
from icefield.model.names import parse_table_name
store, root = pickle.load(sys.stdin.buffer)
catalog, table = ObjectStoreCatalog(store, root), parse_table_name("shop.orders")
for _ in range(20):
    while True:
        pointer = catalog.pointer(table)
        try:
            catalog.swap([PointerSwap(table, pointer, str(int(pointer) + 1))])
            break
        except CommitConflict:
            pass
"""


@pytest.mark.slow
def test_racing_processes_lose_no_increment_on_s3(tmp_path: Path) -> None:
    store, root = ObjectStore(s3_server().properties), s3_server().new_root()
    with closing(ObjectStoreCatalog(store, root)) as catalog:
        catalog.create_namespace(("shop",))
        catalog.swap([PointerSwap(T, None, "0")])
        (tmp_path / "input").write_bytes(pickle.dumps((store, root)))
        processes = []
        for _ in range(4):
            with (tmp_path / "input").open("rb") as pickled:
                processes.append(subprocess.Popen([sys.executable, "-c", COUNT_UP], stdin=pickled))
        assert [process.wait(120) for process in processes] == [0] * 4
        assert catalog.pointer(T) == "80"
