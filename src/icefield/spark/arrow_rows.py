"""Local Arrow rows as a DataFrame, and a DataFrame as local Arrow rows. Raises InvalidInput."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from icefield.errors import InvalidInput
from icefield.spark.read.task import to_logical_batch
from icefield.spark.session.analysis_errors import error_of_function, error_of_value, logged_once
from icefield.spark.session.arrow_frame import create_frame
from icefield.spark.session.worker_errors import explained_worker_errors
from icefield.spark.types import logical_field
from icefield.types.schema import Schema


def frame_of_arrow(spark: SparkSession, batches: pa.RecordBatchReader, schema: Schema) -> DataFrame:
    """Convert Arrow rows to a DataFrame, with the Spark types of the schema."""
    logical = spark_types.StructType([logical_field(f) for f in schema.fields])
    converted = [to_logical_batch(batch, schema) for batch in batches]
    if not converted:
        return spark.createDataFrame([], logical)
    return create_frame(spark, pa.Table.from_batches(converted), logical)


def arrow_of_frame(frame: DataFrame) -> pa.Table:
    """Collect the rows of a DataFrame; if an expression fails for a row, the error is one line."""
    with logged_once(), explained_worker_errors():
        try:
            return frame.toArrow()
        except Exception as error:  # depending on the plan, Spark raises errors of values as errors of the JVM, too
            why = error_of_value(error) or error_of_function(error)
            if why is None:
                raise
            raise InvalidInput(f"cannot evaluate the query: {why}") from error
