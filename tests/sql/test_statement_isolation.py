"""What a single statement promises about tables that change while it runs, as docs/sql.md says.

Tables that it only reads are those of its moment, and may change since. Of the changed table, rows that it read must be
the same at the commit, as the isolation level of the table says; rows that are only added never conflict.
"""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icefield.errors import ConcurrentChange
from icefield.lake import Lake
from tests.commit.racing import race
from tests.sql.changing import change, rows

SOURCE_CHANGES = ["INSERT INTO shop.s VALUES (2, 99)", "DELETE FROM shop.s WHERE id = 1", "UPDATE shop.s SET v = 77"]
# Statements that read shop.s, and the rows of shop.t after them if they read (1, 10) of it.
READERS = {
    "MERGE INTO shop.t USING shop.s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v": [(1, 10), (2, 0), (3, 0)],
    "UPDATE shop.t SET v = (SELECT max(v) FROM shop.s) WHERE id = 1": [(1, 10), (2, 0), (3, 0)],
    "DELETE FROM shop.t WHERE id IN (SELECT id FROM shop.s)": [(2, 0), (3, 0)],
    "INSERT INTO shop.t SELECT * FROM shop.s": [(1, 0), (1, 10), (2, 0), (3, 0)],
    "INSERT INTO shop.t REPLACE WHERE id = 1 SELECT * FROM shop.s": [(1, 10), (2, 0), (3, 0)],
    "INSERT INTO shop.t REPLACE ON t.id = s.id (SELECT * FROM shop.s) s": [(1, 10), (2, 0), (3, 0)],
    "FROM shop.s INSERT INTO shop.t SELECT * INSERT INTO shop.u SELECT *": [(1, 0), (1, 10), (2, 0), (3, 0)],
}


@pytest.fixture
def shop(lake: Lake) -> Lake:
    for name in ("t", "s", "u"):
        lake.create_table(f"shop.{name}", "id int, v int")
    change(lake, "INSERT INTO shop.t VALUES (1, 0), (2, 0), (3, 0)")
    change(lake, "INSERT INTO shop.s VALUES (1, 10)")
    return lake


def rival(lake: Lake, text: str) -> Callable[[], object]:
    return lambda: change(lake, text)


@pytest.mark.spark
@pytest.mark.parametrize("text", READERS)
def test_a_source_may_change_after_the_moment_of_the_statement(shop: Lake, spark: SparkSession, text: str) -> None:
    shop.use(spark)
    race(shop, rival(shop, SOURCE_CHANGES[len(text) % 3]), lambda: shop.sql(text))
    assert rows(shop.table("shop.t")) == READERS[text]


def test_a_source_may_change_without_spark_too(shop: Lake) -> None:
    text = next(iter(READERS))
    race(shop, rival(shop, SOURCE_CHANGES[0]), lambda: change(shop, text))
    assert rows(shop.table("shop.t")) == READERS[text]


@pytest.mark.spark
@pytest.mark.every_case
@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("UPDATE shop.t SET v = (SELECT count(*) FROM shop.t) WHERE id = 1", "update"),
        ("INSERT OVERWRITE shop.t SELECT id, v + 1 FROM shop.t", "overwrite"),
    ],
)
def test_the_changed_table_is_read_under_its_isolation_level(
    shop: Lake, spark: SparkSession, text: str, prefix: str
) -> None:
    shop.use(spark)
    table = shop.table("shop.t")
    before = rows(table)

    def run() -> None:
        race(shop, rival(shop, "INSERT INTO shop.t VALUES (9, 9)"), lambda: shop.sql(text))

    with pytest.raises(ConcurrentChange):
        run()
    assert rows(table) == [*before, (9, 9)]
    table.delete("id = 9")
    table.set_properties({f"write.{prefix}.isolation-level": "snapshot"})
    run()
    assert rows(table) != before
    assert (9, 9) in rows(table)


@pytest.mark.spark
def test_appended_rows_do_not_depend_on_what_was_read(shop: Lake, spark: SparkSession) -> None:
    shop.use(spark)
    text = "INSERT INTO shop.t SELECT max(id) + 1, 0 FROM shop.t"
    race(shop, rival(shop, "INSERT INTO shop.t VALUES (4, 1)"), lambda: shop.sql(text))
    assert rows(shop.table("shop.t"))[3:] == [(4, 0), (4, 1)]


def test_a_transaction_refuses_what_no_order_of_two_statements_gives(shop: Lake, tmp_path: Any) -> None:
    """Each reads the table that the other one changes: both single statements land, but only one transaction."""
    change(shop, "INSERT INTO shop.u VALUES (1, 5)")
    first = "MERGE INTO shop.s USING shop.u ON s.id = u.id WHEN MATCHED THEN UPDATE SET v = u.v"
    second = "MERGE INTO shop.u USING shop.s ON u.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
    race(shop, rival(shop, first), lambda: change(shop, second))
    assert (rows(shop.table("shop.s")), rows(shop.table("shop.u"))) == ([(1, 5)], [(1, 10)])
    shop.sql("BEGIN", engine="local")
    change(shop, second)
    other = Lake(shop.backend, shop.warehouse)
    change(other, first)
    with pytest.raises(ConcurrentChange):
        shop.sql("COMMIT", engine="local")
    assert (rows(shop.table("shop.s")), rows(shop.table("shop.u"))) == ([(1, 10)], [(1, 10)])
