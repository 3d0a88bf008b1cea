"""A table: few verbs, each a few lines of delegation.

A handle follows the table: every verb works on the newest version. What a scan reads is fixed when it is made.
Raises NoSuchTable, SchemaMismatch, InvalidFilter, ConcurrentChange, CommitConflict, CommitStateUnknown, CorruptFile.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

import pyarrow as pa

from icefield.ambient import Ambient
from icefield.catalog.catalog import Catalog
from icefield.commit.action import Action
from icefield.commit.append import AppendFiles
from icefield.commit.evolve import EvolveTable
from icefield.commit.load import load_table_metadata
from icefield.commit.loop import Committer, remove_quietly
from icefield.commit.name_mapping import EnsureNameMapping
from icefield.commit.overwrite import OverwriteFiles
from icefield.commit.upgrade import UpgradeTable
from icefield.errors import IcefieldError, NoSuchTable
from icefield.expr.ast import Predicate
from icefield.expr.bind import bind
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import MAIN, Snapshot, SnapshotLogEntry, SnapshotRef
from icefield.parquet.conform import check_arrow_schema
from icefield.parquet.read import table_reader
from icefield.parquet.write import DataWriter, WritePlan, plan_write
from icefield.rows import arrow_batches, is_spark, load_spark_engine
from icefield.scan.plan import ScanPlan, plan_scan
from icefield.scan.point import AsOf, find_point
from icefield.storage.store import Store
from icefield.table_adoption import Files, describe_files
from icefield.table_evolution import TableEvolution
from icefield.table_scan import TableScan
from icefield.types.schema import Schema

LOCAL_TASK = "00000-0"


class Table:
    """A handle on one table of a lake."""

    def __init__(self, catalog: Catalog, store: Store, ambient: Ambient, name: TableName) -> None:
        self._catalog = catalog
        self._store = store
        self._ambient = ambient
        self._name = name
        self._location: str | None = None
        self._metadata: TableMetadata | None = None

    @property
    def name(self) -> str:
        """The full name, such as `shop.orders`."""
        return str(self._name)

    @property
    def metadata(self) -> TableMetadata:
        """The newest metadata."""
        return self.refresh()

    @property
    def metadata_location(self) -> str:
        """Where the newest metadata file is; other engines can open the table from it."""
        self.refresh()
        assert self._location is not None
        return self._location

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
        location = self._catalog.pointer(self._name)
        if self._metadata is None or location != self._location:
            loaded = load_table_metadata(self._store, location)
            if self._metadata is not None and not loaded.is_table(self._metadata.table_uuid):
                raise NoSuchTable(f"table {self.name} was dropped and made anew meanwhile", hint="Open it again")
            self._metadata, self._location = loaded, location
        return self._metadata

    def append(self, rows: object) -> Snapshot | None:
        """Add rows: a Spark DataFrame, or Arrow data in any form. Returns the snapshot, or None if there was no row."""
        base = self.refresh()
        files = self._write(rows, base, ())
        if files.num_rows == 0:
            return None
        return self._commit(AppendFiles(files, base.spec, base.schema), files)

    def overwrite(self, rows: object, where: Predicate | str | None = None) -> Snapshot | None:
        """Replace the rows that match a filter, or all of them, by other rows, in one snapshot.

        Files that match whole are dropped by metadata alone; files that match in part are written again without the
        matching rows.
        """
        base = self.refresh()
        plan = plan_scan(self._store, base, find_point(base, None), bind(where, base.schema))
        files = self._write(rows, base, [plan])
        action = OverwriteFiles(files, base.spec, base.schema, plan)
        if action.changes_nothing:
            return None
        return self._commit(action, files)

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
        append = AppendFiles(adopted.columns, base.spec, base.schema)
        # The files are not ours: they stay, whatever becomes of the commit.
        actions: list[Action] = [append] if adopted.have_ids else [EnsureNameMapping(), append]
        return self._commit_actions(actions).ref_head(MAIN)

    def scan(
        self, where: Predicate | str | None = None, select: Sequence[str] | None = None, as_of: AsOf | None = None
    ) -> TableScan:
        """Plan a read of the rows that match, with some columns or all, now or as of a snapshot id, time or ref."""
        metadata = self.refresh()
        return TableScan(self._store, self._name, metadata, find_point(metadata, as_of), where, select)

    @contextmanager
    def evolve(self) -> Iterator[TableEvolution]:
        """Change columns, partition fields and order in a `with` block, as one commit; no data file is rewritten."""
        change = TableEvolution(self.refresh())
        yield change
        if change.steps:
            self._commit_actions([EvolveTable(change.steps)])

    def upgrade(self, format_version: int = 3) -> None:
        """Raise the table to a later format version in place: no data file and no manifest is written anew.

        Readers that do not know the version can no longer read the table, and there is no way back.
        """
        if self.refresh().format_version != format_version:
            self._commit_actions([UpgradeTable(format_version)])

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

    def __repr__(self) -> str:
        return f"Table({self.name!r})"

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

    def _rows_that_stay(
        self, base: TableMetadata, schema: Schema, replaced: Iterable[ScanPlan]
    ) -> Iterator[pa.RecordBatch]:
        reader = table_reader(self._store, base)
        for plan in replaced:
            for task in plan.tasks(plan.partial_files):
                yield from reader.read_rest(task, schema, plan.where)

    def _commit(self, action: Action, files: pa.Table) -> Snapshot | None:
        try:
            return self._commit_actions([action]).ref_head(MAIN)
        except IcefieldError as error:
            if error.cleanable:
                remove_quietly(self._store, files.column("file_path").to_pylist())
            raise

    def _commit_actions(self, actions: Sequence[Action]) -> TableMetadata:
        committer = Committer(self._catalog, self._store, self._ambient, self._name)
        committed = committer.commit(actions, self.refresh().table_uuid)
        self._metadata, self._location = committed.metadata, committed.location
        return committed.metadata
