"""WITH before DELETE, UPDATE and MERGE: the names of its queries in subqueries and sources."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from icefield.errors import InvalidInput, NoSuchTable, Unsupported
from icefield.lake import Lake
from tests.sql.changing import counts, refuse, rows

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(lake: Lake, spark: SparkSession) -> Lake:
    lake.use(spark)
    lake.create_table("shop.stock", "id int, qty int")
    lake.create_table("shop.s", "id int, qty int")
    lake.sql("INSERT INTO shop.stock VALUES (1, 10), (2, 20), (3, 30)", engine="local")
    lake.sql("INSERT INTO shop.s VALUES (3, 300), (4, 400)", engine="local")
    return lake


def after(lake: Lake, text: str, args: Any = None) -> list[tuple[Any, ...]]:
    """Run a statement, and return the rows of the table; then undo it."""
    table = lake.table("shop.stock")
    snapshot = table.metadata.current_snapshot_id
    assert snapshot is not None
    counts(lake, text, args, engine=None)
    found = rows(table)
    table.rollback(snapshot)
    return found


def test_names_are_found_in_subqueries(shop: Lake) -> None:
    start = "WITH a AS (SELECT id FROM shop.stock WHERE qty < ?), b(n) AS (SELECT id + 1 FROM a) "
    assert after(shop, start + "DELETE FROM shop.stock WHERE id IN (SELECT n FROM b) AND qty = ?", [15, 20]) == [
        (1, 10),
        (3, 30),
    ]
    assert after(shop, start + "DELETE FROM shop.stock t WHERE EXISTS (SELECT 1 FROM a WHERE a.id = t.id)", [25]) == [
        (3, 30)
    ]
    update = start + "UPDATE shop.stock SET qty = (SELECT max(n) FROM b) + ? WHERE id = (SELECT min(id) FROM a)"
    assert after(shop, update, [15, 100]) == [(1, 102), (2, 20), (3, 30)]


def test_a_name_hides_tables_and_is_hidden_by_inner_ones(shop: Lake) -> None:
    shop.sql("USE shop", engine="local")
    shop.sql("CREATE TEMPORARY VIEW v AS SELECT 3 AS id")
    hides = "WITH s AS (SELECT 1 AS id), v AS (SELECT id FROM v UNION SELECT id FROM s) "
    assert after(shop, hides + "DELETE FROM stock WHERE id IN (SELECT id FROM s)") == [(2, 20), (3, 30)]
    assert after(shop, hides + "DELETE FROM stock WHERE id IN (SELECT id FROM v)") == [(2, 20)]
    assert after(shop, hides + "DELETE FROM stock WHERE id IN (SELECT id FROM shop.s)") == [(1, 10), (2, 20)]
    inner = "DELETE FROM stock WHERE id IN (WITH s AS (SELECT 2 AS id) SELECT id FROM s)"
    assert after(shop, hides + inner) == [(1, 10), (3, 30)]


def test_recursive_expressions_and_sources_of_merge(shop: Lake) -> None:
    text = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 2 FROM r WHERE n < 3) "
    assert after(shop, text + "DELETE FROM shop.stock WHERE id IN (SELECT n FROM r)") == [(2, 20)]
    common = "WITH s AS (SELECT id, qty + ? AS qty FROM shop.s), m AS (SELECT max(qty) AS top FROM s)"
    merge = f"{common} MERGE INTO shop.stock t"
    clauses = "ON t.id = s.id WHEN MATCHED THEN UPDATE SET qty = s.qty WHEN NOT MATCHED THEN INSERT *"
    expected = [(1, 10), (2, 20), (3, 301), (4, 401)]
    assert after(shop, f"{merge} USING s {clauses}", [1]) == expected
    assert after(shop, f"{merge} USING (SELECT * FROM s) s {clauses}", [1]) == expected
    top = "ON t.id = x.id WHEN MATCHED THEN UPDATE SET qty = (SELECT top FROM m)"
    assert after(shop, f"{merge} USING s AS x {top}", [1]) == [(1, 10), (2, 20), (3, 401)]


def test_explain_changes_nothing(shop: Lake) -> None:
    before = shop.table("shop.stock").metadata_location
    common = "EXPLAIN WITH c AS (SELECT 1 AS id)"
    for rest in (
        "DELETE FROM shop.stock WHERE id IN (SELECT id FROM c)",
        "UPDATE shop.stock SET qty = 0 WHERE id IN (SELECT id FROM c)",
        "MERGE INTO shop.stock t USING c ON t.id = c.id WHEN MATCHED THEN DELETE",
        "INSERT INTO shop.stock (id) SELECT id FROM c",
    ):
        assert "shop.stock" in shop.sql(f"{common} {rest}").first()[0]
    assert shop.table("shop.stock").metadata_location == before


def test_errors_point_into_the_expressions(shop: Lake) -> None:
    def wrong(text: str, at: str, kind: Any = InvalidInput) -> None:
        error = refuse(shop, text, kind, at=at, engine=None)
        assert text[-20:] in str(error)

    rest = "DELETE FROM shop.stock WHERE id IN (SELECT id FROM c)"
    wrong(f"WITH c AS (SELECT * FROM shop.nothing) {rest}", "shop.nothing", NoSuchTable)
    wrong(f"WITH c AS (SELECT idd AS id FROM shop.s) {rest}", "idd")
    wrong("WITH shop AS (SELECT 1), stock AS (SELECT 1) DELETE FROM stock", "stock", Unsupported)
    wrong(
        "WITH c AS (SELECT 1 AS id) DELETE FROM shop.stock WHERE id IN (SELECT id FROM c VERSION AS OF 1)",
        "VERSION",
        Unsupported,
    )
    wrong("WITH c AS (SELECT 1) TRUNCATE TABLE shop.stock", "TRUNCATE")
