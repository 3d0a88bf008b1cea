"""The read set of a change: the rows that it read in the version it was planned on, and whether they have changed.

    added since       a later snapshot added rows that the change would have read: it fails under serializable
                      isolation, and for the keys of an upsert always. Files that statistics cannot prune are opened,
                      so that only rows which really match conflict, not overlapping ranges.
    deleted since     rows of files that the change rewrites were deleted: they would reappear, so it fails.
    rewritten since   snapshots that only moved rows (compaction) added none. If they removed files of the change, its
                      rows are looked for in the new files (`carried_over`), or else RowsMoved is raised.

Every snapshot between the plan and the base is checked. Raises ConcurrentChange, which names the snapshot, its
operation, and a file.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import DELETED
from icefield.commit.action import WriteContext
from icefield.errors import ConcurrentChange, MissingFile, RowsMoved
from icefield.expr.bind.bound import columns_of
from icefield.expr.prune.residual import residual
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation, Snapshot
from icefield.parquet.read.read_ahead import read_ahead
from icefield.plan.entries import load_batches
from icefield.plan.manifest_list import is_of, load_manifests
from icefield.plan.partition.keys import Partition
from icefield.plan.plan import ScanPlan, plan_added_deletes, plan_added_files
from icefield.plan.planned_files import PlannedFiles
from icefield.properties.table import SERIALIZABLE
from icefield.storage.store import Store
from icefield.types.arrow_keys import NOT_FOUND, Codes, KeyIndex
from icefield.types.metadata_columns import with_metadata_columns

SHOWN_FILES = 3
MAX_BYTES_TO_LOOK_INTO = 64 * 1024 * 1024


@dataclass(frozen=True)
class KeyRows:
    """The keys of rows: of the rows that a change read, only those with one of these keys count."""

    columns: Sequence[str]
    index: KeyIndex

    def find(self, batch: pa.RecordBatch) -> Codes:
        """Return the number of each row's key, or NOT_FOUND."""
        return self.index.find([batch.column(name) for name in self.columns], batch.num_rows)


@dataclass(frozen=True)
class PartitionSet:
    """Some partitions of one spec."""

    spec_id: int
    partitions: frozenset[Partition]

    def restrict(self, files: PlannedFiles) -> PlannedFiles:
        """Keep planned files in one of the partitions, or of another spec, which cannot be compared."""
        keys = pa.array([key for _, key in self.partitions], pa.binary())
        mine = pc.is_in(files.partition_key, value_set=keys)
        return files.filter(pc.or_(mine, pc.not_equal(files.spec_id, self.spec_id)))


@dataclass(frozen=True)
class StartingSnapshot:
    """A committed version, None for none, and the snapshots that the same transaction staged on it before the plan."""

    snapshot_id: int | None
    own: frozenset[int] = frozenset()


def find_starting_snapshot(committed: TableMetadata, staged: TableMetadata, ref: str) -> StartingSnapshot:
    """Separate snapshots committed by other writers from those of the transaction itself."""
    own: set[int] = set()
    for snapshot in staged.ancestors(staged.ref_head(ref)):
        if committed.snapshots.find(snapshot.snapshot_id) is not None:
            return StartingSnapshot(snapshot.snapshot_id, frozenset(own))
        own.add(snapshot.snapshot_id)
    return StartingSnapshot(None, frozenset(own))


@dataclass(frozen=True)
class ReadSet:
    """What a change read.

    verb: what it does, for errors. origin: the version after which other writers may have committed; later snapshots of
    the plan belong to the same transaction. partitions: only rows of these count. keys: those of an upsert.
    reads_whole_table: it read all rows, not only those of the plan: a subquery reads the table that is changed.
    """

    plan: ScanPlan
    ref: str
    verb: str
    isolation: str
    start: StartingSnapshot
    partitions: PartitionSet | None = None
    keys: KeyRows | None = None
    reads_whole_table: bool = False

    def snapshots_since(self, base: TableMetadata) -> Iterator[Snapshot]:
        """Yield every snapshot that another writer committed between the plan and the base."""
        oldest = None
        for oldest in base.ancestors(base.ref_head(self.ref)):
            if oldest.snapshot_id == self.start.snapshot_id:
                return
            if oldest.snapshot_id not in self.start.own:
                yield oldest
        # The snapshot itself may have expired since, while all that came after it are known.
        planned, parent = self.start.snapshot_id, None if oldest is None else oldest.parent_snapshot_id
        if planned is None and parent is not None:
            raise self.conflict(f"the first snapshots of {self.ref}, which came after it was planned, have expired")
        if planned != parent:
            raise self.conflict(
                f"snapshot {planned}, on which it was planned, is no longer in the history of {self.ref}"
            )

    def check_history(self, base: TableMetadata) -> None:
        """Fail if the version that was read is no longer in the history of the branch."""
        for _ in self.snapshots_since(base):
            continue

    def has_moved(self, base: TableMetadata) -> bool:
        """Return whether another writer has moved the branch since the plan; check its history, too."""
        return len(list(self.snapshots_since(base))) > 0

    def is_disturbed(self, base: TableMetadata, context: ReadContext, files: PlannedFiles) -> bool:
        """Return whether planned files may have been removed, or may have new deletes; compares two manifest lists.

        While the manifests that list them are unchanged, and no delete manifest was added, the files are unchanged.
        """
        if not self.has_moved(base):
            return False
        before, now = (load_manifests(context, s) for s in (self.plan.version.snapshot, base.ref_head(self.ref)))
        if before is None or now is None:
            return True
        paths = now.manifest_path.combine_chunks()
        listing = pc.unique(files.manifest_path)
        deletes = now.filter(pc.equal(now.content, DELETE_MANIFEST)).manifest_path
        known = pc.is_in(deletes, value_set=before.manifest_path.combine_chunks())
        return not (pc.all(pc.is_in(listing, value_set=paths)).as_py() and pc.all(known).as_py())

    def check_added_rows(self, base: TableMetadata, context: WriteContext) -> None:
        """Fail if rows were added since that the change would have read."""
        if self.isolation != SERIALIZABLE and self.keys is None:
            return
        since = [s for s in self.snapshots_since(base) if s.operation != Operation.REPLACE]
        if self.reads_whole_table and self.isolation == SERIALIZABLE and since:
            raise self.conflict(
                f"snapshot {since[0].snapshot_id} ({since[0].operation}) concurrently changed rows of the table, which "
                "a subquery reads"
            )
        added = plan_added_files(context.reading, base, since, self.plan)
        added = added if self.partitions is None else self.partitions.restrict(added)
        for snapshot in since:
            found = added.filter(pc.equal(added.snapshot_id, snapshot.snapshot_id))
            if found.num_rows and self._holds_read_rows(found, base, context.store):
                raise self.conflict(
                    f"snapshot {snapshot.snapshot_id} ({snapshot.operation}) concurrently added rows that it would "
                    f"have read, in {_some(found)}",
                    hint="run it again to see the new rows",
                )

    def check_deleted_rows(self, base: TableMetadata, context: WriteContext, files: PlannedFiles) -> None:
        """Fail if rows were deleted since from planned files, some of which are rewritten.

        Snapshots that replace files delete no row: they may rewrite the deletes of a file, but those were there before.
        """
        like = replace(self.plan, files=files)
        since = [s for s in self.snapshots_since(base) if s.operation != Operation.REPLACE] if files.num_rows else ()
        for snapshot in since:
            deletes = plan_added_deletes(context.reading, base, snapshot, like)
            if deletes.num_rows:
                raise self.conflict(
                    f"snapshot {snapshot.snapshot_id} ({snapshot.operation}) concurrently deleted rows of files that "
                    f"it rewrites, by {_some(deletes)}"
                )

    def conflict(self, why: str, *, hint: str = "run it again") -> ConcurrentChange:
        """Build the error for a conflict."""
        return ConcurrentChange(f"cannot {self.verb}: {why}", hint=f"Nothing was changed; {hint}")

    def rewrites_since(self, base: TableMetadata) -> list[Snapshot]:
        """Return the snapshots since the plan that only moved rows, or rewrote metadata; newest first."""
        return [s for s in self.snapshots_since(base) if s.operation == Operation.REPLACE]

    def missing(self, paths: Set[str], base: TableMetadata, context: ReadContext) -> ConcurrentChange:
        """Build the error for files that are no longer there: RowsMoved if their rows are in other files."""
        what = f"{len(paths)} planned file(s) were concurrently removed or rewritten, such as {min(paths)}"
        moved = frozenset().union(*(removed_by(context, s) for s in self.rewrites_since(base)))
        if paths <= moved:
            return RowsMoved(f"cannot {self.verb}: {what}", hint="Nothing was changed; run it again")
        return self.conflict(what)

    def _holds_read_rows(self, files: PlannedFiles, base: TableMetadata, store: Store) -> bool:
        """Check files for rows that the change would have read; files that are too large count as having some."""
        sure = pc.and_(files.must_match, pc.greater(files.record_count, 0))
        if self.keys is None and pc.any(sure).as_py():
            return True
        if files.total_bytes > MAX_BYTES_TO_LOOK_INTO:
            return True
        schema = with_metadata_columns(self.plan.version.schema)
        filter_columns = [schema.name_of(field_id) for field_id in columns_of(self.plan.where)]
        select = filter_columns if self.keys is None else self.keys.columns
        try:
            return any(
                batch.num_rows and (self.keys is None or (self.keys.find(batch) != NOT_FOUND).any())
                for reader, task in read_ahead(store, base, self.plan.tasks(files))
                for batch in reader.read(task, schema, select, residual(self.plan.where, task.residual_code))
            )
        except MissingFile:
            return True  # already removed: its rows are unknown


def removed_by(context: ReadContext, snapshot: Snapshot) -> frozenset[str]:
    """Return the data files that a snapshot removed."""
    manifests = load_manifests(context, snapshot)
    if manifests is None:
        return frozenset()
    is_own = manifests.added_snapshot_id.to_numpy() == snapshot.snapshot_id
    own = manifests.choose(is_own & is_of(manifests, DATA_MANIFEST))
    want = ManifestColumns(("status", "snapshot_id", "sequence_number", "file_path"))
    found = [entries.file_path.to_pylist() for _, entries in load_batches(context, own, want, (DELETED,))]
    return frozenset(path for paths in found for path in paths)


def _some(files: PlannedFiles | ManifestEntries) -> str:
    return ", ".join(files.file_path.to_pylist()[:SHOWN_FILES])
