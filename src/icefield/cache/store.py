"""A store that brings a cache of decoded manifests along, so that whoever plans on it shares the cache.

It is the store itself in all it does. In another process it is only that: the cache stays behind.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from icefield.cache.decoded_files import Decode, Decoded
from icefield.cache.manifests import ManifestCache
from icefield.storage.read_ahead import beneath
from icefield.storage.store import NewFile, Store, StoredFile


class CachedStore:
    """A store, and what was decoded of its manifests."""

    def __init__(self, store: Store, manifests: ManifestCache) -> None:
        self._store = store
        self.manifests = manifests

    def __reduce__(self) -> tuple[object, ...]:
        return _itself, (self._store,)

    def check(self, location: str) -> None:
        self._store.check(location)

    def read(self, location: str) -> bytes:
        return self._store.read(location)

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        return self._store.read_range(location, offset, length, of_size=of_size)

    def size(self, location: str) -> int:
        return self._store.size(location)

    def put_new(self, location: str, data: bytes) -> None:
        self._store.put_new(location, data)

    def delete(self, location: str) -> None:
        self._store.delete(location)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        return self._store.list(prefix)

    def open_input(self, location: str) -> pa.NativeFile:
        return self._store.open_input(location)

    def native_uri(self, location: str) -> str:
        return self._store.native_uri(location)

    def native_uris(self, locations: Iterable[str]) -> Iterator[str]:
        return self._store.native_uris(locations)

    def open_new(self, location: str) -> NewFile:
        return self._store.open_new(location)


def cache_of(store: Store) -> ManifestCache | None:
    """Return the cache that a store brings along."""
    cached = beneath(store)
    return cached.manifests if isinstance(cached, CachedStore) else None


def decoded(store: Store, data: bytes, location: str, decode: Decode[Decoded]) -> Decoded:
    """Decode the bytes that were just read from a location; what a store brings along is not decoded again."""
    cache = cache_of(store)
    return decode(data, location) if cache is None else cache.files.decoded(data, location, decode)


def _itself(store: Store) -> Store:
    return store
