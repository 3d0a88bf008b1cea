"""One shuffle for both results of a change: positions by data file, new rows by partition.

    matched rows        (clause, file, pos, row_id, new values)
    split               (part 0: clause, file, pos) and (part 1: clause, new values)
    with files          a row for each planned file, with its FileTask
    shuffled, sorted    all positions of a file in one task; new rows of a partition in few tasks, in the table's order

A changed row is split into two, so that its position is clustered by its old file and its values by their new
partition. Rows are clustered by an approximation of the partition that Spark computes itself: where it differs from the
partition, there are only more files.
"""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark

from icefield.engine.change import ChangeSettings
from icefield.model.sort_order import SortOrder
from icefield.parquet.write.order_check import known_fields
from icefield.parquet.write.plan import WritePlan
from icefield.plan.plan import ScanPlan
from icefield.properties.table import DISTRIBUTE_HASH, DISTRIBUTE_NONE, DISTRIBUTE_RANGE, MERGE_ON_READ
from icefield.spark.change.expressions import named, null_of
from icefield.spark.change.skew import BLOCK_ROWS, LARGEST_PARTITIONS, Blocks, split_count
from icefield.spark.change.task import (
    CLAUSE,
    FILE,
    FIXED,
    MATCHED_PART,
    PART,
    POS,
    POSITION_PART,
    ROW_PART,
    SOURCE,
    SPLIT,
    TASK,
)
from icefield.spark.read.logical_columns import select_all
from icefield.spark.session.arrow_frame import create_frame
from icefield.spark.types import logical_field
from icefield.spark.write.distribute import ADAPTIVE
from icefield.spark.write.keys import Key, KeyTask, order_keys, partition_keys
from icefield.types.calendar import MICROS_PER_DAY, NANOS_PER_DAY
from icefield.types.datatypes import (
    DateType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
)
from icefield.types.metadata_columns import ROW_ID
from icefield.types.schema import Schema
from icefield.types.transforms import Day, Hour, Month, Transform, Year

_FIXED_TYPES = spark.StructType(
    [
        spark.StructField(PART, spark.ByteType()),
        spark.StructField(CLAUSE, spark.IntegerType()),
        spark.StructField(FILE, spark.StringType()),
        spark.StructField(POS, spark.LongType()),
        spark.StructField(TASK, spark.BinaryType()),
        spark.StructField(SOURCE, spark.LongType()),
        spark.StructField(SPLIT, spark.IntegerType()),
    ]
)
MATCHED_PREFIX = "m_"
TOGETHER = "together"  # what goes to one task
SPREAD_WITHOUT_ADAPTIVE = 8
BYTES_TO_REWRITE = 16 * 1024 * 1024  # of data files per task, if they may be rewritten
MOST_TASKS = 200
TASKS_PER_SPLIT = 16  # so that two of them seldom share a task


@dataclass(frozen=True)
class NewRows:
    """The columns of new rows: the table's, and the row id if rows have one."""

    schema: Schema

    @classmethod
    def of(cls, plan: WritePlan, schema: Schema) -> "NewRows":
        """Return the columns that a change writes. schema: the table's."""
        own = {f.field_id for f in schema.fields} | {ROW_ID.field_id}
        return cls(Schema(tuple(f for f in plan.schema.fields if f.field_id in own)))

    @property
    def own(self) -> Schema:
        """The table's columns."""
        return Schema(tuple(f for f in self.schema.fields if f.field_id != ROW_ID.field_id))

    @property
    def has_row_id(self) -> bool:
        return ROW_ID.field_id in self.schema.by_id

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.schema.fields)

    @property
    def numbers(self) -> list[str]:
        return [f"c{at}" for at in range(len(self.schema.fields))]

    @property
    def columns(self) -> list[spark.StructField]:
        pairs = zip(self.numbers, self.schema.fields, strict=True)
        return [spark.StructField(number, logical_field(f).dataType) for number, f in pairs]


@dataclass(frozen=True)
class Clauses:
    """What the clauses of a frame do.

    changed: clauses that write a new version of a row. inserted: clauses that write a new row. places: of the columns
    that decide to which task a matched source row would be sent; None if none would be inserted. blocks: by which the
    new versions of rows of large partitions are split.
    """

    changed: Sequence[int]
    inserted: Sequence[int]
    places: Sequence[int] | None = None
    blocks: Blocks = field(default_factory=Blocks)


def split(frame: DataFrame, clauses: Clauses, rows: NewRows) -> DataFrame:
    """Split matched rows into positions, numbers of source rows, and new rows.

    frame: has the clause, file, pos, and new values under their numbers; and, to prevent that matched source rows are
    inserted, their numbers, and under `MATCHED_PREFIX` the values of the clauses' places.
    """
    always = [POSITION_PART, *([] if clauses.places is None else [MATCHED_PART])]
    branches = [
        f"WHEN {CLAUSE} IN ({', '.join(map(str, own))}) THEN {_bytes(parts)}"
        for own, parts in ((clauses.inserted, [ROW_PART]), (clauses.changed, [*always, ROW_PART]))
        if own
    ]
    parts = f"CASE {' '.join(branches)} ELSE {_bytes(always)} END" if branches else _bytes(always)
    both = frame.selectExpr("*", f"explode({parts}) AS {PART}")
    is_position, is_match = f"{PART} = {POSITION_PART}", f"{PART} = {MATCHED_PART}"
    source = "CAST(NULL AS BIGINT)" if clauses.places is None else f"CASE WHEN {is_match} THEN {SOURCE} END"
    chosen = [
        PART,
        CLAUSE,
        f"CASE WHEN {is_position} THEN {FILE} END AS {FILE}",
        f"CASE WHEN {is_position} THEN {POS} END AS {POS}",
        f"CAST(NULL AS BINARY) AS {TASK}",
        f"{source} AS {SOURCE}",
        f"{_split_of_changed(clauses)} AS {SPLIT}",
    ]
    for at, number in enumerate(rows.numbers):
        match = f"WHEN {is_match} THEN {MATCHED_PREFIX}{number}" if at in (clauses.places or ()) else ""
        chosen.append(f"CASE WHEN {PART} = {ROW_PART} THEN {number} {match} END AS {number}")
    return both.selectExpr(*chosen)


def _split_of_changed(clauses: Clauses) -> str:
    if clauses.blocks.splits == 1 or not clauses.changed:
        return "0"
    is_changed = f"{PART} = {ROW_PART} AND {CLAUSE} IN ({', '.join(map(str, clauses.changed))})"
    return f"CASE WHEN {is_changed} THEN {clauses.blocks.split(FILE, POS)} ELSE 0 END"


def _bytes(parts: Sequence[int]) -> str:
    return f"array({', '.join(f'{part}Y' for part in parts)})"


def to_insert(frame: DataFrame, rows: NewRows) -> DataFrame:
    """Return rows to insert unless their source row matches. frame: has the clause, source, and values."""
    none = [f"CAST(NULL AS {_FIXED_TYPES[name].dataType.simpleString()}) AS {name}" for name in (FILE, POS, TASK)]
    last = [f"CAST(NULL AS BIGINT) AS {rows.numbers[-1]}"] if rows.has_row_id else []
    own = rows.numbers[: len(rows.own.fields)]
    return frame.selectExpr(f"{ROW_PART}Y AS {PART}", CLAUSE, *none, SOURCE, f"0 AS {SPLIT}", *own, *last)


def planned_files(spark_session: SparkSession, scan: ScanPlan, rows: NewRows) -> DataFrame:
    """Return a row for each planned file, with its task."""
    tasks = list(scan.tasks(scan.files))
    table = pa.table(
        {
            PART: pa.array([POSITION_PART] * len(tasks), pa.int8()),
            CLAUSE: pa.nulls(len(tasks), pa.int32()),
            FILE: pa.array([task.location for task in tasks], pa.string()),
            POS: pa.nulls(len(tasks), pa.int64()),
            TASK: pa.array([pickle.dumps(task) for task in tasks], pa.binary()),
            SOURCE: pa.nulls(len(tasks), pa.int64()),
            SPLIT: pa.array([0] * len(tasks), pa.int32()),
        }
    )
    frame = create_frame(spark_session, table, _FIXED_TYPES)
    return select_all(frame, [*FIXED, *(named(null_of(c.dataType), c.name) for c in rows.columns)])


@dataclass(frozen=True)
class Distribution:
    """How the results of a change are shuffled.

    mode: of the change. work_bytes: the size of the planned files. row_bytes: of a row in them. blocks: by which
    the new versions of rows of large partitions are split. large: partitions whose other new rows go to several tasks:
    a hash of the partition, and how many.
    """

    rows: NewRows
    plan: WritePlan
    order: SortOrder
    mode: str
    work_bytes: int
    row_bytes: float
    blocks: Blocks = field(default_factory=Blocks)
    large: Mapping[int, int] = field(default_factory=dict)

    def settings_of(self, settings: ChangeSettings) -> ChangeSettings:
        """Return the settings with the sort order that new rows get."""
        return replace(settings, rows=replace(self.plan, order=self.order)) if self._is_whole_order else settings

    def with_large_partitions(self, frame: DataFrame) -> "Distribution":
        """Count the new rows of each partition, and split large ones. frame: of `to_insert`."""
        if not self._parts or self.plan.distribution != DISTRIBUTE_HASH:
            return self
        keyed, _ = self._with_keys(frame, self._parts)
        code, count = self._partition_code().alias("code"), F.count(F.lit(1)).alias("rows")
        found = keyed.groupBy(code).agg(count).where(F.col("rows") > BLOCK_ROWS)
        most = found.orderBy(F.desc("rows")).limit(LARGEST_PARTITIONS).collect()
        target = self.plan.target_file_size_bytes
        return replace(
            self, large={row["code"]: split_count(row["rows"], row["rows"] * self.row_bytes, target) for row in most}
        )

    def shuffle(self, frames: Sequence[DataFrame]) -> DataFrame:
        """Bring together what belongs together, in order."""
        keys = [*self._parts, *self._sorting]
        frame, helpers = self._with_keys(reduce(DataFrame.union, frames), keys)
        together = self._brought_together(frame)
        places = [F.col(PART), F.col(FILE), F.col(POS).asc_nulls_first()]
        order = [*places, *(key.in_order() for key in keys)]
        return together.sortWithinPartitions(*order).drop(*helpers, TOGETHER)

    @property
    def columns_of_tasks(self) -> set[int]:
        """The places of the columns that decide to which task a row is sent."""
        keys = [*self._parts, *(self._sorting if self._is_ranged else ())]
        tops = {key.top.field_id for key in keys}
        return {at for at, f in enumerate(self.rows.own.fields) if f.field_id in tops}

    @cached_property
    def _parts(self) -> list[Key]:
        return partition_keys(self.rows.own, self.plan.spec)

    @cached_property
    def _sorting(self) -> list[Key]:
        return order_keys(self.rows.own, known_fields(self.order, self.rows.own))

    @property
    def _is_ranged(self) -> bool:
        return self.plan.distribution == DISTRIBUTE_RANGE and bool(self._parts or self._sorting)

    @property
    def _is_whole_order(self) -> bool:
        return tuple(known_fields(self.order, self.plan.schema)) == self.order.fields

    def _with_keys(self, frame: DataFrame, keys: Sequence[Key]) -> tuple[DataFrame, list[str]]:
        """Add the keys of rows. Return the names of helper columns, too."""
        schema = self.rows.own
        given = tuple(spark.StructField(f.name, logical_field(f).dataType) for f in schema.fields)
        numbers = dict(zip((f.name for f in schema.fields), self.rows.numbers, strict=False))
        native: dict[str, Column] = {}
        computed: list[Key] = []
        for key in keys:
            own = key.column_of(given, [numbers[f.name] for f in given])
            if own is None and key in self._parts:
                own = approximate(key, F.col(numbers[key.top.name]))
            if own is None:
                computed.append(replace(key, top=replace(key.top, required=False)))
            else:
                native[key.name] = own
        if computed:
            shape = spark.StructType([*_FIXED_TYPES.fields, *self.rows.columns, *(k.spark_field() for k in computed)])
            frame = frame.mapInArrow(KeyTask([*FIXED, *self.rows.names], computed), shape)
        return (frame.withColumns(native) if native else frame), [*native, *(key.name for key in computed)]

    def _brought_together(self, frame: DataFrame) -> DataFrame:
        """Shuffle: all positions of a file to one task, and new rows as the distribution says."""
        if self._is_ranged:
            # Equal keys are never split, and all positions of a file have the same: none.
            by = [F.col(FILE), *(key.in_order() for key in (*self._parts, *self._sorting))]
            count = self._task_count
            return frame.repartitionByRange(*by) if count is None else frame.repartitionByRange(count, *by)
        if self.plan.distribution == DISTRIBUTE_NONE:
            return self._repartition(frame.withColumn(TOGETHER, self._near()), [])
        if not self._parts:
            return self._repartition(frame.withColumn(TOGETHER, self._spread(frame)), [])
        return self._repartition(frame.withColumn(TOGETHER, self._split()), [key.name for key in self._parts])

    def _repartition(self, frame: DataFrame, keys: Sequence[str]) -> DataFrame:
        # Unlike `rebalance` it never splits the rows of one key.
        by, count = [FILE, *keys, TOGETHER], self._task_count
        return frame.repartition(*by) if count is None else frame.repartition(count, *by)

    @property
    def _task_count(self) -> int | None:
        """The number of tasks; None if Spark decides, which coalesces small tasks."""
        # Spark must not coalesce the tasks of a large partition.
        splits = sum(self.large.values()) or (self.blocks.splits if self.blocks.splits > 1 else 0)
        least = min(MOST_TASKS, TASKS_PER_SPLIT * splits)
        if self.mode == MERGE_ON_READ:
            return least or None
        # Positions are small, but the files that are rewritten without them are not.
        return max(1, min(MOST_TASKS, -(-self.work_bytes // BYTES_TO_REWRITE)), least)

    def _split(self) -> Column:
        """Return the number of the task among those of a partition."""
        split = F.col(SPLIT)
        for code, count in self.large.items():
            is_large = (F.col(PART) == ROW_PART) & (self._partition_code() == F.lit(code))
            split = F.when(is_large, F.pmod(self._row_code(), F.lit(count)).cast("int")).otherwise(split)
        return split

    def _partition_code(self) -> Column:
        return F.xxhash64(*(key.name for key in self._parts))

    def _row_code(self) -> Column:
        hashed = [c.name for c in self.rows.columns if not _holds_map(c.dataType)]
        return F.xxhash64(*hashed) if hashed else F.lit(0).cast("long")

    def _near(self) -> Column:
        """Return what keeps new rows of one task together, except those that must meet matched source rows."""
        number = F.col(SOURCE)
        near = F.when(number.isNotNull(), F.xxhash64(number)).otherwise(F.spark_partition_id().cast("long"))
        return F.when(F.col(PART) != POSITION_PART, near)

    def _spread(self, frame: DataFrame) -> Column:
        number = F.col(SOURCE)
        code = F.when(number.isNotNull(), F.xxhash64(number)).otherwise(self._row_code())
        if frame.sparkSession.conf.get(ADAPTIVE) != "true":
            code = F.pmod(code, F.lit(SPREAD_WITHOUT_ADAPTIVE))
        return F.when(F.col(PART) != POSITION_PART, code)


def approximate(key: Key, column: Column) -> Column | None:
    """Return an expression with one value for each value of a transform, if there is a simple one."""
    if len(key.path) > 1 or not isinstance(key.transform, Year | Month | Day | Hour):
        return None
    return _time_key(key.transform, key.kind, column)


def _time_key(transform: Transform, kind: Type, column: Column) -> Column | None:
    match kind:
        case TimestamptzType():
            number, unit = F.unix_micros(column), MICROS_PER_DAY
        case TimestampNsType() | TimestamptzNsType():
            number, unit = column, NANOS_PER_DAY
        case DateType():
            number, unit = F.unix_date(column).cast("long"), 1
        case TimestampType():
            # Not through unix_micros, which takes the session's time zone.
            if isinstance(transform, Hour):
                return F.unix_date(column.cast("date")).cast("long") * 24 + F.hour(column)
            number, unit = F.unix_date(column.cast("date")).cast("long"), 1
        case _:
            return None
    if isinstance(transform, Hour):
        return F.try_subtract(number, F.pmod(number, F.lit(unit // 24).cast("long")))
    day = F.try_subtract(number, F.pmod(number, F.lit(unit).cast("long")))
    if isinstance(transform, Day):
        return day
    date = F.date_from_unix_date(F.try_divide(day, F.lit(unit).cast("long")).cast("int"))
    return F.year(date) * 12 + (F.month(date) if isinstance(transform, Month) else F.lit(0))


def _holds_map(kind: spark.DataType) -> bool:
    match kind:
        case spark.MapType() | spark.VariantType():
            return True
        case spark.ArrayType():
            return _holds_map(kind.elementType)
        case spark.StructType():
            return any(_holds_map(f.dataType) for f in kind.fields)
        case _:
            return False
