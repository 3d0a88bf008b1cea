"""Tables of a lake in Spark's own catalog: reads and appends by plain `spark.sql`, and nothing else."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import icefield
from icefield.errors import AlreadyExists, NoSuchNamespace, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def orders(lake: Lake, spark: SparkSession) -> Iterator[Table]:
    table = lake.create_table("shop.orders", "id long, v string", partition_by=["id"])
    table.append(pa.table({"id": [1, 2, 3], "v": ["a", "b", None]}))
    yield table
    lake.detach(spark)


def test_attached_tables_are_read_at_their_newest_version_and_appended_to(
    lake: Lake, orders: Table, spark: SparkSession
) -> None:
    assert lake.attach(spark, "shop").tables == ("shop.orders",)
    assert [tuple(row) for row in spark.sql("SELECT * FROM shop.orders ORDER BY id").collect()] == [
        (1, "a"),
        (2, "b"),
        (3, None),
    ]
    orders.append(pa.table({"id": [4]}))
    assert spark.sql("SELECT count(*) FROM shop.orders").first()[0] == 4  # type: ignore[index]
    spark.sql("INSERT INTO shop.orders VALUES (5, 'e')")
    orders.refresh()
    assert orders.count() == spark.table("shop.orders").count() == 5


def test_the_filter_of_one_mention_does_not_reach_another(lake: Lake, orders: Table, spark: SparkSession) -> None:
    lake.attach(spark)
    one, two, all_of_them = (
        "(SELECT count(*) FROM shop.orders WHERE id = 1)",
        "(SELECT count(*) FROM shop.orders WHERE id >= 2)",
        "(SELECT count(*) FROM shop.orders)",
    )
    assert spark.sql(f"SELECT {one}, {two}, {all_of_them}").collect() == [(1, 2, 3)]
    frame = spark.table("shop.orders")
    assert [frame.filter("id = 1").count(), frame.filter("id >= 2").count(), frame.count()] == [1, 2, 3]


def test_nothing_but_appends_changes_the_table(lake: Lake, orders: Table, spark: SparkSession) -> None:
    lake.attach(spark)
    before = orders.snapshots()
    for statement in (
        "DELETE FROM shop.orders WHERE id = 1",
        "UPDATE shop.orders SET v = 'x'",
        "MERGE INTO shop.orders t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE shop.orders",
        "INSERT OVERWRITE shop.orders VALUES (9, 'x')",
        "SELECT * FROM shop.orders VERSION AS OF 1",
    ):
        with pytest.raises(PySparkException):
            spark.sql(statement).collect()
    spark.sql("DROP TABLE shop.orders")
    orders.refresh()
    assert orders.snapshots() == before


def test_a_new_column_is_seen_after_attaching_again(lake: Lake, orders: Table, spark: SparkSession) -> None:
    lake.attach(spark)
    with orders.evolve() as evolution:
        evolution.add_column("w", "int")
    assert spark.table("shop.orders").columns == ["id", "v"]
    lake.attach(spark)
    assert spark.table("shop.orders").columns == ["id", "v", "w"]


def test_what_sparks_catalog_cannot_name_is_told_of(lake: Lake, orders: Table, spark: SparkSession) -> None:
    for name in ("shop.ORDERS", "shop.odd-name", "deep.er.t"):
        lake.create_table(name, "id long")
    lake.create_view("shop.v", "SELECT id FROM shop.orders", schema="id long")
    attached = lake.attach(spark)
    assert attached.tables == ("shop.orders",)
    assert attached.skipped.keys() == {"shop.ORDERS", "shop.odd-name", "deep.er.t", "shop.v"}
    with pytest.raises(NoSuchNamespace, match="no namespace nothing"):
        lake.attach(spark, "nothing")


def test_tables_of_others_are_left_alone(lake: Lake, orders: Table, spark: SparkSession) -> None:
    spark.sql("CREATE DATABASE shop")
    spark.sql("CREATE TABLE shop.orders (id INT) USING parquet")
    try:
        with pytest.raises(AlreadyExists, match="of the format parquet"):
            lake.attach(spark)
        assert lake.detach(spark) == []
        assert spark.table("shop.orders").columns == ["id"]
    finally:
        spark.sql("DROP DATABASE shop CASCADE")


def test_detaching_leaves_no_database(lake: Lake, orders: Table, spark: SparkSession) -> None:
    lake.attach(spark)
    assert lake.detach(spark) == ["shop.orders"]
    assert not spark.catalog.databaseExists("shop")
    assert lake.detach(spark) == []


def test_a_lake_in_memory_cannot_be_attached(spark: SparkSession) -> None:
    with icefield.connect("memory:") as lake:
        lake.create_table("shop.orders", "id long")
        with pytest.raises(Unsupported, match="memory"):
            lake.attach(spark)
