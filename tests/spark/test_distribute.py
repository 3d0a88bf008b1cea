"""Rows of a partition come together."""

import pytest
from pyspark.sql import SparkSession
from tests.spark_places import changed

from icefield.lake import Lake

pytestmark = pytest.mark.spark


def test_writing_many_partitions_makes_one_file_each(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long, p long", partition_by=["p"])
    table.append(spark.range(0, 3000, 1, 8).selectExpr("id", "id % 300 AS p"))
    files = table.scan().files()
    assert files.num_rows == 300
    assert table.scan(where="p = 299").count() == 10


@pytest.mark.parametrize("partition_by", [["p"], ["p", "bucket(2, id)"]], ids=str)
def test_rows_come_together_without_adaptive_execution(
    partition_by: list[str], lake: Lake, spark: SparkSession
) -> None:
    table = lake.create_table("s.t", "id long, p long", partition_by=partition_by, order_by=["id"])
    with changed(spark, {"spark.sql.adaptive.enabled": "false"}):
        table.append(spark.range(0, 300, 1, 8).selectExpr("id", "id % 3 AS p"))
    assert table.count() == 300
    partitions = table.inspect("partitions").to_arrow().read_all().num_rows
    assert table.scan().files().num_rows == partitions
