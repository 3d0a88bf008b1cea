"""What only object stores promise: lost answers, conditional writes, uploads in parts, and how they fail."""

import gc
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.s3_proxy import Fault, S3Proxy, running_proxy
from tests.s3_server import BUCKET, s3_server
from tests.storage.test_put_race import WRITERS, check_one_winner, race_threads

from icefield.ambient import SeededAmbient
from icefield.errors import (
    CommitConflict,
    CommitStateUnknown,
    FileAlreadyExists,
    InvalidInput,
    LocationRefused,
    MissingFile,
    StorageError,
    Unsupported,
)
from icefield.storage.location import join_location
from icefield.storage.object_store.new_file import PART_BYTES
from icefield.storage.object_store.store import ObjectStore

LOST = (Fault.LOSE_REQUEST, Fault.LOSE_REPLY, Fault.FAIL_BEFORE, Fault.FAIL_AFTER)


@pytest.fixture
def root() -> str:
    return s3_server().new_root()


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore(s3_server().properties)


@pytest.fixture(scope="module")
def proxied() -> Iterator[tuple[S3Proxy, ObjectStore]]:
    """A proxy, and a store behind it whose pauses cost no time."""
    with running_proxy(s3_server().endpoint) as (proxy, endpoint):
        yield proxy, ObjectStore({**s3_server().properties, "s3.endpoint": endpoint}, ambient=SeededAmbient(1))


@pytest.mark.parametrize("fault", LOST)
def test_a_write_whose_answer_was_lost_counts_as_ours_and_is_made_once(
    proxied: tuple[S3Proxy, ObjectStore], root: str, fault: Fault
) -> None:
    proxy, store = proxied
    proxy.spoil("PUT", fault)
    store.put_new(f"{root}/k", b"the same bytes as anybody else's")
    assert store.read(f"{root}/k") == b"the same bytes as anybody else's"
    with pytest.raises(FileAlreadyExists):
        store.put_new(f"{root}/k", b"other")


@pytest.mark.parametrize("fault", LOST)
def test_a_key_that_others_took_is_theirs_even_with_the_same_bytes_and_a_lost_answer(
    proxied: tuple[S3Proxy, ObjectStore], root: str, fault: Fault
) -> None:
    proxy, store = proxied
    store.put_new(f"{root}/k", b"same")
    proxy.spoil("PUT", fault)
    with pytest.raises(FileAlreadyExists) as refused:
        store.put_new(f"{root}/k", b"same")
    assert refused.value.cleanable


def test_a_write_is_sent_once_when_it_is_answered(proxied: tuple[S3Proxy, ObjectStore], root: str) -> None:
    proxy, store = proxied
    proxy.seen.clear()
    store.put_new(f"{root}/k", b"x")
    assert proxy.seen == ["PUT"]
    proxy.seen.clear()
    with pytest.raises(FileAlreadyExists):
        store.put_new(f"{root}/k", b"x")
    assert proxy.seen == ["PUT"]


def test_conditional_writes_that_meet_are_sent_again(proxied: tuple[S3Proxy, ObjectStore], root: str) -> None:
    proxy, store = proxied
    proxy.spoil("PUT", Fault.CONFLICT, Fault.CONFLICT)
    store.put_new(f"{root}/k", b"x")
    proxy.spoil("PUT", Fault.CONFLICT)
    store.put_if_match(f"{root}/k", b"y", version_of(store, f"{root}/k"))
    assert store.read(f"{root}/k") == b"y"


def test_a_server_that_never_answers_leaves_the_outcome_open(proxied: tuple[S3Proxy, ObjectStore], root: str) -> None:
    proxy, store = proxied
    proxy.spoil("PUT", *[Fault.FAIL_BEFORE] * 5)
    with pytest.raises(StorageError, match="InternalError") as failed:
        store.put_new(f"{root}/k", b"x")
    assert not failed.value.cleanable
    proxy.spoil("PUT", *[Fault.FAIL_BEFORE] * 5)
    with pytest.raises(CommitStateUnknown):
        store.put_if_match(f"{root}/k", b"x", None)
    store.put_new(f"{root}/k", b"x")


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.FAIL_BEFORE])
def test_reads_are_repeated(proxied: tuple[S3Proxy, ObjectStore], root: str, fault: Fault) -> None:
    proxy, store = proxied
    store.put_new(f"{root}/k", b"0123")
    proxy.spoil("GET", fault)
    assert store.read(f"{root}/k") == b"0123"
    proxy.spoil("GET", fault)
    assert store.read_range(f"{root}/k", 1, 2) == b"12"
    proxy.spoil("HEAD", fault)
    assert store.size(f"{root}/k") == 4
    proxy.spoil("GET", fault)
    assert len(list(store.list(root))) == 1


def version_of(store: ObjectStore, location: str) -> str:
    found = store.read_versioned(location)
    assert found is not None
    return found.version


def test_a_key_is_replaced_by_who_knows_its_version(store: ObjectStore, root: str) -> None:
    key = f"{root}/k"
    assert store.read_versioned(key) is None
    store.put_if_match(key, b"1", None)
    first = version_of(store, key)
    store.put_if_match(key, b"2", first)
    for stale in (first, None):
        with pytest.raises(CommitConflict):
            store.put_if_match(key, b"3", stale)
    assert store.read(key) == b"2"
    second = version_of(store, key)
    store.delete(key)
    with pytest.raises(CommitConflict):
        store.put_if_match(key, b"3", second)
    assert store.read_versioned(key) is None


@pytest.mark.parametrize("fault", [Fault.LOSE_REPLY, Fault.FAIL_AFTER])
def test_a_replacement_whose_answer_was_lost_is_unknown_and_landed(
    proxied: tuple[S3Proxy, ObjectStore], root: str, fault: Fault
) -> None:
    proxy, store = proxied
    store.put_if_match(f"{root}/k", b"1", None)
    proxy.spoil("PUT", fault)
    with pytest.raises(CommitStateUnknown):
        store.put_if_match(f"{root}/k", b"2", version_of(store, f"{root}/k"))
    assert store.read(f"{root}/k") == b"2"


def test_a_replacement_that_did_not_arrive_is_made_again(proxied: tuple[S3Proxy, ObjectStore], root: str) -> None:
    proxy, store = proxied
    store.put_if_match(f"{root}/k", b"1", None)
    proxy.spoil("PUT", Fault.LOSE_REQUEST, Fault.FAIL_BEFORE)
    store.put_if_match(f"{root}/k", b"2", version_of(store, f"{root}/k"))
    assert store.read(f"{root}/k") == b"2"


@pytest.mark.slow
def test_r19_racing_threads_have_one_winner(store: ObjectStore, root: str) -> None:
    for turn in range(2):
        inner = join_location(root, str(turn), "key")
        check_one_winner(store, inner, race_threads(store, inner))


class CheckThenWriteStore(ObjectStore):
    """Wrong: looks whether the key is free, then writes whatever is there. All look before any writes."""

    together = threading.Barrier(WRITERS)

    def put_new(self, location: str, data: bytes) -> None:
        if any(self.list(location.rpartition("/")[0])):
            raise FileAlreadyExists(location)
        self.together.wait(30)
        self.put_parts_with_id(location, iter([data]), "x")


def test_r19_the_race_finds_check_then_write(root: str) -> None:
    store = CheckThenWriteStore(s3_server().properties)
    winners = race_threads(store, f"{root}/key")
    with pytest.raises(AssertionError, match="8 writers"):
        check_one_winner(store, f"{root}/key", winners)


def test_racing_replacements_have_one_winner(store: ObjectStore, root: str) -> None:
    store.put_if_match(f"{root}/k", b"start", None)
    version = version_of(store, f"{root}/k")

    def replace(number: int) -> bool:
        try:
            store.put_if_match(f"{root}/k", bytes([number]), version)
        except CommitConflict:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as threads:
        won = list(threads.map(replace, range(WRITERS)))
    assert won.count(True) == 1
    assert store.read(f"{root}/k") == bytes([won.index(True)])


BIG = bytes(range(256)) * (PART_BYTES // 256) + b"and a little more"


def test_a_big_file_is_sent_in_parts_and_appears_when_closed(store: ObjectStore, root: str) -> None:
    with store.open_new(f"{root}/k") as sink:
        for start in range(0, len(BIG), 1 << 20):
            sink.write(BIG[start : start + (1 << 20)])
        assert list(store.list(root)) == []
        assert sink.tell() == len(BIG)
    assert store.read(f"{root}/k") == BIG


@pytest.mark.parametrize("end", ["abort", "forget"])
def test_a_big_file_that_is_not_closed_leaves_neither_object_nor_thread(
    store: ObjectStore, root: str, end: str
) -> None:
    sink = store.open_new(f"{root}/k")
    sink.write(BIG)
    if end == "abort":
        sink.abort()
        sink.close()
    del sink
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "icefield-upload":
            thread.join(30)
            assert not thread.is_alive()
    assert list(store.list(root)) == []
    store.put_new(f"{root}/k", b"x")


def test_an_aborted_upload_in_parts_is_ended_in_the_store(proxied: tuple[S3Proxy, ObjectStore], root: str) -> None:
    proxy, store = proxied
    proxy.seen.clear()
    sink = store.open_new(f"{root}/k")
    sink.write(BIG)
    sink.write(BIG)
    sink.abort()
    assert "POST" in proxy.seen
    assert proxy.seen[-1] == "DELETE"


def test_a_big_file_finds_a_key_that_was_taken_meanwhile(store: ObjectStore, root: str) -> None:
    sink = store.open_new(f"{root}/k")
    sink.write(BIG)
    store.put_new(f"{root}/k", b"mine")
    with pytest.raises(FileAlreadyExists):
        sink.close()
    sink.abort()
    assert store.read(f"{root}/k") == b"mine"


def test_a_big_file_whose_completion_was_not_answered_is_found_to_be_there(
    proxied: tuple[S3Proxy, ObjectStore], root: str
) -> None:
    proxy, store = proxied
    sink = store.open_new(f"{root}/k")
    sink.write(BIG)
    proxy.spoil("POST", Fault.NONE, Fault.FAIL_AFTER)
    sink.close()
    assert store.size(f"{root}/k") == len(BIG)


@pytest.mark.parametrize("fault", [Fault.FAIL_BEFORE, Fault.LOSE_REPLY])
def test_a_sink_that_failed_may_be_aborted(proxied: tuple[S3Proxy, ObjectStore], root: str, fault: Fault) -> None:
    proxy, store = proxied
    sink = store.open_new(f"{root}/k")
    sink.write(b"small")
    proxy.spoil("PUT", fault, *[Fault.LOSE_REQUEST] * 4)
    with pytest.raises(StorageError, match="cannot write"):
        sink.close()
    assert sink.closed
    assert len(list(store.list(root))) == (fault is Fault.LOSE_REPLY)
    sink.abort()
    assert list(store.list(root)) == []


def test_parquet_is_read_with_one_request_for_a_small_file(proxied: tuple[S3Proxy, ObjectStore], root: str) -> None:
    proxy, store = proxied
    with store.open_new(f"{root}/t.parquet") as sink:
        pq.write_table(pa.table({"id": range(1000)}), sink)
    proxy.seen.clear()
    with store.open_input(f"{root}/t.parquet") as file:
        assert pq.read_table(file).num_rows == 1000
    assert proxy.seen == ["GET"]


def test_an_empty_object_opens_as_an_empty_file(store: ObjectStore, root: str) -> None:
    store.put_new(f"{root}/k", b"")
    with store.open_input(f"{root}/k") as file:
        assert (file.size(), file.read()) == (0, b"")


WRONG = {
    "s3.secret-access-key": ("SignatureDoesNotMatch", "Check the access key"),
    "s3.access-key-id": ("InvalidAccessKeyId", "Check the access key"),
}


@pytest.mark.parametrize("key", WRONG)
def test_wrong_credentials_are_named(root: str, key: str) -> None:
    code, hint = WRONG[key]
    store = ObjectStore({**s3_server().properties, key: "wrong"})
    for call in (
        lambda: store.read(f"{root}/k"),
        lambda: store.put_new(f"{root}/k", b""),
        lambda: list(store.list(root)),
        lambda: store.delete(f"{root}/k"),
        lambda: store.put_if_match(f"{root}/k", b"", None),
    ):
        with pytest.raises(StorageError, match=code) as refused:
            call()
        assert hint in str(refused.value)
        assert "wrong" not in str(refused.value)
    with pytest.raises(StorageError, match="Check the access key"):
        store.size(f"{root}/k")  # The answer to HEAD has no body.


def test_a_missing_bucket_is_named() -> None:
    store = ObjectStore(s3_server().properties)
    for call in (
        lambda: store.read("s3://nobody/k"),
        lambda: store.put_new("s3://nobody/k", b""),
        lambda: list(store.list("s3://nobody/k")),
        lambda: store.open_input("s3://nobody/k"),
        lambda: store.read_versioned("s3://nobody/k"),
        lambda: store.put_if_match("s3://nobody/k", b"", None),
    ):
        with pytest.raises(StorageError, match="NoSuchBucket.*Create the bucket"):
            call()


def test_an_endpoint_where_nobody_listens_is_named() -> None:
    properties = {**s3_server().properties, "s3.endpoint": "http://127.0.0.1:1"}
    store = ObjectStore(properties, ambient=SeededAmbient(1))
    with pytest.raises(StorageError, match="cannot be reached. Check the endpoint"):
        store.put_new("s3://lake/k", b"")
    with pytest.raises(StorageError, match="cannot be reached"):
        store.put_if_match("s3://lake/k", b"", None)


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"s3.endpoint": "localhost:9000"}, "Write it as https://"),
        ({"s3.nonsense": "x"}, "nonsense"),
        ({"endpoint": "http://x"}, "unknown object store property"),
        ({"s3.region": 3}, "must be a string"),
        ({"s3.path-style-access": "yes"}, "true or false"),
    ],
)
def test_settings_that_mean_nothing_are_refused(properties: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        ObjectStore(properties).read("s3://lake/k")


@pytest.mark.parametrize("key", ["a//b", "a/./b", "../b", "", "a/"])
def test_keys_that_the_client_cannot_say_are_refused(store: ObjectStore, key: str) -> None:
    with pytest.raises(InvalidInput, match="component"):
        store.read(f"s3://{BUCKET}/{key}")


def test_roots_hold_and_three_schemes_are_one(root: str) -> None:
    store = ObjectStore(s3_server().properties, roots=[root])
    store.put_new(f"{root}/k", b"x")
    for outside in (f"{root}k", f"s3://{BUCKET}/elsewhere", f"s3://other{root.removeprefix('s3://lake')}"):
        with pytest.raises(LocationRefused):
            store.read(outside)
    assert ObjectStore(s3_server().properties).read(root.replace("s3:", "s3a:") + "/k") == b"x"


def test_native_uri_needs_a_scheme_that_the_cluster_knows(store: ObjectStore) -> None:
    with pytest.raises(Unsupported, match="Spark cannot read"):
        store.native_uri("s3://lake/a b/c")
    hadoop = ObjectStore(s3_server().properties, native_scheme="s3a")
    assert hadoop.native_uri("s3://lake/a b/100%") == "s3a://lake/a%20b/100%25"


def test_it_travels_to_another_process(store: ObjectStore, root: str) -> None:
    store.put_new(f"{root}/k", b"x")
    program = "import pickle, sys; store = pickle.load(sys.stdin.buffer); print(store.read(sys.argv[1]).decode())"
    guarded = ObjectStore(s3_server().properties, roots=[root], native_scheme="s3a")
    found = subprocess.run(
        [sys.executable, "-c", program, f"{root}/k"], input=pickle.dumps(guarded), capture_output=True, check=True
    )
    assert found.stdout == b"x\n"
    copy = pickle.loads(pickle.dumps(guarded))
    assert copy.native_uri(f"{root}/k").startswith("s3a://")
    with pytest.raises(LocationRefused):
        copy.read("s3://lake/elsewhere")


def test_a_forked_process_is_refused_instead_of_waiting_for_ever(store: ObjectStore, root: str) -> None:
    with pytest.raises(MissingFile):
        store.read(f"{root}/k")
    child = os.fork()
    if child == 0:
        try:
            ObjectStore(s3_server().properties).read(f"{root}/k")
        except StorageError as error:
            os._exit(7 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_many_files_are_deleted_with_few_requests(store: ObjectStore, root: str) -> None:
    places = [f"{root}/many/{at}" for at in range(5)]
    for place in places[:4]:
        store.put_new(place, b"1")
    store.delete_many(places)  # one of them does not exist
    assert list(store.list(f"{root}/many")) == []
    with pytest.raises(LocationRefused):
        store.delete_many(["file:///x"])
