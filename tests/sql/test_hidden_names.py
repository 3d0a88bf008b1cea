"""Temporary views hide tables of the same name from statements that change them, too, as they do from queries."""

from typing import Any

import pytest

from icefield.errors import Unsupported
from icefield.lake import Lake
from tests.sql.changing import change, refuse, rows
from tests.sql.running import run

CHANGES = [
    "INSERT INTO {} VALUES (9)",
    "INSERT OVERWRITE {} VALUES (9)",
    "UPDATE {} SET id = 9",
    "DELETE FROM {}",
    "MERGE INTO {} AS o USING shop.other AS s ON o.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE {}",
    "DROP TABLE {}",
    "DROP TABLE IF EXISTS {}",
    "ALTER TABLE {} ADD COLUMN n INT",
    "ALTER TABLE {} RENAME TO shop.u",
    "ALTER TABLE {} CREATE BRANCH b",
    "ALTER TABLE {} SET TBLPROPERTIES ('a' = 'b')",
    "COMMENT ON TABLE {} IS 'x'",
    "CREATE TABLE shop.u LIKE {}",
    "OPTIMIZE {}",
    "ANALYZE TABLE {} COMPUTE STATISTICS",
    "CALL system.rewrite_data_files('{}')",
    "CALL system.forget('{}', 'id = 1')",
]


@pytest.fixture
def shop(lake: Lake) -> Lake:
    """A lake whose current namespace has a table `t`."""
    for name in ("t", "other"):
        lake.create_table(f"shop.{name}", "id int").append([{"id": 1}])
    run(lake, "USE shop")
    return lake


@pytest.mark.parametrize("text", CHANGES)
def test_a_table_that_a_temporary_view_hides_is_not_changed(shop: Lake, text: str) -> None:
    run(shop, "CREATE TEMPORARY VIEW T AS SELECT 'temporary' AS x")
    before = shop.table("shop.t").metadata
    with pytest.raises(Unsupported, match="it is a temporary view") as caught:
        run(shop, text.format("t"))
    at = text.index("{")
    assert caught.value.position == (1, at - (text[at - 1] == "'"))
    assert caught.value.hint == "Write shop.t for the table"
    assert shop.table("shop.t").metadata == before
    assert sorted(shop.tables()) == ["shop.other", "shop.t"]
    run(shop, text.format("shop.t"))


def test_a_temporary_view_that_hides_nothing_is_not_changed(shop: Lake) -> None:
    run(shop, "CREATE TEMPORARY VIEW v AS SELECT * FROM t")
    error = refuse(shop, "DELETE FROM v", Unsupported, at="v")
    assert error.hint == "Change the tables that it reads"
    run(shop, "DROP VIEW v")
    assert change(shop, "DELETE FROM t")["rows_deleted"] == 1


@pytest.mark.spark
def test_temporary_views_of_spark_hide_tables_too(shop: Lake, spark: Any) -> None:
    shop.use(spark)
    spark.sql("SELECT 1 AS id, 'view' AS name").createOrReplaceTempView("t")
    try:
        for text in ("DELETE FROM t", "UPDATE t SET id = 9"):
            refuse(shop, text, Unsupported, at="t S" if " S" in text else "t", engine=None)
        change(
            shop,
            "MERGE INTO shop.other AS o USING t ON o.id = t.id AND t.name = 'view' WHEN MATCHED THEN DELETE",
            engine=None,
        )
        assert (rows(shop.table("shop.t")), rows(shop.table("shop.other"))) == ([(1,)], [])
    finally:
        spark.catalog.dropTempView("t")
    change(shop, "DELETE FROM t", engine=None)
    assert rows(shop.table("shop.t")) == []
