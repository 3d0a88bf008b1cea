"""What a lake works on, as one value: catalog, store, clock and randomness, and the commit queue."""

from dataclasses import dataclass, replace

from icefield.ambient import Ambient
from icefield.catalog.catalog import Catalog
from icefield.catalog.commit_queue.queue import NO_QUEUE, CommitQueue
from icefield.storage.store import Store


@dataclass(frozen=True)
class Backend:
    """Where tables are named, where their files are, and what the writers of a process share."""

    catalog: Catalog
    store: Store
    ambient: Ambient
    queue: CommitQueue = NO_QUEUE

    def on(self, store: Store) -> "Backend":
        """Return the same backend with files in another store, such as one that records what is written."""
        return replace(self, store=store)
