"""Choosing a store by the scheme of a location."""

import pickle
from pathlib import Path

import pytest

from icefield.errors import Unsupported
from icefield.storage.by_scheme import StoreByScheme
from icefield.storage.local import LocalStore
from icefield.storage.memory import MemoryStore


def test_each_location_goes_to_the_store_of_its_scheme(tmp_path: Path) -> None:
    local, memory = LocalStore(), MemoryStore()
    stores = StoreByScheme({"file": local, "memory": memory})
    stores.put_new(f"{tmp_path}/k", b"on disk")
    stores.put_new("memory://x/k", b"in memory")
    assert local.read(f"file:{tmp_path}/k") == b"on disk"
    assert memory.read("memory://x/k") == b"in memory"
    assert stores.store_of("MEMORY://x/k") is memory


def test_an_unknown_scheme_is_named_with_the_known_ones() -> None:
    with pytest.raises(Unsupported, match=r"scheme s3 is not known\. Known: file"):
        StoreByScheme({"file": LocalStore()}).read("s3://bucket/key")


def test_it_travels_to_another_process(tmp_path: Path) -> None:
    stores = pickle.loads(pickle.dumps(StoreByScheme({"file": LocalStore()})))
    stores.put_new(f"file://{tmp_path}/k", b"x")
    assert (tmp_path / "k").read_bytes() == b"x"
