"""The context of metadata reads: the store, and the cache of decoded files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from icefield.deferred import deferred_imports
from icefield.metrics import Listeners

with deferred_imports(__name__):
    from icefield.cache.decoded_files import Decode, Decoded
    from icefield.cache.manifests import ManifestCache
    from icefield.storage.read_ahead import ReadAhead, Wanted
    from icefield.storage.store import Store


@dataclass(frozen=True)
class ReadContext:
    """A store, a cache of its decoded metadata files, manifest lists and manifests, and who gets reports of scans.

    When pickled to another process, only the store is sent.
    """

    store: Store
    cache: ManifestCache | None = None
    listeners: Listeners = field(default_factory=Listeners, compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        return ReadContext, (self.store,)

    @contextmanager
    def read_ahead(self, wanted: Iterable[Wanted]) -> Iterator[ReadContext]:
        """Read files ahead of their use, unless the store does so already."""
        if isinstance(self.store, ReadAhead):
            yield self
            return
        with ReadAhead(self.store, wanted) as near:
            yield ReadContext(near, self.cache, self.listeners)

    def decode(self, data: bytes, location: str, decode: Decode[Decoded]) -> Decoded:
        """Decode the bytes that were just read from a location, or return the cached value for them."""
        return decode(data, location) if self.cache is None else self.cache.files.decoded(data, location, decode)
