"""Views between icefield and Iceberg Java: each reads what the other wrote.

The catalogs of Java's that hold views are in memory or need a database that is not here, so metadata is carried over.
"""

import json

import pyarrow as pa
import pytest
from tests.interop.iceberg_java import IcebergJava
from tests.peers.gallery import Gallery

from icefield.catalog.catalog import Kind, PointerSwap
from icefield.codec.json.view import decode_view
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.view import View

pytestmark = [pytest.mark.interop, pytest.mark.spark]

CATALOG = "icefield"  # by this name Java's views refer to their catalog, and it is that of our lake
STEPS = (
    f"SET `spark.sql.catalog.{CATALOG}`=org.apache.iceberg.spark.SparkCatalog",
    f"SET `spark.sql.catalog.{CATALOG}.catalog-impl`=org.apache.iceberg.inmemory.InMemoryCatalog",
    f"SET `spark.sql.catalog.{CATALOG}.cache-enabled`=false",
    f"CREATE NAMESPACE {CATALOG}.viewed",
    f"CREATE TABLE {CATALOG}.viewed.orders (id BIGINT, amount DOUBLE, tag STRING) USING iceberg",
    f"USE {CATALOG}.viewed",
    "CREATE VIEW theirs (number COMMENT 'the id', label) AS SELECT id, tag FROM orders WHERE id < 3",
    "CREATE OR REPLACE VIEW theirs (number COMMENT 'the id', label) AS SELECT id, tag FROM orders WHERE id < 2",
    f"CREATE VIEW above COMMENT 'two deep' AS SELECT upper(label) AS l FROM {CATALOG}.viewed.theirs",
    "USE spark_catalog.default",
)


@pytest.fixture(scope="module")
def lake(gallery: Gallery) -> Lake:
    table = gallery.lake.create_table("viewed.orders", "id long, amount double, tag string")
    table.append(pa.table({"id": [1, 2, 3], "amount": [1.5, 20.0, 30.0], "tag": ["a", "b", None]}))
    return gallery.lake


@pytest.fixture(scope="module")
def theirs(lake: Lake, java: IcebergJava) -> View:
    java.sql(f"SET `spark.sql.catalog.{CATALOG}.warehouse`=`{lake.warehouse}/from-java`")
    for step in STEPS:
        java.sql(step)
    _take_over(lake, java, "viewed.theirs")
    _take_over(lake, java, "viewed.above")
    return lake.view("viewed.theirs")


def _take_over(lake: Lake, java: IcebergJava, name: str) -> None:
    location = f"{lake.warehouse}/from-java/{name}/metadata/00001-java.metadata.json"
    lake.store.put_new(location, java.view_metadata(CATALOG, name))
    lake.catalog.swap([PointerSwap(parse_table_name(name), None, location, Kind.VIEW)])


def test_java_reads_a_view_that_icefield_wrote(lake: Lake, java: IcebergJava) -> None:
    sql = "WITH big AS (SELECT * FROM orders WHERE amount > 10) SELECT id, upper(tag) AS label FROM big"
    lake.create_view("viewed.ours", sql, properties={"comment": "ours"})
    view = lake.create_view("viewed.ours", f"{sql} ORDER BY id", replace=True)
    ours = lake.store.read(view.metadata_location)
    again = java.rewrite_view_metadata(ours)
    assert json.loads(again) == json.loads(ours)
    assert decode_view(again, "again") == view.metadata


def test_icefield_reads_a_view_that_java_wrote(lake: Lake, theirs: View) -> None:
    assert [(f.name, str(f.type), f.doc) for f in theirs.schema.fields] == [
        ("number", "long", "the id"),
        ("label", "string", None),
    ]
    assert [version.dialects for version in theirs.versions()] == [("spark",), ("spark",)]
    assert [row.asDict() for row in theirs.to_spark().collect()] == [{"number": 1, "label": "a"}]
    assert [row.asDict() for row in lake.view("viewed.above").to_spark().collect()] == [{"l": "A"}]


def test_java_reads_on_after_icefield_replaced_its_view(lake: Lake, theirs: View, java: IcebergJava) -> None:
    lake.create_view("viewed.theirs", "SELECT id, tag FROM orders", schema="number long, label string", replace=True)
    again = json.loads(java.rewrite_view_metadata(lake.store.read(theirs.metadata_location)))
    assert [entry["version-id"] for entry in again["version-log"]] == [1, 2, 3]
    assert again["versions"][-1]["representations"][0]["sql"] == "SELECT id, tag FROM orders"
