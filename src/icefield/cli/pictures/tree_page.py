"""The metadata tree of a table as a page: nested lists that open and close, with a bar for the size of each file."""

from collections.abc import Iterable

from icefield.cli.output import counted
from icefield.cli.pictures.page import box, page, text
from icefield.cli.pictures.tree_model import ManifestNode, SnapshotNode, TreeNode
from icefield.cli.pictures.tree_text import (
    file_text,
    manifest_text,
    metadata_text,
    pointer_text,
    short,
    snapshot_text,
)

_BAR = 120


def render_tree(root: TreeNode) -> str:
    """Return the page."""
    largest = max((f.bytes for s in root.snapshots for m in s.manifests for f in m.files), default=0)
    snapshots = [_snapshot(each, root.location, largest) for each in root.snapshots]
    snapshots += _rest(root.snapshot_count - len(root.snapshots), "older snapshot")
    metadata = _node(short(root.metadata_file, root.location), metadata_text(root), snapshots)
    return page(root.table, [f'<p>{text(pointer_text(root))}</p><ul class="tree">{metadata}</ul>'])


def _snapshot(snapshot: SnapshotNode, base: str, largest: int) -> str:
    name, what = snapshot_text(snapshot)
    if snapshot.manifest_count is None:
        return _node(name, what, ())
    manifests = [_manifest(each, base, largest) for each in snapshot.manifests]
    manifests += _rest(snapshot.manifest_count - len(snapshot.manifests), "more manifest")
    said = f"manifest list, {counted(snapshot.manifest_count, 'manifest')}"
    return _node(name, what, [_node(short(snapshot.manifest_list, base), said, manifests)])


def _manifest(manifest: ManifestNode, base: str, largest: int) -> str:
    files = []
    for file in manifest.files:
        width = max(1.0, _BAR * file.bytes / largest) if largest else 0
        bar = f'<svg width="{_BAR}" height="8">{box((0, 0, width, 8), "f0")}</svg>'
        files.append(_node(short(file.file, base), file_text(file), (), bar))
    if manifest.files and manifest.live_files is not None:
        files += _rest(manifest.live_files - len(manifest.files), "more file")
    return _node(short(manifest.manifest, base), manifest_text(manifest), files)


def _node(name: str, what: str, children: Iterable[str], drawing: str = "") -> str:
    head = f'<b>{text(name)}</b> <span class="dim">{text(what)}</span>{drawing}'
    below = "".join(children)
    if not below:
        return f"<li>{head}</li>\n"
    return f'<li><details open><summary>{head}</summary><ul class="tree">{below}</ul></details></li>\n'


def _rest(count: int, noun: str) -> list[str]:
    return [f'<li class="dim">… {text(counted(count, noun))}</li>\n'] if count > 0 else []
