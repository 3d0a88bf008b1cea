"""A table: few verbs, each a few lines of delegation.

A handle follows the table: every verb works on the newest version. What a scan reads is fixed when it is made.
Raises NoSuchTable, SchemaMismatch, InvalidFilter, ConcurrentChange, CommitConflict, CommitStateUnknown, CorruptFile.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from icefield.ambient import Ambient
from icefield.commit.action import Action, Target, Workshop
from icefield.commit.append import AppendFiles
from icefield.commit.evolve import EvolveTable
from icefield.commit.loop import remove_quietly
from icefield.commit.manifests import ManifestShape
from icefield.commit.name_mapping import EnsureNameMapping
from icefield.commit.overwrite import OverwriteFiles
from icefield.commit.properties import ChangeProperties
from icefield.commit.refs import CreateRef, DropRef, FastForward, RollBack, make_ref
from icefield.commit.token import check_token, find_commit
from icefield.commit.upgrade import UpgradeTable
from icefield.errors import IcefieldError, NoSuchSnapshot
from icefield.expr.ast import Predicate
from icefield.expr.bind import bind
from icefield.expr.bound import columns_of
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import MAIN, RefKind, Snapshot, SnapshotLogEntry, SnapshotRef
from icefield.parquet.conform import check_arrow_schema
from icefield.parquet.read import table_reader
from icefield.parquet.write import DataWriter, WritePlan, plan_write
from icefield.properties import DELETE_ISOLATION, OVERWRITE_ISOLATION, Property
from icefield.rows import arrow_batches, is_spark, load_spark_engine
from icefield.scan.plan import ScanPlan, plan_scan
from icefield.scan.point import AsOf, find_point
from icefield.storage.store import Store
from icefield.table_adoption import Files, describe_files
from icefield.table_evolution import TableEvolution
from icefield.table_head import TableHead
from icefield.table_scan import TableScan
from icefield.types.arrow import arrow_schema
from icefield.types.schema import Schema

LOCAL_TASK = "00000-0"


class Table:
    """A handle on one table of a lake."""

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
        """The newest metadata."""
        return self.refresh()

    @property
    def metadata_location(self) -> str:
        """Where the newest metadata file is; other engines can open the table from it."""
        return self._head.load().location

    @property
    def location(self) -> str:
        """The directory of the table's files."""
        return self.metadata.location

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema

    @property
    def spec(self) -> PartitionSpec:
        """How new files are partitioned."""
        return self.metadata.spec

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self.metadata.properties)

    def refresh(self) -> TableMetadata:
        """Load the newest metadata, if it moved."""
        return self._head.load().metadata

    def at(self, branch: str) -> "Table":
        """Return a handle on a branch: it reads and writes there."""
        self.refresh().ref_head(branch)
        return Table(self._head, self._store, self._ambient, branch)

    def append(self, rows: object, *, token: str | None = None) -> Snapshot | None:
        """Add rows: a Spark DataFrame, or Arrow data in any form. Returns the snapshot, or None if there was no row.

        token: a name for this very change; made again under it, the change is not made twice, and the first snapshot
        is returned.
        """
        base, target = self.refresh(), self._target(token)
        if done := find_commit(base, token):
            return done
        files = self._write(rows, base, ())
        if files.num_rows == 0:
            return None
        return self._commit(AppendFiles(files, base.spec, base.schema, target), files, target)

    def overwrite(
        self, rows: object, where: Predicate | str | None = None, *, token: str | None = None
    ) -> Snapshot | None:
        """Replace the rows that match a filter, or all of them, by other rows, in one snapshot.

        Files that match whole are dropped by metadata alone; files that match in part are written again without the
        matching rows.
        """
        return self._replace(rows, where, OVERWRITE_ISOLATION, token)

    def delete(self, where: Predicate | str, *, token: str | None = None) -> Snapshot | None:
        """Remove the rows that match a filter, in one snapshot; files that match whole go by metadata alone."""
        return self._replace(arrow_schema(self.schema).empty_table(), where, DELETE_ISOLATION, token)

    def add_files(self, files: Files, *, partition: Mapping[str, object] | None = None) -> Snapshot | None:
        """Take in Parquet files that others wrote, where they lie; no row is read or copied.

        files: locations, or directories of Parquet files. Which partition a file belongs to is what `partition` says,
        else what its path says (`day=2026-01-01/…`), else what its statistics prove. A file whose columns do not fit,
        or that lies outside the lake's roots, is refused, and then nothing is taken in.
        """
        base = self.refresh()
        adopted = describe_files(self._store, base, files, partition)
        if adopted.columns.num_rows == 0:
            return None
        append = AppendFiles(adopted.columns, base.spec, base.schema, self._target())
        # The files are not ours: they stay, whatever becomes of the commit.
        actions: list[Action] = [append] if adopted.have_ids else [EnsureNameMapping(), append]
        return self._head.commit(actions).ref_head(self._ref)

    def scan(
        self, where: Predicate | str | None = None, select: Sequence[str] | None = None, as_of: AsOf | None = None
    ) -> TableScan:
        """Plan a read of the rows that match, with some columns or all, now or as of a snapshot id, time or ref."""
        metadata = self.refresh()
        point = find_point(metadata, self._ref if as_of is None else as_of)
        return TableScan(self._store, self._head.name, metadata, point, where, select)

    @contextmanager
    def evolve(self) -> Iterator[TableEvolution]:
        """Change columns, partition fields and order in a `with` block, as one commit; no data file is rewritten."""
        change = TableEvolution(self.refresh())
        yield change
        if change.steps:
            self._head.commit([EvolveTable(change.steps)])

    def upgrade(self, format_version: int = 3) -> None:
        """Raise the table to a later format version in place: no data file and no manifest is written anew.

        Readers that do not know the version can no longer read the table, and there is no way back.
        """
        if self.refresh().format_version != format_version:
            self._head.commit([UpgradeTable(format_version)])

    def count(self) -> int:
        """Count all rows."""
        return self.scan().count()

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

    def set_properties(self, updates: Mapping[str, str], *, removals: Iterable[str] = ()) -> None:
        """Set and remove properties, in one commit."""
        self._head.commit([ChangeProperties(dict(updates), tuple(removals))])

    def __repr__(self) -> str:
        return f"Table({self.name!r})" if self._ref == MAIN else f"Table({self.name!r}).at({self._ref!r})"

    def _replace(
        self, rows: object, where: Predicate | str | None, isolation: Property[str], token: str | None
    ) -> Snapshot | None:
        base, target = self.refresh(), self._target(token)
        if done := find_commit(base, token):
            return done
        plan = plan_scan(self._store, base, find_point(base, self._ref), bind(where, base.schema))
        if not is_spark(rows):
            plan = self._touched(plan, base)
        files = self._write(rows, base, [plan])
        level = isolation.read(base.properties)
        action = OverwriteFiles(files, ManifestShape(base.schema, base.spec), plan, target, isolation=level)
        if action.changes_nothing:
            return None
        return self._commit(action, files, target)

    def _create_ref(self, name: str, kind: RefKind, at: AsOf | None, retention: Mapping[str, int]) -> None:
        snapshot = find_point(self.refresh(), self._ref if at is None else at).snapshot
        if snapshot is None:
            raise NoSuchSnapshot(f"cannot make {name!r}: the table has no snapshot yet", hint="Write to it first")
        self._head.commit([CreateRef(name, make_ref(snapshot.snapshot_id, kind, retention))])

    def _target(self, token: str | None = None) -> Target:
        if token is not None:
            check_token(token)
        return Target(self._ref, token)

    def _write(self, rows: object, base: TableMetadata, replaced: Sequence[ScanPlan]) -> pa.Table:
        """Write rows, and what is left of files that are replaced in part, to new data files."""
        moves_rows = any(plan.partial_files.num_rows for plan in replaced)
        plan = plan_write(base, self._ambient.random_uuid().hex, moves_rows=moves_rows)
        if is_spark(rows):
            return load_spark_engine().write(rows, plan, base, self._store, replaced)
        return self._write_arrow(rows, plan, base, replaced)

    def _write_arrow(
        self, rows: object, plan: WritePlan, base: TableMetadata, replaced: Sequence[ScanPlan]
    ) -> pa.Table:
        schema, batches = arrow_batches(rows)
        check_arrow_schema(schema, base.schema)
        writer = DataWriter(plan, self._store, LOCAL_TASK)
        try:
            for batch in chain(batches, self._rows_that_stay(base, plan.schema, replaced)):
                writer.write(batch)
            return writer.close()
        except BaseException:
            writer.abort()
            raise

    def _touched(self, plan: ScanPlan, base: TableMetadata) -> ScanPlan:
        """Leave files out of a plan of which no row matches: they need not be written again."""
        reader = table_reader(self._store, base)
        judged = [plan.point.schema.name_of(field_id) for field_id in columns_of(plan.where)]
        partial = plan.partial_files
        hit = [
            any(batch.num_rows for batch in reader.read(task, plan.point.schema, judged, plan.where))
            for task in plan.tasks(partial)
        ]
        return replace(plan, files=pa.concat_tables([plan.whole_files, partial.filter(pa.array(hit, pa.bool_()))]))

    def _rows_that_stay(
        self, base: TableMetadata, schema: Schema, replaced: Iterable[ScanPlan]
    ) -> Iterator[pa.RecordBatch]:
        reader = table_reader(self._store, base)
        for plan in replaced:
            for task in plan.tasks(plan.partial_files):
                yield from reader.read_rest(task, schema, plan.where)

    def _commit(self, action: AppendFiles | OverwriteFiles, files: pa.Table, target: Target) -> Snapshot | None:
        paths = files.column("file_path").to_pylist()
        try:
            action.prepare(self.refresh(), Workshop(self._store, self._ambient))
        except IcefieldError as error:
            if error.cleanable:
                remove_quietly(self._store, [*paths, *action.reusable_files()])
            raise
        metadata = self._head.commit([action], paths)
        made = metadata.ref_head(self._ref) if target.token is None else find_commit(metadata, target.token)
        if made is not None and target.token is not None and made.snapshot_id != action.snapshot_id:
            # Another run of the same change came first, and nothing refers to what was written for this one.
            remove_quietly(self._store, [*paths, *action.reusable_files()])
        return made
