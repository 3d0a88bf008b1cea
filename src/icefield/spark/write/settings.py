"""Session settings for the duration of a write: shuffle partitions large enough to fill files.

Spark takes the size of shuffle partitions from the session only. Writes of other threads may run in the same session:
the first one to change the setting stores the old value in the session itself, and each one restores it at its end, so
that the session is unchanged after the last of them. A concurrent write or query may see the setting change; its tasks
may then be larger or smaller, with the same rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from icefield.parquet.write.plan import WritePlan

TASK_BYTES = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
# The size of shuffled rows relative to the files written from them.
SHUFFLED_BYTES_PER_FILE_BYTE = 3
MIN_TASK_BYTES = 64 * 1024 * 1024
_BEFORE = f"icefield.before.{TASK_BYTES}"
_UNSET = ""


def task_bytes_of(plan: WritePlan) -> int:
    """Return the target size in bytes of a write task's shuffled rows."""
    return plan.task_bytes or max(MIN_TASK_BYTES, plan.target_file_size_bytes * SHUFFLED_BYTES_PER_FILE_BYTE)


@contextmanager
def changed_task_bytes(spark: SparkSession, size_bytes: int) -> Iterator[None]:
    """Set the shuffle partition size of a session for the duration of a block."""
    if spark.conf.get(_BEFORE, None) is None:
        spark.conf.set(_BEFORE, spark.conf.get(TASK_BYTES, None) or _UNSET)
    spark.conf.set(TASK_BYTES, f"{size_bytes}b")
    try:
        yield
    finally:
        before = spark.conf.get(_BEFORE, None)
        if before == _UNSET:
            spark.conf.unset(TASK_BYTES)
        elif before is not None:
            spark.conf.set(TASK_BYTES, before)
        spark.conf.unset(_BEFORE)
