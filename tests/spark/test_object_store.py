"""Tables in an object store through Spark: its workers read and write them, and read no more than they need."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.s3_proxy import S3Proxy, running_proxy
from tests.s3_server import SECRET_KEY, s3_server
from tests.spark_places import explained

from icefield.ambient import SystemAmbient
from icefield.backend import Backend
from icefield.catalog.object_store.catalog import ObjectStoreCatalog
from icefield.lake import Lake
from icefield.storage.location import join_location
from icefield.storage.object_store.store import ObjectStore
from icefield.table.table import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def proxied() -> Iterator[tuple[S3Proxy, Lake]]:
    """A lake in a bucket, and what every request of this process and of Spark's workers goes through."""
    with running_proxy(s3_server().endpoint) as (proxy, endpoint):
        root = s3_server().new_root()
        store = ObjectStore({**s3_server().properties, "s3.endpoint": endpoint}, roots=[root])
        yield (
            proxy,
            Lake(Backend(ObjectStoreCatalog(store, join_location(root, "catalog")), store, SystemAmbient()), root),
        )


def rows_of(table: Table, where: str | None = None) -> list[dict[str, Any]]:
    """The rows by Spark, which are those by Arrow."""
    by_spark = sorted((r.asDict() for r in table.scan(where).to_spark().collect()), key=lambda row: row["id"])
    assert by_spark == sorted(table.scan(where).to_arrow().read_all().to_pylist(), key=lambda row: row["id"])
    return by_spark


def test_rows_are_written_read_replaced_and_deleted(spark: SparkSession, proxied: tuple[S3Proxy, Lake]) -> None:
    _, lake = proxied
    properties = {"write.delete.mode": "merge-on-read"}
    table = lake.create_table("s.t", "id long, p string", partition_by=["p"], format_version=3, properties=properties)
    table.append(spark.range(0, 60, 1, 2).selectExpr("id", "concat('p', id % 3) AS p"))
    assert [row["id"] for row in rows_of(table)] == [*range(60)]
    table.overwrite(spark.sql("SELECT 100L AS id, 'p0' AS p"), where="id >= 30")
    table.delete("id IN (4, 5)")
    left = [id_ for id_ in range(30) if id_ not in (4, 5)] + [100]
    assert [row["id"] for row in rows_of(table)] == left
    assert [row["id"] for row in rows_of(table, "p = 'p1' AND id < 10")] == [1, 7]
    assert table.scan().to_spark().where("id > 27").groupBy("p").count().count() == 3


def test_workers_read_the_columns_and_row_groups_that_they_need(
    spark: SparkSession, proxied: tuple[S3Proxy, Lake]
) -> None:
    proxy, lake = proxied
    properties = {"write.parquet.row-group-size-bytes": "100000", "write.parquet.compression-codec": "uncompressed"}
    table = lake.create_table("s.t", "id long, wide string", properties=properties)
    count = 20_000
    table.append(pa.table({"id": range(count), "wide": [f"{n:0100d}" for n in range(count)]}))
    (size,) = table.scan().files()["file_size_in_bytes"].to_pylist()
    assert size > 2_000_000

    def bytes_read(where: str | None, select: list[str]) -> int:
        frame = table.scan(where, select=select).to_spark()
        before = proxy.read_bytes
        frame.collect()
        return proxy.read_bytes - before

    assert bytes_read(None, ["id", "wide"]) >= size * 0.9
    assert bytes_read(None, ["id"]) < size / 3
    assert bytes_read("id = 10000", ["id", "wide"]) < size / 3


def test_credentials_reach_the_workers_and_are_shown_nowhere(
    spark: SparkSession, proxied: tuple[S3Proxy, Lake], capfd: pytest.CaptureFixture[str]
) -> None:
    _, lake = proxied
    table = lake.create_table("s.t", "id long")
    table.append(spark.range(3))
    frame = table.scan().to_spark()
    assert SECRET_KEY not in explained(frame)
    (path,) = set(table.scan().files()["file_path"].to_pylist()[:1])
    lake.store.delete(path)
    with pytest.raises(PySparkException, match="MissingFile") as caught:
        frame.collect()
    output = capfd.readouterr()
    assert SECRET_KEY not in f"{caught.value!s} {caught.value!r} {output.out} {output.err}"
