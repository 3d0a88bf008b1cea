"""The metadata tree of a table: pointer, metadata file, snapshots, manifest list, manifests, data files.

Only what is shown is loaded: the manifest list of one snapshot, and the manifests whose files are shown.
Raises MissingFile, CorruptFile.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.cli.output import moment
from icefield.cli.snapshot_facts import refs_of, summary_number
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.header import DELETE_MANIFEST
from icefield.codec.manifest.schema import DELETED
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.plan.manifest_list import load_manifests
from icefield.storage.sizes import read_sized

FILE_COLUMNS = ManifestColumns(("status", "file_path", "record_count", "file_size_in_bytes"), partition=False)


@dataclass(frozen=True)
class TreeLimits:
    """How much of each level is shown; the rest is only counted."""

    snapshots: int
    manifests: int
    files: int


@dataclass(frozen=True)
class FileNode:
    file: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class ManifestNode:
    """A manifest; counts are None if an old writer omitted them."""

    manifest: str
    content: str
    added_by_snapshot: str
    added_files: int | None
    existing_files: int | None
    deleted_files: int | None
    rows: int | None
    files: tuple[FileNode, ...]

    @property
    def live_files(self) -> int | None:
        """How many of its files are in the table."""
        if self.added_files is None or self.existing_files is None:
            return None
        return self.added_files + self.existing_files


@dataclass(frozen=True)
class SnapshotNode:
    """A snapshot; manifest_count is None for one that was not opened."""

    snapshot_id: str
    refs: tuple[str, ...]
    operation: str | None
    committed_at: str
    rows: int | None
    data_files: int | None
    manifest_list: str
    manifest_count: int | None = None
    manifests: tuple[ManifestNode, ...] = ()


@dataclass(frozen=True)
class TreeNode:
    """A table, from its pointer down."""

    table: str
    catalog: str
    location: str
    metadata_file: str
    format_version: int
    last_updated: str
    snapshot_count: int
    snapshots: tuple[SnapshotNode, ...]


@dataclass(frozen=True)
class Pointer:
    """The catalog entry: the table's name, and the metadata file that it points at."""

    table: str
    catalog: str
    metadata_file: str


def load_tree(
    context: ReadContext, pointer: Pointer, metadata: TableMetadata, opened: Snapshot | None, limits: TreeLimits
) -> TreeNode:
    """Load the tree below a catalog pointer; only one snapshot is opened."""
    newest = list(metadata.snapshots)[::-1]
    others = [s for s in newest if opened is None or s.snapshot_id != opened.snapshot_id]
    shown = [_snapshot(s, metadata) for s in others[: max(0, limits.snapshots - 1)]]
    if opened is not None:
        shown.insert(0, _opened_snapshot(context, opened, metadata, limits))
    return TreeNode(
        table=pointer.table,
        catalog=pointer.catalog,
        location=metadata.location,
        metadata_file=pointer.metadata_file,
        format_version=metadata.format_version,
        last_updated=moment(metadata.last_updated_ms),
        snapshot_count=len(newest),
        snapshots=tuple(shown),
    )


def _snapshot(snapshot: Snapshot, metadata: TableMetadata, **opened: Any) -> SnapshotNode:
    return SnapshotNode(
        snapshot_id=str(snapshot.snapshot_id),
        refs=tuple(refs_of(snapshot, metadata)),
        operation=snapshot.operation,
        committed_at=moment(snapshot.timestamp_ms),
        rows=summary_number(snapshot, "total-records"),
        data_files=summary_number(snapshot, "total-data-files"),
        manifest_list=snapshot.manifest_list,
        **opened,
    )


def _opened_snapshot(
    context: ReadContext, snapshot: Snapshot, metadata: TableMetadata, limits: TreeLimits
) -> SnapshotNode:
    manifests = load_manifests(context, snapshot)
    assert manifests is not None
    rows = manifests.slice(0, limits.manifests).to_pylist()
    nodes = tuple(_manifest(context, row, limits.files) for row in rows)
    return _snapshot(snapshot, metadata, manifest_count=manifests.num_rows, manifests=nodes)


def _manifest(context: ReadContext, row: dict[str, Any], most_files: int) -> ManifestNode:
    location = row["manifest_path"]
    added, existing = row["added_rows_count"], row["existing_rows_count"]
    return ManifestNode(
        manifest=location,
        content="deletes" if row["content"] == DELETE_MANIFEST else "data",
        added_by_snapshot=str(row["added_snapshot_id"]),
        added_files=row["added_files_count"],
        existing_files=row["existing_files_count"],
        deleted_files=row["deleted_files_count"],
        rows=None if added is None or existing is None else added + existing,
        files=_files(context, row, most_files) if most_files else (),
    )


def _files(context: ReadContext, row: dict[str, Any], most: int) -> tuple[FileNode, ...]:
    location = row["manifest_path"]
    entries = decode_manifest(read_sized(context.store, location, row["manifest_length"]), location, FILE_COLUMNS)
    live = entries.filter(pc.not_equal(entries.status, pa.scalar(DELETED, pa.int32()))).slice(0, most)
    return tuple(FileNode(r["file_path"], r["record_count"], r["file_size_in_bytes"]) for r in live.to_pylist())
