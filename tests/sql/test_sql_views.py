"""Views by SQL, which Spark reads; and what is refused before it is asked."""

import pytest
from pyspark.sql import SparkSession

from icefield.errors import AlreadyExists, InvalidInput, NeedsSpark, NoSuchNamespace, NoSuchTable, Unsupported
from icefield.lake import Lake
from tests.sql.running import refused, run


@pytest.fixture
def shop(lake: Lake) -> Lake:
    run(lake, "CREATE NAMESPACE shop")
    run(lake, "CREATE TABLE shop.stock (sku STRING, qty INT)")
    return lake


def test_views_are_described_altered_renamed_and_dropped_without_spark(shop: Lake) -> None:
    view = shop.create_view("shop.v", "SELECT qty FROM stock", schema="qty int", properties={"k": "1"})
    run(shop, "ALTER VIEW shop.v SET TBLPROPERTIES ('k' = '2', 'l' = '3')")
    run(shop, "COMMENT ON VIEW shop.v IS 'c'")
    run(shop, "ALTER VIEW shop.v UNSET TBLPROPERTIES ('l', 'nothing')")
    assert view.properties == {"k": "2", "comment": "c"}
    run(shop, "ALTER VIEW shop.v RENAME TO w")
    run(shop, "CREATE VIEW IF NOT EXISTS shop.w AS SELECT nothing FROM nowhere")
    assert shop.views() == ["shop.w"]
    refused(shop, "DROP VIEW shop.v", NoSuchTable, at="shop.v")
    run(shop, "DROP VIEW IF EXISTS shop.v")
    run(shop, "DROP VIEW shop.w")
    assert shop.views() == []


def test_what_is_wrong_with_a_view_is_said_at_its_token_before_spark_is_asked(shop: Lake) -> None:
    shop.create_view("shop.v", "SELECT 1", schema="one int")
    refused(shop, "CREATE VIEW shop.stock AS SELECT 1 AS one", AlreadyExists, at="shop.stock")
    refused(shop, "CREATE OR REPLACE VIEW shop.stock AS SELECT 1 AS one", AlreadyExists, at="shop.stock")
    refused(shop, "CREATE VIEW shop.v AS SELECT 1 AS one", AlreadyExists, at="shop.v")
    refused(shop, "CREATE VIEW nowhere.v AS SELECT 1 AS one", NoSuchNamespace, at="nowhere.v")
    refused(shop, "CREATE OR REPLACE VIEW IF NOT EXISTS shop.w AS SELECT 1", InvalidInput, at="IF")
    refused(shop, "CREATE VIEW shop.w (a, A) AS SELECT 1, 2", InvalidInput, at="A)")
    refused(shop, "CREATE VIEW shop.w WITH SCHEMA EVOLUTION AS SELECT 1", Unsupported, at="WITH")
    refused(shop, "CREATE VIEW shop.w AS SELECT 1 AS one", NeedsSpark, at="SELECT")
    refused(shop, "ALTER VIEW shop.stock SET TBLPROPERTIES ('a' = 'b')", NoSuchTable, at="shop.stock")
    refused(shop, "ALTER VIEW shop.w AS SELECT 1 AS one", NoSuchTable, at="shop.w")
    refused(shop, "ALTER VIEW shop.v DROP COLUMN a", InvalidInput, at="DROP")
    run(shop, "BEGIN")
    refused(shop, "CREATE OR REPLACE VIEW shop.v AS SELECT 1", Unsupported, at="shop.v")
    run(shop, "ROLLBACK")


@pytest.mark.spark
def test_views_are_created_replaced_and_read(shop: Lake, spark: SparkSession) -> None:
    shop.use(spark)
    shop.sql("INSERT INTO shop.stock VALUES ('a', 1), ('b', 2), ('c', 3)")

    def rows(query: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in shop.sql(query).collect()]

    shop.sql(
        "CREATE VIEW shop.v (key COMMENT 'the sku', number) COMMENT 'a view' TBLPROPERTIES ('k' = 'v') "
        "AS SELECT upper(sku), qty FROM shop.stock WHERE qty > 1"
    )
    assert rows("SELECT key, number FROM shop.v ORDER BY key") == [("B", 2), ("C", 3)]
    view = shop.view("shop.v")
    assert [(f.name, f.doc) for f in view.schema.fields] == [("key", "the sku"), ("number", None)]
    assert (view.properties["comment"], view.properties["k"]) == ("a view", "v")
    assert view.sql == "SELECT upper(sku), qty FROM shop.stock WHERE qty > 1"

    shop.sql("ALTER VIEW shop.v AS SELECT qty AS q FROM shop.stock")
    assert rows("SELECT max(q) FROM shop.v") == [(3,)]
    assert view.properties["comment"] == "a view"
    shop.sql("CREATE OR REPLACE VIEW shop.v AS SELECT 1 AS one")
    assert rows("SELECT * FROM shop.v") == [(1,)]

    shop.sql("USE shop")
    shop.sql("CREATE VIEW w AS SELECT sku FROM stock WHERE qty = 2")
    shop.sql("CREATE TEMPORARY VIEW tmp AS SELECT sku FROM stock")
    assert rows("SELECT * FROM shop.w") == [("b",)]
    for text, token, error in (
        ("CREATE VIEW shop.x AS SELECT * FROM tmp", "tmp", InvalidInput),
        ("CREATE VIEW shop.x AS SELECT * FROM nothing", "nothing", NoSuchTable),
        ("CREATE VIEW shop.x AS SELECT * FROM shop.stock WHERE qty = :n", ":n", InvalidInput),
        ("CREATE VIEW shop.x (a, b) AS SELECT 1 AS one", "SELECT", InvalidInput),
        ("CREATE VIEW shop.x AS SELECT nothing FROM shop.stock", "SELECT", InvalidInput),
        ("CREATE OR REPLACE VIEW shop.w AS SELECT * FROM shop.w", "SELECT", InvalidInput),
    ):
        with pytest.raises(error) as caught:
            shop.sql(text, {"n": 1})
        assert caught.value.position == (1, text.index(token)), str(caught.value)
    shop.sql("DROP VIEW tmp")
    with pytest.raises(NoSuchTable):
        shop.sql("SELECT * FROM tmp")
