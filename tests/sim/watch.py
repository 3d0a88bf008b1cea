"""What collectors and those whom they could hurt may do, judged at every object that is written or removed.

- A lease is declared dead only if its holder did not renew it for as long as it lives and the margin.
- Nobody removes a file of a lease that is not dead: the new files of a writer, the snapshot of a reader.
- What is marked is not what a table leads to; what a collector removes is in an audit that is complete, and what tells
  about a file goes after it. Only a writer removes its own new files without one: those of its lease, and a metadata
  file that it wrote and that was never committed.
- A change whose writer was fenced never lands, and a writer that does not know the outcome does not end its lease.
"""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from tests.sim.model import Violation

from icefield.leases.lease import MARGIN_S

LEASES, MARKS, AUDIT, DROPPED = (
    "/metadata/gc/leases/",
    "/metadata/gc/marks/",
    "/metadata/gc/audit/",
    "/icefield-dropped/",
)
METADATA = ".metadata.json"
SIGNIFICANT = 24  # digits
WRITER, DEAD = "writer", "dead"


@dataclass
class KnownLease:
    """A lease. renewed_at: by the one true time. files: what a reader holds, from when it may rely on that."""

    folder: str
    lease: str
    holder: str
    kind: str
    ttl_s: float
    renewed_at: float
    is_dead: bool = False
    is_ended: bool = False
    files: Collection[str] = ()

    @property
    def is_held(self) -> bool:
        return not (self.is_dead or self.is_ended)

    def holds(self, location: str) -> bool:
        """Return whether nobody but the holder may remove a file."""
        if location in self.files:
            return True
        return self.kind == WRITER and location.startswith(f"{self.folder}/") and _names(location, self.lease)


@dataclass
class Watch:
    """Everything that collectors left in the store of a run."""

    leases: dict[tuple[str, str], KnownLease] = field(default_factory=dict)
    fenced: set[str] = field(default_factory=set)
    _writes: dict[str, set[str]] = field(default_factory=dict)  # the ids of writes, by process
    _audits: list[frozenset[str]] = field(default_factory=list)
    _proposed: dict[str, str] = field(default_factory=dict)  # who wrote a metadata file that was not committed

    def stored(self, location: str, data: bytes, who: str, now: float) -> frozenset[str]:
        """Judge an object that was stored; return what it marks."""
        if LEASES in location:
            self._lease(location, json.loads(data), who, now)
        elif location.endswith(".parquet") and (AUDIT in location or DROPPED in location):
            self._audits.append(_listed(data))
        elif MARKS in location:
            return _listed(data)
        elif location.endswith(METADATA):
            self._proposed[location] = who
        return frozenset()

    def removed(self, location: str, who: str) -> None:
        """Judge the removal of an object of the collector."""
        if LEASES not in location:
            return
        lease = self.leases.get((_folder(location), location.rpartition("/")[2].split(".")[0]))
        if lease is None or lease.is_dead:
            return
        if lease.holder != who:
            raise Violation(f"{who} ends the lease {lease.lease} of {lease.holder}, which is not dead")
        lease.is_ended = True

    def removing(self, location: str, who: str, is_there: Callable[[str], bool]) -> None:
        """Judge the removal of a file."""
        for lease in self.leases.values():
            if lease.is_held and lease.holder != who and lease.holds(location):
                raise Violation(f"{who} removes {location}, which the lease {lease.lease} of {lease.holder} holds")
        is_new = any(_names(location, write_id) for write_id in self._writes.get(who, ()))
        if is_new or self._proposed.get(location) == who:
            return
        audits = [audit for audit in self._audits if location in audit]
        if not audits:
            raise Violation(f"{who} removes {location}, which no audit lists")
        left = [[file for file in audit if "/data/" in file and is_there(file)] for audit in audits]
        if "/data/" not in location and all(left):
            raise Violation(f"{who} removes {location} before {left[-1]}, which it tells about")

    def hold(self, folder: str, lease: str, files: Collection[str]) -> KnownLease:
        """Learn what a reader relies on."""
        found = self.leases[folder, lease]
        found.files = files
        return found

    def committed(self, location: str | None) -> None:
        """Hear of a metadata file that a table has become."""
        self._proposed.pop(location or "", None)

    def landed(self, write_ids: Iterable[str], what: object) -> None:
        """Judge a swap that has taken effect."""
        if fenced := self.fenced.intersection(write_ids):
            raise Violation(f"{what} landed, though {sorted(fenced)} was fenced")

    def doubt(self, write_ids: Iterable[str], what: object) -> None:
        """Judge the news that the outcome of a change is unknown."""
        for lease in self.leases.values():
            if lease.lease in write_ids and lease.is_ended:
                raise Violation(f"the outcome of {what} is unknown, but its lease was ended")

    def _lease(self, location: str, record: dict[str, object], who: str, now: float) -> None:
        folder, lease = _folder(location), str(record["lease"])
        known = self.leases.get((folder, lease))
        if record.get("state") == DEAD:
            if known is not None and known.is_held and now - known.renewed_at < known.ttl_s + MARGIN_S:
                raise Violation(f"{who} declares the lease {lease} of {known.holder} dead too early")
            if known is not None:
                known.is_dead = True
        elif known is not None:
            known.renewed_at = now
        else:
            ttl_s = float(str(record["ttl-ms"])) / 1000
            self.leases[folder, lease] = KnownLease(folder, lease, who, str(record["kind"]), ttl_s, now)
            self._writes.setdefault(who, set()).add(lease)


def _names(location: str, lease: str) -> bool:
    """Return whether the name of a file has the first digits of a lease; the names of metadata files have no more."""
    return lease[:SIGNIFICANT] in location.rpartition("/")[2].replace("-", "")


def _folder(location: str) -> str:
    return location.partition("/metadata/gc/")[0]


def _listed(data: bytes) -> frozenset[str]:
    table = pq.ParquetFile(pa.BufferReader(data)).read(columns=["location"], use_threads=False)
    return frozenset(table["location"].to_pylist())
