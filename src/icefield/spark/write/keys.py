"""The keys by which rows are clustered and sorted before they are written.

A key is a transform of a column, as in `types.sort_keys`, so that Spark compares keys as the format orders values. If
Spark's own column already compares like that, it is the key; all others are computed with the partition transforms, in
one pass over the rows:

    day(ts), bucket(16, name), uuid, double, nested, missing   by `KeyTask`
    int, date, timestamp, decimal, bytes, text                 the column itself
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark

from icefield.errors import IcefieldError
from icefield.model.partition import PartitionSpec
from icefield.model.sort_order import Direction, NullOrder, SortField
from icefield.parquet.nan_columns import column_at
from icefield.parquet.write.conform import conform_columns
from icefield.parquet.write.row_order import RowOrder
from icefield.spark.types import physical_type
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from icefield.types.schema import Schema
from icefield.types.sort_keys import key_type, sort_keys
from icefield.types.transforms import Identity, Transform, Void

_COMPARED_ALIKE = (
    BooleanType,
    IntegerType,
    LongType,
    DateType,
    TimestampType,
    TimestamptzType,
    DecimalType,
    BinaryType,
    StringType,
)
_SPARK_KEYS: dict[pa.DataType, spark.DataType] = {
    pa.bool_(): spark.BooleanType(),
    pa.int64(): spark.LongType(),
    pa.binary(): spark.BinaryType(),
}


@dataclass(frozen=True)
class Key:
    """A transform of a column; `name` is that of its helper column. top: the top-level column that contains it."""

    name: str
    top: NestedField
    path: tuple[str, ...]
    kind: PrimitiveType
    transform: Transform
    direction: Direction = Direction.ASC
    null_order: NullOrder = NullOrder.FIRST

    @property
    def result(self) -> PrimitiveType:
        """The type of its values."""
        return self.transform.result_type(self.kind)

    def column_of(self, given: Sequence[spark.StructField], names: Sequence[str]) -> Column | None:
        """Return the column of a frame that is already the key, if any.

        given: the frame's columns, without collations. names: their names in the shuffle.
        """
        if not isinstance(self.transform, Identity) or not isinstance(self.kind, _COMPARED_ALIKE) or self.path[1:]:
            return None
        wanted = (self.top.name, physical_type(self.kind))
        return next((F.col(n) for f, n in zip(given, names, strict=True) if (f.name, f.dataType) == wanted), None)

    def in_order(self) -> Column:
        """Return the sort expression."""
        column = F.col(self.name)
        match self.direction, self.null_order:
            case Direction.ASC, NullOrder.FIRST:
                return column.asc_nulls_first()
            case Direction.ASC, NullOrder.LAST:
                return column.asc_nulls_last()
            case Direction.DESC, NullOrder.FIRST:
                return column.desc_nulls_first()
            case _:
                return column.desc_nulls_last()

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Compute the keys of rows that may lack columns."""
        (column,) = conform_columns(batch, [self.top])
        rows = pa.RecordBatch.from_arrays([column], names=[self.top.name])
        return sort_keys(self.transform.apply(column_at(rows, self.path), self.kind), self.result)

    def spark_field(self) -> spark.StructField:
        """Return the helper column that `KeyTask` computes."""
        arrow = key_type(self.result)
        if pa.types.is_decimal(arrow):
            return spark.StructField(self.name, spark.DecimalType(arrow.precision, arrow.scale))
        return spark.StructField(self.name, _SPARK_KEYS[arrow])


@dataclass(frozen=True)
class CurveKey:
    """The position of a row on the curve by which rows are clustered."""

    order: RowOrder
    schema: Schema
    name: str = "s0"

    @property
    def result(self) -> PrimitiveType:
        """The type of its values."""
        return LongType()

    def column_of(self, given: Sequence[spark.StructField], names: Sequence[str]) -> None:
        """Return None: no column of a frame is the key."""

    def in_order(self) -> Column:
        """Return the sort expression."""
        return F.col(self.name).asc()

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Compute the keys of rows that may lack columns."""
        names = {self.schema.paths[column.field_id][0] for column in self.order.cluster}
        tops = [f for f in self.schema.fields if f.name in names]
        columns = conform_columns(batch, tops)
        rows = pa.RecordBatch.from_arrays(list(columns), names=[f.name for f in tops])
        return pa.array(self.order.curve_positions(rows, self.schema))

    def spark_field(self) -> spark.StructField:
        """Return the helper column that `KeyTask` computes."""
        return spark.StructField(self.name, spark.LongType())


AnyKey = Key | CurveKey


@dataclass(frozen=True)
class KeyTask:
    """Runs in an executor's Python worker: rows in, the same rows with their keys out."""

    names: Sequence[str]
    keys: Sequence[AnyKey]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            named = batch.rename_columns(list(self.names))
            columns = [*batch.columns, *(_values(key, named) for key in self.keys)]
            yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, *(key.name for key in self.keys)])


def partition_keys(schema: Schema, spec: PartitionSpec) -> list[Key]:
    """Return the keys of the partition."""
    parts = [part for part in spec.fields if not isinstance(part.transform, Void)]
    return [
        Key(f"p{at}", *_source(schema, part.source_id), spec.source_type(part, schema), part.transform)
        for at, part in enumerate(parts)
    ]


def order_keys(schema: Schema, fields: Iterable[SortField]) -> list[Key]:
    """Return the keys of the sort order."""
    keys = []
    for at, field in enumerate(fields):
        kind = schema.by_id[field.source_id].type
        assert isinstance(kind, PrimitiveType)
        source = _source(schema, field.source_id)
        keys.append(Key(f"s{at}", *source, kind, field.transform, field.direction, field.null_order))
    return keys


def _source(schema: Schema, field_id: int) -> tuple[NestedField, tuple[str, ...]]:
    path = schema.paths[field_id]
    return next(f for f in schema.fields if f.name == path[0]), path


def _values(key: AnyKey, batch: pa.RecordBatch) -> pa.Array:
    try:
        return key.values(batch)
    except IcefieldError:
        # The writing task finds the same error in the same rows, and reports it without Spark's help.
        return pa.nulls(batch.num_rows, key_type(key.result))
