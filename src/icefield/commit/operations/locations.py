"""Check the locations in metadata against the store's roots, before they are committed or registered.

Metadata from another writer may name any file of this machine. The store rejects such a location on access; here it is
rejected before a table that names it becomes part of the lake. The metadata log is not checked: a table keeps it when
it moves, and files outside the table's own directory are neither read nor removed (`retired_metadata`).

Raises LocationRefused, InvalidInput.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput, LocationRefused

with deferred_imports(__name__):
    from icefield.codec.json.statistics import decode_location
    from icefield.commit.operations.tables import Proposal
    from icefield.commit.validate.ownership import roots_of
    from icefield.model.metadata import TableMetadata
    from icefield.model.snapshot import Snapshot
    from icefield.model.statistics import StatisticsEntry
    from icefield.model.updates import AddSnapshot, SetPartitionStatistics, SetStatistics
    from icefield.storage.store import Store


def check_table_locations(store: Store, metadata: TableMetadata) -> None:
    """Check all locations of a table: its directories, manifest lists and statistics, of all snapshots."""
    for root in roots_of(metadata.location, metadata.properties):
        _check(store, root, "the table's location")
    for snapshot in metadata.snapshots:
        _check_snapshot(store, snapshot)
    _check_statistics(store, (*metadata.statistics, *metadata.partition_statistics))


def check_proposed_locations(store: Store, proposal: Proposal) -> None:
    """Check what a commit adds, and the snapshot of every branch and tag."""
    metadata = proposal.metadata
    for ref in metadata.refs.values():
        if (snapshot := metadata.snapshots.find(ref.snapshot_id)) is not None:
            _check_snapshot(store, snapshot)
    for update in proposal.updates:
        if isinstance(update, AddSnapshot):
            _check_snapshot(store, update.snapshot)
        elif isinstance(update, SetStatistics | SetPartitionStatistics):
            _check_statistics(store, [update.statistics])


def _check_snapshot(store: Store, snapshot: Snapshot) -> None:
    for location in _manifests_of(snapshot):
        _check(store, location, f"snapshot {snapshot.snapshot_id}")


def _manifests_of(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.manifest_list:
        yield snapshot.manifest_list
    yield from snapshot.manifests


def _check_statistics(store: Store, entries: Iterable[StatisticsEntry]) -> None:
    for entry in entries:
        try:
            path = decode_location(entry).statistics_path
        except ValueError as error:
            raise InvalidInput(
                f"the statistics of snapshot {entry.snapshot_id} have an invalid location: {error}"
            ) from error
        _check(store, path, f"the statistics of snapshot {entry.snapshot_id}")


def _check(store: Store, location: str, what: str) -> None:
    try:
        store.check(location)
    except InvalidInput as refused:
        raise LocationRefused(f"{what} must not be at {location}: {refused.message}", hint=refused.hint) from refused
