"""Snapshots to and from JSON in metadata.json. (spec: Snapshots, Appendix C)

`StoredSnapshot` keeps the bytes of a snapshot, decodes them on first use and writes them back unchanged: fields of
other writers survive, and the cost of a commit does not grow with the history.
Raises CorruptFile from `StoredSnapshot.load` and `snapshot_id`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec

from icefield.deferred import deferred_imports
from icefield.errors import CorruptFile

with deferred_imports(__name__):
    from icefield.model.snapshot import Snapshot, SnapshotEntry, Snapshots

Int = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Long = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
NaturalLong = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _SnapshotWire(msgspec.Struct, rename="kebab", omit_defaults=True):
    """Missing fields have defaults: sequence number 0 is that of format version 1. (spec: Appendix E, Version 2)"""

    snapshot_id: Long
    timestamp_ms: Long
    parent_snapshot_id: Long | None = None
    sequence_number: Long = 0
    summary: dict[str, str] = msgspec.field(default_factory=dict)
    manifest_list: str = ""
    manifests: list[str] | None = None
    schema_id: Int | None = None
    first_row_id: NaturalLong | None = None
    added_rows: NaturalLong | None = None
    key_id: str | None = None


class _IdWire(msgspec.Struct, rename="kebab"):
    snapshot_id: Long


W = TypeVar("W", _SnapshotWire, _IdWire)


@dataclass(frozen=True)
class StoredSnapshot:
    """A snapshot as the bytes that were read."""

    raw: msgspec.Raw
    location: str

    @property
    def snapshot_id(self) -> int:
        return self._decoded(_ID).snapshot_id

    def holds(self, text: bytes) -> bool:
        return text in bytes(self.raw)

    def load(self) -> Snapshot:
        wire = self._decoded(_SNAPSHOT)
        if not wire.manifest_list and wire.manifests is None:
            raise CorruptFile(
                self.location, f"snapshot {wire.snapshot_id} has neither a manifest list nor a list of its manifests"
            )
        return Snapshot(
            snapshot_id=wire.snapshot_id,
            sequence_number=wire.sequence_number,
            timestamp_ms=wire.timestamp_ms,
            manifest_list=wire.manifest_list,
            parent_snapshot_id=wire.parent_snapshot_id,
            schema_id=wire.schema_id,
            summary=wire.summary,
            first_row_id=wire.first_row_id,
            added_rows=wire.added_rows,
            key_id=wire.key_id,
            # (spec: Snapshots, manifests: the manifest list takes precedence if both are present.)
            manifests=() if wire.manifest_list else tuple(wire.manifests or ()),
        )

    def _decoded(self, decoder: msgspec.json.Decoder[W]) -> W:
        try:
            return decoder.decode(self.raw)
        except (ValueError, RecursionError) as error:
            raise CorruptFile(self.location, f"a snapshot does not decode: {error}") from error


_SNAPSHOT = msgspec.json.Decoder(_SnapshotWire)
_ID = msgspec.json.Decoder(_IdWire)


def carry_snapshots(snapshots: Snapshots, location: str) -> Snapshots:
    """Return the list with every new snapshot encoded for a location, so that later commits reuse the bytes."""
    if not any(isinstance(entry, Snapshot) for entry in snapshots.entries):
        return snapshots
    return Snapshots(
        tuple(
            StoredSnapshot(msgspec.Raw(msgspec.json.encode(encode_snapshot(entry))), location)
            if isinstance(entry, Snapshot)
            else entry
            for entry in snapshots.entries
        )
    )


def encode_snapshot(entry: SnapshotEntry) -> Any:
    """Return what the JSON encoder writes for a snapshot: the original bytes, if there are any."""
    if isinstance(entry, StoredSnapshot):
        return entry.raw
    snapshot = entry if isinstance(entry, Snapshot) else entry.load()
    return _SnapshotWire(
        snapshot_id=snapshot.snapshot_id,
        timestamp_ms=snapshot.timestamp_ms,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
        summary=dict(snapshot.summary),
        manifest_list=snapshot.manifest_list,
        manifests=None if snapshot.manifest_list else list(snapshot.manifests),
        schema_id=snapshot.schema_id,
        first_row_id=snapshot.first_row_id,
        added_rows=snapshot.added_rows,
        key_id=snapshot.key_id,
    )
