"""The versions of a table: what a handle is on, its snapshots, branches and tags.

Raises NoSuchTable, NoSuchSnapshot, InvalidInput, ConcurrentChange, CommitConflict, CommitStateUnknown.
"""

import datetime
from collections.abc import Iterable, Mapping

from icefield.ambient import Ambient
from icefield.arguments import check_arguments
from icefield.commit.expire import ExpireSnapshots, RemoveTheseSnapshots
from icefield.commit.reads import find_read
from icefield.commit.refs import CreateRef, DropRef, FastForward, RollBack, make_ref
from icefield.errors import NoSuchSnapshot
from icefield.expr.bound import TRUE, Bound
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import MAIN, RefKind, Snapshot, SnapshotLogEntry, SnapshotRef
from icefield.scan.point import AsOf, Point, find_point, parse_moment, to_millis
from icefield.storage.store import Store
from icefield.table_head import TableHead
from icefield.types.schema import Schema


@check_arguments
class TableHistory:
    """The part of a table's handle that knows versions."""

    def __init__(self, head: TableHead, store: Store, ambient: Ambient, ref: str = MAIN) -> None:
        self._head = head
        self._store = store
        self._ambient = ambient
        self._ref = ref

    @property
    def name(self) -> str:
        """The full name, such as `shop.orders`."""
        return str(self._head.name)

    @property
    def metadata(self) -> TableMetadata:
        """The newest metadata; in a transaction it counts as a read of all rows."""
        return self.refresh()

    @property
    def metadata_location(self) -> str:
        """Where the newest metadata file is, from which other engines can open the table.

        In a transaction it is the version that the table was opened at, and counts as a read of all rows.
        """
        loaded = self._head.load()
        self._reading(loaded.metadata, None)
        return loaded.location

    @property
    def location(self) -> str:
        """The directory of the table's files."""
        return self._load().location

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self._load().schema

    @property
    def spec(self) -> PartitionSpec:
        """How new files are partitioned."""
        return self._load().spec

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self._load().properties)

    def refresh(self) -> TableMetadata:
        """Load the newest metadata, if it moved; in a transaction it counts as a read of all rows."""
        metadata = self._load()
        self._reading(metadata, None)
        return metadata

    def snapshots(self) -> list[Snapshot]:
        """List the snapshots, oldest first."""
        return list(self.metadata.snapshots)

    def history(self) -> list[SnapshotLogEntry]:
        """List what `main` pointed at, and from when on."""
        return list(self.metadata.snapshot_log)

    def refs(self) -> dict[str, SnapshotRef]:
        """Return branches and tags."""
        return dict(self.metadata.refs)

    def branch(self, name: str, *, at: AsOf | None = None, **retention: int) -> None:
        """Make a branch, which goes on from this one or from another version.

        retention: min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms.
        """
        self._create_ref(name, RefKind.BRANCH, at, retention)

    def tag(self, name: str, *, at: AsOf | None = None, **retention: int) -> None:
        """Name a version for good. retention: max_ref_age_ms."""
        self._create_ref(name, RefKind.TAG, at, retention)

    def drop_ref(self, name: str) -> None:
        """Forget a branch or tag; its snapshots stay until they expire."""
        self._head.commit([DropRef(name)])

    def publish(self, branch: str) -> Snapshot | None:
        """Move this branch to the head of another that goes on from it; all its snapshots show at once."""
        return self._head.commit([FastForward(self._ref, branch)]).ref_head(self._ref)

    def roll_back(self, snapshot_id: int) -> Snapshot | None:
        """Move this branch back to one of its ancestors."""
        return self._head.commit([RollBack(self._ref, snapshot_id)]).ref_head(self._ref)

    def remove_snapshots(self, snapshot_ids: Iterable[int]) -> None:
        """Take snapshots out of the history; their files stay. One that a branch or tag points at is refused."""
        self._head.commit([RemoveTheseSnapshots(frozenset(snapshot_ids))])

    def expire_snapshots(
        self,
        older_than: datetime.datetime | str | None = None,
        *,
        keep_last: int | None = None,
        dry_run: bool = False,
    ) -> list[int]:
        """Take old snapshots out of the history, as retention rules allow; their files stay. Returns their ids.

        older_than: snapshots before this time; if not given, the table's `history.expire.max-snapshot-age-ms` says.
        keep_last: so many of every branch stay whatever their age. dry_run: only say what would go.
        """
        limit = None if older_than is None else to_millis(parse_moment(older_than, "older_than"))
        action, base = ExpireSnapshots(limit, keep_last), self._load()
        if dry_run:
            return sorted(action.find(self.metadata, self._ambient.now_ms()).snapshot_ids)
        left = self._head.commit([action]).snapshots
        return sorted(s.snapshot_id for s in base.snapshots if left.find(s.snapshot_id) is None)

    def _load(self) -> TableMetadata:
        """Load the newest metadata for what is no read of rows, or is noted as one by itself."""
        return self._head.load().metadata

    def _create_ref(self, name: str, kind: RefKind, at: AsOf | None, retention: Mapping[str, int]) -> None:
        snapshot = self._point(self._load(), at).snapshot
        if snapshot is None:
            raise NoSuchSnapshot(f"cannot make {name!r}: the table has no snapshot yet", hint="Write to it first")
        self._head.commit([CreateRef(name, make_ref(snapshot.snapshot_id, kind, retention))])

    def _reading(
        self, metadata: TableMetadata, as_of: AsOf | None, where: Bound = TRUE, columns: Iterable[int] = ()
    ) -> Point:
        """Return the version to read, and let the head know which rows of it."""
        point = self._point(metadata, as_of)
        read = find_read(metadata, point, self._ref if as_of is None else as_of, where, columns)
        if read is not None:
            self._head.note_read(read)
        return point

    def _point(self, metadata: TableMetadata, as_of: AsOf | None) -> Point:
        return find_point(metadata, self._ref if as_of is None else as_of)
