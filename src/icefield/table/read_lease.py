"""Protect the files of a scan from the collector while it reads them.

A snapshot that expires keeps its files for the grace period, so a read that takes less than a third of it needs no
lease. A longer read takes one, which pins its snapshot. Where the grace period is short, it is taken before planning:

    1  put the lease             a collector that samples leases later keeps the files
    2  read the pointer again    a collector that sampled before has moved the pointer before: the snapshot is gone
    3  plan, read                and renew the lease

A reader that may not write to the store takes no lease: the grace period alone protects it.
Raises NoSuchSnapshot if the snapshot has expired, LeaseLost if the lease was not renewed for too long. A read that
nothing protects raises MissingFile when a file is gone.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from icefield.commit.open_write import SHORT_MS
from icefield.deferred import deferred_imports
from icefield.errors import IcefieldError, LocationRefused, NoSuchSnapshot, StorageError
from icefield.leases.lease import RENEWALS_PER_TTL, KeptLease, take_lease
from icefield.properties.upkeep import GC_GRACE_MS, GC_LEASE_TTL_MS

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.commit.operations.choose import operations_of
    from icefield.leases.folder import gc_folder
    from icefield.leases.open_frames import IsAlive, OpenFrames
    from icefield.leases.record import LeaseKind, first_version
    from icefield.model.metadata import TableMetadata
    from icefield.model.names import TableName
    from icefield.model.snapshot import Snapshot

T = TypeVar("T")


class ReadLease:
    """The lease of one scan; it is taken when it is needed, and ended when the last use of the scan ends."""

    def __init__(
        self, backend: Backend, table: TableName, metadata: TableMetadata, snapshots: Iterable[Snapshot], began: float
    ) -> None:
        self._backend = backend
        self._table = table
        self._metadata = metadata
        self._snapshots = tuple(snapshots)
        self._began = began  # on the monotonic clock, before the pointer was read
        self._grace_s = GC_GRACE_MS.read(metadata.properties) / 1000
        self._ttl_ms = GC_LEASE_TTL_MS.read(metadata.properties)
        self._uses = 0
        self._held: list[KeptLease] = []
        self._refused_at: float | None = None  # when the store refused the lease
        self._lock = threading.RLock()  # DataFrames are looked after in the background
        weakref.finalize(self, _end_all, self._held)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Protect the files for the duration of a block."""
        self.begin()
        try:
            yield
        finally:
            self.finish()

    def begin(self) -> None:
        """Begin a use of the files."""
        with self._lock:
            self._uses += 1
        try:
            self.check()
        except BaseException:
            self.finish()
            raise

    def finish(self) -> None:
        """End a use of the files; the last one ends the lease."""
        with self._lock:
            self._uses -= 1
            if not self._uses:
                _end_all(self._held)

    def guard(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items of a use that has begun, and look after the lease between them; the use ends with them."""
        try:
            for item in items:
                yield item
                self.check()
        finally:
            self.finish()

    def guard_frame(self, frames: OpenFrames, is_alive: IsAlive) -> None:
        """Look after the lease in the background for as long as a DataFrame, whose use has begun, can be read."""
        frames.watch(self._backend.ambient, is_alive, self._check_quietly, self.finish)

    def check(self) -> None:
        """Take the lease if it is time, or renew it."""
        with self._lock:
            if self._held:
                self._held[0].check()
            elif self._snapshots and self._is_needed():
                self._take()

    def _check_quietly(self) -> None:
        # A DataFrame whose lease is lost fails where it misses a file.
        with suppress(IcefieldError):
            self.check()

    def _is_needed(self) -> bool:
        if self._refused_at is not None:
            since_s = self._backend.ambient.monotonic() - self._refused_at
            return since_s * 1000 * RENEWALS_PER_TTL > self._ttl_ms
        return self._grace_s * 1000 < SHORT_MS or self._elapsed_s() > self._grace_s / 3

    def _elapsed_s(self) -> float:
        return self._backend.ambient.monotonic() - self._began

    def _take(self) -> None:
        metadata, ambient = self._metadata, self._backend.ambient
        record = first_version(LeaseKind.READER, ambient.random_uuid().hex, metadata, self._snapshots)
        try:
            lease = take_lease(self._backend.store, ambient, gc_folder(metadata), record)
        except (StorageError, LocationRefused):
            # The store may be read-only for this reader, which must not keep it from reading.
            self._refused_at = ambient.monotonic()
            return
        self._held.append(KeptLease(lease))
        # Files of a snapshot that expired after `_began` are kept until the grace period is over.
        if self._elapsed_s() > self._grace_s / 2:
            try:
                self._look_again()
            except BaseException:
                _end_all(self._held)
                raise

    def _look_again(self) -> None:
        now = operations_of(self._backend).load(self._table).metadata
        for snapshot in self._snapshots:
            if not now.is_table(self._metadata.table_uuid) or now.snapshots.find(snapshot.snapshot_id) is None:
                raise NoSuchSnapshot(
                    f"snapshot {snapshot.snapshot_id} of {self._table} has expired since the scan was made",
                    hint="Make a new scan; a tag keeps a snapshot: scan.pin()",
                )


def find_committed(committed: TableMetadata, staged: TableMetadata, snapshot: Snapshot) -> Snapshot | None:
    """Return a snapshot, or the nearest one that it descends from, of the committed version of a table."""
    if committed is staged:
        return snapshot
    found: Snapshot | None = snapshot
    while found is not None and committed.snapshots.find(found.snapshot_id) is None:
        parent = found.parent_snapshot_id
        found = None if parent is None else staged.snapshots.find(parent)
    return found


def _end_all(held: list[KeptLease]) -> None:
    while held:
        held.pop().close()
