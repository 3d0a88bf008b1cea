"""A store for both the local disk and object stores, chosen by the scheme of the location.

For catalogs that choose the locations of tables themselves, as REST servers do.
Raises what the two stores raise, and Unsupported for an object store if its client is not installed.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import pyarrow as pa

from icefield.errors import Unsupported
from icefield.storage.location import LOCAL_SCHEME, parse_location
from icefield.storage.store import NewFile, Store, StoredFile, delete_many, remove_empty_directories


class RoutedStore:
    """Two stores as one; `buckets` is None if there is no client for object stores."""

    def __init__(self, local: Store, buckets: Store | None) -> None:
        self._local = local
        self._buckets = buckets

    def check(self, location: str) -> None:
        self._at(location).check(location)

    def read(self, location: str) -> bytes:
        return self._at(location).read(location)

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        return self._at(location).read_range(location, offset, length, of_size=of_size)

    def size(self, location: str) -> int:
        return self._at(location).size(location)

    def put_new(self, location: str, data: bytes) -> None:
        self._at(location).put_new(location, data)

    def delete(self, location: str) -> None:
        self._at(location).delete(location)

    def delete_many(self, locations: Sequence[str]) -> None:
        """Remove files, those of one store together."""
        for store, some in groupby(locations, self._at):
            delete_many(store, list(some))

    def remove_empty_directories(self, prefix: str) -> None:
        """Remove the directories below a location that have no file."""
        remove_empty_directories(self._at(prefix), prefix)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        return self._at(prefix).list(prefix)

    def open_input(self, location: str) -> pa.NativeFile:
        return self._at(location).open_input(location)

    def native_uri(self, location: str) -> str:
        return self._at(location).native_uri(location)

    def native_uris(self, locations: Iterable[str]) -> Iterator[str]:
        for store, some in groupby(locations, self._at):
            yield from store.native_uris(some)

    def open_new(self, location: str) -> NewFile:
        return self._at(location).open_new(location)

    def _at(self, location: str) -> Store:
        if parse_location(location).scheme == LOCAL_SCHEME:
            return self._local
        if self._buckets is None:
            raise Unsupported(
                f"{location} is in an object store, which needs the package obstore",
                hint="Install it: pip install 'icefield[object-store]'",
            )
        return self._buckets
