"""An upsert on Spark: neither rows nor positions pass through the driver.

    source    (c0, c1, …, k0, …)             the rows to upsert and their keys, checkpointed: read more than once
    matched   (k0, …, v0, …, file, pos, id)  rows of the table with one of the keys; k: keys, v: columns to keep
    rows      source left join matched -> new rows -> data files, as any other write
    deletes   matched (file, pos), all of one file in one task -> delete files, or the files without those rows

The source is checkpointed: if a plan is not deterministic, a row could be matched in one read and not in another. If
Spark loses part of the checkpoint, the job fails; it is never recomputed.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark_types
from pyspark.taskcontext import TaskContext

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.rows import DataFiles
from icefield.engine.engine import Site
from icefield.engine.file_works import DeletePositions, RewriteWithout
from icefield.engine.local_upsert import conform_table
from icefield.engine.upsert import (
    Upserted,
    UpsertPlan,
    UpsertRows,
    duplicate_key,
    find_key_columns,
    index_keys,
    key_filter,
    key_range,
    null_in_key,
    two_rows_with_key,
)
from icefield.errors import IcefieldError
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.conform import check_schema, conform_batch
from icefield.parquet.write.delete_files import delete_locations
from icefield.parquet.write.partial_rows import NO_ROW, find_unnamed, keep_unnamed
from icefield.spark.read.native_read import FilesToRead
from icefield.spark.read.read import read_files
from icefield.spark.read.task import to_logical_batch
from icefield.spark.session.worker_errors import explain_worker_error, explained_worker_errors, raise_packed
from icefield.spark.session.workers import check_workers
from icefield.spark.types import logical_field, schema_from_spark
from icefield.spark.write.distribute import NumberedFrame
from icefield.spark.write.write import check_visible, remove_files_of_write, write_frames
from icefield.storage.store import Store
from icefield.types.datatypes import DecimalType, IntegerType, LongType, Type, UnknownType, UUIDType
from icefield.types.metadata_columns import FILE, POSITION, ROW_ID, with_free_names
from icefield.types.schema import Schema

MOST_KEYS_HERE = 100_000  # collected to this process, to plan by exact keys
MOST_TASKS = 200
FILE_COLUMN, POSITION_COLUMN, ID_COLUMN, COUNT_COLUMN = "file", "pos", "id", "n"
_POSITIONS = "file string, pos long, task binary"
_RESULTS = "results binary, error binary"


@dataclass(frozen=True)
class SourceFrame:
    """Rows to upsert. frame: their columns, numbered, and their keys k0, k1, … as the table has them."""

    numbered: NumberedFrame
    frame: DataFrame
    key_names: tuple[str, ...]

    @classmethod
    def of(cls, frame: DataFrame, incoming: Schema, columns: Sequence[str], schema: Schema) -> "SourceFrame":
        """Add the keys to rows. columns: the key columns. schema: the table's."""
        numbered = NumberedFrame.of(frame)
        given = {f.name: f.type for f in incoming.fields}
        fields = {f.name: f for f in schema.fields}
        keys = {f"k{at}": fields[name] for at, name in enumerate(columns)}
        computed = {key: f for key, f in keys.items() if not _casts_alike(given[f.name], f.type)}
        places = {key: numbered.names.index(f.name) for key, f in keys.items()}
        keyed = numbered.frame
        if computed:
            made = Schema(tuple(replace(f, name=key, required=False) for key, f in computed.items()))
            shape = spark_types.StructType([*numbered.columns, *map(logical_field, made.fields)])
            keyed = keyed.mapInArrow(KeysTask(tuple(places[key] for key in computed), made), shape)
        casts = {
            key: F.col(f"c{places[key]}").cast(logical_field(f).dataType)
            for key, f in keys.items()
            if key not in computed
        }
        return cls(numbered, keyed.withColumns(casts) if casts else keyed, tuple(keys))

    @property
    def sparkSession(self) -> Any:  # noqa: N802 - as DataFrames call it
        return self.frame.sparkSession

    def keys(self) -> DataFrame:
        """Return the keys alone."""
        return self.frame.select(*self.key_names)


def open_frame(frame: DataFrame, on: Sequence[str] | None, base: TableMetadata) -> UpsertRows | None:
    """Prepare a DataFrame to upsert, or return None if it has no rows."""
    incoming = schema_from_spark(frame.schema)
    check_schema(incoming, base.schema, is_partial=True)
    columns = find_key_columns(on, incoming, base.schema)
    check_workers(frame.sparkSession)
    source = SourceFrame.of(frame, incoming, columns, base.schema)
    with explained_worker_errors():
        # An eager checkpoint: later reads use its contents, or the job fails.
        source = replace(source, frame=source.frame.localCheckpoint(eager=True))
    keys = source.keys()
    few = _fetch(keys.limit(MOST_KEYS_HERE + 1), columns, base.schema)
    if few.num_rows == 0:
        return None
    if few.num_rows <= MOST_KEYS_HERE:
        index = index_keys(few, columns)
        return UpsertRows(source, incoming, columns, key_filter(few, columns, base.schema), index)
    _check_keys(keys, columns)
    return UpsertRows(source, incoming, columns, _range_filter(keys, columns, base.schema))


def _casts_alike(given: Type, wanted: Type) -> bool:
    """Return whether Spark's cast gives the value that is written; a uuid has several spellings."""
    match given, wanted:
        case (IntegerType(), LongType()) | (DecimalType(), DecimalType()) | (UnknownType(), _):
            return True
        case _:
            return given == wanted and not isinstance(wanted, UUIDType)


def _fetch(keys: DataFrame, columns: Sequence[str], schema: Schema) -> pa.Table:
    """Collect keys as columns of the table."""
    own = Schema(tuple(f for name in columns for f in schema.fields if f.name == name))
    return conform_table(keys.toArrow().rename_columns(list(columns)), own)


def _check_keys(keys: DataFrame, columns: Sequence[str]) -> None:
    names = [f"k{at}" for at in range(len(columns))]
    nulls = keys.select(*(F.max(F.col(k).isNull()).alias(k) for k in names)).first()
    for name, at in zip(columns, names, strict=True):
        if nulls is not None and nulls[at]:
            raise null_in_key(name)
    twice = keys.groupBy(*names).count().where("count > 1").select(*names).first()
    if twice is not None:
        raise duplicate_key(dict(zip(columns, twice, strict=True)))


def _range_filter(keys: DataFrame, columns: Sequence[str], schema: Schema) -> Any:
    names = [f"k{at}" for at in range(len(columns))]
    ends = [keys.select(*(end(k).alias(k) for k in names)) for end in (F.min, F.max)]
    return key_range(_fetch(ends[0].union(ends[1]), columns, schema), columns, schema)


@dataclass(frozen=True)
class SparkUpsert:
    """One upsert in progress."""

    source: SourceFrame
    rows: UpsertRows
    plan: UpsertPlan
    base: TableMetadata
    context: ReadContext

    def run(self) -> Upserted:
        """Match rows with planned files by key, and write the results."""
        check_workers(self.source.sparkSession)
        matched = self._matched().persist()
        try:
            touched = frozenset(row[0] for row in matched.select(FILE_COLUMN).distinct().collect())
            files = write_frames([self._rows(matched)], self.plan.settings, self.base.sort_order, self.context.store)
            changed = self._changed_files(matched, touched)
            if self.plan.deletes is not None:
                deletes = [entry for done in changed for entry in done.entries]
                check_visible(self.context.store, delete_locations(deletes))
                return Upserted(files, deletes, touched)
            rewritten = DataFiles.concat([files, *changed])
            check_visible(self.context.store, rewritten.file_path.to_pylist())
            return Upserted(rewritten, (), touched)
        except BaseException as error:
            for plan in (self.plan.settings, self.plan.deletes):
                if plan is not None:
                    remove_files_of_write(self.context.store, plan)
            if explained := explain_worker_error(error):
                raise explained from error
            raise
        finally:
            matched.unpersist()

    @property
    def _kept(self) -> Schema:
        return Schema(tuple(find_unnamed(self.rows.incoming, self.base.schema)))

    @property
    def _key_names(self) -> list[str]:
        return [f"k{at}" for at in range(len(self.rows.columns))]

    def _matched(self) -> DataFrame:
        """Return the rows of the table that have one of the keys."""
        own, kept = self.base.schema, self._kept
        fields = [next(f for f in own.fields if f.name == name) for name in self.rows.columns]
        metadata = (FILE, POSITION, ROW_ID) if self.base.has_row_ids else (FILE, POSITION)
        names = {f.field_id for f in (*fields, *kept.fields)}
        read, _ = with_free_names(Schema(tuple(f for f in own.fields if f.field_id in names)), metadata)
        request = FilesToRead(self.context, self.base, self.plan.scan, self.plan.scan.files, read)
        frame = read_files(self.source.sparkSession, request, self.plan.scan.where)
        placed = frame.toDF(*(f"t{f.field_id}" for f in read.fields))
        table = placed.select(
            *(F.col(f"t{f.field_id}").alias(k) for f, k in zip(fields, self._key_names, strict=True)),
            *(F.col(f"t{f.field_id}").alias(f"v{at}") for at, f in enumerate(kept.fields)),
            F.col(f"t{FILE.field_id}").alias(FILE_COLUMN),
            F.col(f"t{POSITION.field_id}").alias(POSITION_COLUMN),
            F.col(f"t{ROW_ID.field_id}").alias(ID_COLUMN) if self.base.has_row_ids else _no_id(),
        )
        keys = self.source.keys()
        return table.join(F.broadcast(keys) if self._is_small else keys, self._key_names, "left_semi")

    @property
    def _is_small(self) -> bool:
        return self.rows.keys is not None

    def _rows(self, matched: DataFrame) -> DataFrame:
        """Return the new rows."""
        kept = [f"v{at}" for at in range(len(self._kept.fields))]
        # `first` picks one of several rows with the same key; if that matters, their number makes it an error.
        old = matched.groupBy(*self._key_names).agg(
            F.count("*").alias(COUNT_COLUMN),
            F.first(ID_COLUMN).alias(ID_COLUMN),
            *(F.first(name).alias(name) for name in kept),
        )
        numbered = self.source.numbered
        joined = self.source.frame.join(old, self._key_names, "left")
        given = joined.select(*(c.name for c in numbered.columns), COUNT_COLUMN, ID_COLUMN, *kept)
        task = CombineTask(numbered.names, self.rows.incoming, self.base.schema, self._kept, self.rows.columns)
        fields = [*self.base.schema.fields]
        row_id = self.plan.settings.schema.by_id.get(ROW_ID.field_id)
        if row_id is not None:  # replaced rows keep their ids
            task, fields = replace(task, row_id=row_id.name), [*fields, row_id]
        return given.mapInArrow(task, spark_types.StructType([logical_field(f) for f in fields]))

    def _changed_files(self, matched: DataFrame, touched: frozenset[str]) -> list[Any]:
        """Write the deletes of touched files, or the files without the replaced rows."""
        if not touched:
            return []
        scan, session = self.plan.scan, self.source.sparkSession
        tasks = [(t.location, None, pickle.dumps(t)) for t in scan.tasks(scan.files.at(touched))]
        positions = matched.select(FILE_COLUMN, POSITION_COLUMN, F.lit(None).cast("binary").alias("task"))
        # By number, so that Spark neither splits the rows of one file nor coalesces tasks.
        together = positions.union(session.createDataFrame(tasks, _POSITIONS)).repartition(
            min(len(tasks), MOST_TASKS), FILE_COLUMN
        )
        ordered = together.sortWithinPartitions(FILE_COLUMN, F.col(POSITION_COLUMN).asc_nulls_first())
        deletes = self.plan.deletes
        work = (
            RewriteWithout(self.plan.settings) if deletes is None else DeletePositions(deletes, self.plan.has_vectors)
        )
        task = PositionsTask(work, self.context.store, TableFiles.of(self.base))
        results = []
        for row in ordered.mapInArrow(task, _RESULTS).collect():
            if row["error"] is not None:
                raise pickle.loads(bytes(row["error"]))  # noqa: S301 - our own tasks pickled it
            results += pickle.loads(bytes(row["results"]))  # noqa: S301
        return results


@dataclass(frozen=True)
class KeysTask:
    """Runs in an executor's Python worker: adds keys as the table has them. places: of the columns they are made of."""

    places: tuple[int, ...]
    fields: Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [f.name for f in self.fields.fields]
        for batch in batches:
            given = pa.RecordBatch.from_arrays([batch.column(at) for at in self.places], names=names)
            try:
                keys = to_logical_batch(conform_batch(given, self.fields), self.fields)
            except IcefieldError as error:
                raise_packed(error)
            yield pa.RecordBatch.from_arrays([*batch.columns, *keys.columns], names=[*batch.schema.names, *names])


@dataclass(frozen=True)
class CombineTask:
    """Runs in an executor's Python worker: merges a row to upsert with the kept columns of the row that it replaces."""

    names: tuple[str, ...]
    incoming: Schema
    schema: Schema
    kept: Schema
    keys: tuple[str, ...]
    row_id: str | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                try:
                    combined = self._combine(batch)
                except IcefieldError as error:
                    raise_packed(error)
                yield combined

    def _combine(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        width = len(self.names)
        given = pa.Table.from_arrays(batch.columns[:width], names=list(self.names))
        counts = batch.column(width).fill_null(0).to_numpy()
        if self.kept.fields and (twice := np.flatnonzero(counts > 1)).size:
            raise two_rows_with_key({name: given.column(name)[int(twice[0])].as_py() for name in self.keys})
        matched = np.flatnonzero(counts)
        replaced = np.full(batch.num_rows, NO_ROW)
        replaced[matched] = np.arange(len(matched))
        physical = pa.Table.from_arrays(batch.columns[width + 2 :], names=[f.name for f in self.kept.fields])
        old = conform_table(physical.take(pa.array(matched)), self.kept) if self.kept.fields else physical
        table = keep_unnamed(conform_table(given, self.schema), self.incoming, self.schema, old, replaced)
        (rows,) = table.to_batches()
        logical = to_logical_batch(rows, self.schema)
        return logical if self.row_id is None else logical.append_column(self.row_id, batch.column(width + 1))


@dataclass(frozen=True)
class PositionsTask:
    """Runs in an executor's Python worker; its rows are sorted by file, and the first of each has its task."""

    work: DeletePositions | RewriteWithout
    store: Store
    files: TableFiles

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        name = f"{context.partitionId():05d}-{context.taskAttemptId()}" if context else "00000-0"
        site = Site(self.store, self.files, name)
        try:
            results, error = pickle.dumps(list(self.work.run(_pairs(batches), site))), None
        except IcefieldError as found:
            if found.retryable:
                raise
            results, error = None, pickle.dumps(found)
        yield pa.RecordBatch.from_arrays(
            [pa.array([results], pa.binary()), pa.array([error], pa.binary())], names=["results", "error"]
        )


def _pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[FileTask, Positions]]:
    """Yield each file with the positions of its rows."""
    task: FileTask | None = None
    held: list[Positions] = []
    for batch in batches:
        tasks, positions = batch.column(2), batch.column(1)
        begins = np.flatnonzero(tasks.is_valid().to_numpy(zero_copy_only=False)).tolist()
        start = 0
        for begin in begins:
            held.append(positions.slice(start, begin - start).to_numpy())
            if task is not None:
                yield task, np.unique(np.concatenate(held))
            task, held, start = pickle.loads(tasks[begin].as_py()), [], begin + 1  # noqa: S301 - our own driver's
        held.append(positions.slice(start).to_numpy(zero_copy_only=False))
    if task is not None:
        yield task, np.unique(np.concatenate(held))


def _no_id() -> Column:
    return F.lit(None).cast("long").alias(ID_COLUMN)
