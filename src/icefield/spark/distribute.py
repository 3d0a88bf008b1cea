"""Bring rows of one partition together before they are written, so that a write makes few files.

Every expression here only has to be constant within a partition, never equal to the partition value itself: the
value is computed by the writing task. Built-in functions do it all but for buckets of text, bytes and decimals, which
go through a Python function.
"""

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql.pandas.functions import pandas_udf

from icefield.expr.spark_sql import quoted_path
from icefield.model.partition import PartitionField, PartitionSpec
from icefield.model.sort_order import Direction, NullOrder, SortOrder
from icefield.parquet.conform import conform_array
from icefield.parquet.write import WritePlan
from icefield.properties import DISTRIBUTE_HASH, DISTRIBUTE_RANGE
from icefield.types.datatypes import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    TimestamptzType,
    UUIDType,
)
from icefield.types.schema import Schema
from icefield.types.transforms import Bucket, Day, Hour, Month, Transform, Truncate, Void, Year

MICROS = {Day: 86_400_000_000, Hour: 3_600_000_000}
# Spark hashes several columns in turn, each with the hash so far as its seed, starting at 42. This int hashes to 0, so
# that the column after it is hashed with seed 0, as the format wants it.
HASHES_TO_ZERO = -1_693_959_553


def distribute(frame: DataFrame, plan: WritePlan, order: SortOrder) -> DataFrame:
    """Bring rows together as a write wants it, and sort those of each task by partition and table order.

    Rows are sorted also where they stay in the tasks that they are in: a task then fills one file after the other.
    """
    sorting = [_sort_key(plan.schema, order, at) for at in range(len(order.fields))]
    parts = [part for part in plan.spec.fields if not isinstance(part.transform, Void)]
    if not parts and not sorting:
        return frame
    # A hint takes names of columns only, and a key that is a column is computed once.
    names = [f"icefield_key_{at}" for at in range(len(parts))]
    keys = dict(zip(names, (_cluster_key(plan.schema, plan.spec, part) for part in parts), strict=True))
    keyed = frame.withColumns(keys) if keys else frame
    return (
        _brought_together(keyed, plan.distribution, names, sorting).sortWithinPartitions(*names, *sorting).drop(*names)
    )


def _brought_together(frame: DataFrame, mode: str, names: Sequence[str], sorting: Sequence[Column]) -> DataFrame:
    if mode == DISTRIBUTE_HASH:
        # Unlike a plain repartition it lets Spark split what is skewed, and put together what is small.
        return frame.hint("rebalance", *names)
    return frame.repartitionByRange(*names, *sorting) if mode == DISTRIBUTE_RANGE else frame


def keeps_order(schema: Schema, order: SortOrder) -> bool:
    """Say whether Spark sorts as the format does: not floats, where -0.0 is 0.0 to it, nor uuids, which are text."""
    kinds = [schema.by_id[field.source_id].type for field in order.fields]
    return bool(kinds) and not any(isinstance(kind, FloatType | DoubleType | UUIDType) for kind in kinds)


def _cluster_key(schema: Schema, spec: PartitionSpec, part: PartitionField) -> Column:
    source = _column(schema.paths[part.source_id])
    return transformed(source, spec.source_type(part, schema), part.transform)


def _sort_key(schema: Schema, order: SortOrder, at: int) -> Column:
    field = order.fields[at]
    kind = schema.by_id[field.source_id].type
    key = transformed(_column(schema.paths[field.source_id]), kind, field.transform)  # type: ignore[arg-type]
    match field.direction, field.null_order:
        case Direction.ASC, NullOrder.FIRST:
            return key.asc_nulls_first()
        case Direction.ASC, NullOrder.LAST:
            return key.asc_nulls_last()
        case Direction.DESC, NullOrder.FIRST:
            return key.desc_nulls_first()
        case _:
            return key.desc_nulls_last()


def transformed(column: Column, kind: PrimitiveType, transform: Transform) -> Column:
    """Return an expression that is constant exactly where the transform's value is, in the same order."""
    match transform:
        case Bucket():
            return _bucket(column, kind, transform)
        case Truncate(width):
            return _truncate(column, kind, width)
        case Year() | Month() | Day() | Hour():
            return _calendar(column, kind, transform)
        case _:
            return column


def _bucket(column: Column, kind: PrimitiveType, transform: Bucket) -> Column:
    if isinstance(kind, IntegerType | LongType):
        hashed = F.hash(F.lit(HASHES_TO_ZERO), column.cast("long"))
        return F.when(column.isNotNull(), hashed.bitwiseAND(F.lit(0x7FFFFFFF)) % F.lit(transform.count))
    field = NestedField(0, "source", kind)

    def buckets(values: pd.Series) -> pd.Series:
        array = conform_array(pa.Array.from_pandas(values), field)
        found: pd.Series = transform.apply(array, kind).to_pandas()
        return found

    return pandas_udf(buckets, "int")(column)  # type: ignore[no-any-return, call-overload]


def _truncate(column: Column, kind: PrimitiveType, width: int) -> Column:
    if isinstance(kind, IntegerType | LongType):
        return column - F.pmod(column, F.lit(width))
    if isinstance(kind, DecimalType):
        return F.floor(column * F.lit(10**kind.scale) / F.lit(width))
    return F.substring(column, 1, width)


def _calendar(column: Column, kind: PrimitiveType, transform: Transform) -> Column:
    if isinstance(transform, Year):
        return F.year(_in_utc(column, kind))
    if isinstance(transform, Month):
        moment = _in_utc(column, kind)
        return F.year(moment) * 12 + F.month(moment)
    if isinstance(kind, TimestamptzType):
        return F.floor(F.unix_micros(column) / F.lit(MICROS[type(transform)]))
    return F.to_date(column) if isinstance(transform, Day) else F.date_trunc("hour", column)


def _in_utc(column: Column, kind: PrimitiveType) -> Column:
    """Return a date whose calendar is that of UTC, whatever the session's time zone."""
    if isinstance(kind, TimestamptzType):
        return F.date_from_unix_date(F.floor(F.unix_micros(column) / F.lit(MICROS[Day])).cast("int"))
    return column if isinstance(kind, DateType) else F.to_date(column)


def _column(path: tuple[str, ...]) -> Column:
    return F.col(quoted_path(path))
