"""A planned read of one version of a table: as a DataFrame, as Arrow batches, as a count, as files, as reasons.

The version is fixed when the scan is made: later commits do not change what it reads. Planning happens once, on first
use. Raises InvalidFilter and InvalidInput when made, MissingFile and CorruptFile when run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, Self

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.expr.bind.bound import TRUE
from icefield.metrics import stopwatch
from icefield.storage.store import StaysInProcess
from icefield.table.reading.readable import ReadableRows
from icefield.types.datatypes import OPAQUE_TYPES, PrimitiveType
from icefield.types.metadata_columns import DELETED, with_metadata_columns

with deferred_imports(__name__):
    import logging

    import pyarrow as pa

    from icefield.cache.reading import ReadContext
    from icefield.codec.puffin.theta_sketch import ThetaSketch
    from icefield.engine.choose import EngineChoice, EngineName, check_engine
    from icefield.engine.engine import RowEngine
    from icefield.engine.file_works import CountRows, FindMinMax, SketchColumns, merge_sketches
    from icefield.engine.rows import SessionChoice, bind_filter, load_spark_engine, planning_executor
    from icefield.explain.explain import Explanation
    from icefield.explain.explain_file import explain_file
    from icefield.explain.file_reason import FileReason
    from icefield.expr.bind.bound import Bound, Reference, columns_of
    from icefield.expr.parse.ast import Predicate
    from icefield.expr.prune.residual import residual
    from icefield.expr.render.describe import describe
    from icefield.metrics import ScanReport
    from icefield.model.metadata import TableMetadata
    from icefield.model.names import TableName
    from icefield.parquet.read.read_ahead import read_ahead
    from icefield.parquet.read.task import FileTask
    from icefield.plan.counts import count_by_partition, count_rows
    from icefield.plan.entries_of_files import load_entries_of_files
    from icefield.plan.min_max import Best, MinMax, Side, find_min_max
    from icefield.plan.partition.values import open_tasks, partition_fields
    from icefield.plan.plan import ScanPlan, plan_scan
    from icefield.plan.planned_files import PlannedFiles
    from icefield.plan.splits import Split, plan_splits
    from icefield.plan.versions import ResolvedVersion
    from icefield.table.read_lease import ReadLease
    from icefield.types.arrays import Longs
    from icefield.types.arrow import arrow_schema
    from icefield.types.schema import Schema

SHOWN_COLUMNS = ("file_path", "partition", "record_count", "file_size_in_bytes", "spec_id", "sequence_number")


@check_arguments
class TableScan(ReadableRows, StaysInProcess):
    """A planned read of one version of a table.

    The version is fixed when the scan is made: later commits do not change what it reads. Planning happens on first
    use.
    """

    def __init__(
        self,
        context: ReadContext,
        table: TableName,
        metadata: TableMetadata,
        version: ResolvedVersion,
        where: Predicate | str | Any = None,
        select: Sequence[str] | None = None,
    ) -> None:
        self._context = context
        self._table = table
        self._metadata = metadata
        self._point = version
        self._readable = with_metadata_columns(version.schema, partition_fields(metadata))
        self._where = bind_filter(where, self._readable)
        self._select = list(select) if select is not None else version.schema.column_names
        self._schema = _chosen(self._readable, tuple(self._select))
        self._planned: ScanPlan | None = None
        self._sessions = SessionChoice()
        self._lease: ReadLease | None = None
        self._tag: Callable[[str, int], None] | None = None
        self._note: Callable[[Iterable[int]], object] = lambda _: None

    def noting(self, note: Callable[[Iterable[int]], object]) -> Self:
        """Record columns that are read although the scan does not select them, for a transaction."""
        self._note = note
        return self

    def leasing(self, lease: ReadLease) -> Self:
        """Protect the files while they are read."""
        self._lease = lease
        return self

    def pinning(self, tag: Callable[[str, int], None]) -> Self:
        """Set how a tag is created for the snapshot of the scan."""
        self._tag = tag
        return self

    def using(self, sessions: SessionChoice) -> Self:
        """Use the lake's Spark session for DataFrames."""
        self._sessions = sessions
        return self

    @property
    def schema(self) -> Schema:
        """The columns that the scan returns."""
        return self._schema

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that the scan reads; None for a table without snapshots."""
        return self._point.snapshot.snapshot_id if self._point.snapshot else None

    @property
    def where(self) -> Bound:
        """The filter, bound to the schema."""
        return self._where

    def pin(self, name: str | None = None) -> str:
        """Tag the snapshot of the scan, so that it does not expire for any engine, and return the name of the tag.

        Drop the tag with `Table.drop_tag` when it is not needed any more.

        Args:
            name: The name of the tag. By default `pin-` and the id of the snapshot.
        """
        if self.snapshot_id is None or self._tag is None:
            raise InvalidInput("cannot pin a scan of an empty table")
        chosen = f"pin-{self.snapshot_id}" if name is None else name
        self._tag(chosen, self.snapshot_id)
        return chosen

    def to_spark(self, session: Any | None = None) -> Any:
        """Return a Spark DataFrame. Executors read the rows; they do not pass through this process.

        Args:
            session: The Spark session to use. By default that of `Lake.use`, else the active one.
        """
        engine, lease, chosen = load_spark_engine(), self._lease, session or self._sessions.session
        if lease is None:
            return engine.read(self._plan, self._schema, self._metadata, self._context, chosen)
        lease.begin()
        try:
            frame = engine.read(self._plan, self._schema, self._metadata, self._context, chosen)
            lease.guard_frame(self._sessions.frames, engine.liveness(frame))
        except BaseException:
            lease.finish()
            raise
        return frame

    def to_arrow(self) -> pa.RecordBatchReader:
        """Return an Arrow batch reader. No JVM is started, and memory does not grow with the size of the table."""
        return pa.RecordBatchReader.from_batches(arrow_schema(self._schema), self._read_all())

    def count(self, *, engine: EngineName | None = None) -> int:
        """Count the rows. Only files that metadata cannot answer for are opened.

        Args:
            engine: `local` or `spark`. By default the engine of `Lake.use`, else Spark if much data must be read and a
                Spark session is active.
        """
        with self._held():
            return int(self._row_counts(engine).sum())

    def count_by_partition(self, *, engine: EngineName | None = None) -> pa.Table:
        """Count the rows of each partition: `partition`, `spec_id`, `record_count`, `file_count`."""
        with self._held():
            return count_by_partition(self._plan, self._row_counts(engine))

    def min(self, column: str, *, engine: EngineName | None = None) -> pa.Scalar:
        """Return the least value of a column, null if there is none. Read only what metadata cannot answer."""
        with self._held():
            return self._extreme(column, Side.LEAST, engine)

    def max(self, column: str, *, engine: EngineName | None = None) -> pa.Scalar:
        """Return the greatest value of a column, null if there is none. Read only what metadata cannot answer."""
        with self._held():
            return self._extreme(column, Side.GREATEST, engine)

    def files(self) -> pa.Table:
        """List the data files to read as an Arrow table, one row each."""
        return self._plan.files.table.select(SHOWN_COLUMNS)

    def splits(self) -> list[list[Split]]:
        """Split the files at row groups, and pack the splits into tasks of about `read.split.target-size`."""
        with self._held():
            return plan_splits(self._context, self._metadata, self._plan, self._plan.files)

    def explain(self) -> Explanation:
        """Return what the scan reads, and what pruned the rest. Print it for people, or use `as_dict`."""
        columns = tuple(f.name for f in self._schema.fields)
        engine = EngineChoice(self._sessions).use(self._plan.partial_files.total_bytes, self._context.store)
        return Explanation(str(self._table), self.snapshot_id, describe(self._where), columns, self._plan, str(engine))

    def explain_file(self, location: str) -> FileReason:
        """Explain why a data file is read or pruned. The end of its location is enough to name it."""
        with self._held():
            return explain_file(self._context, self._metadata, self._point, self._where, location)

    def __repr__(self) -> str:
        where = "" if self._where == TRUE else f", where={describe(self._where)!r}"
        return f"{type(self).__name__}({str(self._table)!r}{where}, snapshot_id={self.snapshot_id})"

    @property
    def _plan(self) -> ScanPlan:
        # Not a cached_property: in Python 3.11 all scans of a process would share its lock, and plan one after another.
        if self._planned is None:
            with self._held():
                elapsed_ns = stopwatch()
                self._planned = plan_scan(
                    self._context, self._metadata, self._point, self._where, planning_executor(self._sessions.session)
                )
                self._report(self._planned, elapsed_ns())
        return self._planned

    def _report(self, plan: ScanPlan, duration_ns: int) -> None:
        """Log and report how a scan was planned."""
        if logging.getLogger("icefield.plan").isEnabledFor(logging.DEBUG):
            found = plan.metrics
            text = "planned %s at %s: %d of %d files, %d of %d manifests, %.1f ms"
            read = found.manifests - found.manifests_pruned
            what = (self._table, self.snapshot_id, found.files_read, found.files, read, found.manifests)
            logging.getLogger("icefield.plan").debug(text, *what, duration_ns / 1e6)
        if self._context.listeners:
            columns = {f.field_id: f.name for f in self._schema.fields}
            metrics = {"total-planning-duration": duration_ns, **plan.metrics.by_iceberg_names()}
            schema_id, where = self._point.schema.schema_id, describe(self._where)
            report = ScanReport(str(self._table), self.snapshot_id, schema_id, where, columns, metrics)
            self._context.listeners.send(report)

    def _tasks(self, files: PlannedFiles) -> Iterator[FileTask]:
        filter_columns = [self._readable.name_of(field_id) for field_id in columns_of(self._where)]
        wanted = self._readable.select([*self._select, *filter_columns])
        return open_tasks(self._context, self._metadata, self._plan, files, wanted)

    def _row_counts(self, engine: EngineName | None) -> Longs:
        if engine is not None:
            check_engine(engine)  # it is not opened if metadata has the answer
        # Selecting the column that marks deleted rows includes them.
        marked = [DELETED.name] if DELETED.field_id in self._schema.by_id else []

        work = CountRows(self._readable, self._where, tuple(marked))

        def count(files: PlannedFiles) -> Iterator[int]:
            row_engine = self._engine(files, engine)
            return row_engine.run(work, row_engine.group(self._tasks(files)))

        return count_rows(self._plan, count, with_deleted=bool(marked))

    def _extreme(self, column: str, side: Side, engine: EngineName | None) -> pa.Scalar:
        wanted = MinMax(_find_ordered(column, self._readable), side)
        self._note([wanted.reference.field_id])
        listed = load_entries_of_files(self._context, self._metadata, self._plan, self._plan.files, wanted.columns)
        row_engine = self._engine(self._plan.files, engine)

        def read(rows: Sequence[int], better: Bound) -> Iterator[Best]:
            work = FindMinMax(wanted, self._readable, self._where, better)
            return row_engine.run(work, row_engine.group(self._tasks(self._plan.files.take(rows))))

        return find_min_max(wanted, self._plan, listed, read, row_engine.width)

    def _sketches(self, columns: Sequence[int], engine: EngineName | None) -> dict[int, ThetaSketch]:
        """Return sketches of the values of columns, by field id."""
        self._note(columns)
        work = SketchColumns(self._readable, tuple(columns))
        with self._held():
            row_engine = self._engine(self._plan.files, engine)
            found = row_engine.run(work, row_engine.group(self._tasks(self._plan.files)))
            return merge_sketches(found, columns)

    def _engine(self, files: PlannedFiles, asked: EngineName | None) -> RowEngine:
        choice = EngineChoice(self._sessions, asked)
        return choice.open(choice.use(files.total_bytes, self._context.store), self._context, self._metadata)

    def _read_all(self) -> Iterator[pa.RecordBatch]:
        """Plan now, so that errors are raised here, and read the rows later, under one lease."""
        lease = self._lease
        if lease is None:
            return self._batches(self._tasks(self._plan.files), self._select)
        lease.begin()
        try:
            batches = self._batches(self._tasks(self._plan.files), self._select)
        except BaseException:
            lease.finish()
            raise
        return lease.guard(batches)

    def _held(self) -> AbstractContextManager[None]:
        return nullcontext() if self._lease is None else self._lease.held()

    def _batches(self, tasks: Iterable[FileTask], select: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for reader, task in read_ahead(self._context.store, self._metadata, tasks):
            yield from reader.read(task, self._readable, select, residual(self._where, task.residual_code))


@lru_cache(maxsize=64)  # every scan needs it, and a table has few schemas
def _chosen(schema: Schema, names: tuple[str, ...]) -> Schema:
    return schema.select(names)


def _find_ordered(column: str, schema: Schema) -> Reference:
    """Find a column whose values are ordered."""
    field = schema.find_field(column)
    kind = field.type
    if not isinstance(kind, PrimitiveType) or isinstance(kind, OPAQUE_TYPES) or field.field_id in schema.repeated_ids:
        raise InvalidInput(f"column {column!r} has no minimum or maximum: values of type {kind} are not ordered")
    return Reference(field.field_id, kind, schema.paths[field.field_id])
