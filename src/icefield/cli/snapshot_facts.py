"""What commands say of a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield.arguments import whole_number

if TYPE_CHECKING:
    from icefield.model.metadata import TableMetadata
    from icefield.model.snapshot import Snapshot


def refs_of(snapshot: Snapshot, metadata: TableMetadata) -> list[str]:
    """List the branches and tags that point at a snapshot."""
    return sorted(name for name, ref in metadata.refs.items() if ref.snapshot_id == snapshot.snapshot_id)


def summary_number(snapshot: Snapshot, key: str) -> int | None:
    """Return a number from a snapshot's summary, or None if its writer omitted it."""
    return whole_number(snapshot.summary.get(key))
