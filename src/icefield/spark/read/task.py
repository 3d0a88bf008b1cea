"""The reading task in an executor's Python worker, for files that Spark's own reader cannot read.

Those are files with deletes, without field ids, or without columns whose values only the table knows. The rows are the
same as from Spark's reader: uuids are strings, times and timestamps of nanoseconds are integers.
"""

import pickle
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from icefield.expr.bind.bound import Bound
from icefield.expr.prune.residual import residual
from icefield.parquet.read.read import TableFiles, TableReader
from icefield.parquet.read.task import FileTask
from icefield.storage.store import Store
from icefield.types.arrow_nested import without_unused
from icefield.types.datatypes import (
    FixedType,
    ListType,
    MapType,
    StructType,
    TimestampNsType,
    TimestamptzNsType,
    TimeType,
    Type,
    UUIDType,
    VariantType,
    children,
)
from icefield.types.schema import Schema

TASK_SCHEMA = "tasks binary"


class Rows(Enum):
    """Which rows of the files to read, given a filter."""

    MATCHING = "matching"
    NON_MATCHING = "rest"  # those for which the filter is false or null


@dataclass(frozen=True)
class ReadTask:
    """Runs in an executor's Python worker; its input is pickled lists of file tasks."""

    store: Store
    files: TableFiles
    schema: Schema
    where: Bound
    rows: Rows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = self.files.reader(self.store)
        for batch in batches:
            for packed in batch.column(0).to_pylist():
                for task in pickle.loads(packed):  # noqa: S301 - our own driver pickled it
                    for rows in self._read(reader, task):
                        yield to_logical_batch(rows, self.schema)

    def _read(self, reader: TableReader, task: FileTask) -> Iterator[pa.RecordBatch]:
        left = residual(self.where, task.residual_code)
        if self.rows is Rows.NON_MATCHING:
            return reader.read_non_matching(task, self.schema, left)
        return reader.read(task, self.schema, self.schema.column_names, left)


def to_logical_batch(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Return the rows with the Arrow types that Spark has for the schema's types."""
    columns = [_present(column, f.type) for column, f in zip(batch.columns, schema.fields, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=[f.name for f in schema.fields])


def _present(array: pa.Array, kind: Type) -> pa.Array:
    if not is_shown_otherwise(kind):
        return array
    match kind:
        case UUIDType():
            strings = [None if raw is None else str(uuid.UUID(bytes=raw)) for raw in array.storage.to_pylist()]
            return pa.array(strings, pa.string())
        case FixedType():
            return array.cast(pa.binary())
        case TimeType() | TimestampNsType() | TimestamptzNsType():
            return array.view(pa.int64())
        case VariantType():
            return _present_variant(array)
        case _:
            return _present_nested(array, kind)


def _present_variant(array: pa.StructArray) -> pa.Array:
    """Mark a struct as a variant, in Spark's way."""
    fields = [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
    parts = [pa.compute.fill_null(pa.compute.struct_field(array, f.name), b"") for f in fields]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())


def _present_nested(array: pa.Array, kind: Type) -> pa.Array:
    match kind:
        case StructType(fields):
            parts = [_present(part, f.type) for part, f in zip(array.flatten(), fields, strict=True)]
            return pa.StructArray.from_arrays(parts, names=[f.name for f in fields], mask=array.is_null())
        case ListType():
            array = without_unused(array)
            values = _present(array.values, kind.element_type)
            return _over(array, pa.list_(values.type), values)
        case MapType():
            array = without_unused(array)
            keys, items = _present(array.keys, kind.key_type), _present(array.items, kind.value_type)
            target = pa.map_(keys.type, items.type)
            entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
            return _over(array, target, entries)
        case _:
            return array


def _over(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, children=[values]
    )


def is_shown_otherwise(kind: Type) -> bool:
    """Return whether the logical Spark type of a type, or of one inside it, differs from the physical one."""
    special = UUIDType | FixedType | TimeType | TimestampNsType | TimestamptzNsType | VariantType
    return isinstance(kind, special) or any(is_shown_otherwise(f.type) for f in children(kind))
