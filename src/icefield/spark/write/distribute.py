"""Cluster rows by partition before they are written, so that a write creates few files.

    frames, as given                     (id, "Name", …)
    numbered                             (c0, c1, …)
    with keys                            (c0, c1, …, p0, s0)
    clustered, sorted, without keys      (c0, c1, …)

Columns are numbered for the shuffle, and the writing task restores their names: so a user's column never has the name
of a helper column or of another column, in any case, and no session setting decides which of two is meant.

Several frames, such as new rows and the remaining rows of a file, become structs side by side, of which each row has
one. So a missing column of a frame is distinguished from a null in it, and gets its default.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark

from icefield.errors import InvalidInput
from icefield.model.sort_order import SortOrder
from icefield.parquet.write.order_check import known_fields
from icefield.parquet.write.plan import WritePlan
from icefield.parquet.write.row_order import RowOrder
from icefield.properties.table import DISTRIBUTE_HASH, DISTRIBUTE_RANGE
from icefield.spark.write.keys import AnyKey, CurveKey, KeyTask, order_keys, partition_keys
from icefield.spark.write.task import Names

ADAPTIVE = "spark.sql.adaptive.enabled"


@dataclass(frozen=True)
class Distributed:
    """Rows as the writing tasks get them. names: the column names of each frame."""

    rows: DataFrame
    names: tuple[Names, ...]
    plan: WritePlan


def distribute(frames: Sequence[DataFrame], plan: WritePlan, order: SortOrder | RowOrder) -> Distributed:
    """Distribute rows as the write properties say, and sort those of each task by partition and order.

    Rows are sorted even if they are not shuffled: a task then fills one file after another.
    """
    rows_in = order if isinstance(order, RowOrder) else RowOrder(order)
    fields = tuple(known_fields(rows_in.sort, plan.schema))
    if fields == rows_in.sort.fields:
        plan = replace(plan, order=rows_in.sort)
    parts = partition_keys(plan.schema, plan.spec)
    sorting = [CurveKey(rows_in, plan.schema)] if rows_in.cluster else order_keys(plan.schema, fields)
    numbered = [NumberedFrame.of(frame) for frame in frames]
    rows = _united(numbered, [*parts, *sorting])
    if parts or sorting:
        by = [key.in_order() for key in (*parts, *sorting)]
        rows = _brought_together(rows, plan.distribution, parts, by).sortWithinPartitions(*by)
        rows = rows.drop(*(key.name for key in (*parts, *sorting)))
    return Distributed(rows, tuple(each.names for each in numbered), plan)


def _brought_together(frame: DataFrame, mode: str, parts: Sequence[AnyKey], by: Sequence[Column]) -> DataFrame:
    if mode == DISTRIBUTE_HASH:
        names = [key.name for key in parts]
        if frame.sparkSession.conf.get(ADAPTIVE) == "true":
            # Unlike a plain repartition it lets Spark split skewed partitions and coalesce small ones.
            return frame.hint("rebalance", *names)
        # Without adaptive execution Spark ignores that hint.
        return frame.repartition(*names) if names else frame
    return frame.repartitionByRange(*by) if mode == DISTRIBUTE_RANGE else frame


@dataclass(frozen=True)
class NumberedFrame:
    """A frame with numbered columns; `given` are their names and types."""

    frame: DataFrame
    given: tuple[spark.StructField, ...]

    @classmethod
    def of(cls, frame: DataFrame) -> "NumberedFrame":
        """Number the columns of a frame, and remove collations: files have none, and order strings by bytes."""
        if frame.isStreaming:
            raise InvalidInput(
                "a streaming DataFrame has no end, and cannot be written in one commit",
                hint="Write its batches with foreachBatch, and StreamBatch(name, number) as the idempotency key",
            )
        fields = frame.schema.fields
        given = tuple(spark.StructField(f.name, _without_collation(f.dataType)) for f in fields)
        numbered = frame.toDF(*(f"c{at}" for at in range(len(given))))
        pairs = enumerate(zip(fields, given, strict=True))
        changed = {f"c{at}": new.dataType for at, (old, new) in pairs if new.dataType != old.dataType}
        casts = {name: F.col(name).cast(kind) for name, kind in changed.items()}
        return cls(numbered.withColumns(casts) if casts else numbered, given)

    @property
    def names(self) -> Names:
        return tuple(f.name for f in self.given)

    @property
    def columns(self) -> tuple[spark.StructField, ...]:
        return tuple(spark.StructField(f"c{at}", f.dataType) for at, f in enumerate(self.given))

    def key_column(self, key: AnyKey) -> Column | None:
        return key.column_of(self.given, [c.name for c in self.columns])

    def with_keys(self, keys: Sequence[AnyKey], computed: Sequence[AnyKey]) -> DataFrame:
        frame = self.frame
        if computed:
            shape = spark.StructType([*self.columns, *(key.spark_field() for key in computed)])
            frame = frame.mapInArrow(KeyTask(self.names, computed), shape)
        own = ((key.name, self.key_column(key)) for key in keys if key not in computed)
        columns = {name: column for name, column in own if column is not None}
        return frame.withColumns(columns) if columns else frame


def _without_collation(kind: spark.DataType) -> spark.DataType:
    match kind:
        case spark.StringType():
            return spark.StringType()
        case spark.StructType():
            plain = ((f, _without_collation(f.dataType)) for f in kind.fields)
            return spark.StructType([spark.StructField(f.name, inner, f.nullable, f.metadata) for f, inner in plain])
        case spark.ArrayType():
            return spark.ArrayType(_without_collation(kind.elementType), kind.containsNull)
        case spark.MapType():
            key, value = _without_collation(kind.keyType), _without_collation(kind.valueType)
            return spark.MapType(key, value, kind.valueContainsNull)
        case _:
            return kind


def _united(frames: Sequence[NumberedFrame], keys: Sequence[AnyKey]) -> DataFrame:
    # A key has one type in all frames: it is computed for all or for none.
    computed = [key for key in keys if any(frame.key_column(key) is None for frame in frames)]
    keyed = [frame.with_keys(keys, computed) for frame in frames]
    if len(frames) == 1:
        return keyed[0]
    structs = [spark.StructType(list(frame.columns)) for frame in frames]
    packed = [
        frame.select(
            *(
                F.struct(*kind.names).alias(f"r{at}") if at == own else F.lit(None).cast(kind).alias(f"r{at}")
                for at, kind in enumerate(structs)
            ),
            *(key.name for key in keys),
        )
        for own, frame in enumerate(keyed)
    ]
    return reduce(DataFrame.union, packed)
