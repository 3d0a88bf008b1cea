"""Races with one rival, and the files that a table leads to."""

from collections.abc import Callable, Sequence

from icefield.catalog.catalog import PointerSwap
from icefield.codec.manifest.columns import ManifestColumns
from icefield.lake import Lake
from icefield.plan.entries import LIVE, batches_of_one_spec, load_entries
from icefield.plan.manifest_list import load_manifests
from icefield.table.table import Table

COLUMNS = ManifestColumns(("status", "snapshot_id", "sequence_number", "file_path"))


def race(lake: Lake, rival: Callable[[], object], mine: Callable[[], object]) -> None:
    """Let a rival commit just before the first swap of mine."""
    swap = lake.catalog.swap

    def let_the_rival_go_first(changes: Sequence[PointerSwap]) -> None:
        del lake.catalog.swap  # the method of the class shows again
        rival()
        swap(changes)

    lake.catalog.swap = let_the_rival_go_first  # type: ignore[method-assign]
    try:
        mine()
    finally:
        vars(lake.catalog).pop("swap", None)


def files_of(lake: Lake) -> set[str]:
    return {f.location for f in lake.store.list(lake.warehouse)}


def reachable(table: Table) -> set[str]:
    """Every file that the table's metadata leads to, current and old."""
    metadata = table.metadata
    found = {table.metadata_location, *(e.metadata_file for e in metadata.metadata_log)}
    for snapshot in metadata.snapshots:
        found.add(snapshot.manifest_list)
        manifests = load_manifests(table._context, snapshot)
        for batch in batches_of_one_spec(manifests) if manifests is not None else ():
            found.update(batch["manifest_path"].to_pylist())
            found.update(load_entries(table._context, batch, COLUMNS, LIVE)["file_path"].to_pylist())
    return found
