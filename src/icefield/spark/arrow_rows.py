"""Local Arrow rows as a DataFrame."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from icefield.spark.read.task import to_logical_batch
from icefield.spark.session.arrow_frame import create_frame
from icefield.spark.types import logical_field
from icefield.types.schema import Schema


def frame_of_arrow(spark: SparkSession, batches: pa.RecordBatchReader, schema: Schema) -> DataFrame:
    """Convert Arrow rows to a DataFrame, with the Spark types of the schema."""
    logical = spark_types.StructType([logical_field(f) for f in schema.fields])
    converted = [to_logical_batch(batch, schema) for batch in batches]
    if not converted:
        return spark.createDataFrame([], logical)
    return create_frame(spark, pa.Table.from_batches(converted), logical)
