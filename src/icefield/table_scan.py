"""A planned read of one version of a table: as a DataFrame, as Arrow batches, as a count, as files, as reasons.

The version is fixed when the scan is made; writers that move on do not change what it reads. Planning happens on
first use and once. Raises InvalidFilter and InvalidInput when made, MissingFile and CorruptFile when run.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidInput
from icefield.expr.ast import Predicate
from icefield.expr.bind import bind
from icefield.expr.bound import columns_of
from icefield.expr.describe import describe
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.parquet.file_task import FileTask
from icefield.parquet.read import table_reader
from icefield.rows import load_spark_engine
from icefield.scan.explain import Explanation
from icefield.scan.plan import ScanPlan, plan_scan
from icefield.scan.point import Point
from icefield.storage.store import Store
from icefield.types.arrow import arrow_schema
from icefield.types.metadata_columns import with_metadata_columns
from icefield.types.schema import Schema

SHOWN_COLUMNS = ("file_path", "partition", "record_count", "file_size_in_bytes", "spec_id", "sequence_number")


class TableScan:
    """What to read, and every way to read it."""

    def __init__(
        self,
        store: Store,
        table: TableName,
        metadata: TableMetadata,
        point: Point,
        where: Predicate | str | None = None,
        select: Sequence[str] | None = None,
    ) -> None:
        if isinstance(select, str):
            raise InvalidInput("select takes a list of column names", hint=f"Write select=[{select!r}]")
        self._store = store
        self._table = table
        self._metadata = metadata
        self._point = point
        self._readable = with_metadata_columns(point.schema)
        self._where = bind(where, self._readable)
        self._select = list(select) if select is not None else [f.name for f in point.schema.fields]
        self._schema = self._readable.select(self._select)
        self._planned: ScanPlan | None = None

    @property
    def schema(self) -> Schema:
        """The columns that the scan gives."""
        return self._schema

    @property
    def snapshot_id(self) -> int | None:
        """The version that the scan reads; None for a table without snapshots."""
        return self._point.snapshot.snapshot_id if self._point.snapshot else None

    def to_spark(self) -> Any:
        """Return a DataFrame; rows are read by Spark's executors, not by this process."""
        return load_spark_engine().read(self._plan, self._schema, self._metadata, self._store)

    def to_arrow(self) -> pa.RecordBatchReader:
        """Return a stream of batches; no JVM is started, and memory does not grow with the table."""
        batches = self._batches(self._plan.tasks(self._plan.files), self._select)
        return pa.RecordBatchReader.from_batches(arrow_schema(self._schema), batches)

    def count(self) -> int:
        """Count the rows, opening only files that metadata cannot settle."""
        settled = self._plan.settled_files
        known = pc.sum(pc.subtract(settled.column("record_count"), settled.column("deleted_rows"))).as_py() or 0
        judged = [self._readable.name_of(field_id) for field_id in columns_of(self._where)]
        tasks = self._plan.tasks(self._plan.unsettled_files)
        return int(known + sum(batch.num_rows for batch in self._batches(tasks, judged)))

    def files(self) -> pa.Table:
        """List the data files to read, one row each."""
        return self._plan.files.select(SHOWN_COLUMNS)

    def explain(self) -> Explanation:
        """Say what is read, and what ruled the rest out."""
        columns = tuple(f.name for f in self._schema.fields)
        return Explanation(str(self._table), self.snapshot_id, describe(self._where), columns, self._plan)

    @property
    def _plan(self) -> ScanPlan:
        # Not a cached_property: in Python 3.11 all scans of a process would share its lock, and plan in turn.
        if self._planned is None:
            self._planned = plan_scan(self._store, self._metadata, self._point, self._where)
        return self._planned

    def _batches(self, tasks: Iterable[FileTask], select: Sequence[str]) -> Iterator[pa.RecordBatch]:
        reader = table_reader(self._store, self._metadata)
        for task in tasks:
            yield from reader.read(task, self._readable, select, self._where)
