"""Session settings for the duration of a write: shuffle partitions large enough to fill files, and few blocks at once.

Spark takes the size of shuffle partitions and of batches from the session only. Writes of other threads may run in the
same session: the first one to change a setting stores the old value in the session itself, and each one restores it at
its end, so that the session is unchanged after the last of them. A concurrent write or query may see the setting
change; its tasks may then be larger or smaller, with the same rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from icefield.parquet.write.plan import WritePlan
from icefield.spark.session.arrow_frame import ROWS_OF_BATCH

TASK_BYTES = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
# The size of shuffled rows relative to the files written from them.
SHUFFLED_BYTES_PER_FILE_BYTE = 3
MIN_TASK_BYTES = 64 * 1024 * 1024
_UNSET = ""


def task_bytes_of(plan: WritePlan) -> int:
    """Return the target size in bytes of a write task's shuffled rows."""
    return plan.task_bytes or max(MIN_TASK_BYTES, plan.target_file_size_bytes * SHUFFLED_BYTES_PER_FILE_BYTE)


@contextmanager
def changed_task_bytes(spark: SparkSession, size_bytes: int) -> Iterator[None]:
    """Set the shuffle partition size of a session for the duration of a block."""
    with _changed(spark, TASK_BYTES, f"{size_bytes}b"):
        yield


@contextmanager
def one_row_at_once(spark: SparkSession) -> Iterator[None]:
    """Have tasks read one row at once for the duration of a block, because each is large."""
    with _changed(spark, ROWS_OF_BATCH, "1"):
        yield


@contextmanager
def _changed(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    stored = f"icefield.before.{key}"
    if spark.conf.get(stored, None) is None:
        spark.conf.set(stored, spark.conf.get(key, None) or _UNSET)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        before = spark.conf.get(stored, None)
        if before == _UNSET:
            spark.conf.unset(key)
        elif before is not None:
            spark.conf.set(key, before)
        spark.conf.unset(stored)
