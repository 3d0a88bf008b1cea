"""Local Arrow rows as a DataFrame."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from icefield.spark.read.task import present_batch
from icefield.spark.types import presented_field
from icefield.types.schema import Schema


def frame_of_arrow(spark: SparkSession, batches: pa.RecordBatchReader, schema: Schema) -> DataFrame:
    """Convert Arrow rows to a DataFrame, with the Spark types of the schema."""
    shown = spark_types.StructType([presented_field(f) for f in schema.fields])
    presented = [present_batch(batch, schema) for batch in batches]
    if not presented:
        return spark.createDataFrame([], shown)
    return spark.createDataFrame(pa.Table.from_batches(presented), shown)
