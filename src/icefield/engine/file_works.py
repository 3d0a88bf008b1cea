"""The work of verbs on files, one after another, on any engine.

CountRows         how many rows of each file match
FindMatches       whether any row of a file matches
FindMinMax        the minimum or maximum of a column in each file
SketchColumns     about how many distinct values columns have, as one sketch of each for a group of files
ConvertKeys       position deletes for the rows that equality deletes delete
MergePositions    the position deletes of each file, as fewer delete files
MergeFiles        the rows of a group of files, in order, as fewer files
FindMatchedRows   the rows that match a source row of a MERGE, so that only these leave the task that reads their file
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.rows import DataFiles
from icefield.codec.puffin.theta_sketch import EMPTY_SKETCH, ThetaSketch, hash_values
from icefield.deferred import deferred_imports
from icefield.engine.engine import Site
from icefield.engine.key_join import KeyJoin
from icefield.engine.merge_source import one_batch
from icefield.errors import NeedsSpark
from icefield.expr.bind.bound import TRUE, Bound, all_of, columns_of
from icefield.expr.prune.residual import residual
from icefield.parquet.nan_columns import column_at
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.read_ahead import read_files_ahead, wanted_deletes
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.delete_files import DeleteDestination, DeleteEntry, DeleteFileWriter, delete_locations
from icefield.parquet.write.plan import WritePlan
from icefield.parquet.write.write import DataWriter
from icefield.plan.min_max import Best, MinMax
from icefield.storage.store import Store
from icefield.types.datatypes import PrimitiveType
from icefield.types.metadata_columns import DELETED, POSITION, with_free_names
from icefield.types.schema import Schema

with deferred_imports(__name__):
    from icefield.commit.attempt import DraftStore

NO_POSITIONS = np.zeros(0, np.int64)
Sketches = Mapping[int, ThetaSketch]
PENDING_ROWS = 65_536  # of a MERGE, before they are looked up


@dataclass(frozen=True)
class CountRows:
    """Counts the matching rows of each file. columns: read in addition to those of the filter."""

    schema: Schema
    where: Bound
    columns: tuple[str, ...] = ()
    plan: None = None

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[int]:
        for reader, task in site.read(tasks):
            left = residual(self.where, task.residual_code)
            read = reader.read(task, self.schema, [*_names(left, self.schema), *self.columns], left)
            yield sum(batch.num_rows for batch in read)


@dataclass(frozen=True)
class FindMatches:
    """Determines for each file whether any row matches; stops at the first match."""

    schema: Schema
    where: Bound
    plan: None = None

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[bool]:
        for reader, task in site.read(tasks):
            left = residual(self.where, task.residual_code)
            yield any(batch.num_rows for batch in reader.read(task, self.schema, _names(left, self.schema), left))


@dataclass(frozen=True)
class FindMinMax:
    """Finds the best value of each file. better: the filter for values that are better than the best so far."""

    wanted: MinMax
    schema: Schema
    where: Bound
    better: Bound
    plan: None = None

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[Best]:
        reference = self.wanted.reference
        for reader, task in site.read(tasks):
            best = Best(self.wanted)
            left = all_of(residual(self.where, task.residual_code), self.better)
            for batch in reader.read(task, self.schema, [self.schema.name_of(reference.field_id)], left):
                path, column = reference.path, batch.column(0)
                best.add(pc.struct_field(column, path[1:]) if len(path) > 1 else column)
            yield best


@dataclass(frozen=True)
class SketchColumns:
    """Makes one sketch of each column, given by field id, for all live rows of a group of files."""

    schema: Schema
    columns: tuple[int, ...]
    plan: None = None

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[Sketches]:
        sketches = dict.fromkeys(self.columns, EMPTY_SKETCH)
        names = [self.schema.name_of(field_id) for field_id in self.columns]
        for reader, task in site.read(tasks):
            for batch in reader.read(task, self.schema, names, TRUE):
                for field_id, sketch in sketches.items():
                    kind = self.schema.by_id[field_id].type
                    assert isinstance(kind, PrimitiveType)
                    values = column_at(batch, self.schema.paths[field_id])
                    sketches[field_id] = sketch.with_hashes(hash_values(values, kind))
        yield sketches


def merge_sketches(found: Iterable[Sketches], columns: Iterable[int]) -> dict[int, ThetaSketch]:
    """Merge the sketches of groups of files."""
    merged = dict.fromkeys(columns, EMPTY_SKETCH)
    for sketches in found:
        merged = {field_id: sketch.merged(sketches[field_id]) for field_id, sketch in merged.items()}
    return merged


@dataclass(frozen=True)
class DeletedFiles:
    """The delete files that were written for a group of data files."""

    entries: Sequence[DeleteEntry]

    @property
    def locations(self) -> list[str]:
        return delete_locations(self.entries)


@dataclass(frozen=True)
class ConvertKeys:
    """Writes position deletes for the rows that equality deletes delete; only key columns are read.

    settings: of the new files. has_vectors: whether the table uses deletion vectors, which include the positions that
    were deleted before. is_dry_run: the files are described, and not stored.
    """

    schema: Schema
    settings: WritePlan
    has_vectors: bool
    is_dry_run: bool = False

    @property
    def plan(self) -> WritePlan | None:
        """The settings of new files; None if none are stored."""
        return None if self.is_dry_run else self.settings

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[DeletedFiles]:
        store = DraftStore(site.store) if self.is_dry_run else site.store
        writer = DeleteFileWriter(delete_destination(self.settings, site.name), store, self.has_vectors)
        schema, (position, deleted) = with_free_names(self.schema, (POSITION, DELETED))
        try:
            for reader, task in site.read(tasks):
                batches = reader.read(task, schema, [position, deleted], TRUE)
                found = [b.column(position).filter(b.column(deleted)).to_numpy() for b in batches]
                both: Positions = np.concatenate([NO_POSITIONS, *found])
                before = reader.deleted_positions(task)
                if len(by_key := np.setdiff1d(both, before)):
                    writer.add(task.location, both if self.has_vectors else by_key, task.partition_identity)
            yield DeletedFiles(writer.close())
        except BaseException:
            writer.abort()
            raise


@dataclass(frozen=True)
class MergePositions:
    """Writes the positions that delete files and vectors delete, each once; no data file is read.

    has_vectors: whether the table uses deletion vectors.
    """

    plan: WritePlan
    has_vectors: bool

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[DeletedFiles]:
        writer = DeleteFileWriter(delete_destination(self.plan, site.name), site.store, self.has_vectors)
        try:
            for reader, task in read_files_ahead(site.store, site.files, tasks, wanted_deletes):
                if len(positions := reader.deleted_positions(task)):
                    writer.add(task.location, positions, task.partition_identity)
            yield DeletedFiles(writer.close())
        except BaseException:
            writer.abort()
            raise


@dataclass(frozen=True)
class MergedFiles:
    """The new files of a group.

    starts: the number of each source's first row among all that were read; None if equality deletes apply, so that the
    number of a row cannot be derived from its position. left_out: the positions that were deleted before, by source.
    """

    files: DataFiles
    starts: Mapping[str, int] | None
    left_out: Mapping[str, Positions] = field(default_factory=dict)

    @property
    def locations(self) -> list[str]:
        found: list[str] = self.files.file_path.to_pylist()
        return found


@dataclass(frozen=True)
class MergeFiles:
    """Writes the live rows of a group of files together, in order."""

    plan: WritePlan

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[MergedFiles]:
        starts: dict[str, int] = {}
        left_out: dict[str, Positions] = {}
        rows, knows_numbers = 0, True
        writer = DataWriter(self.plan, site.store, site.name)
        try:
            for reader, task in site.read(tasks):
                starts[task.location] = rows
                knows_numbers &= not task.has_key_deletes
                if task.deletes:
                    left_out[task.location] = reader.deleted_positions(task)
                for batch in reader.read_without(task, self.plan.schema, NO_POSITIONS):
                    rows += batch.num_rows
                    writer.write(batch)
            yield MergedFiles(writer.close(), starts if knows_numbers else None, left_out)
        except BaseException:
            writer.abort()
            raise


@dataclass(frozen=True)
class MergeRead:
    """What a MERGE reads of files; picklable. columns: their names for a reader. keys: the names of key columns."""

    schema: Schema
    columns: Sequence[str]
    keys: tuple[str, ...]
    where: Bound

    def keys_of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the key columns of a batch."""
        return [batch.column(name) for name in self.keys]


@dataclass(frozen=True)
class MatchedRows:
    """Rows of one data file that match a source row; in the order of the file."""

    location: str
    rows: pa.RecordBatch


@dataclass(frozen=True)
class FindMatchedRows:
    """Finds the rows that match a source row; picklable. keys: of the source rows, as columns of the table.

    Raises NeedsSpark if the rows of a group have more than `most_bytes`.
    """

    read: MergeRead
    keys: Sequence[pa.Array]
    most_bytes: int
    plan: None = None

    @classmethod
    def of(cls, read: MergeRead, keys: Sequence[pa.Array], most_bytes: int) -> FindMatchedRows:
        """Copy the keys: a slice of a large table would be pickled with all of it."""
        return cls(read, [pa.concat_arrays([key]) for key in keys], most_bytes)

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[MatchedRows]:
        """Run it, and yield the rows of each file; those of a large file in several parts."""
        join = KeyJoin(self.keys, len(self.keys[0]))
        most_rows = max(PENDING_ROWS, join.distinct)  # a lookup costs as much as the keys that it looks among
        held_bytes, pending, pending_rows, pending_bytes = 0, list[MatchedRows](), 0, 0
        for part in self._candidates(tasks, site, join):
            pending.append(part)
            pending_rows, pending_bytes = pending_rows + part.rows.num_rows, pending_bytes + part.rows.nbytes
            # Few rows may be large, and nearly all that may match do.
            if pending_rows >= most_rows or pending_bytes > self.most_bytes:
                found, pending, pending_rows, pending_bytes = self._matched(pending, join), [], 0, 0
                held_bytes += sum(each.rows.nbytes for each in found)
                self._check_size(held_bytes)
                yield from found
        found = self._matched(pending, join)
        self._check_size(held_bytes + sum(each.rows.nbytes for each in found))
        yield from found

    def _candidates(self, tasks: Iterable[FileTask], site: Site, join: KeyJoin) -> Iterator[MatchedRows]:
        """Yield the rows that may match: rows whose keys have the hash of a source row's."""
        read = self.read
        for reader, task in site.read(tasks):
            for batch in reader.read_candidates(task, read.schema, read.columns, read.where):
                mask = join.may_match(read.keys_of(batch), batch.num_rows)
                if mask.any():
                    yield MatchedRows(task.location, batch.take(pa.array(np.flatnonzero(mask))))

    def _matched(self, pending: Sequence[MatchedRows], join: KeyJoin) -> list[MatchedRows]:
        """Keep the rows that do match."""
        if not pending:
            return []
        whole = one_batch(pa.Table.from_batches([part.rows for part in pending]))
        numbers = join.matching(self.read.keys_of(whole), whole.num_rows)
        ends = np.cumsum([part.rows.num_rows for part in pending])
        places = np.searchsorted(numbers, [0, *ends])
        # Copies: a slice of all rows would be pickled with all of them, for each file.
        return [
            MatchedRows(part.location, whole.take(pa.array(numbers[start:stop])))
            for part, start, stop in zip(pending, places[:-1].tolist(), places[1:].tolist(), strict=True)
            if start < stop
        ]

    def _check_size(self, held_bytes: int) -> None:
        if held_bytes > self.most_bytes:
            raise NeedsSpark("a source that matches very many rows")


def write_batches(plan: WritePlan, batches: Iterable[pa.RecordBatch], store: Store, name: str) -> DataFiles:
    """Write batches to data files; after an error, remove them."""
    writer = DataWriter(plan, store, name)
    try:
        for batch in batches:
            writer.write(batch)
        return writer.close()
    except BaseException:
        writer.abort()
        raise


def delete_destination(plan: WritePlan, name: str) -> DeleteDestination:
    """Return the settings of the delete files of a write, which go next to its data files."""
    return DeleteDestination(plan.layout, f"{name}-{plan.write_id}", plan.deletes_by_partition)


def _names(where: Bound, schema: Schema) -> list[str]:
    return [schema.name_of(field_id) for field_id in columns_of(where)]
