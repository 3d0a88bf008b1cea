"""Reading through `format("icefield")`: planned in a Python worker of the driver, read as Arrow batches in executors.

Spark does not pass the required columns to a Python source, so all columns of its schema are read; nor, before 4.3,
reliable filters. Options set both. `lake.read` is faster if a lake is at hand.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark_types
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from icefield.cache.reading import ReadContext
from icefield.errors import InvalidInput
from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import Bound, all_of, columns_of
from icefield.expr.prune.residual import residual
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.read import TableReader, table_reader
from icefield.parquet.read.task import FileTask
from icefield.plan.partition.values import readable_schema
from icefield.plan.plan import plan_scan
from icefield.plan.tasks import pack_tasks
from icefield.plan.versions import ResolvedVersion
from icefield.spark.data_source.filters import split_filters
from icefield.spark.data_source.held_version import HeldVersion, hold_version
from icefield.spark.read.task import to_logical_batch
from icefield.spark.types import logical_field
from icefield.storage.store import Store
from icefield.types.datatypes import NestedField, StructType
from icefield.types.schema import Schema

# Before it supported limits, Spark kept the filters of one query for all others on the same DataFrame, which then
# lacked rows. (Seen on 4.3.)
TAKES_FILTERS = hasattr(DataSourceReader, "pushLimit")


@dataclass(frozen=True)
class SourceTable:
    """One version of a table, as a source reads it."""

    context: ReadContext
    metadata: TableMetadata
    version: ResolvedVersion

    @property
    def readable(self) -> Schema:
        """All columns that can be read."""
        return readable_schema(self.metadata, self.version.schema)

    def select(self, columns: Sequence[str] | None) -> Schema:
        """Return the named columns, or the table's own."""
        return self.version.schema if columns is None else self.readable.select(columns)

    def fit(self, asked: spark_types.StructType) -> list[str]:
        """Return the column names of a Spark schema, which may have only part of a struct. Raises InvalidInput."""
        names = [name for f in asked.fields for name in _paths(f, self.readable.find_field(f.name))]
        found = self.readable.select(names)
        for field, wanted in zip(found.fields, asked.fields, strict=True):
            logical = logical_field(field)
            if _as_nullable(wanted.dataType) != logical.dataType or wanted.name != logical.name:
                raise InvalidInput(
                    f"the schema asks for {wanted.name} {wanted.dataType.simpleString()}, "
                    f"but the table has {logical.name} {logical.dataType.simpleString()}",
                    hint="A schema chooses columns; cast them afterwards",
                )
        return names


class SourceReader(DataSourceReader):
    """Plans a scan, in the driver's worker; executors get a `TaskReader`.

    newest: loads the newest metadata of the table.
    """

    def __init__(
        self,
        table: SourceTable,
        logical: spark_types.StructType,
        where: str | None,
        newest: Callable[[], TableMetadata],
    ) -> None:
        self._table = table
        self._newest = newest
        self._logical = logical
        self._names = table.fit(logical)
        self._where = bind(where, table.readable)

    def partitions(self) -> Sequence[InputPartition]:
        """Plan; one partition is what one task reads."""
        table = self._table
        held = hold_version(table.context.store, table.metadata, table.version, self._newest)
        plan = plan_scan(table.context, table.metadata, table.version, self._where)
        filter_columns = [table.readable.name_of(field_id) for field_id in columns_of(self._where)]
        wanted = table.readable.select([*self._names, *filter_columns])
        packed = pack_tasks(table.context, table.metadata, plan, plan.files, wanted)
        return [InputPartition(pickle.dumps((held, tasks))) for tasks in packed]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition's files."""
        return self._for_tasks().read(partition)

    def __reduce__(self) -> tuple[Callable[..., DataSourceReader], tuple[object, ...]]:
        # The metadata of a large table is not sent to every task.
        return _itself, (self._for_tasks(),)

    def _for_tasks(self) -> "TaskReader":
        table = self._table
        reader = table_reader(table.context.store, table.metadata)
        return TaskReader(table.context.store, reader, table.readable, self._names, self._where, self._logical)


class FilteringReader(SourceReader):
    """A reader for Spark versions with reliable filters."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Accept the filters that can be converted, and leave the others to Spark."""
        taken, left = split_filters(filters, self._table.readable)
        self._where = all_of(self._where, taken)
        return left


@dataclass(frozen=True)
class TaskReader(DataSourceReader):
    """The part of a reader that runs in an executor."""

    store: Store
    reader: TableReader
    readable: Schema
    names: Sequence[str]
    where: Bound
    logical: spark_types.StructType

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition's files."""
        if partition.value is None:  # Spark's partition of a plan without files
            return
        read, wanted = self.readable.select(self.names), _arrow_schema(self.logical)
        held: HeldVersion | None
        tasks: Sequence[FileTask]
        held, tasks = pickle.loads(partition.value)  # noqa: S301 - our own driver pickled it
        with nullcontext(_nothing) if held is None else held.renewed(self.store) as check:
            for task in tasks:
                left = residual(self.where, task.residual_code)
                for batch in self.reader.read(task, self.readable, self.names, left):
                    yield to_logical_batch(batch, read).cast(wanted)
                    check()


def make_reader(
    table: SourceTable, logical: spark_types.StructType, where: str | None, newest: Callable[[], TableMetadata]
) -> DataSourceReader:
    """Return a reader that accepts filters, if Spark's are reliable."""
    kind = FilteringReader if TAKES_FILTERS else SourceReader
    return kind(table, logical, where, newest)


def _nothing() -> None:
    pass


def logical_schema(schema: Schema) -> spark_types.StructType:
    """Return a schema with its logical Spark types."""
    return spark_types.StructType([logical_field(f) for f in schema.fields])


def _arrow_schema(logical: spark_types.StructType) -> pa.Schema:
    """Return the exact Arrow schema that batches must have, including the name of a list's element."""
    try:
        return to_arrow_schema(logical, timezone="UTC")
    except TypeError:  # pyspark before 4.2 has no zone parameter, and uses UTC
        return to_arrow_schema(logical)


def _itself(reader: DataSourceReader) -> DataSourceReader:
    return reader


def _paths(asked: spark_types.StructField, field: NestedField) -> Iterator[str]:
    """Yield the columns of a Spark field; of a struct with fewer fields, only those."""
    is_whole = _as_nullable(asked.dataType) == logical_field(field).dataType
    if is_whole or not isinstance(asked.dataType, spark_types.StructType) or not isinstance(field.type, StructType):
        yield asked.name
        return
    inner = {f.name: f for f in field.type.fields}
    for part in asked.dataType.fields:
        if part.name not in inner:
            raise InvalidInput(f"the table has no column {asked.name}.{part.name}")
        for path in _paths(part, inner[part.name]):
            yield f"{asked.name}.{path}"


def _as_nullable(kind: spark_types.DataType) -> spark_types.DataType:
    match kind:
        case spark_types.StructType():
            return spark_types.StructType(
                [spark_types.StructField(f.name, _as_nullable(f.dataType), True) for f in kind.fields]
            )
        case spark_types.ArrayType():
            return spark_types.ArrayType(_as_nullable(kind.elementType))
        case spark_types.MapType():
            return spark_types.MapType(_as_nullable(kind.keyType), _as_nullable(kind.valueType))
        case _:
            return kind
