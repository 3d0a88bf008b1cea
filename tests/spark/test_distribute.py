"""Rows of a partition come together."""

import pytest
from pyspark.sql import SparkSession

from icefield.lake import Lake

pytestmark = pytest.mark.spark


def test_writing_many_partitions_makes_one_file_each(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long, p long", partition_by=["p"])
    table.append(spark.range(0, 3000, 1, 8).selectExpr("id", "id % 300 AS p"))
    files = table.scan().files()
    assert files.num_rows == 300
    assert table.scan(where="p = 299").count() == 10
