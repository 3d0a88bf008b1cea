"""Which files of a change a table references: those are kept, whatever the outcome of the change.

The same files can be committed twice: a repeated commit, two runs with one set of files, an action that is used again.
The one that fails must not remove files that the other one references.
"""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.errors import IcefieldError
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.plan.entries import LIVE, batches_of_one_spec, load_entries
from icefield.plan.manifest_list import load_manifests
from icefield.storage.store import Store

NAMES = ManifestColumns(("status", "snapshot_id", "sequence_number", "file_path"), partition=False)


def remove_unreferenced(
    context: ReadContext, locations: Iterable[str], now: TableMetadata, since: TableMetadata | None = None
) -> None:
    """Remove files that were written for a change, except those that a snapshot of the table references.

    since: a version from before the files were written; its snapshots cannot reference them. If the snapshots cannot be
    read, nothing is removed, and the files are left to orphan file removal.
    """
    wanted = set(locations)
    try:
        referenced = find_referenced(context, wanted, now, since)
    except IcefieldError:
        return
    remove_quietly(context.store, sorted(wanted - referenced))


def find_referenced(
    context: ReadContext, locations: set[str], now: TableMetadata, since: TableMetadata | None = None
) -> set[str]:
    """Return the locations that a snapshot references: data and delete files, manifests, manifest lists."""
    found: set[str] = set()
    seen = _known_manifests(context, since)
    for snapshot in now.snapshots.added_since(since.snapshots if since else None) if locations else ():
        found |= {snapshot.manifest_list} & locations
        manifests = load_manifests(context, snapshot)
        if manifests is None:
            continue
        found |= set(manifests.manifest_path.to_pylist()) & locations
        new = manifests.filter(pc.invert(pc.is_in(manifests.manifest_path, value_set=_texts(seen))))
        seen |= set(new.manifest_path.to_pylist())
        for batch in batches_of_one_spec(new):
            found |= set(load_entries(context, batch, NAMES, LIVE).file_path.to_pylist()) & locations
    return found


def remove_quietly(store: Store, locations: Iterable[str]) -> None:
    """Remove unreferenced files; one that cannot be removed is left to orphan file removal."""
    for location in locations:
        try:
            store.delete(location)
        except IcefieldError:
            continue


def _known_manifests(context: ReadContext, since: TableMetadata | None) -> set[str]:
    """Return manifests that are older than the files in question: those of the heads of an earlier version."""
    heads: list[Snapshot | None] = [] if since is None else [since.ref_head(name) for name in since.refs]
    lists = [load_manifests(context, head) for head in heads]
    return {path for each in lists if each is not None for path in each.manifest_path.to_pylist()}


def _texts(paths: set[str]) -> pa.Array:
    return pa.array(sorted(paths), pa.string())
