"""A table: few verbs, each a few lines of delegation.

A handle follows the table: every verb works on the newest version. What a scan reads is fixed when it is made.
Raises NoSuchTable, SchemaMismatch, InvalidFilter, ConcurrentChange, CommitConflict, CommitStateUnknown, CorruptFile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from icefield.arguments import check_arguments
from icefield.compaction.options import BIN_PACK, CLUSTER, SORT, CompactionRequest
from icefield.deferred import deferred_imports
from icefield.dml.verbs import DELETE, OVERWRITE
from icefield.errors import InvalidInput
from icefield.model.snapshot import MAIN, Operation, Snapshot
from icefield.storage.store import StaysInProcess
from icefield.table.fsck import TableChecks
from icefield.table.reading.reads import TableReads
from icefield.table.rewrites import TableRewrites
from icefield.table.statistics import TableStatistics

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.commit.actions.evolve import EvolveTable, UpgradeTable
    from icefield.commit.actions.location import ChangeLocation
    from icefield.commit.actions.properties import ChangeProperties
    from icefield.commit.actions.replace import ReplaceTable
    from icefield.commit.actions.rewrite_manifests import RewriteManifests
    from icefield.commit.validate.idempotency_key import IdempotencyKey
    from icefield.compaction.compact import Compaction, OnProgress
    from icefield.compaction.result import CompactionResult
    from icefield.dml.add_files import Files, add_files
    from icefield.dml.evolution import TableEvolution
    from icefield.dml.head import preview
    from icefield.engine.choose import EngineName
    from icefield.engine.rows import given_rows
    from icefield.expr.parse.ast import Predicate
    from icefield.inspect.metadata_tables import OF_THE_TABLE, open_metadata_table
    from icefield.inspect.source import Inspected
    from icefield.model.metadata import TableMetadata
    from icefield.plan.changes import find_snapshot_range, load_changed_files
    from icefield.plan.versions import AsOf, resolve_version
    from icefield.storage.location import parse_location
    from icefield.table.changes import AppendScan, SnapshotChange, scan_change
    from icefield.table.definition import check_properties, define_table
    from icefield.table.inspection import TableInspection
    from icefield.table.read_lease import ReadLease, find_committed
    from icefield.table.scan import TableScan
    from icefield.upkeep.adding import check_addable


@check_arguments
class Table(TableRewrites, TableChecks, TableStatistics, TableReads, StaysInProcess):
    """A handle on one table: reads, writes and changes it.

    `Lake.table` and `Lake.create_table` return one. Each call works on the newest version of the table; a scan stays on
    the version that it was made from.
    """

    def at(self, branch: str) -> Table:
        """Return a handle on a branch, which reads and writes there."""
        self._load().ref_head(branch)
        return Table(self._head, branch, self._notes)

    def append(
        self,
        rows: object,
        *,
        idempotency_key: IdempotencyKey | None = None,
        options: Mapping[str, str] | None = None,
        merge_schema: bool = False,
        engine: EngineName | None = None,
    ) -> Snapshot | None:
        """Append rows. Return the new snapshot, or None if there were no rows.

        Args:
            rows: A Spark DataFrame; Arrow data: a table, batch, reader, Dataset, or any object with
                `__arrow_c_stream__`, such as frames of pandas and Polars, and scans; or a list of dicts.
            idempotency_key: A string, or a `StreamBatch`. If a change has landed under this key, nothing is written and
                its snapshot is returned, or None if that has expired.
            options: Write properties for this call only. They override the table's properties.
            merge_schema: Add columns that only the rows have, and widen narrower ones, in the same commit.
            engine: `local` or `spark`. By default the engine of `Lake.use`, else Spark for a DataFrame and the local
                engine for Arrow data.
        """
        write = self._begin(idempotency_key, options, engine)
        if (landed := write.landed) is not None:
            return landed.snapshot
        rows = given_rows(rows, lambda: write.base.schema)
        write, rows = write.merging(rows) if merge_schema else (write, rows)
        return self._kept_up(write.append(rows))

    def overwrite(  # noqa: PLR0913 - all but two are keywords
        self,
        rows: object,
        where: Predicate | str | Any = None,
        *,
        files: Iterable[str] | None = None,
        idempotency_key: IdempotencyKey | None = None,
        options: Mapping[str, str] | None = None,
        merge_schema: bool = False,
        check_rows: bool = True,
        engine: EngineName | None = None,
    ) -> Snapshot | None:
        """Replace the rows that match a filter, or all rows, in one snapshot.

        Files in which all rows match are dropped without reading them. Files in which some rows match are rewritten.

        Args:
            rows: The new rows, as in `append`.
            where: A filter. Without one, all rows are replaced.
            files: Replace these data files, named by location, instead of rows that match a filter.
            idempotency_key: As in `append`.
            options: As in `append`.
            merge_schema: As in `append`.
            check_rows: Refuse new rows that do not match the filter.
            engine: As in `append`.
        """
        if files is not None and where is not None:
            raise InvalidInput("an overwrite goes by a filter or by files, not by both")
        rows = given_rows(rows, lambda: self.schema)

        def run() -> Snapshot | None:
            write = self._begin(idempotency_key, options, engine)
            if (landed := write.landed) is not None:
                return landed.snapshot
            write, taken = write.merging(rows) if merge_schema else (write, rows)
            if files is not None:
                return write.replace_named(taken, files, OVERWRITE)
            return write.replace_matching(taken, where, OVERWRITE, check_rows=check_rows)

        return self._kept_up(run()) if files is not None else self._repeat(rows, run)

    def overwrite_partitions(
        self,
        rows: object,
        *,
        idempotency_key: IdempotencyKey | None = None,
        options: Mapping[str, str] | None = None,
        engine: EngineName | None = None,
    ) -> Snapshot | None:
        """Replace every partition that a row belongs to, in one snapshot. Other partitions stay as they are.

        The parameters are those of `append`.
        """
        rows = given_rows(rows, lambda: self.schema)

        def run() -> Snapshot | None:
            write = self._begin(idempotency_key, options, engine)
            return landed.snapshot if (landed := write.landed) else write.replace_partitions(rows)

        return self._repeat(rows, run)

    def delete_files(self, files: Iterable[str], *, idempotency_key: IdempotencyKey | None = None) -> Snapshot | None:
        """Remove data files, named by location, from the table in one snapshot."""
        write = self._begin(idempotency_key)
        return landed.snapshot if (landed := write.landed) else write.replace_named(None, files, DELETE)

    def compact(  # noqa: PLR0913 - all but one are keywords
        self,
        where: Predicate | str | Any = None,
        *,
        strategy: str | None = None,
        cluster_by: Sequence[str] = (),
        order_by: Sequence[str] = (),
        dry_run: bool = False,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        engine: EngineName | None = None,
    ) -> CompactionResult:
        """Rewrite files that are too small, too large, or have many deleted rows. No row changes. Return what was done.

        Files are rewritten in groups, several of which are one commit; what was committed need not be done again. Other
        writers do not fail for it, and a group that another writer changes first is left out.

        Args:
            where: Look only at files that may hold rows which match this filter.
            strategy: `bin-pack` combines small files in levels; `sort` rewrites all files by the table's sort order;
                `cluster` by the columns of `cluster_by`. By default what the order asks for, or `bin-pack`.
            cluster_by: Two to four columns. Rows are put along a Hilbert curve, so that a filter on any of the columns
                reads few files.
            order_by: With `sort`, the order of this call instead of the table's, such as `["day", "id desc"]`.
            dry_run: Change nothing; return the plan.
            options: Thresholds for this call, such as `min-input-files`, instead of the table's properties
                `icefield.compaction.*`; write options, such as `target-file-size-bytes`; and `rewrite-all`, which
                rewrites every file.
            on_progress: Is called after each group with a `CompactionProgress`.
            engine: As in `delete`.
        """
        chosen = strategy or (CLUSTER if cluster_by else SORT if order_by else BIN_PACK)
        request = CompactionRequest(where, chosen, tuple(cluster_by), options or {}, tuple(order_by))
        compaction = Compaction(
            lambda: self._begin(None, engine=engine), request, on_progress or (lambda _progress: None)
        )
        return compaction.dry_run() if dry_run else compaction.run()

    def rewrite_manifests(self, *, dry_run: bool = False) -> Snapshot | None:
        """Rewrite manifests, clustered by partition and without deleted entries. Return None if all are good.

        No data file changes. The summary of the snapshot counts what was replaced, created and kept. The target size
        follows the table, unless `commit.manifest.target-size-bytes` is set. Small manifests are also merged by commits
        from time to time (`commit.manifest.min-count-to-merge`).

        Args:
            dry_run: Change nothing; return the snapshot that would be committed.
        """
        action = RewriteManifests(self._target())
        if dry_run:
            return preview(action, self._head)
        metadata = self._head.commit([action])
        return metadata.snapshots.find(action.snapshot_id) if action.snapshot_id is not None else None

    def add_files(self, files: Files, *, partition: Mapping[str, object] | None = None) -> Snapshot | None:
        """Add Parquet files that another program wrote, in their place. No row is read or copied.

        A file whose columns do not fit the table, or that is outside the lake's roots, is refused, and nothing is
        added.

        Args:
            files: Locations of files, or of directories with Parquet files.
            partition: The partition values of all files. By default they come from the path (`day=2026-01-01/…`), else
                from statistics if these prove a single value.
        """
        check = partial(check_addable, self._head)
        return self._kept_up(add_files(self._head, self._context.store, self._target(), files, partition, check))

    def scan(
        self, where: Predicate | str | Any = None, select: Sequence[str] | None = None, as_of: AsOf | None = None
    ) -> TableScan:
        """Plan a read of the rows that match a filter.

        Args:
            where: A filter: SQL text, an expression built from `col`, or a Spark Column. By default all rows are read.
            select: The columns to read, also inside structs (`address.city`), and metadata columns such as `_file`.
            as_of: The version to read: a snapshot id, a time, or the name of a branch or tag. By default the newest.
        """
        began = self._ambient.monotonic()
        metadata = self._load()
        version = self._point(metadata, as_of)
        scan = TableScan(self._context, self._head.name, metadata, version, where, select)
        note = partial(self._reading, metadata, as_of, scan.where)
        note(scan.schema.by_id)
        self._protect(scan, metadata, [version.snapshot] if version.snapshot else [], began)
        scan.pinning(lambda tag, snapshot_id: self.create_tag(tag, at=snapshot_id))
        return scan.noting(note).using(self._head.sessions)

    def scan_appends(
        self,
        after: AsOf | None,
        until: AsOf | None = None,
        *,
        where: Predicate | str | Any = None,
        select: Sequence[str] | None = None,
    ) -> AppendScan:
        """Plan a read of the rows that were appended after one version, up to and including another.

        Snapshots of other operations are skipped. Rows that were deleted later are read too.

        Args:
            after: A snapshot id, a time, or a branch or tag; None reads from the first snapshot.
            until: The last version to read. By default the newest.
            where: A filter, as in `scan`.
            select: The columns to read, as in `scan`.
        """
        began = self._ambient.monotonic()
        metadata = self._load()
        snapshot_range = find_snapshot_range(metadata, after, self._point(metadata, until))
        appends = AppendScan(self._context, self._head.name, metadata, snapshot_range, where, select)
        self._reading(metadata, until, appends.where)
        self._protect(appends, metadata, snapshot_range.snapshots, began)
        return appends.using(self._head.sessions)

    def scan_changes(self, after: AsOf | None, until: AsOf | None = None) -> list[SnapshotChange]:
        """Plan reads of what each snapshot changed, after one version, up to and including another.

        Of every snapshot the files are read that it added, removed, or deleted rows of. Rewrites are left out: they
        change no row.

        Args:
            after: A snapshot id, a time, or a branch or tag; None reads from the first snapshot.
            until: The last version to read. By default the newest.
        """
        began = self._ambient.monotonic()
        metadata = self._load()
        changes = []
        for snapshot in find_snapshot_range(metadata, after, self._reading(metadata, until)).snapshots:
            if snapshot.operation != Operation.REPLACE:
                scans = scan_change(self._context, self._head.name, metadata, snapshot)
                for scan in (each for each in scans if each is not None):
                    self._protect(scan, metadata, list(metadata.ancestors(snapshot))[:2], began)
                    scan.using(self._head.sessions)
                changes.append(SnapshotChange(snapshot, *scans))
        return changes

    def changed_files(self, after: AsOf | None, until: AsOf | None = None) -> pa.Table:
        """List the data and delete files that were added and removed between two versions, as an Arrow table.

        Files that were added and removed again in between are left out.

        Args:
            after: A snapshot id, a time, or a branch or tag; None is the empty table.
            until: The later version. By default the newest.
        """
        metadata = self._load()
        before = None if after is None else resolve_version(metadata, after).snapshot
        return load_changed_files(self._context, metadata, before, self._reading(metadata, until).snapshot)

    def inspect(
        self,
        name: str,
        *,
        where: Predicate | str | Any = None,
        select: Sequence[str] | None = None,
        as_of: AsOf | None = None,
    ) -> TableInspection:
        """Open a metadata table: `files`, `entries`, `manifests`, `partitions`, `snapshots`, `refs` and others.

        Args:
            name: The name of the metadata table, as in Iceberg's Spark runtime.
            where: A filter on the columns of the metadata table.
            select: The columns to read.
            as_of: The version to inspect, for metadata tables that differ between versions.
        """
        loaded = self._head.load()
        if as_of is not None and name.lower() in OF_THE_TABLE:
            raise InvalidInput(f"{name} does not depend on the version, so it does not accept as_of")
        version = self._reading(loaded.metadata, as_of)
        source = Inspected(self._context, loaded.metadata, loaded.location, version)
        return TableInspection(open_metadata_table(name, source), where, select).using(self._head.sessions)

    def replace(
        self,
        schema: object,
        *,
        partition_by: Sequence[str] = (),
        order_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        format_version: int | None = None,
    ) -> None:
        """Replace the table by an empty one with another schema, under the same name. The history is kept.

        Fail with ConcurrentChange if the table was changed concurrently in any way. If you replace and write in one
        transaction, readers see the old table, or the new one with its rows. Properties are added to the existing ones.
        The parameters are those of `Lake.create_table`.
        """
        base = self._load()
        version = base.format_version if format_version is None else format_version
        definition = define_table(schema, partition_by, order_by, properties, version)
        self._head.commit([ReplaceTable(definition, base)])

    @contextmanager
    def evolve(self) -> Iterator[TableEvolution]:
        """Change columns, partition fields and sort order in a `with` block, as one commit.

        No data file is rewritten. The block gets a `TableEvolution`.
        """
        change = TableEvolution(self._load())
        yield change
        if change.steps:
            self._head.commit([EvolveTable(change.steps)])

    def upgrade_format_version(self, format_version: int = 3) -> None:
        """Upgrade the table to a later format version. There is no way back, and older readers cannot read it."""
        if self._load().format_version != format_version:
            self._head.commit([UpgradeTable(format_version)])

    def set_location(self, location: str) -> None:
        """Set the location for new files. Existing files stay where they are."""
        place = str(parse_location(location)).rstrip("/")
        self._context.store.check(place)
        self._head.commit([ChangeLocation(place)])

    def set_properties(self, updates: Mapping[str, str], *, removals: Iterable[str] = ()) -> None:
        """Set and remove table properties, in one commit.

        Warn about properties that have no effect here. Refuse keys that look misspelled, and properties that ask for
        something that Icefield does not do.
        """
        check_properties(updates, self._load().schema)
        self._head.commit([ChangeProperties(dict(updates), tuple(removals))])

    def _protect(
        self, scan: TableScan | AppendScan, metadata: TableMetadata, snapshots: Iterable[Snapshot], began: float
    ) -> None:
        """Protect what a scan reads; for snapshots that only a transaction sees, those that they started from."""
        committed, pinned_at = self._head.committed(metadata), self._head.pinned_at
        found = (find_committed(committed, metadata, snapshot) for snapshot in snapshots)
        wanted = [each for each in found if each is not None and not self._head.holds(each)]
        since = began if pinned_at is None else pinned_at
        scan.leasing(ReadLease(self._head.backend, self._head.name, committed, wanted, since))

    def __repr__(self) -> str:
        return f"Table({self.name!r})" if self._ref == MAIN else f"Table({self.name!r}).at({self._ref!r})"
