"""One version of a lease, as a small JSON object.

    leases/5f0c….000001.json   {"lease": "5f0c…", "version": 1, "state": "held", "kind": "reader", "ttl-ms": 600000, …}
    leases/5f0c….000002.json   renewed by its holder, or {"state": "dead"} by a collector: who creates it wins

Versions are created with `put_new` and never replaced, so every store that can hold a table can hold leases. The holder
keeps all of them until it ends the lease: a listing that runs while a lease is renewed shows at least one, and the
number after the newest listed one is free only if that is the newest.
"""

import os
import platform
import re
import uuid
from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec

from icefield.leases.folder import LEASES
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.properties.upkeep import GC_LEASE_TTL_MS
from icefield.storage.location import join_location

_NAME = re.compile(r"([0-9a-f]{32})\.(\d{6,})\.json")
_SIGNIFICANT_DIGITS = 24  # of the 32 of an id; the others leave room for what makes a name unique


class LeaseKind(Enum):
    """What a lease protects: the snapshots of a reader, or the new files of a writer; or a claim (leases.claim)."""

    READER = "reader"
    WRITER = "writer"
    UPKEEP = "upkeep"


class LeaseState(Enum):
    """Held, or declared dead by a collector."""

    HELD = "held"
    DEAD = "dead"


class Pin(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A snapshot whose files a reader needs; `manifests` are those of an old v1 snapshot without a manifest list."""

    snapshot_id: int
    manifest_list: str = ""
    manifests: tuple[str, ...] = ()


class LeaseRecord(msgspec.Struct, frozen=True, rename="kebab", kw_only=True, omit_defaults=True):
    """A version of a lease.

    pins: the snapshots that the holder reads. files: files that the holder adds to the table and did not write. A
    writer's new files have the id of its lease in their names.
    """

    lease: str
    version: int
    table_uuid: uuid.UUID
    kind: LeaseKind
    ttl_ms: int
    state: LeaseState = LeaseState.HELD
    holder: str = ""
    pins: tuple[Pin, ...] = ()
    files: tuple[str, ...] = ()


def first_version(
    kind: LeaseKind, lease: str, metadata: TableMetadata, reads: Iterable[Snapshot] = (), files: Iterable[str] = ()
) -> LeaseRecord:
    """Return the first version of a lease of this process on a table. reads: the snapshots to pin."""
    return LeaseRecord(
        lease=lease,
        version=1,
        table_uuid=metadata.table_uuid,
        kind=kind,
        ttl_ms=GC_LEASE_TTL_MS.read(metadata.properties),
        holder=this_holder(),
        pins=tuple(Pin(s.snapshot_id, s.manifest_list, tuple(s.manifests)) for s in reads),
        files=tuple(files),
    )


def encode_record(record: LeaseRecord) -> bytes:
    """Encode a version."""
    return msgspec.json.encode(record)


def decode_record(data: bytes) -> LeaseRecord | None:
    """Decode a version; None if it is malformed, such as one that is still being written on some file systems."""
    try:
        return msgspec.json.decode(data, type=LeaseRecord)
    except (ValueError, RecursionError):
        return None


def version_location(folder: str, lease: str, version: int) -> str:
    """Return where a version of a lease is."""
    return join_location(folder, LEASES, f"{lease}.{version:06d}.json")


def parse_version(location: str) -> tuple[str, int] | None:
    """Return the id and the version that a location names; None for any other file."""
    found = _NAME.fullmatch(location.rpartition("/")[2])
    return None if found is None else (found.group(1), int(found.group(2)))


def this_holder() -> str:
    """Return who holds a lease, for people: the host and the process."""
    return f"{platform.node()} pid {os.getpid()}"


def is_of_write(location: str, write_ids: Sequence[str]) -> bool:
    """Return whether a file was written under one of the leases, by its name."""
    name = location.rpartition("/")[2].replace("-", "")
    return any(write_id[:_SIGNIFICANT_DIGITS] in name for write_id in write_ids)


def uuid_of_write(write_id: str, drawn: uuid.UUID) -> uuid.UUID:
    """Return a UUID that names a lease as `is_of_write` reads it: PyIceberg wants one in names, and nothing more."""
    return uuid.UUID(write_id[:_SIGNIFICANT_DIGITS] + drawn.hex[_SIGNIFICANT_DIGITS:])
