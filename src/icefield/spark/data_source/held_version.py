"""Protect the files of a version that tasks read, where the grace period of the table is short.

The worker that plans ends before the tasks begin. So it takes the lease, and every task renews it while it reads;
nobody ends it, and it lapses after the last one. Between loading a DataFrame and its first action nothing is held: a
version that has expired by then raises NoSuchSnapshot. Spark plans a DataFrame once, so a later action may find the
lease dead; then it reads what is left without one, and raises MissingFile if something is gone. Where the grace period
is long, it alone protects the tasks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from icefield.ambient import SystemAmbient
from icefield.commit.open_write import SHORT_MS
from icefield.errors import LeaseLost, LocationRefused, NoSuchSnapshot, StorageError
from icefield.leases.folder import gc_folder
from icefield.leases.lease import KeptLease, join_lease, take_lease
from icefield.leases.record import LeaseKind, LeaseRecord, first_version
from icefield.model.metadata import TableMetadata
from icefield.plan.versions import ResolvedVersion
from icefield.properties.upkeep import GC_GRACE_MS
from icefield.storage.store import Store


@dataclass(frozen=True)
class HeldVersion:
    """The lease of a query, which its tasks renew."""

    folder: str
    record: LeaseRecord

    @contextmanager
    def renewed(self, store: Store) -> Iterator[Callable[[], None]]:
        """Renew the lease while a task reads; the block gets a function that raises LeaseLost if it was too late."""
        try:
            lease = KeptLease(join_lease(store, SystemAmbient(), self.folder, self.record))
        except LeaseLost:
            yield _nothing
            return
        try:
            yield lease.check
        finally:
            lease.abandon()


def _nothing() -> None:
    pass


def hold_version(
    store: Store, metadata: TableMetadata, version: ResolvedVersion, newest: Callable[[], TableMetadata]
) -> HeldVersion | None:
    """Take a lease on a version if its table needs one, and check then that the version has not expired.

    newest: loads the newest metadata of the table.
    """
    snapshot = version.snapshot
    if snapshot is None or GC_GRACE_MS.read(metadata.properties) >= SHORT_MS:
        return None
    ambient, folder = SystemAmbient(), gc_folder(metadata)
    record = first_version(LeaseKind.READER, ambient.random_uuid().hex, metadata, [snapshot])
    try:
        lease = take_lease(store, ambient, folder, record)
    except (StorageError, LocationRefused):
        return None  # a reader that may not write must not be kept from reading
    now = newest()
    if not now.is_table(metadata.table_uuid) or now.snapshots.find(snapshot.snapshot_id) is None:
        lease.end()
        raise NoSuchSnapshot(
            f"snapshot {snapshot.snapshot_id} has expired since the DataFrame was loaded",
            hint="Load it again; a tag keeps a snapshot: scan.pin()",
        )
    return HeldVersion(folder, record)
