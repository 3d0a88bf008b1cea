"""What is said of each node of the metadata tree, wherever it is drawn."""

import re

from icefield.cli.output import counted, short_location
from icefield.cli.pictures.tree_model import FileNode, ManifestNode, SnapshotNode, TreeNode
from icefield.showing import format_bytes

RANDOM_PART = re.compile(r"\b([0-9a-f]{8})(?:[0-9a-f]{24}|(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")


def pointer_text(root: TreeNode) -> str:
    """Say where the tree begins."""
    return f"pointer in the catalog {root.catalog!r}; files in {root.location}"


def metadata_text(root: TreeNode) -> str:
    """Say what the metadata file is."""
    return f"metadata file, format version {root.format_version}, {counted(root.snapshot_count, 'snapshot')}"


def snapshot_text(snapshot: SnapshotNode) -> tuple[str, str]:
    """Return the name of a snapshot with its refs, and its totals."""
    refs = f" ({', '.join(snapshot.refs)})" if snapshot.refs else ""
    totals = [snapshot.operation or "", snapshot.committed_at]
    if snapshot.rows is not None and snapshot.data_files is not None:
        totals.append(f"{counted(snapshot.rows, 'row')} in {counted(snapshot.data_files, 'file')}")
    return f"snapshot {snapshot.snapshot_id}{refs}", ", ".join(totals)


def manifest_text(manifest: ManifestNode) -> str:
    """Say what a manifest holds."""
    kind = "manifest" if manifest.content == "data" else "delete manifest"
    counts = [
        f"{count:,} {status}"
        for count, status in (
            (manifest.added_files, "added"),
            (manifest.existing_files, "existing"),
            (manifest.deleted_files, "deleted"),
        )
        if count
    ]
    rows = "" if manifest.rows is None else f", {counted(manifest.rows, 'row')}"
    return f"{kind}, files: {', '.join(counts) or 'none'}{rows}"


def file_text(file: FileNode) -> str:
    """Say how large a file is."""
    return f"{counted(file.rows, 'row')}, {format_bytes(file.bytes)}"


def short(location: str, base: str) -> str:
    """Return a path relative to the table's location, with its random part shortened."""
    return RANDOM_PART.sub(r"\1…", short_location(location, base))
