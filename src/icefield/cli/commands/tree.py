"""icefield tree: draw the metadata tree of a table."""

from dataclasses import asdict
from pathlib import Path

import rich_click as click
from rich.text import Text
from rich.tree import Tree

from icefield.cli.lakes import open_lake
from icefield.cli.options import as_of_option, html_option, table_argument
from icefield.cli.output import counted, kebab, print_json, render, safe
from icefield.cli.pictures.page import write_page
from icefield.cli.pictures.tree_model import (
    ManifestNode,
    Pointer,
    SnapshotNode,
    TreeLimits,
    TreeNode,
    load_tree,
)
from icefield.cli.pictures.tree_page import render_tree
from icefield.cli.pictures.tree_text import (
    file_text,
    manifest_text,
    metadata_text,
    pointer_text,
    short,
    snapshot_text,
)
from icefield.cli.settings import LakeCommand, Settings
from icefield.lake import Lake
from icefield.plan.versions import AsOf, resolve_version


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
@html_option("the tree")
@click.pass_obj
def tree(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    as_of: AsOf | None,
    snapshots: int,
    manifests: int,
    files: int,
    html: Path | None,
) -> None:
    """Draw the metadata tree of a table.

    The tree goes from the catalog's pointer to the metadata file, its snapshots (newest first), and for the current
    one (or that of --as-of) the manifest list, its manifests and their data files. What is omitted is counted; --json
    has full names.
    """
    with open_lake(settings) as lake:
        root = read_tree(lake, table, TreeLimits(snapshots, manifests, files), as_of)
    if html is not None:
        write_page(html, render_tree(root))
    if settings.as_json:
        print_json(kebab(asdict(root)))
    elif html is None:
        render(draw_tree(root))


def read_tree(lake: Lake, name: str, limits: TreeLimits, as_of: AsOf | None = None) -> TreeNode:
    """Load the metadata tree of a table."""
    table = lake.table(name)
    metadata = table.metadata
    pointer = Pointer(table.name, lake.catalog.name, table.metadata_location)
    return load_tree(lake.backend.reading, pointer, metadata, resolve_version(metadata, as_of).snapshot, limits)


def draw_tree(root: TreeNode) -> Tree:
    """Draw a tree. Paths are relative to the table's location, and random parts of names are shortened."""
    top = Tree(_label(root.table, pointer_text(root)))
    metadata = top.add(_label(short(root.metadata_file, root.location), metadata_text(root)))
    for snapshot in root.snapshots:
        _add_snapshot(metadata, snapshot, root.location)
    _add_rest(metadata, root.snapshot_count - len(root.snapshots), "older snapshot")
    return top


def _add_snapshot(parent: Tree, snapshot: SnapshotNode, base: str) -> None:
    node = parent.add(_label(*snapshot_text(snapshot)))
    if snapshot.manifest_count is None:
        return
    what = f"manifest list, {counted(snapshot.manifest_count, 'manifest')}"
    manifest_list = node.add(_label(short(snapshot.manifest_list, base), what))
    for manifest in snapshot.manifests:
        _add_manifest(manifest_list, manifest, base)
    _add_rest(manifest_list, snapshot.manifest_count - len(snapshot.manifests), "more manifest")


def _add_manifest(parent: Tree, manifest: ManifestNode, base: str) -> None:
    node = parent.add(_label(short(manifest.manifest, base), manifest_text(manifest)))
    for file in manifest.files:
        node.add(_label(short(file.file, base), file_text(file)))
    if manifest.files and manifest.live_files is not None:
        _add_rest(node, manifest.live_files - len(manifest.files), "more file")


def _label(name: str, what: str) -> Text:
    return Text.assemble((safe(name), "bold"), "  ", (safe(what), "dim"), overflow="fold")


def _add_rest(parent: Tree, count: int, noun: str) -> None:
    if count > 0:
        parent.add(Text(f"… {counted(count, noun)}", style="dim"))
