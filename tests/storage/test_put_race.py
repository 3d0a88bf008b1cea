"""R19: racing writers of one key. Exactly one wins, and its bytes are there whole. The checker is shown to fail."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from icefield.errors import FileAlreadyExists
from icefield.storage.local import LocalStore, is_temporary
from icefield.storage.location import join_location, location_of_path
from icefield.storage.memory import MemoryStore
from icefield.storage.store import Store

WORKER = Path(__file__).with_name("put_worker.py")
WRITERS = 8
SIZE = 300_000


class CheckThenWriteStore(LocalStore):
    """Wrong: looks whether the key is free, then writes it. The barrier lets all look before any writes."""

    def __init__(self) -> None:
        super().__init__()
        self._barrier = threading.Barrier(WRITERS)

    def put_new(self, location: str, data: bytes) -> None:
        if any(self.list(location.rpartition("/")[0])):
            raise FileAlreadyExists(location)
        self._barrier.wait(30)
        path = self._path(location)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


def race_processes(kind: str, location: str, writers: int = WRITERS) -> list[int]:
    """Let processes put one key at once, and return those that won by their own account."""
    command = [sys.executable, str(WORKER), kind, location, str(writers), str(SIZE)]
    output = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=60).stdout
    return [int(number) for number in output.split()]


def race_threads(store: Store, location: str) -> list[int]:
    """Let threads put one key at once, and return those that won by their own account."""
    start = threading.Barrier(WRITERS)

    def put(byte: int) -> bool:
        start.wait(30)
        try:
            store.put_new(location, bytes([byte]) * SIZE)
        except FileAlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as threads:
        won = list(threads.map(put, range(WRITERS)))
    return [byte for byte, winner in enumerate(won) if winner]


def check_one_winner(store: Store, location: str, winners: list[int]) -> None:
    assert len(winners) == 1, f"{len(winners)} writers won by their own account"
    assert store.read(location) == bytes(winners) * SIZE
    assert [file.location for file in store.list(location.rpartition("/")[0])] == [location]


@pytest.fixture
def key(tmp_path: Path) -> str:
    return join_location(location_of_path(str(tmp_path)), "metadata", "key")


@pytest.mark.parametrize("kind", ["local", "linkless"])
def test_r19_racing_processes_have_one_winner(kind: str, key: str) -> None:
    check_one_winner(LocalStore(), key, race_processes(kind, key))


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_r19_racing_threads_have_one_winner(kind: str, key: str) -> None:
    store: Store = LocalStore() if kind == "local" else MemoryStore()
    location = key if kind == "local" else "memory://x/metadata/key"
    for turn in range(20):
        inner = join_location(location, str(turn), "key")
        check_one_winner(store, inner, race_threads(store, inner))


def test_r19_the_race_finds_a_rename_in_place_of_the_link(key: str) -> None:
    winners = race_processes("renaming", key)
    with pytest.raises(AssertionError, match="8 writers won"):
        check_one_winner(LocalStore(), key, winners)


def test_r19_the_race_finds_check_then_write(key: str) -> None:
    store = CheckThenWriteStore()
    winners = race_threads(store, key)
    with pytest.raises(AssertionError, match="8 writers won"):
        check_one_winner(store, key, winners)


def kill_while_putting(kind: str, location: str) -> None:
    with pytest.raises(subprocess.CalledProcessError, match="SIGKILL"):
        race_processes(kind, location, writers=1)


def test_a_crash_before_the_link_leaves_no_key_but_a_name_that_is_known_as_temporary(key: str) -> None:
    store = LocalStore()
    kill_while_putting("dying", key)
    left = [file.location for file in store.list(key.rpartition("/")[0])]
    assert len(left) == 1
    assert is_temporary(left[0])
    assert not is_temporary(key)
    store.put_new(key, b"later")
    assert store.read(key) == b"later"


def test_a_crash_without_hard_links_leaves_a_part_at_the_key_which_is_why_keys_are_never_guessed(key: str) -> None:
    kill_while_putting("dying-linkless", key)
    assert LocalStore().size(key) == SIZE // 2
    with pytest.raises(FileAlreadyExists):
        LocalStore().put_new(key, b"later")
