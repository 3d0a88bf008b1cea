"""MERGE from queries, views and DataFrames, and subqueries of DELETE, UPDATE and MERGE, on Spark."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from icefield.errors import InvalidInput, NoSuchTable, Unsupported
from icefield.lake import Lake
from tests.spark_places import changed
from tests.sql.changing import change, counts, refuse, rows

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(lake: Lake, spark: SparkSession) -> Lake:
    lake.use(spark)
    lake.create_table("shop.stock", "sku string, qty int, note string")
    lake.create_table("shop.changes", "sku string, qty int, note string, op string")
    change(lake, "INSERT INTO shop.stock VALUES ('a', 1, 'x'), ('b', 2, 'y'), ('c', 3, NULL)")
    change(
        lake, "INSERT INTO shop.changes VALUES ('a', 10, 'n', 'set'), ('b', NULL, 'n', 'del'), ('d', 40, 'n', 'set')"
    )
    return lake


def after(lake: Lake, text: str, args: Any = None, **frames: Any) -> list[tuple[Any, ...]]:
    """Run a statement, undo it, and return the keys and numbers that the table had."""
    table = lake.table("shop.stock")
    snapshot = table.metadata.current_snapshot_id
    change(lake, text, args, engine=None, **frames)
    found = rows(table, "sku", "qty")
    assert snapshot is not None
    table.rollback(snapshot)
    return found


def test_subqueries_read_what_queries_read(shop: Lake, spark: SparkSession) -> None:
    changes = shop.table("shop.changes")
    version = changes.metadata.current_snapshot_id
    changes.create_branch("kept")
    change(shop, "INSERT INTO shop.changes VALUES ('c', 1, 'n', 'new')")
    spark.sql("SELECT 'c' AS sku").createOrReplaceTempView("mine")

    def deleted(where: str, args: Any = None, **frames: Any) -> str:
        left = after(shop, f"DELETE FROM shop.stock o WHERE {where}", args, **frames)
        return "".join(sorted({"a", "b", "c"} - {row[0] for row in left}))

    assert deleted("qty < (SELECT max(c.qty) FROM shop.changes c WHERE c.sku = o.sku)") == "a"
    assert (
        deleted("sku IN (WITH c AS (SELECT sku FROM shop.changes WHERE op = :op) SELECT sku FROM c)", {"op": "del"})
        == "b"
    )
    assert deleted("NOT EXISTS (SELECT 1 FROM shop.changes WHERE shop.changes.sku = o.sku)") == ""
    assert deleted(f"sku NOT IN (SELECT sku FROM shop.changes VERSION AS OF {version} WHERE op <> 'x')") == "c"
    assert deleted("sku NOT IN (SELECT sku FROM shop.changes.branch_kept)") == "c"
    assert deleted("qty <= (SELECT count(*) FROM shop.changes.refs)") == "ab"
    assert deleted("sku IN (SELECT sku FROM mine)") == "c"
    assert deleted("sku IN (SELECT sku FROM {frame}) OR qty > (SELECT avg(qty) FROM shop.stock)",
                   frame=spark.sql("SELECT 'a' AS sku")) == "ac"  # fmt: skip
    spark.catalog.dropTempView("mine")


def test_errors_in_subqueries_point_at_the_token(shop: Lake) -> None:
    def wrong(where: str, at: str, kind: Any = InvalidInput) -> str:
        return refuse(shop, f"DELETE FROM shop.stock WHERE {where}", kind, at=at, engine=None).message

    wrong("sku IN (SELECT sku FROM shop.nothing)", "shop.nothing", NoSuchTable)
    wrong("sku IN (SELECT skew FROM shop.changes)", "skew")
    wrong("sku = (SELECT sku FROM shop.changes)", "(SELECT sku")
    assert "random" in wrong("qty > 1 OR rand() < 0.5", "rand")
    wrong("qty > sum(qty)", "sum")
    wrong("row_number() OVER (ORDER BY qty) = 1", "OVER")
    assert shop.table("shop.stock").count() == 3


def test_values_are_subqueries_too(shop: Lake) -> None:
    assert after(
        shop,
        "UPDATE shop.stock t SET qty = (SELECT max(qty) FROM shop.changes c WHERE c.sku = t.sku), "
        "note = (SELECT min(op) FROM shop.changes) WHERE sku <> 'c'",
    ) == [("a", 10), ("b", None), ("c", 3)]
    assert after(
        shop,
        "MERGE INTO shop.stock t USING shop.changes s ON t.sku = s.sku "
        "WHEN MATCHED THEN UPDATE SET qty = (SELECT sum(qty) FROM shop.changes)",
    ) == [("a", 50), ("b", 50), ("c", 3)]


def test_sources_are_queries_frames_and_metadata(shop: Lake, spark: SparkSession) -> None:
    def merged(source: str, rest: str, **frames: Any) -> list[tuple[Any, ...]]:
        return after(shop, f"MERGE INTO shop.stock t USING {source} {rest}", **frames)

    both = "WHEN MATCHED THEN UPDATE SET qty = n WHEN NOT MATCHED THEN INSERT (sku, qty) VALUES (k, n)"
    expected = [("a", 9), ("b", 2), ("c", 3), ("z", 26)]
    frame = spark.sql("SELECT * FROM VALUES ('a', 9), ('z', 26) AS v(k, n)")
    assert merged("(SELECT * FROM VALUES ('a', 9), ('z', 26) AS v(k, n)) s", f"ON t.sku = s.k {both}") == expected
    assert merged("(SELECT * FROM VALUES ('a', 9), ('z', 26) AS v(k, n))", f"ON sku = k {both}") == expected
    assert merged("{frame} AS s", f"ON t.sku = s.k {both}", frame=frame) == expected
    counted = "(WITH c AS (SELECT sku, count(*) AS n FROM shop.changes GROUP BY sku) SELECT * FROM c) s"
    negated = merged(counted, "ON t.sku = s.sku WHEN MATCHED THEN UPDATE SET qty = -n")
    assert negated == [("a", -1), ("b", -1), ("c", 3)]
    assert merged("shop.stock.files f", "ON t.qty = f.record_count WHEN MATCHED THEN DELETE") == [("a", 1), ("b", 2)]
    assert merged("(SELECT sku, max(qty) AS m FROM shop.stock GROUP BY sku) s",
                  "ON t.sku = s.sku WHEN MATCHED AND m >= 2 THEN UPDATE SET qty = -m") == [
        ("a", 1), ("b", -2), ("c", -3)]  # fmt: skip
    common = (
        "WITH c AS (SELECT 'a' AS k) MERGE INTO shop.stock USING (SELECT * FROM c) ON sku = k WHEN MATCHED THEN DELETE"
    )
    assert after(shop, common) == [("b", 2), ("c", 3)]


def test_a_transaction_sees_its_own_changes(shop: Lake) -> None:
    shop.sql("BEGIN READING (shop.stock, shop.changes)")
    change(shop, "DELETE FROM shop.stock WHERE sku IN (SELECT sku FROM shop.changes)", engine=None)
    change(shop, "INSERT INTO shop.changes SELECT sku, qty, note, 'kept' FROM shop.stock", engine=None)
    assert shop.sql("SELECT sku FROM shop.changes WHERE op = 'kept'").toArrow().to_pylist() == [{"sku": "c"}]
    assert (shop.table("shop.stock").count(), shop.table("shop.changes").count()) == (3, 3)
    shop.sql("COMMIT")
    assert (shop.table("shop.stock").count(), shop.table("shop.changes").count()) == (1, 4)


@pytest.mark.parametrize(
    ("source", "frames"),
    [
        ("(VALUES ('a', 5), ('d', 6)) AS v(k, n)", {}),
        ("(SELECT sku, 5 + int(sku = 'd') FROM shop.changes WHERE sku <> 'b') v(`k`, n)", {}),
        ("{frame} v (k, n)", {"frame": "SELECT * FROM VALUES ('a', 5), ('d', 6)"}),
        ("few AS v(k, n)", {}),
        ("shop.two AS v(k, n)", {}),
    ],
)
def test_an_alias_names_the_columns_of_the_source(
    shop: Lake, spark: SparkSession, source: str, frames: dict[str, str]
) -> None:
    shop.sql("CREATE TEMPORARY VIEW few AS SELECT * FROM VALUES ('a', 5), ('d', 6)")
    shop.create_table("shop.two", "sku string, qty int")
    change(shop, "INSERT INTO shop.two VALUES ('a', 5), ('d', 6)")
    clauses = "WHEN MATCHED THEN UPDATE SET qty = n WHEN NOT MATCHED THEN INSERT (sku, qty) VALUES (k, v.n)"
    given = {name: spark.sql(text) for name, text in frames.items()}
    wanted = [("a", 5), ("b", 2), ("c", 3), ("d", 6)]
    assert after(shop, f"MERGE INTO shop.stock USING {source} ON sku = v.k {clauses}", **given) == wanted
    short = source.replace(", n)", ")")
    text = f"MERGE INTO shop.stock USING {short} ON sku = v.k WHEN MATCHED THEN DELETE"
    error = refuse(shop, text, InvalidInput, at="(k)" if "(k)" in short else "(`k`)", engine=None, **given)
    assert error.message == "the source has 2 columns, but its alias names 1"


def test_variables_of_the_session_mean_the_same_in_every_statement(shop: Lake, spark: SparkSession) -> None:
    spark.conf.set("icefield.test.note", "y")
    try:
        name = "'${icefield.test.note}'"
        queried = shop.sql(f"SELECT sku FROM shop.stock WHERE note = {name}").collect()
        assert [row.sku for row in queried] == ["b"]
        others = [("a", 1), ("c", 3)]
        assert after(shop, f"DELETE FROM shop.stock WHERE note = {name}") == others
        assert after(shop, f"UPDATE shop.stock SET qty = 9 WHERE note = {name}") == [("a", 1), ("b", 9), ("c", 3)]
        source = "(SELECT 'b' AS k)"
        merge = f"MERGE INTO shop.stock USING {source} ON sku = k AND note = {name} WHEN MATCHED THEN DELETE"
        assert after(shop, merge) == others
        # The value of a parameter is not part of the statement.
        unchanged = [("a", 1), ("b", 2), ("c", 3)]
        literal = {"n": name.strip("'"), "s": "zz"}
        text = "UPDATE shop.stock SET sku = :s WHERE note = :n OR sku = 'b' AND FALSE"
        change(shop, text, literal, engine=None)
        assert rows(shop.table("shop.stock"), "sku", "qty") == unchanged
    finally:
        spark.conf.unset("icefield.test.note")


def test_arrays_in_conditions_leave_nothing_out(shop: Lake) -> None:
    found = shop.sql("SELECT sku FROM shop.stock WHERE array_contains(:l, qty)", {"l": [1, 3]}).collect()
    assert sorted(row.sku for row in found) == ["a", "c"]


def test_double_quotes_are_refused_where_the_session_takes_them_for_names(shop: Lake, spark: SparkSession) -> None:
    statements = (
        'DELETE FROM shop.stock WHERE note = "sku"',
        'SELECT "sku" FROM shop.stock',
        'INSERT INTO shop.stock VALUES ("a", 1, NULL)',
    )
    with changed(spark, {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}):
        for text in statements:
            with pytest.raises(Unsupported, match="for a name") as caught:
                shop.sql(text)
            assert caught.value.position == (1, text.index('"'))
        assert counts(shop, "DELETE FROM shop.stock WHERE note = '\"'", engine=None) == {}
    assert after(shop, 'DELETE FROM shop.stock WHERE note = "y"') == [("a", 1), ("c", 3)]
