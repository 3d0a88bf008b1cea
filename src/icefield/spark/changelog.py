"""A changelog of a table: what each snapshot inserted and deleted, as a DataFrame.

    _change_type          INSERT, DELETE; UPDATE_BEFORE, UPDATE_AFTER for rows with the same identifier
    _change_ordinal       0 for the first snapshot, 1 for the next
    _commit_snapshot_id   the snapshot

A row that is in the changed files before and after a snapshot did not change, and is left out, as often as it is there.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from icefield.engine.rows import ChangelogRequest, ChangeStep
from icefield.expr.render.spark_sql import quoted_path

TYPE, ORDINAL, SNAPSHOT = "_change_type", "_change_ordinal", "_commit_snapshot_id"
INSERT, DELETE, BEFORE, AFTER = "INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"
_COUNT = "_change_count"


def make_changelog(steps: Sequence[ChangeStep], request: ChangelogRequest) -> DataFrame:
    """Return the changes of several snapshots, oldest first; there is at least one."""
    frames = [_changes(step, ordinal) for ordinal, step in enumerate(steps)]
    changes = reduce(DataFrame.unionByName, frames)
    if request.is_net:
        return _net(changes)
    return _updates(changes, request.identifiers) if request.identifiers else changes


def _changes(step: ChangeStep, ordinal: int) -> DataFrame:
    before, after = step.before, step.after
    ends = (f.lit(ordinal).alias(ORDINAL), f.lit(step.snapshot_id).cast("bigint").alias(SNAPSHOT))
    if before is None or after is None:
        only: list[DataFrame] = [rows for rows in (before, after) if rows is not None]
        return only[0].select("*", f.lit(INSERT if before is None else DELETE).alias(TYPE), *ends)
    columns = _columns(before)
    both = before.select("*", f.lit(-1).alias(_COUNT)).unionByName(after.select("*", f.lit(1).alias(_COUNT)))
    counted: DataFrame = both.groupBy(*columns).agg(f.sum(_COUNT).alias(_COUNT)).where(f.col(_COUNT) != 0)
    times = f.explode(f.array_repeat(f.lit(1), f.abs(f.col(_COUNT)).cast("int")))
    kind = f.when(f.col(_COUNT) < 0, DELETE).otherwise(INSERT).alias(TYPE)
    return counted.select(*columns, kind, *ends, times.alias(_COUNT)).drop(_COUNT)


def _updates(changes: DataFrame, identifiers: Sequence[str]) -> DataFrame:
    """Mark a delete and an insert of one snapshot with the same identifier as an update."""
    same = Window.partitionBy(*(f.col(quoted_path([name])) for name in identifiers), f.col(ORDINAL))
    has_both = f.size(f.collect_set(TYPE).over(same)) > 1
    image = f.when(f.col(TYPE) == DELETE, BEFORE).otherwise(AFTER)
    return changes.withColumn(TYPE, f.when(has_both, image).otherwise(f.col(TYPE)))


def _net(changes: DataFrame) -> DataFrame:
    """Leave out rows that were inserted and deleted again, or deleted and inserted again."""
    columns = [column for name, column in zip(changes.columns, _columns(changes), strict=True) if name not in _OWN]
    same = Window.partitionBy(*columns)
    left = f.sum(f.when(f.col(TYPE) == INSERT, 1).otherwise(-1)).over(same)
    of_kind = Window.partitionBy(*columns, f.col(TYPE))
    newest = f.row_number().over(of_kind.orderBy(f.col(ORDINAL).desc()))
    oldest = f.row_number().over(of_kind.orderBy(f.col(ORDINAL)))
    is_kept = f.when(f.col(TYPE) == INSERT, newest <= left).otherwise(oldest <= -left)
    return changes.withColumn(_COUNT, is_kept).where(f.col(_COUNT)).drop(_COUNT)


def _columns(frame: DataFrame) -> list[Column]:
    return [f.col(quoted_path([name])) for name in frame.columns]


_OWN = (TYPE, ORDINAL, SNAPSHOT)
