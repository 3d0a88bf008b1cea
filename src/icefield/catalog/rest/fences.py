"""Fences of writes behind a server that knows no leases: tags, which the changes of these writes require to be absent.

    change of a writer     requirements: assert-ref-snapshot-id icefield-fence-5f0c… null       (the ref does not exist)
    collector              updates: set-snapshot-ref icefield-fence-5f0c…, a tag of the current snapshot

The server checks requirements and applies updates in one step, so either the change is in the table when the tag is, or
it never will be. (rest-catalog-open-api.yaml: AssertRefSnapshotId) A tag keeps its snapshot, so it is given an age at
which expiry removes it: a request that arrives so late is not expected.
"""

from collections.abc import Iterable, Sequence

from icefield.catalog.rest.tables import RestTables, TableChange
from icefield.errors import CommitConflict, CommitStateUnknown
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.model.snapshot import RefKind, SnapshotRef
from icefield.model.updates import AssertRefSnapshotId, AssertTableUUID, SetSnapshotRef

FENCE = "icefield-fence-"
KEPT_MS = 7 * 24 * 3600 * 1000
_ATTEMPTS = 10


def not_fenced(write_ids: Iterable[str]) -> list[AssertRefSnapshotId]:
    """Return the requirements of a change that is made under some leases."""
    return [AssertRefSnapshotId(f"{FENCE}{write_id}", None) for write_id in write_ids]


def add_fences(tables: RestTables, table: TableName, write_ids: Sequence[str], now_ms: int) -> bool:
    """Fence writes to a table; return False if it has no snapshot that a tag could point to."""
    for _ in range(_ATTEMPTS):
        loaded = tables.load(table)
        assert loaded is not None
        metadata = loaded.metadata()
        missing = [each for each in not_fenced(write_ids) if each.ref not in metadata.refs]
        if not missing:
            return True
        if metadata.current_snapshot is None:
            return False
        change = TableChange(table, [AssertTableUUID(metadata.table_uuid), *missing], _tags(metadata, missing, now_ms))
        try:
            tables.commit(change, None)
        except (CommitConflict, CommitStateUnknown):
            continue  # the table itself tells
    raise CommitConflict(f"the writers of {table} could not be fenced: other writers keep changing it")


def _tags(metadata: TableMetadata, missing: Iterable[AssertRefSnapshotId], now_ms: int) -> list[SetSnapshotRef]:
    snapshot = metadata.current_snapshot
    assert snapshot is not None
    # The age of a tag is that of its snapshot.
    age_ms = max(0, now_ms - snapshot.timestamp_ms) + KEPT_MS
    tag = SnapshotRef(snapshot.snapshot_id, RefKind.TAG, max_ref_age_ms=age_ms)
    return [SetSnapshotRef(each.ref, tag) for each in missing]
