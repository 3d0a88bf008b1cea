"""What a write has otherwise in its session, for its own time: tasks that can fill files.

Spark takes the size of shuffled tasks from the session alone. Writes of other threads may run in the same session: the
first to change the setting notes in the session itself what it was, and whoever ends puts that back, so that the
session is as it was when the last of them is done. Another write, or a query of the user, that runs at the same time
may see the setting change; its tasks may then be larger or smaller than they would be, with the same rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from icefield.parquet.write.write import WritePlan

TASK_BYTES = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
# How large rows are while they are shuffled, beside the files that they make.
SHUFFLED_BYTES_PER_FILE_BYTE = 3
MIN_TASK_BYTES = 64 * 1024 * 1024
_BEFORE = f"icefield.before.{TASK_BYTES}"
_UNSET = ""


def task_bytes_of(plan: WritePlan) -> int:
    """Return how many bytes of shuffled rows a task of a write shall have."""
    return plan.task_bytes or max(MIN_TASK_BYTES, plan.target_file_size_bytes * SHUFFLED_BYTES_PER_FILE_BYTE)


@contextmanager
def changed_task_bytes(spark: SparkSession, size_bytes: int) -> Iterator[None]:
    """Let a session shuffle rows into tasks of about this size, for the time of a block."""
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
