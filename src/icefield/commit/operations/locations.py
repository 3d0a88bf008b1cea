"""Check the locations that metadata names against what the store may touch, before they are committed or registered.

What others wrote may name any file of this machine. The store refuses such a location when it is read; here it is
refused before a table that names it becomes part of the lake. The metadata log is not looked at: a table keeps it when
it moves, and nothing reads or removes what it names outside the table's own directory (`retired_metadata`).

Raises LocationRefused, InvalidInput.
"""

from collections.abc import Iterable, Iterator

import msgspec

from icefield.commit.operations.tables import Proposal
from icefield.commit.validate.ownership import roots_of
from icefield.errors import InvalidInput, LocationRefused
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.model.statistics import StatisticsEntry
from icefield.model.updates import AddSnapshot, SetPartitionStatistics, SetStatistics
from icefield.storage.store import Store


class _StatisticsPath(msgspec.Struct, rename="kebab"):
    statistics_path: str


def check_table_locations(store: Store, metadata: TableMetadata) -> None:
    """Check everything that a table names: its directories, manifest lists and statistics, of all snapshots."""
    for root in roots_of(metadata.location, metadata.properties):
        _check(store, root, "the table's location")
    for snapshot in metadata.snapshots:
        _check_snapshot(store, snapshot)
    _check_statistics(store, (*metadata.statistics, *metadata.partition_statistics))


def check_proposed_locations(store: Store, proposal: Proposal) -> None:
    """Check what a commit adds, and what every branch and tag of the table points at."""
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
            path = msgspec.json.decode(entry.document, type=_StatisticsPath).statistics_path
        except ValueError as error:
            raise InvalidInput(f"the statistics of snapshot {entry.snapshot_id} name no file: {error}") from error
        _check(store, path, f"the statistics of snapshot {entry.snapshot_id}")


def _check(store: Store, location: str, what: str) -> None:
    try:
        store.check(location)
    except InvalidInput as refused:
        raise LocationRefused(f"{what} may not be at {location}: {refused.message}", hint=refused.hint) from refused
