"""A table: few verbs, each a few lines of delegation.

A handle follows the table: every verb works on the newest version. What a scan reads is fixed when it is made.
Raises NoSuchTable, SchemaMismatch, InvalidFilter, ConcurrentChange, CommitConflict, CommitStateUnknown, CorruptFile.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from icefield.arguments import check_arguments
from icefield.codec.metadata_statistics import decode_statistics
from icefield.commit.action import Target
from icefield.commit.evolve import EvolveTable
from icefield.commit.location import ChangeLocation
from icefield.commit.properties import ChangeProperties
from icefield.commit.replace import ReplaceTable
from icefield.commit.rewrite_manifests import RewriteManifests
from icefield.commit.statistics import RemoveStatisticsFiles, SetStatisticsFile
from icefield.commit.token import Token
from icefield.commit.upgrade import UpgradeTable
from icefield.engine.choose import EngineName
from icefield.errors import InvalidInput
from icefield.expr.ast import Predicate
from icefield.model.snapshot import MAIN, Snapshot
from icefield.model.statistics import PartitionStatisticsFile, StatisticsFile
from icefield.property_checks import check_new_properties
from icefield.scan.changes import find_span, load_changed_files
from icefield.scan.inspect import OF_THE_TABLE, open_metadata_table
from icefield.scan.inspect_source import Inspected
from icefield.scan.point import AsOf, find_point
from icefield.storage.location import parse_location
from icefield.storage.store import StaysInProcess
from icefield.table_adoption import Files, adopt_files
from icefield.table_changes import AppendScan
from icefield.table_compaction import compact
from icefield.table_definition import define_table
from icefield.table_delta import DELETE, delete_matching, no_rows, upsert
from icefield.table_evolution import TableEvolution
from icefield.table_history import TableHistory
from icefield.table_inspection import TableInspection
from icefield.table_scan import TableScan
from icefield.table_write import OVERWRITE, TableWrite


@check_arguments
class Table(TableHistory, StaysInProcess):
    """A handle on one table of a lake."""

    def at(self, branch: str) -> "Table":
        """Return a handle on a branch: it reads and writes there."""
        self._load().ref_head(branch)
        return Table(self._head, self._store, self._ambient, branch)

    def append(
        self,
        rows: object,
        *,
        token: Token | None = None,
        options: Mapping[str, str] | None = None,
        merge_schema: bool = False,
        engine: EngineName | None = None,
    ) -> Snapshot | None:
        """Add rows: a Spark DataFrame, or Arrow data in any form. Returns the snapshot, or None if there was no row.

        token: a name for this very change, or a StreamBatch; made again under it, the change is not made twice, and
        the first snapshot is returned, or None if that has expired. options: go before the table's write properties,
        for these rows only. merge_schema: columns that the rows have more are added to the table, and those that they
        have wider are widened, in the same commit. engine: `local` or `spark`; by default the lake's choice, or else
        Spark for a DataFrame and the local engine for Arrow data.
        """
        write = self._begin(token, options, engine)
        if (landed := write.landed) is not None:
            return landed.snapshot
        write, rows = write.merging(rows) if merge_schema else (write, rows)
        return write.append(rows)

    def overwrite(  # noqa: PLR0913 - all but two are keywords
        self,
        rows: object,
        where: Predicate | str | Any = None,
        *,
        files: Iterable[str] | None = None,
        token: Token | None = None,
        options: Mapping[str, str] | None = None,
        merge_schema: bool = False,
        check_rows: bool = True,
        engine: EngineName | None = None,
    ) -> Snapshot | None:
        """Replace the rows that match a filter, or all of them, by other rows, in one snapshot.

        Files that match whole are dropped by metadata alone; files that match in part are written again without the
        matching rows. files: replace these data files, by their locations, instead of rows that match. check_rows:
        refuse rows that do not match the filter themselves. The other parameters are those of `append`.
        """
        if files is not None and where is not None:
            raise InvalidInput("an overwrite goes by a filter or by files, not by both")
        write = self._begin(token, options, engine)
        if (landed := write.landed) is not None:
            return landed.snapshot
        write, rows = write.merging(rows) if merge_schema else (write, rows)
        if files is not None:
            return write.replace_named(rows, files, OVERWRITE)
        return write.replace_matching(rows, where, OVERWRITE, check_rows=check_rows)

    def overwrite_partitions(
        self,
        rows: object,
        *,
        token: Token | None = None,
        options: Mapping[str, str] | None = None,
        engine: EngineName | None = None,
    ) -> Snapshot | None:
        """Replace every partition that one of the rows belongs to, by these rows; others stay as they are."""
        write = self._begin(token, options, engine)
        return landed.snapshot if (landed := write.landed) else write.replace_partitions(rows)

    def upsert(
        self,
        rows: object,
        on: Sequence[str] | None = None,
        *,
        token: Token | None = None,
        engine: EngineName | None = None,
    ) -> Snapshot | None:
        """Replace rows by those that have the same key, and add those whose key is new, in one snapshot.

        rows: a Spark DataFrame or Arrow data, each key at most once. on: the key columns; the table's identifier fields
        if not given. What the rows do not name stays as it is in rows that are replaced, and gets its default in those
        that are added. engine: `local` or `spark`; by default the lake's choice, or else Spark for a DataFrame, and
        where much of the table must be read and a session is active.
        """
        write = self._begin(token, engine=engine)
        return landed.snapshot if (landed := write.landed) else upsert(write, rows, on)

    def delete(
        self, where: Predicate | str | Any, *, token: Token | None = None, engine: EngineName | None = None
    ) -> Snapshot | None:
        """Remove the rows that match a filter, in one snapshot; files that match whole go by metadata alone.

        engine: `local` or `spark`; by default the lake's choice, or else Spark where much must be read and a session
        is active.
        """
        write = self._begin(token, engine=engine)
        return landed.snapshot if (landed := write.landed) else delete_matching(write, where)

    def delete_files(self, files: Iterable[str], *, token: Token | None = None) -> Snapshot | None:
        """Remove data files from the table, by their locations, in one snapshot."""
        write = self._begin(token)
        return landed.snapshot if (landed := write.landed) else write.replace_named(no_rows(self.schema), files, DELETE)

    def compact(self, where: Predicate | str | Any = None, *, engine: EngineName | None = None) -> Snapshot | None:
        """Write small files, and files with deleted rows, together as fewer and larger ones; no row changes.

        Returns None if there is nothing to gain. Rows that others delete concurrently stay deleted. engine: as of
        `delete`.
        """
        return compact(self._begin(None, engine=engine), where)

    def rewrite_manifests(self) -> Snapshot | None:
        """Write small manifests together, so that planning opens fewer; None if there are not two of them."""
        action = RewriteManifests(self._target())
        metadata = self._head.commit([action])
        return metadata.snapshots.find(action.snapshot_id) if action.snapshot_id is not None else None

    def add_files(self, files: Files, *, partition: Mapping[str, object] | None = None) -> Snapshot | None:
        """Take in Parquet files that others wrote, where they lie; no row is read or copied.

        files: locations, or directories of Parquet files. Which partition a file belongs to is what `partition` says,
        else what its path says (`day=2026-01-01/…`), else what its statistics prove. A file whose columns do not fit,
        or that lies outside the lake's roots, is refused, and then nothing is taken in.
        """
        return adopt_files(self._head, self._store, self._target(), files, partition)

    def scan(
        self, where: Predicate | str | Any = None, select: Sequence[str] | None = None, as_of: AsOf | None = None
    ) -> TableScan:
        """Plan a read of the rows that match, with some columns or all, now or as of a snapshot id, time or ref."""
        metadata = self._load()
        scan = TableScan(self._store, self._head.name, metadata, self._point(metadata, as_of), where, select)
        note = partial(self._reading, metadata, as_of, scan.where)
        note(scan.schema.by_id)
        return scan.noting(note).using(self._head.sessions)

    def scan_appends(
        self,
        after: AsOf | None,
        until: AsOf | None = None,
        *,
        where: Predicate | str | Any = None,
        select: Sequence[str] | None = None,
    ) -> AppendScan:
        """Plan a read of the rows that appends brought after one version, up to and with another or the newest.

        after: a snapshot id, time or ref; None is the beginning. Other operations than appends are passed
        over, and rows that were deleted since are read all the same.
        """
        metadata = self._load()
        span = find_span(metadata, after, self._point(metadata, until))
        appends = AppendScan(self._store, self._head.name, metadata, span, where, select)
        self._reading(metadata, until, appends.where)
        return appends.using(self._head.sessions)

    def changed_files(self, after: AsOf | None, until: AsOf | None = None) -> pa.Table:
        """List the data and delete files that were added and removed between two versions, in all.

        after: a snapshot id, time or ref; None is the empty table. A file that came and went again is not told.
        """
        metadata = self._load()
        before = None if after is None else find_point(metadata, after).snapshot
        return load_changed_files(self._store, metadata, before, self._reading(metadata, until).snapshot)

    def inspect(
        self,
        name: str,
        *,
        where: Predicate | str | Any = None,
        select: Sequence[str] | None = None,
        as_of: AsOf | None = None,
    ) -> TableInspection:
        """Look inside the table: `files`, `entries`, `manifests`, `partitions`, `snapshots`, `refs` and more."""
        loaded = self._head.load()
        if as_of is not None and name.lower() in OF_THE_TABLE:
            raise InvalidInput(f"{name} is the same whatever version is looked at, so it takes no as_of")
        point = self._reading(loaded.metadata, as_of)
        source = Inspected(self._store, loaded.metadata, loaded.location, point)
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
        """Make this another table under its name, without rows; its history stays.

        Fails if the table was changed in any way meanwhile. Together with a write in a transaction, readers see the old
        table or the new one with its rows. Properties are added to those that there are.
        """
        base = self._load()
        version = base.format_version if format_version is None else format_version
        definition = define_table(schema, partition_by, order_by, properties, version)
        self._head.commit([ReplaceTable(definition, base)])

    @contextmanager
    def evolve(self) -> Iterator[TableEvolution]:
        """Change columns, partition fields and order in a `with` block, as one commit; no data file is rewritten."""
        change = TableEvolution(self._load())
        yield change
        if change.steps:
            self._head.commit([EvolveTable(change.steps)])

    def upgrade(self, format_version: int = 3) -> None:
        """Raise the table to a later format version, in place and for good; older readers can no longer read it."""
        if self._load().format_version != format_version:
            self._head.commit([UpgradeTable(format_version)])

    def count(self, *, engine: EngineName | None = None) -> int:
        """Count all rows."""
        return self.scan().count(engine=engine)

    def statistics(self) -> list[StatisticsFile]:
        """List the files of statistics that snapshots have."""
        return [decode_statistics(entry) for entry in self.metadata.statistics]

    def set_statistics(self, file: StatisticsFile | PartitionStatisticsFile) -> None:
        """Say which file holds statistics of a snapshot; another one of the same kind is forgotten."""
        self._head.commit([SetStatisticsFile(file)])

    def remove_statistics(self, snapshot_id: int) -> None:
        """Forget the statistics of a snapshot; the files stay."""
        self._head.commit([RemoveStatisticsFiles(snapshot_id)])

    def set_location(self, location: str) -> None:
        """Say where new files go; those that are there stay where they are."""
        place = str(parse_location(location)).rstrip("/")
        self._store.check(place)
        self._head.commit([ChangeLocation(place)])

    def set_properties(self, updates: Mapping[str, str], *, removals: Iterable[str] = ()) -> None:
        """Set and remove properties, in one commit.

        Warns of properties that have no effect here, and refuses those that are misspelt or promise what icefield
        does not do.
        """
        check_new_properties(updates, stacklevel=4)
        self._head.commit([ChangeProperties(dict(updates), tuple(removals))])

    def __repr__(self) -> str:
        return f"Table({self.name!r})" if self._ref == MAIN else f"Table({self.name!r}).at({self._ref!r})"

    def _begin(
        self, token: Token | None, options: Mapping[str, str] | None = None, engine: EngineName | None = None
    ) -> TableWrite:
        write = TableWrite.begin(self._head, self._store, self._ambient, self._target(token))
        return replace(write, options=options or {}, asked=engine)

    def _target(self, token: Token | None = None) -> Target:
        return Target(self._ref, token)
