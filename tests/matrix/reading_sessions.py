"""Settings of Spark sessions that must not change a row."""

from random import Random

from tests.spark_places import INTERPRETED

REBASE = ("LEGACY", "EXCEPTION", "CORRECTED")
SWITCH = ("true", "false")
SETTINGS: dict[str, tuple[str, ...]] = {
    "spark.sql.session.timeZone": ("UTC", "America/New_York", "Asia/Kathmandu", "Africa/Casablanca", "Europe/Dublin"),
    "spark.sql.ansi.enabled": SWITCH,
    "spark.sql.parquet.datetimeRebaseModeInRead": REBASE,
    "spark.sql.parquet.int96RebaseModeInRead": REBASE,
    "spark.sql.caseSensitive": SWITCH,
    "spark.sql.sources.useV1SourceList": ("", "avro,csv,json,kafka,orc,parquet,text"),
    "spark.sql.adaptive.enabled": SWITCH,
    "spark.sql.parquet.enableVectorizedReader": SWITCH,
    "spark.sql.parquet.enableNestedColumnVectorizedReader": SWITCH,
    "spark.sql.parquet.filterPushdown": SWITCH,
    "spark.sql.parquet.filterPushdown.date": SWITCH,
    "spark.sql.parquet.filterPushdown.timestamp": SWITCH,
    "spark.sql.parquet.filterPushdown.decimal": SWITCH,
    "spark.sql.parquet.filterPushdown.stringPredicate": SWITCH,
    "spark.sql.parquet.pushdown.inFilterThreshold": ("10", "2"),
    "spark.sql.parquet.recordLevelFilter.enabled": SWITCH,
    "spark.sql.parquet.binaryAsString": SWITCH,
    "spark.sql.parquet.int96AsTimestamp": SWITCH,
    "spark.sql.parquet.inferTimestampNTZ.enabled": SWITCH,
    "spark.sql.parquet.fieldId.read.ignoreMissing": SWITCH,
    "spark.sql.legacy.parquet.nanosAsLong": SWITCH,
    "spark.sql.timestampType": ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"),
    "spark.sql.variable.substitute": SWITCH,
    "spark.sql.ansi.doubleQuotedIdentifiers": SWITCH,
    "spark.sql.optimizer.nestedSchemaPruning.enabled": SWITCH,
    "spark.sql.legacy.timeParserPolicy": ("LEGACY", "EXCEPTION", "CORRECTED"),
    "spark.sql.execution.arrow.pyspark.enabled": SWITCH,
    "spark.sql.execution.arrow.maxRecordsPerBatch": ("1", "10000"),
    "spark.sql.mapKeyDedupPolicy": ("EXCEPTION", "LAST_WIN"),
}


def draw_settings(random: Random) -> dict[str, str]:
    """Draw some settings; the others are the session's own."""
    drawn = {key: random.choice(values) for key, values in SETTINGS.items() if random.random() < 0.3}
    return drawn if random.random() < 0.1 else {**INTERPRETED, **drawn}
