"""Where branches and tags are, relative to another one; and where they were before."""

from dataclasses import dataclass

from icefield.cache.reading import ReadContext
from icefield.commit.load import load_table_metadata
from icefield.commit.validate.ancestry import only_in
from icefield.errors import MissingFile, NoSuchSnapshot
from icefield.history.log import published_id
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN, Snapshot, SnapshotRef


@dataclass(frozen=True)
class RefStatus:
    """A branch or tag, and how far it is from `main`.

    Attributes:
        name: Its name.
        ref: What it points at, and its retention rules.
        committed_ms: When its snapshot was made, in milliseconds since the epoch.
        ahead: How many snapshots it contains that `main` does not.
        behind: How many snapshots `main` contains that it does not.
    """

    name: str
    ref: SnapshotRef
    committed_ms: int
    ahead: int
    behind: int

    def as_dict(self) -> dict[str, object]:
        """Return plain values; ids as strings."""
        return {
            "name": self.name,
            "kind": str(self.ref.kind),
            "snapshot-id": str(self.ref.snapshot_id),
            "ahead": self.ahead,
            "behind": self.behind,
            "min-snapshots-to-keep": self.ref.min_snapshots_to_keep,
            "max-snapshot-age-ms": self.ref.max_snapshot_age_ms,
            "max-ref-age-ms": self.ref.max_ref_age_ms,
        }


def list_refs(metadata: TableMetadata) -> list[RefStatus]:
    """List branches and tags, `main` first."""
    main = metadata.current_snapshot
    found = []
    for name, ref in sorted(metadata.refs.items(), key=lambda item: (item[0] != MAIN, item[0])):
        snapshot = metadata.snapshot_by_id(ref.snapshot_id)
        ahead = _count_only_in(metadata, snapshot, main)
        behind = 0 if main is None else _count_only_in(metadata, main, snapshot)
        found.append(RefStatus(name, ref, snapshot.timestamp_ms, ahead, behind))
    return found


def _count_only_in(metadata: TableMetadata, version: Snapshot, other: Snapshot | None) -> int:
    """Count what a version contains that another does not, without the originals of snapshots that were rebased."""
    own = {snapshot.snapshot_id: snapshot for snapshot in only_in(metadata, version, other)}
    found, left = set[int](), [version.snapshot_id]
    while left:
        each = left.pop()
        if each in own and each not in found:
            found.add(each)
            before = (own[each].parent_snapshot_id, published_id(own[each]))
            left += [parent for parent in before if parent is not None]
    return len(found)


def find_previous_head(context: ReadContext, metadata: TableMetadata, branch: str) -> int:
    """Find the snapshot that a branch pointed at before its last move, in earlier metadata files."""
    head = metadata.ref_head(branch)
    now = None if head is None else head.snapshot_id
    for entry in reversed(metadata.metadata_log):
        try:
            before = load_table_metadata(context, entry.metadata_file).refs.get(branch)
        except MissingFile:
            break
        if before is None:
            break
        if before.snapshot_id != now:
            metadata.snapshot_by_id(before.snapshot_id)  # raises an error if it has expired
            return before.snapshot_id
    raise NoSuchSnapshot(
        f"cannot undo: it is not known where {branch} was before",
        hint="Roll back to a snapshot of `icefield snapshots`",
    )
