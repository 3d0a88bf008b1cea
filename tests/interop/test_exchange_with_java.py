"""A table that Iceberg Java made and evolved is read and appended to by icefield, and Java reads the result."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.interop.iceberg_java import IcebergJava
from tests.peers.gallery import Gallery
from tests.peers.normal import normal_rows

from icefield import Lake, Table
from icefield.catalog.catalog import PointerSwap
from icefield.model.names import parse_table_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

NAME = "java.shop.orders"  # in Java's catalog
STEPS = (
    "CREATE NAMESPACE IF NOT EXISTS java.shop",
    f"""CREATE TABLE {NAME} (id BIGINT NOT NULL, name STRING, at TIMESTAMP, price DECIMAL(9, 2), n INT,
        inside STRUCT<x: INT, y: STRING>, items ARRAY<STRUCT<a: INT, b: STRING>>, pairs MAP<STRING, DOUBLE>)
        USING iceberg PARTITIONED BY (bucket(4, id), days(at)) TBLPROPERTIES ('format-version'='2')""",
    f"""INSERT INTO {NAME} SELECT id, concat('name ', id), timestamp_seconds(id * 40000 - 100000), id * 1.25, id,
        named_struct('x', int(id), 'y', if(id % 3 = 0, null, 'y')), array(named_struct('a', int(id), 'b', 'b')),
        map('k', double(id)) FROM range(0, 10)""",
    f"ALTER TABLE {NAME} RENAME COLUMN name TO label",
    f"ALTER TABLE {NAME} ALTER COLUMN n TYPE BIGINT",
    f"ALTER TABLE {NAME} ALTER COLUMN price TYPE DECIMAL(18, 2)",
    f"ALTER TABLE {NAME} ADD COLUMN inside.z DOUBLE",
    f"ALTER TABLE {NAME} ADD COLUMN note STRING FIRST",
    f"ALTER TABLE {NAME} ADD PARTITION FIELD truncate(3, label)",
    f"ALTER TABLE {NAME} DROP PARTITION FIELD days(at)",
    f"""INSERT INTO {NAME} SELECT concat('note ', id), id, if(id = 15, null, concat('name ', id)),
        timestamp_seconds(id * 40000), id * 2.5, 5000000000 + id, named_struct('x', int(id), 'y', 'y', 'z', id / 8),
        array(), map() FROM range(10, 20)""",
    f"DELETE FROM {NAME} WHERE id IN (3, 13)",  # copies the files that stay, by default
    f"ALTER TABLE {NAME} RENAME COLUMN note TO memo",
    f"ALTER TABLE {NAME} ADD COLUMN note STRING",
    f"ALTER TABLE {NAME} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')",
    f"DELETE FROM {NAME} WHERE id IN (5, 16)",
)
FILTERS = (
    "id = 4",
    "id >= 12",
    "label = 'name 7'",
    "label IS NULL",
    "label LIKE 'name 1%'",
    "at < TIMESTAMP '1970-01-01 00:00:00+00:00'",
    "price > 20",
    "n > 4294967296",
    "note IS NULL",
    "memo IS NULL",
    "memo = 'note 17'",
    "price < 30000000.00",
    "n IN (4, 5000000017)",
    "NOT (label = 'name 7')",
    "inside.y IS NULL OR price = 2.5",
    "inside.x <= 2",
    "inside.z > 2",
)


@pytest.fixture(scope="module")
def shared(gallery: Gallery, java: IcebergJava, interop_folder: Path) -> Table:
    """The table that Java made, in our catalog."""
    for step in STEPS:
        java.sql(step)
    return _register(gallery.lake, interop_folder / "java" / "shop" / "orders")


def test_we_read_every_row(shared: Table, java: IcebergJava) -> None:
    ours = shared.scan().to_arrow().read_all()
    assert ours.num_rows == 16
    assert normal_rows(ours, ours.schema) == normal_rows(java.sql(f"SELECT * FROM {NAME}"), ours.schema)


@pytest.mark.parametrize("where", FILTERS)
def test_we_find_the_rows_that_java_finds(where: str, shared: Table, java: IcebergJava) -> None:
    expected = sorted(java.sql(f"SELECT id FROM {NAME} WHERE {where}").column("id").to_pylist())
    assert expected
    assert sorted(shared.scan(where=where).to_arrow().read_all().column("id").to_pylist()) == expected


def test_spark_finds_them_by_filters_of_the_scan_and_of_the_user(
    shared: Table, java: IcebergJava, spark: "SparkSession"
) -> None:
    assert spark is not None
    found: dict[str, list[list[int]]] = {}
    expected: dict[str, list[list[int]]] = {}
    for where in FILTERS:
        frames = (shared.scan().to_spark().where(where), shared.scan(where).to_spark())
        found[where] = [sorted(row.id for row in frame.select("id").collect()) for frame in frames]
        expected[where] = [sorted(java.sql(f"SELECT id FROM {NAME} WHERE {where}").column("id").to_pylist())] * 2
    assert found == expected


def test_java_reads_what_we_append(shared: Table, java: IcebergJava) -> None:
    before = shared.scan().to_arrow().read_all()
    row = {"id": 100, "note": "ours", "label": "name 100", "inside": {"x": 1, "y": None, "z": 0.5}, "items": []}
    shared.append(pa.Table.from_pylist([row], before.schema))
    found = java.read(shared.metadata_location, before.schema.names)
    after = shared.scan().to_arrow().read_all()
    assert after.num_rows == before.num_rows + 1
    assert normal_rows(found, before.schema) == normal_rows(after, before.schema)


def _register(lake: Lake, folder: Path) -> Table:
    version = (folder / "metadata" / "version-hint.text").read_text()
    name = parse_table_name("exchange.orders")
    lake.create_namespace("exchange")
    lake.catalog.swap([PointerSwap(name, None, f"file://{folder}/metadata/v{version}.metadata.json")])
    return lake.table(str(name))
