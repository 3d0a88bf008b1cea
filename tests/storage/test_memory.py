"""What only the memory store promises."""

import gc
import pickle

import pytest

from icefield.ambient import SeededAmbient
from icefield.errors import MissingFile, StorageError, Unsupported
from icefield.storage.memory import MemoryStore


def test_a_memory_store_says_that_it_cannot_leave_its_process() -> None:
    with pytest.raises(Unsupported, match="in this process only"):
        pickle.dumps(MemoryStore())


def test_times_come_from_the_ambient() -> None:
    store = MemoryStore(SeededAmbient(1, start_ms=5_000))
    store.put_new("memory://x/k", b"")
    assert [file.modified_ms for file in store.list("memory://x")] == [5_001]


def test_a_file_in_the_making_cannot_be_read_and_a_forgotten_one_is_never_completed() -> None:
    store = MemoryStore()
    sink = store.open_new("memory://x/k")
    sink.write(b"half")
    with pytest.raises(MissingFile):
        store.read("memory://x/k")
    del sink
    gc.collect()
    with pytest.raises(MissingFile):
        store.read("memory://x/k")
    assert list(store.list("memory://x")) == []


def test_closing_a_sink_whose_key_was_deleted_fails() -> None:
    store = MemoryStore()
    sink = store.open_new("memory://x/k")
    store.delete("memory://x/k")
    with pytest.raises(StorageError, match="deleted while being written"):
        sink.close()
