"""What a lake works on, as one value: catalog, store, clock and randomness, commit queue, cache, listeners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from uuid import UUID

from icefield.ambient import Ambient
from icefield.catalog.commit_queue.queue import NO_QUEUE, CommitQueue
from icefield.deferred import deferred_imports
from icefield.metrics import Listeners

with deferred_imports(__name__):
    from icefield.cache.manifests import ManifestCache
    from icefield.cache.reading import ReadContext
    from icefield.catalog.catalog import Catalog
    from icefield.storage.store import Store


@dataclass(frozen=True)
class Backend:
    """Where tables are named, where their files are, and what the writers of a process share.

    notes: keys for the summaries of all snapshots that are made here, such as their author.
    """

    catalog: Catalog
    store: Store
    ambient: Ambient
    queue: CommitQueue = NO_QUEUE
    cache: ManifestCache | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    listeners: Listeners = field(default_factory=Listeners, compare=False, repr=False)

    @cached_property
    def reading(self) -> ReadContext:
        """What tables are loaded and planned with."""
        return ReadContext(self.store, self.cache, self.listeners)

    @cached_property
    def inline_looks(self) -> dict[tuple[UUID, str], int]:
        """At which sequence number of a branch this process last looked for files to compact after a commit."""
        return {}

    def on(self, store: Store) -> Backend:
        """Return the same backend with files in another store, such as one that records what is written."""
        return replace(self, store=store)
