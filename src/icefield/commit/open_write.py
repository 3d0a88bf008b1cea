"""A change of a table from its first file to its swap, and how its files are protected from orphan file removal.

The age of orphan files (`icefield.gc.orphan-age-ms`) protects a change that takes less than half of it. Where that age
is short, a change takes a lease before its first file, has the id of the lease in the name of every file, and renews it
immediately before the swap. A change that was too slow for either is refused before the swap: its files may be gone,
but no snapshot refers to them.

Raises LeaseLost, and what the store raises.
"""

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from icefield.ambient import Ambient
from icefield.backend import Backend
from icefield.errors import IcefieldError, LeaseLost, LocationRefused, StorageError
from icefield.leases.folder import gc_folder
from icefield.leases.lease import KeptLease, join_lease, take_lease
from icefield.leases.record import LeaseKind, LeaseRecord, first_version
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.properties.upkeep import GC_GRACE_MS, GC_ORPHAN_AGE_MS
from icefield.storage.store import Store

SHORT_MS = 10 * 60 * 1000  # below this, waiting for an age alone would be a race


@dataclass(frozen=True)
class HandedWrite:
    """A change of one table that other processes go on with: tasks write its files, and another process commits it.

    record: its lease; None if only the age of its files protects them. began: on this machine's monotonic clock.
    """

    table_uuid: UUID
    folder: str
    record: LeaseRecord | None
    began: float

    @contextmanager
    def renewed(self, store: Store, ambient: Ambient) -> Iterator[None]:
        """Renew the lease in the background for the duration of a block; it goes on after the block."""
        if self.record is None:
            yield
            return
        lease = KeptLease(join_lease(store, ambient, self.folder, self.record))
        try:
            yield
        finally:
            lease.abandon()


class OpenWrite:
    """A change in progress, of one or several tables. The leases end with `close`, or when it is dropped.

    handed: a change that another process began. Raises LeaseLost if its files may be gone.
    """

    def __init__(self, backend: Backend, handed: HandedWrite | None = None) -> None:
        self._backend = backend
        self._began = backend.ambient.monotonic()
        self._leases: dict[UUID, KeptLease] = {}
        self._id: str | None = None
        self._names = 0
        self._unprotected: set[UUID] = set()  # tables with files that only their age protects
        self._refused: IcefieldError | None = None  # why the store did not take a lease
        self._end = weakref.finalize(self, _end_all, self._leases)
        if handed is not None:
            self._resume(handed)

    @property
    def write_id(self) -> str | None:
        """What the names of new files contain; None if the change has no lease."""
        self._check_refused()
        return self._id

    def protect(self, metadata: TableMetadata, reads: Iterable[Snapshot] = (), adds: Iterable[str] = ()) -> None:
        """Take a lease on a table if its orphan age or grace period is short; before any file is written.

        If the store refuses, that is raised when the change names its first file or commits: a dry run, which does
        neither, works where nothing can be written, as reads do.

        reads: snapshots whose files the change reads. adds: files that exist already, and that the change adds.
        """
        if metadata.table_uuid in self._leases:
            return
        if not needs_lease(metadata):
            self._unprotected.add(metadata.table_uuid)
            return
        ambient = self._backend.ambient
        self._id = self._id or ambient.random_uuid().hex
        record = first_version(LeaseKind.WRITER, self._id, metadata, reads, adds)
        try:
            lease = take_lease(self._backend.store, ambient, gc_folder(metadata), record)
        except (StorageError, LocationRefused) as error:
            self._refused = error
            return
        self._leases[metadata.table_uuid] = KeptLease(lease)

    def hand_over(self, metadata: TableMetadata) -> HandedWrite:
        """Stop renewing the lease on a table, and return what others need to go on with the change."""
        self._check_refused()
        held = self._leases.get(metadata.table_uuid)
        self.abandon()
        record = None if held is None else held.lease.record
        return HandedWrite(metadata.table_uuid, gc_folder(metadata), record, self._began)

    def new_name(self) -> str:
        """Return a unique prefix for the names of data files."""
        self._check_refused()
        if self._id is None:
            return self._backend.ambient.random_uuid().hex
        self._names += 1
        return self._id if self._names == 1 else f"{self._id}-{self._names}"

    def before_swap(self, metadata: TableMetadata) -> None:
        """Renew the lease on a table, and check that files without one are young; immediately before the swap."""
        self._check_refused()
        lease = self._leases.get(metadata.table_uuid)
        if lease is not None:
            lease.renew()
        if metadata.table_uuid not in self._unprotected:
            return
        took_s = self._backend.ambient.monotonic() - self._began
        age_s = GC_ORPHAN_AGE_MS.read(metadata.properties) / 1000
        if took_s > age_s / 2:
            raise LeaseLost(
                f"the change took {took_s:.0f} s, more than half of the age at which unreferenced files are removed "
                f"({GC_ORPHAN_AGE_MS.key}, {age_s:.0f} s), so its files may be gone",
                hint="Run it again, with a longer age for orphan files",
            )

    def abandon(self) -> None:
        """Stop renewing the leases, and leave them to lapse."""
        for lease in self._leases.values():
            lease.abandon()

    def close(self) -> None:
        """End the leases."""
        self._end()

    def _check_refused(self) -> None:
        if self._refused is not None:
            raise self._refused

    def _resume(self, handed: HandedWrite) -> None:
        self._began = handed.began
        if handed.record is None:
            self._unprotected.add(handed.table_uuid)
            return
        self._id, self._names = handed.record.lease, 1
        lease = join_lease(self._backend.store, self._backend.ambient, handed.folder, handed.record)
        self._leases[handed.table_uuid] = KeptLease(lease)


def needs_lease(metadata: TableMetadata) -> bool:
    """Return whether changes of a table take leases: its orphan age or its grace period is short."""
    return min(known.read(metadata.properties) for known in (GC_ORPHAN_AGE_MS, GC_GRACE_MS)) < SHORT_MS


def _end_all(leases: dict[UUID, KeptLease]) -> None:
    for lease in leases.values():
        lease.close()
