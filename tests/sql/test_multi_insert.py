"""FROM x INSERT INTO a ... INSERT INTO b ...: all tables at one moment, committed together or not at all."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icefield.ambient import SystemAmbient
from icefield.backend import Backend
from icefield.catalog.object_store.catalog import ObjectStoreCatalog
from icefield.errors import InvalidInput, NeedsSpark, NoSuchTable, SchemaMismatch, Unsupported
from icefield.lake import Lake
from icefield.storage.local import LocalStore
from icefield.storage.location import location_of_path
from icefield.storage.object_store.directory import DirectoryStore
from tests.sql.changing import refuse, rows

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(lake: Lake, spark: SparkSession) -> Lake:
    lake.use(spark)
    lake.create_table("shop.orders", "id int, name string")
    lake.create_table("shop.small", "id int, name string")
    lake.create_table("shop.large", "id int, name string")
    lake.sql("INSERT INTO shop.orders VALUES (1, 'a'), (5, 'b'), (9, 'c')", engine="local")
    lake.sql("INSERT INTO shop.large VALUES (5, 'old'), (7, 'old')", engine="local")
    return lake


def run(lake: Lake, text: str, args: Any = None, **more: Any) -> list[tuple[int, int]]:
    """Return how many rows each INSERT added and removed."""
    done = lake.sql(text, args, **more).select("rows_inserted", "rows_deleted").collect()
    return [(row[0], row[1]) for row in done]


def test_all_inserts_are_committed_together(shop: Lake) -> None:
    text = """FROM shop.orders o
    INSERT INTO shop.small SELECT id, name WHERE id < :least
    INSERT INTO shop.large REPLACE WHERE id = 5 SELECT id, upper(name) WHERE id = 5
    INSERT INTO shop.large (id) SELECT max(id) + 1 GROUP BY name HAVING max(id) > 5"""
    assert run(shop, text, {"least": 5}) == [(1, 0), (1, 1), (1, 0)]
    assert rows(shop.table("shop.small")) == [(1, "a")]
    assert rows(shop.table("shop.large")) == [(5, "B"), (7, "old"), (10, None)]


def test_every_query_reads_what_was_there_before_the_statement(shop: Lake) -> None:
    text = "FROM shop.orders INSERT INTO shop.orders SELECT id + 100, name INSERT INTO shop.small SELECT id, name"
    assert run(shop, text) == [(3, 0), (3, 0)]
    assert rows(shop.table("shop.small"), "id") == [(1,), (5,), (9,)]
    assert len(shop.table("shop.orders").snapshots()) == 2


def test_common_tables_and_markers_belong_to_every_query(shop: Lake) -> None:
    text = """WITH c AS (SELECT id + ? AS id, name FROM shop.orders) FROM c
    INSERT INTO shop.small SELECT id, name WHERE id = ? INSERT INTO shop.large SELECT id, ? WHERE id > ?"""
    assert run(shop, text, [10, 11, "n", 15]) == [(1, 0), (1, 0)]
    assert rows(shop.table("shop.small")) == [(11, "a")]
    assert (19, "n") in rows(shop.table("shop.large"))


def test_one_insert_that_fails_leaves_all_tables_as_they_were(shop: Lake) -> None:
    before = {name: shop.table(name).metadata_location for name in shop.tables()}
    start = "FROM shop.orders INSERT INTO shop.small SELECT id, name "
    refuse(shop, start + "INSERT INTO shop.lareg SELECT id, name", NoSuchTable, at="shop.lareg", engine=None)
    refuse(shop, start + "INSERT INTO shop.large SELECT idd, name", InvalidInput, at="idd", engine=None)
    refuse(shop, start + "INSERT INTO shop.large VALUES (1, 'x')", InvalidInput, at="VALUES", engine=None)
    refuse(shop, start + "INSERT INTO shop.large SELECT 1 / (id - id), name", InvalidInput, at="SELECT", engine=None)
    wide = refuse(shop, start + "INSERT INTO shop.large SELECT 1", SchemaMismatch, at="SELECT 1", engine=None)
    assert "name INSERT INTO shop.large SELECT 1" in str(wide)
    refuse(shop, start + "INSERT INTO shop.large SELECT id, name", NeedsSpark, at="FROM")
    assert {name: shop.table(name).metadata_location for name in shop.tables()} == before


def test_a_dry_run_and_a_transaction(shop: Lake) -> None:
    text = "FROM shop.orders INSERT INTO shop.small SELECT * INSERT OVERWRITE shop.large SELECT * WHERE id = 1"
    assert run(shop, text, dry_run=True) == [(3, 0), (1, 2)]
    assert rows(shop.table("shop.small")) == []
    plan = shop.sql(f"EXPLAIN {text}").first()[0]
    assert "insert into shop.small: no row is replaced" in plan
    assert "insert into shop.large, replacing" in plan
    shop.sql("BEGIN")
    run(shop, text)
    shop.sql("ROLLBACK")
    assert rows(shop.table("shop.small")) == []


def test_a_catalog_of_single_pointers_refuses_several_tables_before_any_work(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = location_of_path(str(tmp_path))
    catalog = ObjectStoreCatalog(DirectoryStore(durable=False), f"{root}/catalog")
    lake = Lake(Backend(catalog, LocalStore(roots=[root], durable=False), SystemAmbient()), root).use(spark)
    for name in ("a", "b", "c"):
        lake.create_table(f"shop.{name}", "id int")
    text = "FROM shop.a INSERT INTO shop.b SELECT * INSERT INTO shop.c SELECT nothing"
    refuse(lake, text, Unsupported, at="FROM", engine=None)
    assert run(lake, "FROM (VALUES (1)) v(id) INSERT INTO shop.b SELECT * INSERT INTO shop.b SELECT id + 1") == [
        (1, 0),
        (1, 0),
    ]
    assert rows(lake.table("shop.b")) == [(1,), (2,)]
