"""icefield tree: draw the metadata tree of a table."""

import re
from dataclasses import asdict

import rich_click as click
from rich.text import Text
from rich.tree import Tree

from icefield.cli.commands.tree_model import (
    FileNode,
    ManifestNode,
    Pointer,
    SnapshotNode,
    TreeLimits,
    TreeNode,
    load_tree,
)
from icefield.cli.lakes import open_lake
from icefield.cli.options import as_of_option, table_argument
from icefield.cli.output import counted, kebab, print_json, render, safe, short_location
from icefield.cli.settings import LakeCommand, Settings
from icefield.explain.explain import format_bytes
from icefield.lake import Lake
from icefield.plan.versions import AsOf, resolve_version

RANDOM_PART = re.compile(r"\b([0-9a-f]{8})(?:[0-9a-f]{24}|(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")


@click.command(cls=LakeCommand)
@table_argument()
@as_of_option()
@click.option(
    "--snapshots",
    type=click.IntRange(min=1, max=2**63 - 1),
    default=4,
    show_default=True,
    help="The maximum number of snapshots.",
)
@click.option(
    "--manifests",
    type=click.IntRange(min=0, max=2**63 - 1),
    default=8,
    show_default=True,
    help="The maximum number of manifests.",
)
@click.option(
    "--files",
    type=click.IntRange(min=0, max=2**63 - 1),
    default=2,
    show_default=True,
    help="The maximum number of files per manifest.",
)
@click.pass_obj
def tree(settings: Settings, table: str, as_of: AsOf | None, snapshots: int, manifests: int, files: int) -> None:
    """Draw the metadata tree of a table.

    The tree goes from the catalog's pointer to the metadata file, its snapshots (newest first), and for the current
    one (or that of --as-of) the manifest list, its manifests and their data files. What is omitted is counted; --json
    has full names.
    """
    with open_lake(settings) as lake:
        root = read_tree(lake, table, TreeLimits(snapshots, manifests, files), as_of)
    if settings.as_json:
        print_json(kebab(asdict(root)))
    else:
        render(draw_tree(root))


def read_tree(lake: Lake, name: str, limits: TreeLimits, as_of: AsOf | None = None) -> TreeNode:
    """Load the metadata tree of a table."""
    table = lake.table(name)
    metadata = table.metadata
    pointer = Pointer(table.name, lake.catalog.name, table.metadata_location)
    return load_tree(lake.backend.reading, pointer, metadata, resolve_version(metadata, as_of).snapshot, limits)


def draw_tree(root: TreeNode) -> Tree:
    """Draw a tree. Paths are relative to the table's location, and random parts of names are shortened."""
    top = Tree(_label(root.table, f"pointer in the catalog {root.catalog!r}; files in {root.location}"))
    what = f"metadata file, format version {root.format_version}, {counted(root.snapshot_count, 'snapshot')}"
    metadata = top.add(_label(_short(root.metadata_file, root.location), what))
    for snapshot in root.snapshots:
        _add_snapshot(metadata, snapshot, root.location)
    _add_rest(metadata, root.snapshot_count - len(root.snapshots), "older snapshot")
    return top


def _add_snapshot(parent: Tree, snapshot: SnapshotNode, base: str) -> None:
    refs = f" ({', '.join(snapshot.refs)})" if snapshot.refs else ""
    totals = [snapshot.operation or "", snapshot.committed_at]
    if snapshot.rows is not None and snapshot.data_files is not None:
        totals.append(f"{counted(snapshot.rows, 'row')} in {counted(snapshot.data_files, 'file')}")
    node = parent.add(_label(f"snapshot {snapshot.snapshot_id}{refs}", ", ".join(totals)))
    if snapshot.manifest_count is None:
        return
    what = f"manifest list, {counted(snapshot.manifest_count, 'manifest')}"
    manifest_list = node.add(_label(_short(snapshot.manifest_list, base), what))
    for manifest in snapshot.manifests:
        _add_manifest(manifest_list, manifest, base)
    _add_rest(manifest_list, snapshot.manifest_count - len(snapshot.manifests), "more manifest")


def _add_manifest(parent: Tree, manifest: ManifestNode, base: str) -> None:
    node = parent.add(_label(_short(manifest.manifest, base), _manifest_text(manifest)))
    for file in manifest.files:
        node.add(_label(_short(file.file, base), _file_text(file)))
    if manifest.files and manifest.live_files is not None:
        _add_rest(node, manifest.live_files - len(manifest.files), "more file")


def _manifest_text(manifest: ManifestNode) -> str:
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


def _file_text(file: FileNode) -> str:
    return f"{counted(file.rows, 'row')}, {format_bytes(file.bytes)}"


def _short(location: str, base: str) -> str:
    """Return a path relative to the table's location, with its random part shortened."""
    return RANDOM_PART.sub(r"\1…", short_location(location, base))


def _label(name: str, what: str) -> Text:
    return Text.assemble((safe(name), "bold"), "  ", (safe(what), "dim"), overflow="fold")


def _add_rest(parent: Tree, count: int, noun: str) -> None:
    if count > 0:
        parent.add(Text(f"… {counted(count, noun)}", style="dim"))
