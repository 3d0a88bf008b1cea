"""One store made of several: each location goes to the store of its scheme.

Raises Unsupported for a scheme that has no store; everything else is raised by the store that was asked.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from icefield.errors import Unsupported
from icefield.storage.location import parse_location
from icefield.storage.store import NewFile, Store, StoredFile


class StoreByScheme:
    """A store that hands each call on by the location's scheme."""

    def __init__(self, stores: Mapping[str, Store]) -> None:
        self._stores = dict(stores)

    def store_of(self, location: str) -> Store:
        """Return the store that keeps a location."""
        scheme = parse_location(location).scheme
        if scheme not in self._stores:
            known = ", ".join(sorted(self._stores)) or "none"
            raise Unsupported(f"no store for {location}: the scheme {scheme} is not known", hint=f"Known: {known}")
        return self._stores[scheme]

    def read(self, location: str) -> bytes:
        return self.store_of(location).read(location)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        return self.store_of(location).read_range(location, offset, length)

    def size(self, location: str) -> int:
        return self.store_of(location).size(location)

    def put_new(self, location: str, data: bytes) -> None:
        self.store_of(location).put_new(location, data)

    def delete(self, location: str) -> None:
        self.store_of(location).delete(location)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        return self.store_of(prefix).list(prefix)

    def open_input(self, location: str) -> pa.NativeFile:
        return self.store_of(location).open_input(location)

    def open_new(self, location: str) -> NewFile:
        return self.store_of(location).open_new(location)
