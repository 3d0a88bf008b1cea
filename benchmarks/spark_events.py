"""Rows for the Spark benchmarks: ten columns, the same in each run and on each Spark version.

Events are ordered by time, so that `event_id` and `ts` are clustered; everything else is distributed by a hash. This
module does not import icefield, because it also runs in the environment of Iceberg Java.
"""

from collections.abc import Sequence
from typing import Any

DAYS = 30
START_SECONDS = 1_704_067_200  # 2024-01-01 in UTC
DAY = "ts >= TIMESTAMP '2024-01-10 00:00:00Z' AND ts < TIMESTAMP '2024-01-11 00:00:00Z'"
DAY_FOLDER = "/ts_day=2024-01-10/"
COLUMNS = (
    "event_id",
    "user_id",
    "ts",
    "country",
    "event_type",
    "url",
    "session_id",
    "amount",
    "duration_ms",
    "score",
)
# The share of rows that `score < x` takes is x.
ONE_PERCENT, TEN_PERCENT = "score < 0.01", "score < 0.1"
USER = 4242


def events(spark: Any, rows: int, tasks: int = 32) -> Any:
    """Return a DataFrame of all events."""
    return _columns(spark.range(0, rows, 1, tasks), rows)


def one_for_each(spark: Any, partitions: int) -> Any:
    """Return a number of events, in no order."""
    return _columns(spark.range(0, partitions, 1, 8).selectExpr(f"id * 7919 % {partitions} AS id"), partitions)


def version(rows: int) -> str:
    """Return a filter for a few rows that may be in any file."""
    return f"user_id = {USER % _users(rows)}"


def totals(frame: Any) -> list[tuple[Any, ...]]:
    """Aggregate three columns of all rows; sums are of integers, whose order does not matter."""
    groups = frame.groupBy("country").agg({"duration_ms": "sum", "amount": "max", "*": "count"})
    return sorted(tuple(row) for row in groups.collect())


def digest(frame: Any) -> tuple[Any, ...]:
    """Return a checksum of rows."""
    hashed = frame.selectExpr(f"xxhash64({', '.join(COLUMNS)}) AS hashed")
    return tuple(hashed.selectExpr("count(*)", "bit_xor(hashed)").first())


def drain(frame: Any) -> None:
    """Read all columns of all rows."""
    frame.write.format("noop").mode("overwrite").save()


def open_parquet(spark: Any, files: Sequence[str]) -> Any:
    """Open exactly these files as plain Parquet, without schema inference."""
    return spark.read.schema(_schema(spark)).parquet(*files)


def write_parquet(frame: Any, folder: str) -> None:
    """Write plain Parquet with the codec of the tables."""
    frame.write.option("compression", "zstd").parquet(folder)


def write_parquet_by_day(frame: Any, folder: str) -> None:
    """Write plain Parquet with one directory for each day, with the rows clustered by day."""
    clustered = frame.selectExpr("*", "cast(ts AS date) AS day").repartition("day")
    clustered.write.option("compression", "zstd").partitionBy("day").parquet(folder)


def _columns(ids: Any, rows: int) -> Any:
    step_micros = DAYS * 86_400_000_000 // rows
    return ids.selectExpr(
        "id AS event_id",
        f"pmod(xxhash64(id, 1), {_users(rows)}L) AS user_id",
        f"timestamp_micros({START_SECONDS}000000L + id * {step_micros}L) AS ts",
        "concat('C', lpad(cast(pmod(xxhash64(id, 3), 50L) AS string), 2, '0')) AS country",
        "element_at(array('view', 'click', 'cart', 'buy', 'search'), cast(pmod(xxhash64(id, 4), 5L) AS int) + 1)"
        " AS event_type",
        "concat('/p/', pmod(xxhash64(id, 5), 50000L)) AS url",
        "lower(lpad(hex(xxhash64(id div 20, 6)), 16, '0')) AS session_id",
        "cast(pmod(xxhash64(id, 7), 100000L) AS double) / 100 AS amount",
        "cast(pmod(xxhash64(id, 8), 60000L) AS int) AS duration_ms",
        "cast(pmod(xxhash64(id, 9), 1000003L) AS double) / 1000003 AS score",
    )


def _users(rows: int) -> int:
    return max(10, rows // 25)


def _schema(spark: Any) -> Any:
    return events(spark, 1).schema
