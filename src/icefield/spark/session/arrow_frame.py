"""DataFrames from Arrow tables of this process."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

ROWS_OF_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


def create_frame(spark: SparkSession, table: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Create a DataFrame, also where the session does not limit the rows of a batch, which pyspark cannot do."""
    try:
        return spark.createDataFrame(table, schema)
    except ValueError:
        limit = spark.conf.get(ROWS_OF_BATCH) or ""
        if int(limit) > 0:
            raise
    spark.conf.set(ROWS_OF_BATCH, max(1, table.num_rows))
    try:
        return spark.createDataFrame(table, schema)
    finally:
        spark.conf.set(ROWS_OF_BATCH, limit)
