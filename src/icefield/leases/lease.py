"""Hold a lease: take it, renew it, end it.

    take     put_new version 1
    renew    put_new version n + 1, then check that version n is still there
    end      delete all versions
    join     go on with a lease that another process took; any number of processes may renew it

A collector that saw the same version for longer than ttl + MARGIN_S puts version n + 1 itself, with the state `dead`:
one of the two wins. It deletes the versions of a dead lease in ascending order, so that a holder which comes back later
finds either its next version taken or its last version gone.

Raises LeaseLost if the lease was declared dead, StorageError if it is not known whether it was renewed.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from icefield.ambient import Ambient
from icefield.errors import FileAlreadyExists, IcefieldError, LeaseLost, MissingFile
from icefield.leases.folder import LEASES
from icefield.leases.record import (
    LeaseRecord,
    LeaseState,
    decode_record,
    encode_record,
    parse_version,
    version_location,
)
from icefield.storage.location import join_location
from icefield.storage.store import Store

MARGIN_S = 90.0  # between clocks that run at different speeds, and for requests that are on their way
RENEWALS_PER_TTL = 3


@dataclass
class Lease:
    """A lease that this process holds. renewed_at: on the monotonic clock, before the request was sent."""

    store: Store
    ambient: Ambient
    folder: str
    record: LeaseRecord
    renewed_at: float

    @property
    def age_s(self) -> float:
        """How long ago the lease was renewed."""
        return self.ambient.monotonic() - self.renewed_at

    def renew(self) -> None:
        """Renew the lease now."""
        began, last = self.ambient.monotonic(), self.record
        self.record = self._put_next()
        # A collector removes the versions of a lease that it declared dead, and then the record of its death.
        if not self._exists(last.version):
            self.store.delete(self._location(self.record.version))
            raise self._lost()
        self.renewed_at = began

    def join(self) -> None:
        """Renew a lease whose newest version another process created; that may be a collector."""
        found = self._read(self.record.version)
        if found is None or found.state is LeaseState.DEAD:
            raise self._lost()
        self.renew()

    def keep(self) -> None:
        """Renew the lease if a third of its time has passed; call this often."""
        if self.age_s * RENEWALS_PER_TTL * 1000 >= self.record.ttl_ms:
            self.renew()

    def end(self) -> None:
        """End the lease. What cannot be removed is removed by a collector later."""
        for version in range(1, self.record.version + 1):
            try:
                self.store.delete(self._location(version))
            except IcefieldError:
                continue

    def _put_next(self) -> LeaseRecord:
        new = msgspec.structs.replace(self.record, version=self.record.version + 1)
        try:
            self.store.put_new(self._location(new.version), encode_record(new))
        except FileAlreadyExists as error:
            # An earlier renewal may have succeeded although its response was lost.
            found = self._read(new.version)
            if found is None or found.state is LeaseState.DEAD:
                raise self._lost() from error
            self.record = new
            return self._put_next()
        return new

    def _exists(self, version: int) -> bool:
        try:
            self.store.size(self._location(version))
        except MissingFile:
            return False
        return True

    def _read(self, version: int) -> LeaseRecord | None:
        try:
            return decode_record(self.store.read(self._location(version)))
        except MissingFile:
            return None

    def _location(self, version: int) -> str:
        return version_location(self.folder, self.record.lease, version)

    def _lost(self) -> LeaseLost:
        return LeaseLost(
            f"the lease {self.record.lease} of this {self.record.kind.value} was declared dead: it was not renewed for "
            f"more than {self.record.ttl_ms / 1000:.0f} s",
            hint="Its files may be deleted; run it again",
        )


def take_lease(store: Store, ambient: Ambient, folder: str, record: LeaseRecord) -> Lease:
    """Take a lease; it protects from the moment this returns."""
    began = ambient.monotonic()
    # If this fails although it was written, nobody renews it, and it lapses.
    store.put_new(version_location(folder, record.lease, record.version), encode_record(record))
    return Lease(store, ambient, folder, record, began)


def join_lease(store: Store, ambient: Ambient, folder: str, record: LeaseRecord) -> Lease:
    """Renew a lease that another process took, and hold it with that process."""
    names = (parse_version(found.location) for found in store.list(join_location(folder, LEASES)))
    versions = [name[1] for name in names if name is not None and name[0] == record.lease]
    newest = msgspec.structs.replace(record, version=max(versions, default=record.version))
    lease = Lease(store, ambient, folder, newest, ambient.monotonic())
    lease.join()
    return lease


class KeptLease:
    """A lease that is renewed in the background while it is in use, and ended by `close`."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self._lock = threading.RLock()  # what ends it may be a finalizer, in the thread that renews it
        self._is_closed = False
        self._failure: LeaseLost | None = None
        interval = lease.record.ttl_ms / 1000 / RENEWALS_PER_TTL / 2
        self._cancel: Callable[[], None] = lease.ambient.every(interval, self._tick)

    def check(self) -> None:
        """Renew the lease if it is time; raise LeaseLost if it was declared dead."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self.lease.keep()

    def renew(self) -> None:
        """Renew the lease now."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self.lease.renew()

    def close(self) -> None:
        """Stop renewing, and end the lease."""
        self._cancel()
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self.lease.end()

    def abandon(self) -> None:
        """Stop renewing, and leave the lease to lapse."""
        self._cancel()
        with self._lock:
            self._is_closed = True

    def _tick(self) -> None:
        with self._lock:
            if self._is_closed or self._failure is not None:
                return
            try:
                self.lease.keep()
            except LeaseLost as lost:
                self._failure = lost
            except IcefieldError:
                return  # the next tick tries again


def dead_version(record: LeaseRecord) -> LeaseRecord:
    """Return the version that declares a lease dead."""
    return msgspec.structs.replace(record, version=record.version + 1, state=LeaseState.DEAD)
