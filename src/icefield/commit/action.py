"""Actions: changes before they are committed.

An action proposes updates and requirements on a base, and writes the files that they name. After a conflict it is
called again on the new base; files that do not depend on the base (manifests of new data files) are written once and
reused, files that do (manifest lists) are rewritten.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from icefield.ambient import Ambient
from icefield.backend import Backend
from icefield.cache.manifests import ManifestCache
from icefield.cache.reading import ReadContext
from icefield.commit.validate.idempotency_key import IdempotencyKey, StreamBatch
from icefield.commit.validate.key_history import IDEMPOTENCY_KEY, summary_of_batch
from icefield.leases.folder import metadata_folder
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN
from icefield.model.updates import Requirement, Update
from icefield.storage.location import join_location
from icefield.storage.store import Store


@dataclass(frozen=True)
class ProposedChange:
    """A proposal on one base. unused: files written for other bases, to be removed when this one is committed."""

    updates: Sequence[Update]
    requirements: Sequence[Requirement] = ()
    unused: Sequence[str] = ()


NOTHING_TO_DO = ProposedChange([])


@dataclass(frozen=True)
class WriteContext:
    """What an action writes with: the store, the clock and randomness, the cache, and names for metadata files.

    notes: keys for the summary of a new snapshot.
    """

    store: Store
    ambient: Ambient
    cache: ManifestCache | None = None
    write_id: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, backend: Backend, store: Store | None = None, write_id: str | None = None) -> "WriteContext":
        """Return what a backend is written with, or the same in another store over its files.

        write_id: the lease that protects new files.
        """
        return cls(store or backend.store, backend.ambient, backend.cache, write_id, backend.notes)

    def unique(self) -> str:
        """Return a unique part for the name of a new file, which names the lease that protects it."""
        drawn = str(self.ambient.random_uuid())
        return drawn if self.write_id is None else f"{drawn}-{self.write_id}"

    @property
    def reading(self) -> ReadContext:
        """What actions load and plan with."""
        return ReadContext(self.store, self.cache)

    def metadata_location(self, base: TableMetadata, name: str) -> str:
        """Return the location of a file in the table's metadata directory."""
        return join_location(metadata_folder(base), name)


@dataclass(frozen=True)
class CommitTarget:
    """The target of a snapshot: the branch whose head it becomes, its idempotency key, and notes for its summary."""

    ref: str = MAIN
    idempotency_key: IdempotencyKey | None = None
    notes: tuple[tuple[str, str], ...] = ()

    def summary(self, base: TableMetadata) -> Mapping[str, str]:
        """Return the summary entries of a snapshot on this base, besides the counts."""
        return {**dict(self.notes), **self._key_summary(base)}

    def _key_summary(self, base: TableMetadata) -> Mapping[str, str]:
        if isinstance(self.idempotency_key, StreamBatch):
            return summary_of_batch(base, self.ref, self.idempotency_key.stream, self.idempotency_key.batch)
        return {} if self.idempotency_key is None else {IDEMPOTENCY_KEY: self.idempotency_key}


ON_MAIN = CommitTarget()


class Action(Protocol):
    """One step of a transaction."""

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        """Propose this step on a base. Raises ConcurrentChange if it conflicts with a concurrent commit."""
        ...

    def reusable_files(self) -> Sequence[str]:
        """Return the files that were written for every base; they are removed if the commit fails."""
        ...
