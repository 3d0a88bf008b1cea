"""Keys that may be replaced, in a local directory: one winner per version, whole bytes, and what is removed when."""

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from icefield.errors import CommitConflict, CommitStateUnknown, StorageError, Unsupported
from icefield.storage import local
from icefield.storage.location import location_of_path
from icefield.storage.object_store.conditional import Versioned
from icefield.storage.object_store.directory import KEPT, DirectoryStore

COUNT_UP = """
import sys
from icefield.errors import CommitConflict
from icefield.storage.object_store.directory import DirectoryStore
store = DirectoryStore(durable=False)
for _ in range(int(sys.argv[2])):
    while True:
        found = store.read_versioned(sys.argv[1])
        try:
            store.put_if_match(sys.argv[1], b"%d" % (int(found.data) + 1), found.version)
            break
        except CommitConflict:
            pass
"""


@pytest.fixture
def key(tmp_path: Path) -> str:
    return location_of_path(str(tmp_path / "catalog" / "k"))


@pytest.fixture
def store() -> DirectoryStore:
    return DirectoryStore(durable=False)


def test_a_key_is_replaced_by_who_knows_its_version(store: DirectoryStore, key: str) -> None:
    assert store.read_versioned(key) is None
    store.put_if_match(key, b"1", None)
    assert store.read_versioned(key) == Versioned(b"1", "1")
    store.put_if_match(key, b"2", "1")
    for stale in ("1", None, "7"):
        with pytest.raises(CommitConflict):
            store.put_if_match(key, b"3", stale)
    assert store.read_versioned(key) == Versioned(b"2", "2")
    assert list(store.list_keys(key.rpartition("/")[0])) == [key]


def test_racing_replacements_have_one_winner(store: DirectoryStore, key: str) -> None:
    store.put_if_match(key, b"", None)

    def replace(number: int) -> bool:
        try:
            store.put_if_match(key, bytes([number]), "1")
        except CommitConflict:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(replace, range(8)))
    assert won.count(True) == 1
    assert store.read_versioned(key) == Versioned(bytes([won.index(True)]), "2")


def test_a_key_whose_files_are_all_replaced_while_they_are_listed_is_still_there(
    store: DirectoryStore, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_if_match(key, b"1", None)
    monkeypatch.setattr(local, "_describe", lambda entry, location: None)  # deleted since the directory was read
    assert store.read_versioned(key) == Versioned(b"1", "1")
    assert list(store.list_keys(key.rpartition("/")[0])) == [key]
    with pytest.raises(CommitConflict):
        store.put_if_match(key, b"2", None)


@pytest.mark.slow
def test_racing_processes_lose_no_increment(store: DirectoryStore, key: str) -> None:
    store.put_if_match(key, b"0", None)
    # So few that a process which is stopped for long never meets KEPT newer versions: its outcome would be unknown.
    command = [sys.executable, "-c", COUNT_UP, key, "10"]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert store.read_versioned(key) == Versioned(b"40", "41")


def test_old_versions_are_removed_and_the_last_ones_stay(store: DirectoryStore, key: str, tmp_path: Path) -> None:
    for number in range(KEPT + 10):
        store.put_if_match(key, b"%d" % number, str(number) if number else None)
    left = sorted(int(path.name) for path in (tmp_path / "catalog" / "k").iterdir())
    assert left == list(range(11, KEPT + 11))


def test_a_writer_who_slept_for_long_does_not_take_a_number_that_was_removed_for_free(
    store: DirectoryStore, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_if_match(key, b"base", None)
    put_new = store._files.put_new

    def sleep_and_put(location: str, data: bytes) -> None:
        monkeypatch.undo()
        for number in range(1, KEPT + 3):
            DirectoryStore(durable=False).put_if_match(key, b"others", str(number))
        put_new(location, data)

    monkeypatch.setattr(store._files, "put_new", sleep_and_put)
    with pytest.raises(CommitStateUnknown):
        store.put_if_match(key, b"late", "1")
    assert store.read_versioned(key) == Versioned(b"others", str(KEPT + 3))


def test_a_file_system_without_hard_links_is_refused(
    store: DirectoryStore, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    with pytest.raises(Unsupported, match="not support hard links"):
        store.put_if_match(key, b"1", None)
    assert store.read_versioned(key) is None


def test_a_failed_link_changed_nothing(store: DirectoryStore, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EIO))
    with pytest.raises(StorageError, match="Input/output error"):
        store.put_if_match(key, b"1", None)
    assert store.read_versioned(key) is None


def test_a_failure_after_the_link_leaves_the_outcome_open(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DirectoryStore()
    real = os.link

    def link_and_break(source: Path, target: Path) -> None:
        real(source, target)
        monkeypatch.setattr(os, "fsync", failing(errno.EIO))

    monkeypatch.setattr(os, "link", link_and_break)
    with pytest.raises(CommitStateUnknown):
        store.put_if_match(key, b"1", None)
    assert store.read_versioned(key) == Versioned(b"1", "1")


def failing(number: int) -> object:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail
