"""Queries through `lake.sql`: names, versions, parameters, temporary views and errors, on Spark."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefield.errors import (
    AlreadyExists,
    IcefieldError,
    InvalidInput,
    NeedsSpark,
    NoSuchSnapshot,
    NoSuchTable,
    NotFound,
    Unsupported,
)
from icefield.lake import Lake
from icefield.spark.session.session import is_remote

pytestmark = pytest.mark.spark

DAY = date(2026, 1, 1)


@pytest.fixture
def shop(lake: Lake, spark: SparkSession) -> Iterator[Lake]:
    """Orders in two snapshots with a branch and a tag at the first, customers, another table of orders, a view."""
    lake.use(spark)
    orders = lake.create_table("shop.orders", "id long, customer string, day date", partition_by=["day"])
    orders.append(pa.table({"id": [1, 2], "customer": ["ann", "bob"], "day": [DAY, DAY]}))
    orders.create_branch("b")
    orders.create_tag("g")
    orders.append(pa.table({"id": [3], "customer": ["ann"], "day": [date(2026, 1, 2)]}))
    lake.create_table("shop.customers", "id string, name string").append(
        pa.table({"id": ["ann", "bob"], "name": ["Ann", "Bob"]})
    )
    lake.create_table("other.orders", "id long").append(pa.table({"id": [1]}))
    lake.create_view("shop.recent", "SELECT id, customer FROM orders WHERE id > 1", schema="id long, customer string")
    yield lake
    lake.use(None)


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def check_rows(lake: Lake, cases: dict[str, list[tuple[Any, ...]]], **given: Any) -> None:
    for text, expected in cases.items():
        assert rows(lake.sql(text, **given)) == expected, text


def check_errors(lake: Lake, cases: dict[str, tuple[type[IcefieldError], str, tuple[int, int]]]) -> None:
    """Run statements that fail: each with its error, a part of its message, and the line and column it points at."""
    for text, (kind, message, position) in cases.items():
        with pytest.raises(IcefieldError) as caught:
            lake.sql(text)
        said = str(caught.value)
        assert (type(caught.value), caught.value.position) == (kind, position), (text, said)
        assert message in said, (text, said)
        assert "icefield_" not in said, said
        assert "_pyspark" not in said, said
        assert "org.apache" not in said, said


def test_names_of_every_kind(shop: Lake, spark: SparkSession) -> None:
    spark.range(2, 4).createOrReplaceTempView("numbers")
    check_rows(
        shop,
        {
            "SELECT count(*) FROM shop.orders": [(3,)],
            "TABLE shop.customers": [("ann", "Ann"), ("bob", "Bob")],
            "FROM shop.orders |> WHERE id > 2 |> SELECT orders.id": [(3,)],
            "SELECT id FROM shop . `orders` /* shop.customers; */ AS q WHERE q.id = 1 -- end": [(1,)],
            "WITH orders AS (SELECT 7 AS id) SELECT id FROM orders": [(7,)],
            "SELECT o.id FROM numbers JOIN shop.orders o USING (id)": [(2,), (3,)],
            "SELECT * FROM shop.recent": [(2, "bob"), (3, "ann")],
            "SELECT count(*) FROM shop.orders.files": [(2,)],
            "SELECT type FROM shop.orders.refs WHERE name = 'g'": [("TAG",)],
            "SELECT id FROM shop.orders.branch_b UNION ALL SELECT id FROM shop.orders.tag_g": [(1,), (1,), (2,), (2,)],
            "SELECT SHOP.orders.ID, Other.Orders.id FROM shop.orders JOIN other.orders ON shop.orders.id = 1": [(1, 1)],
            "SELECT orders.id FROM shop.orders WHERE id > 2 UNION SELECT orders.id FROM other.orders": [(1,), (3,)],
            "SELECT /*+ BROADCAST(shop.orders) */ shop.orders.* FROM shop.orders TABLESAMPLE (3 ROWS) WHERE id = 1": [
                (1, "ann", DAY)
            ],
            "SELECT id FROM shop.orders WHERE EXISTS "
            "(SELECT 1 FROM shop.customers orders WHERE orders.id = shop.orders.customer AND orders.name = 'Bob')": [
                (2,)
            ],
            "SELECT id, _spec_id, _partition.day FROM shop.orders WHERE id = 3": [(3, 0, date(2026, 1, 2))],
            "SELECT *, o._pos FROM shop.orders o WHERE o._file IS NOT NULL AND id = 1": [(1, "ann", DAY, 0)],
            "SELECT * EXCEPT (day), _pos FROM shop.orders WHERE id = 3": [(3, "ann", 0)],
            "SELECT orders.customer, orders.day, other.orders.id FROM shop.orders JOIN other.orders "
            "ON shop.orders.id = other.orders.id": [("ann", DAY, 1)],
            "SELECT CASE WHEN id IN (SELECT id FROM other.orders) THEN 'a' ELSE (SELECT max(name) FROM shop.customers) "
            "END FROM shop.orders WHERE id < 3": [("Bob",), ("a",)],
            "SELECT count(*) FILTER (WHERE id IN (SELECT id FROM other.orders)) FROM shop.orders": [(1,)],
            "WITH orders AS (SELECT 7 AS id) SELECT shop.orders.id FROM orders AS o JOIN shop.orders ON o.id > 0": [
                (1,),
                (2,),
                (3,),
            ],
        },
    )
    spark.catalog.dropTempView("numbers")


def test_a_table_called_as_a_metadata_table_comes_first(shop: Lake) -> None:
    shop.create_table("shop.orders.files", "x long").append(pa.table({"x": [5]}))
    check_rows(shop, {"SELECT * FROM shop.orders.files": [(5,)]})


def test_versions(shop: Lake) -> None:
    first, last = (snapshot.snapshot_id for snapshot in shop.table("shop.orders").snapshots())
    both = "SELECT count(a.id), count(b.id) FROM shop.orders a FULL JOIN shop.orders VERSION AS OF :v b USING (id)"
    moment = datetime.fromtimestamp(shop.table("shop.orders").snapshots()[0].timestamp_ms / 1000, UTC)
    check_rows(
        shop,
        {
            f"SELECT count(*) FROM shop.orders VERSION AS OF {first}": [(2,)],
            f"SELECT count(*) FROM shop.orders FOR SYSTEM_VERSION AS OF '{last}' o WHERE o.id > 0": [(3,)],
            "SELECT count(*) FROM shop.orders FOR VERSION AS OF 'b' TABLESAMPLE (100 PERCENT)": [(2,)],
            "SELECT count(*) FROM shop.orders TIMESTAMP AS OF '2999-01-01'": [(3,)],
            "SELECT count(*) FROM shop.orders FOR SYSTEM_TIME AS OF date_add(current_date(), 2)": [(3,)],
            "SELECT count(*) FROM shop.orders TIMESTAMP AS OF now() + INTERVAL 1 DAY o WHERE o.id > 0": [(3,)],
            f"SELECT count(*) FROM shop.orders.files VERSION AS OF {first}": [(1,)],
            both: [(3, 2)],
            "SELECT count(*) FROM shop.orders TIMESTAMP AS OF :t": [(2,)],
        },
        args={"v": first, "t": moment},
    )
    assert rows(shop.sql("SELECT ?, count(*) FROM shop.orders VERSION AS OF ? WHERE id > ?", ["x", first, 1])) == [
        ("x", 1)
    ]


def test_ranges_of_snapshots(shop: Lake) -> None:
    orders = shop.table("shop.orders")
    orders.delete("id = 1")
    first, second, third = (snapshot.snapshot_id for snapshot in orders.snapshots())
    changes = "SELECT id, _change_type, _change_ordinal FROM shop.orders.changes"
    check_rows(
        shop,
        {
            "SELECT count(*) FROM shop.orders WITH ('branch' = 'b') o WHERE o.id > 0": [(2,)],
            "SELECT count(*) FROM shop.orders WITH (`snapshot-id` = :v)": [(2,)],
            "SELECT id FROM shop.orders WITH ('start-snapshot-id' = :v)": [(3,)],
            "SELECT id FROM shop.orders WITH ('end-snapshot-id' = :v) TABLESAMPLE (100 PERCENT) o": [(1,), (2,)],
            changes: [(1, "DELETE", 2), (1, "INSERT", 0), (2, "INSERT", 0), (3, "INSERT", 1)],
            f"{changes} WITH ('start-snapshot-id' = {second}) c WHERE c._commit_snapshot_id = {third}": [
                (1, "DELETE", 0)
            ],
            f"{changes} VERSION AS OF {first} WHERE id = 1": [(1, "INSERT", 0)],
            f"{changes} WITH ('start-snapshot-id' = {third})": [],
        },
        args={"v": first},
    )
    check_errors(
        shop,
        {
            "SELECT * FROM shop.orders WITH ('split-size' = 5)": (Unsupported, "has no effect", (1, 32)),
            "SELECT * FROM shop.orders WITH ('tag' = 'g', 'branch' = 'b')": (InvalidInput, "only one of", (1, 45)),
            "SELECT * FROM shop.orders WITH ('tag' = 'x')": (NoSuchSnapshot, "'x'", (1, 14)),
            "SELECT * FROM shop.orders.files WITH ('start-timestamp' = 1)": (Unsupported, "no options", (1, 38)),
            "SELECT * FROM shop.orders VERSION AS OF 'b' WITH ('tag' = 'g')": (InvalidInput, "already", (1, 50)),
        },
    )


def test_parameters_and_dataframes(shop: Lake, spark: SparkSession) -> None:
    given = spark.createDataFrame([(1, "x"), (3, "{y}")], "id long, t string")
    found = shop.sql(
        "SELECT t, '{a}', \"{{b}}\", {said} FROM {given} g JOIN shop.orders USING (id) WHERE id = {n}",
        given=given,
        n=3,
        said="it's {}",
    )
    assert rows(found) == [("{y}", "{a}", "{{b}}", "it's {}")]
    named = shop.sql("SELECT count(*) FROM IDENTIFIER(:t) x WHERE x.id < :m", {"t": "shop.`orders`", "m": 3})
    assert rows(named) == [(2,)]
    assert rows(shop.sql("SELECT orders.id FROM IDENTIFIER('shop.' || 'orders') LIMIT 0")) == []


def test_a_cached_dataframe_stays_cached(shop: Lake, spark: SparkSession) -> None:
    if is_remote(spark):
        pytest.skip("the server of Spark Connect ends the caching of a DataFrame that a text refers to")
    given = spark.range(3).cache()
    assert rows(shop.sql("SELECT count(*) FROM {given}", given=given)) == [(3,)]
    assert given.storageLevel.useMemory
    given.unpersist()


def test_a_query_is_lazy_in_rows_and_eager_in_versions(shop: Lake) -> None:
    before = shop.sql("SELECT count(*) FROM shop.orders o JOIN shop.recent r USING (id)")
    shop.table("shop.orders").append(pa.table({"id": [4], "customer": ["cy"], "day": [DAY]}))
    assert rows(before) == [(2,)]
    assert rows(shop.sql("SELECT count(*) FROM shop.orders o JOIN shop.recent r USING (id)")) == [(3,)]


def test_a_transaction_reads_its_own_changes(shop: Lake) -> None:
    shop.sql("BEGIN")
    shop.sql("DELETE FROM shop.orders WHERE id = 1")
    inside = rows(shop.sql("SELECT id FROM shop.orders UNION ALL SELECT id FROM shop.recent"))
    shop.sql("ROLLBACK")
    assert inside == [(2,), (2,), (3,), (3,)]
    assert rows(shop.sql("SELECT count(*) FROM shop.orders")) == [(3,)]


def test_temporary_views_follow_their_tables(shop: Lake) -> None:
    shop.sql("USE shop")
    shop.sql("CREATE TEMPORARY VIEW v AS SELECT id FROM orders WHERE id >= :m", {"m": 2})
    shop.sql("CREATE OR REPLACE GLOBAL TEMP VIEW g (a, b) AS SELECT id, customer FROM orders")
    shop.sql("USE other")
    assert rows(shop.sql("SELECT v.id, a, b FROM V JOIN global_temp.g ON v.id = g.a")) == [(2, 2, "bob"), (3, 3, "ann")]
    shop.table("shop.orders").append(pa.table({"id": [4], "customer": ["cy"], "day": [DAY]}))
    assert rows(shop.sql("SELECT max(id) FROM v")) == [(4,)]
    check_errors(
        shop,
        {
            "CREATE TEMP VIEW v AS SELECT 1": (AlreadyExists, "the temporary view v exists", (1, 17)),
            "CREATE OR REPLACE TEMP VIEW v AS\nSELECT * FROM v": (InvalidInput, "v reads itself", (2, 14)),
            "CREATE TEMP VIEW w AS SELECT nope FROM shop.orders": (InvalidInput, "nope", (1, 29)),
            "SELECT * FROM v VERSION AS OF 3": (Unsupported, "no versions", (1, 16)),
        },
    )
    shop.sql("DROP VIEW v")
    with pytest.raises(NoSuchTable):
        shop.sql("SELECT * FROM v")


def test_caches_are_of_one_version(shop: Lake) -> None:
    shop.sql("CACHE TABLE shop.orders")
    shop.sql("CACHE LAZY TABLE c AS SELECT id FROM shop.orders")
    (row,) = shop.sql("EXPLAIN SELECT * FROM shop.orders JOIN c USING (id)").collect()
    # Over Spark Connect the rows are kept as such, otherwise as a plan with its rows.
    assert row.plan.count("InMemoryTableScan") >= 2 or "FileScan" not in row.plan
    shop.table("shop.orders").append(pa.table({"id": [4], "customer": ["cy"], "day": [DAY]}))
    check_rows(shop, {"SELECT count(*) FROM shop.orders": [(4,)], "SELECT count(*) FROM c": [(3,)]})
    shop.sql("UNCACHE TABLE shop.orders")
    shop.sql("UNCACHE TABLE IF EXISTS shop.orders")
    with pytest.raises(NotFound, match="not cached"):
        shop.sql("UNCACHE TABLE shop.orders")
    shop.sql("CLEAR CACHE")


def test_statements_that_are_left_to_spark(shop: Lake) -> None:
    shop.sql("DECLARE OR REPLACE VARIABLE newest BIGINT DEFAULT 0")
    shop.sql("SET VAR newest = (SELECT max(id) FROM shop.orders)")
    shop.sql("SET spark.sql.shuffle.partitions = 3")
    check_rows(
        shop,
        {
            "SELECT newest, count(*) FROM shop.orders WHERE id < newest": [(3, 2)],
            "SET spark.sql.shuffle.partitions": [("spark.sql.shuffle.partitions", "3")],
        },
    )
    shop.sql("RESET spark.sql.shuffle.partitions")
    shop.sql("DROP TEMPORARY VARIABLE newest")


@pytest.mark.parametrize(
    "body",
    [
        "RETURNS BIGINT RETURN (SELECT count(*) FROM «shop.orders»)",
        "RETURNS BIGINT COMMENT 'RETURN' RETURN x + (SELECT max(id) FROM «shop.orders» o WHERE o.id = x)",
        "RETURNS TABLE (id BIGINT) RETURN SELECT id FROM «shop.orders»",
        "RETURNS TABLE (id BIGINT) RETURN WITH q AS (SELECT 1 AS id) SELECT q.id FROM q JOIN «chosen» USING (id)",
    ],
)
def test_functions_of_spark_that_would_read_the_lake_are_refused(shop: Lake, body: str) -> None:
    """Spark reads the body again in other statements, in which it does not know the tables."""
    shop.sql("CREATE TEMPORARY VIEW chosen AS SELECT 1 AS id")
    text = f"CREATE OR REPLACE TEMPORARY FUNCTION f(x BIGINT) {body}"
    check_errors(shop, {re.sub("[«»]", "", text): (Unsupported, "cannot read the lake", (1, text.index("«")))})
    value = "x + (SELECT max(c) FROM VALUES (1) AS v(c))"
    shop.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION f(x BIGINT) RETURNS BIGINT RETURN {value}")
    check_rows(shop, {"SELECT f(id) FROM shop.orders WHERE id = 2": [(3,)]})
    shop.sql("DROP TEMPORARY FUNCTION f")


def test_explain_says_what_is_read(shop: Lake) -> None:
    for mode in ("", "EXTENDED ", "FORMATTED "):
        (row,) = shop.sql(f"EXPLAIN {mode}SELECT id FROM shop.orders WHERE day = DATE '2026-01-02'").collect()
        assert "== Physical Plan ==" in row.plan
        assert "scan of shop.orders at snapshot" in row.plan
        assert "icefield_" not in row.plan.replace("icefield-scan", "")


def test_errors_point_at_the_text(shop: Lake) -> None:
    check_errors(
        shop,
        {
            "SELECT * FROM SHOP.Orders": (NoSuchTable, "shop.orders", (1, 14)),
            "SELECT *\n  FROM nowhere.x": (NoSuchTable, "no table or view nowhere.x", (2, 7)),
            "SELECT * FROM shop.orders.nothing": (NoSuchTable, "shop.orders.nothing", (1, 14)),
            "SELECT * FROM orders": (NoSuchTable, "no table or view orders", (1, 14)),
            "SELECT nothing FROM shop.orders": (InvalidInput, "UNRESOLVED_COLUMN", (1, 7)),
            "SELECT o.custmer\nFROM shop.orders o": (InvalidInput, "Did you mean `o`.`customer`", (1, 7)),
            "SELECT id FROM shop.orders,\n shop.customers\nWHERE name = nam": (InvalidInput, "`nam`", (3, 13)),
            "SELECT id FROM shop.orders, shop.customers": (InvalidInput, "AMBIGUOUS_REFERENCE", (1, 7)),
            "SELECT * FORM shop.orders": (InvalidInput, "Syntax error at or near 'shop'", (1, 14)),
            "SELECT id FROM shop.orders WHERE (id = 1": (InvalidInput, "end of input", (1, 40)),
            "SELECT nofn(id) FROM shop.orders": (InvalidInput, "nofn", (1, 7)),
            "SELECT * FROM shop.orders VERSION AS OF 12": (NoSuchSnapshot, "no snapshot 12", (1, 40)),
            "SELECT * FROM shop.orders VERSION AS OF 'x'": (NoSuchSnapshot, "main, b, g", (1, 40)),
            "SELECT * FROM shop.orders VERSION AS OF '2026-01-01'": (NoSuchSnapshot, "TIMESTAMP AS OF", (1, 40)),
            "SELECT * FROM shop.orders VERSION AS OF 1.5": (InvalidInput, "Decimal('1.5')", (1, 40)),
            "SELECT * FROM shop.orders TIMESTAMP AS OF '1999-01-01'": (NoSuchSnapshot, "1999-01-01", (1, 42)),
            "SELECT * FROM shop.orders TIMESTAMP AS OF nofn()": (InvalidInput, "nofn", (1, 42)),
            "SELECT * FROM shop.orders.branch_b VERSION AS OF 1": (Unsupported, "a version already", (1, 35)),
            "SELECT * FROM shop.orders.branch_g": (NoSuchSnapshot, "has no branch 'g'", (1, 14)),
            "SELECT * FROM shop.recent VERSION AS OF 1": (Unsupported, "a view has no versions", (1, 26)),
            "SELECT * FROM {frame}": (InvalidInput, "no DataFrame 'frame' was given", (1, 14)),
            "SELECT * FROM IDENTIFIER('shop..x')": (InvalidInput, "not the name of a table", (1, 25)),
            "SELECT id FROM shop.orders JOIN shop.orders AS o USING (id, nothing)": (
                InvalidInput,
                "USING column",
                (1, 60),
            ),
            "SELECT day, count(*) FROM shop.orders GROUP BY id": (InvalidInput, "MISSING_AGGREGATION", (1, 7)),
            "SELECT :x FROM shop.orders": (InvalidInput, "the parameter :x has no value", (1, 7)),
            "WITH a AS (SELECT 1) SELECT * FROM a, shop.b": (NoSuchTable, "shop.b", (1, 38)),
            "SELECT * FROM (FROM shop.orders INSERT INTO t SELECT id)": (Unsupported, "cannot insert rows", (1, 32)),
            "SELECT id, lake.system.days(day) FROM shop.orders": (Unsupported, "Iceberg's Spark runtime", (1, 11)),
            "EXECUTE IMMEDIATE 'SELECT 1'": (Unsupported, "EXECUTE IMMEDIATE", (1, 0)),
        },
    )


def test_queries_of_the_local_engine_start_no_session(lake: Lake) -> None:
    lake.create_table("shop.orders", "id long")
    with pytest.raises(NeedsSpark) as caught:
        lake.sql("SELECT * FROM shop.orders TIMESTAMP AS OF date_add(current_date(), 1)", engine="local")
    assert caught.value.position == (1, 42)


def test_spark_is_not_told_of_errors_twice(shop: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInput):
        shop.sql("SELECT nothing FROM shop.orders")
    assert "UNRESOLVED_COLUMN" not in capfd.readouterr().err
