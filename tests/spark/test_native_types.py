"""Spark's own Parquet reader takes the types of version 3 as we say it does."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from icefield.spark.types import physical_field
from icefield.types.arrow import arrow_schema, arrow_type
from icefield.types.datatypes import VariantType
from icefield.types.text import parse_schema

pytestmark = pytest.mark.spark


def test_spark_reads_the_types_of_version_3_from_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """The stored types are what Spark's own reader takes, also where a file has something else for unknown."""
    schema = parse_schema("id long, ns timestamp_ns, tz timestamptz_ns, v variant, g geometry, w geography, u unknown")
    version = bytes.fromhex("0101000000000000000000F03F0000000000000040")
    arrow = arrow_schema(schema).set(6, pa.field("u", pa.int32(), metadata={b"PARQUET:field_id": b"7"}))
    nanos = 1_234_567_890_123_456_789
    columns = [
        pa.array([1, 2]),
        pa.array([nanos, None], pa.int64()).view(pa.timestamp("ns")),
        pa.array([nanos, None], pa.int64()).view(pa.timestamp("ns", "UTC")),
        pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x0c\x2a"}, None], arrow_type(VariantType())),
        pa.array([version, None], pa.binary()),
        pa.array([version, None], pa.binary()),
        pa.array([7, 8], pa.int32()),
    ]
    pq.write_table(pa.table(columns, schema=arrow), tmp_path / "rows.parquet")
    stored = spark_types.StructType([physical_field(f) for f in schema.fields])
    first, second = spark.read.schema(stored).parquet(str(tmp_path / "rows.parquet")).orderBy("id").collect()
    assert (first.ns, first.tz, bytes(first.g), bytes(first.w), first.u) == (nanos, nanos, version, version, None)
    assert first.v.toPython() == 42
    assert tuple(second) == (2, None, None, None, None, None, None)
