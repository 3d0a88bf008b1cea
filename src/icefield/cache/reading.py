"""What metadata is read with: the store, and the cache of what was decoded from it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from icefield.cache.decoded_files import Decode, Decoded
from icefield.cache.manifests import ManifestCache
from icefield.storage.read_ahead import ReadAhead, Wanted
from icefield.storage.store import Store


@dataclass(frozen=True)
class ReadContext:
    """A store, and a cache of its decoded metadata files, manifest lists and manifests.

    In another process only the store is left: the cache stays behind.
    """

    store: Store
    cache: ManifestCache | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return ReadContext, (self.store,)

    @contextmanager
    def read_ahead(self, wanted: Iterable[Wanted]) -> Iterator["ReadContext"]:
        """Read files before they are used, unless the store does so already."""
        if isinstance(self.store, ReadAhead):
            yield self
            return
        with ReadAhead(self.store, wanted) as near:
            yield ReadContext(near, self.cache)

    def decode(self, data: bytes, location: str, decode: Decode[Decoded]) -> Decoded:
        """Decode the bytes that were just read from a location; what the cache has is not decoded again."""
        return decode(data, location) if self.cache is None else self.cache.files.decoded(data, location, decode)
