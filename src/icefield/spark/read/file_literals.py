"""What rows inherit from their files as literals: a lookup in constant arrays, instead of a join.

    key 17  ->  array_position(array(0L, 17L, 40L), key) - 1 = 1  ->  get(array('a', 'b', 'c'), 1) = 'b'

Spark runs a job for the broadcast of even the smallest table. The search is linear, so this is for few files.
"""

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructType

from icefield.expr.render.spark_sql import spark_literal
from icefield.types import datatypes

MOST_FILES = 64
_PLACE = "icefield_place_of_file"
_TYPES: dict[type[DataType], datatypes.PrimitiveType] = {
    LongType: datatypes.LongType(),
    IntegerType: datatypes.IntegerType(),
    StringType: datatypes.StringType(),
}


def are_literals(files: pa.Table, schema: StructType) -> bool:
    """Return whether the columns of files can be written as literals."""
    return 0 < files.num_rows <= MOST_FILES and all(type(f.dataType) in _TYPES for f in schema.fields)


def with_literals(frame: DataFrame, key: str, files: pa.Table, schema: StructType) -> DataFrame:
    """Add the columns of files to rows, by the key of their file, which is the first column of the table."""
    keys, *others = (_array(column.to_pylist(), f.dataType) for column, f in zip(files.columns, schema, strict=True))
    placed = frame.selectExpr("*", f"CAST(array_position({keys}, {key}) - 1 AS INT) AS {_PLACE}")
    names = schema.names[1:]
    made = (f"get({values}, {_PLACE}) AS {name}" for values, name in zip(others, names, strict=True))
    # Every row has a file. The filter keeps the key in the plan, without which Spark's reader refuses to number rows.
    return placed.where(f"{_PLACE} >= 0").selectExpr("*", *made).drop(_PLACE)


def _array(values: list[Any], kind: DataType) -> str:
    own = _TYPES[type(kind)]
    null = f"CAST(NULL AS {kind.simpleString()})"
    return f"array({', '.join(null if value is None else spark_literal(value, own) for value in values)})"
