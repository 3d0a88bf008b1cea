"""What distinguishes two versions of a table: rows, files, columns, properties, the partition spec.

Only files that one of the versions does not have, or has with other deletes, are read. Rows that were only moved to
another file are in neither side: they are found by row maps, row ids and values, as for a publish.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from icefield.cache.reading import ReadContext
from icefield.commit.load import load_table_metadata
from icefield.commit.replay.difference import Difference, find_difference
from icefield.commit.replay.net_rows import NetRows, find_net_rows
from icefield.commit.replay.row_ids import Lost
from icefield.commit.replay.rows import Side
from icefield.commit.snapshot.moved_rows import load_row_maps
from icefield.commit.validate.ancestry import find_rewrites, only_in
from icefield.errors import MissingFile
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.read_ahead import read_ahead
from icefield.parquet.read.task import FileTask
from icefield.plan.changes import ADDED, REMOVED, load_changed_files
from icefield.types.arrow import arrow_schema
from icefield.types.schema import Schema


@dataclass(frozen=True)
class VersionDiff:
    """What distinguishes two versions; `Table.diff` returns one. Rows are read when they are asked for.

    Attributes:
        before: The first snapshot; None is the empty table.
        after: The second one.
    """

    context: ReadContext
    metadata: TableMetadata
    before: Snapshot | None
    after: Snapshot | None

    def files(self) -> pa.Table:
        """List the data and delete files of only one version, as `Table.changed_files` does."""
        return load_changed_files(self.context, self.metadata, self.before, self.after)

    @property
    def rows_added(self) -> int:
        """How many rows only the second version has; an updated row counts, too."""
        return _count(self._net.added)

    @property
    def rows_removed(self) -> int:
        """How many rows only the first version has."""
        return _count(self._net.removed)

    def added(self) -> pa.RecordBatchReader:
        """Read the rows that only the second version has."""
        return self._reader(self._net.added)

    def removed(self) -> pa.RecordBatchReader:
        """Read the rows that only the first version has."""
        return self._reader(self._net.removed)

    def partitions(self) -> dict[str, dict[str, int]]:
        """Return how many rows only one of the versions has, by partition as text; none for a table without partitions.

        A row that an update moved from one partition to another is removed from the one and added to the other.
        """
        difference, found = self._difference, dict[str, dict[str, int]]()
        sides = (ADDED, difference.after, self._net.added), (REMOVED, difference.before, self._net.removed)
        for change, plan, rows in sides:
            chosen = plan.files.at([each.task.location for each in rows])
            names = dict(zip(chosen.file_path.to_pylist(), chosen.partition.to_pylist(), strict=True))
            for each in rows:
                name = names[each.task.location]
                if name and len(each.positions):
                    counts = found.setdefault(name, {ADDED: 0, REMOVED: 0})
                    counts[change] += len(each.positions)
        return dict(sorted(found.items()))

    def columns(self) -> dict[str, list[str]]:
        """Return the columns that were added, removed and changed, each as text."""
        was, now = (_columns(self._schema(snapshot)) for snapshot in (self.before, self.after))
        return _compared(was, now)

    def properties(self) -> dict[str, list[str]] | None:
        """Return the properties that were added, removed and changed; None if the metadata of a version is gone."""
        versions = self._versions
        return None if versions is None else _compared(*(_properties(each) for each in versions))

    def partition_spec(self) -> tuple[str, str] | None:
        """Return the partition specs if they differ; None if they are the same, or if the metadata is gone."""
        if self._versions is None:
            return None
        was, now = (str(each.spec) for each in self._versions)
        return None if was == now else (was, now)

    def as_dict(self) -> dict[str, object]:
        """Return plain values; ids as strings."""
        files = self.files().select(["change", "content"])
        counted = Counter((row["change"], row["content"] == 0) for row in files.to_pylist())
        specs = self.partition_spec()
        return {
            "before": None if self.before is None else str(self.before.snapshot_id),
            "after": None if self.after is None else str(self.after.snapshot_id),
            "rows": {ADDED: self.rows_added, REMOVED: self.rows_removed},
            "data-files": {change: counted[change, True] for change in (ADDED, REMOVED)},
            "partitions": self.partitions(),
            "delete-files": {change: counted[change, False] for change in (ADDED, REMOVED)},
            "columns": self.columns(),
            "properties": self.properties(),
            "partition-spec": None if specs is None else {"before": specs[0], "after": specs[1]},
        }

    @cached_property
    def _difference(self) -> Difference:
        return find_difference(self.context, self.metadata, self.before, self.after)

    @cached_property
    def _net(self) -> NetRows:
        new = () if self.after is None else only_in(self.metadata, self.after, self.before)
        maps = load_row_maps(self.context.store, find_rewrites(new))
        return find_net_rows(Side(self._difference, maps), self.metadata, self.context)

    def _reader(self, rows: Sequence[Lost]) -> pa.RecordBatchReader:
        schema = self.metadata.schema
        return pa.RecordBatchReader.from_batches(arrow_schema(schema), self._read(rows, schema))

    def _read(self, rows: Sequence[Lost], schema: Schema) -> Iterator[pa.RecordBatch]:
        chosen = [each for each in rows if len(each.positions)]
        # Files that only lost rows are read without their deletes, by position.
        left_out = {each.task.location: _others(each.task, each.positions) for each in chosen}
        tasks: Iterable[FileTask] = [replace(each.task, deletes=()) for each in chosen]
        for reader, task in read_ahead(self.context.store, self.metadata, tasks):
            yield from reader.read_without(task, schema, left_out[task.location])

    def _schema(self, snapshot: Snapshot | None) -> Schema | None:
        if snapshot is None or snapshot.schema_id is None:
            return None
        return self.metadata.schema_by_id(snapshot.schema_id)

    @cached_property
    def _versions(self) -> tuple[TableMetadata, TableMetadata] | None:
        """The metadata of both versions, as it was when their snapshots were made; None if it is gone."""
        found = []
        for snapshot in (self.before, self.after):
            metadata = None if snapshot is None else self._metadata_of(snapshot)
            if metadata is None:
                return None
            found.append(metadata)
        return found[0], found[1]

    def _metadata_of(self, snapshot: Snapshot) -> TableMetadata | None:
        """Return the first version with a snapshot; None if that, or one before it that may be it, is gone."""
        log = [entry for entry in self.metadata.metadata_log if entry.timestamp_ms >= snapshot.timestamp_ms]
        for number, location in enumerate((*(entry.metadata_file for entry in log), None)):
            try:
                metadata = self.metadata if location is None else load_table_metadata(self.context, location)
            except MissingFile:
                return None
            if metadata.snapshots.find(snapshot.snapshot_id) is not None:
                # The log is bounded, so that it may begin after the version that made the snapshot.
                earlier = () if number else metadata.metadata_log[-1:]
                return None if any(entry.timestamp_ms >= snapshot.timestamp_ms for entry in earlier) else metadata
        return None


def _count(rows: Sequence[Lost]) -> int:
    return sum(len(each.positions) for each in rows)


def _others(task: FileTask, positions: Positions) -> Positions:
    return np.setdiff1d(np.arange(task.record_count), positions)


def _columns(schema: Schema | None) -> dict[object, str]:
    """Describe columns, by id."""
    if schema is None:
        return {}
    return {i: f"{schema.name_of(i)} {f.type}{' not null' if f.required else ''}" for i, f in schema.by_id.items()}


def _properties(metadata: TableMetadata) -> dict[object, str]:
    return {key: f"{key} = {value}" for key, value in metadata.properties.items()}


def _compared(was: dict[object, str], now: dict[object, str]) -> dict[str, list[str]]:
    return {
        ADDED: [now[key] for key in now if key not in was],
        REMOVED: [was[key] for key in was if key not in now],
        "changed": [f"{was[key]} -> {now[key]}" for key in now if key in was and was[key] != now[key]],
    }
