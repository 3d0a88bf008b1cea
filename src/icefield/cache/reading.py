"""The context of metadata reads: the store, and the cache of decoded files."""

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

    When pickled to another process, only the store is sent, not the cache.
    """

    store: Store
    cache: ManifestCache | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return ReadContext, (self.store,)

    @contextmanager
    def read_ahead(self, wanted: Iterable[Wanted]) -> Iterator["ReadContext"]:
        """Read files ahead of their use, unless the store does so already."""
        if isinstance(self.store, ReadAhead):
            yield self
            return
        with ReadAhead(self.store, wanted) as near:
            yield ReadContext(near, self.cache)

    def decode(self, data: bytes, location: str, decode: Decode[Decoded]) -> Decoded:
        """Decode the bytes that were just read from a location, or return the cached value for them."""
        return decode(data, location) if self.cache is None else self.cache.files.decoded(data, location, decode)
