"""Queries read only files that their conditions need, and return the same rows."""

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from benchmarks.sql_lake import QUERIES, build_lake
from pyspark.sql import SparkSession

from icefield.config.connect import connect
from icefield.lake import Lake
from icefield.spark.sql.probe import KEY_PRUNING, PRUNING
from icefield.sql.query.names import QueryNames
from icefield.sql.query.read import Opening
from icefield.sql.session import Run, SqlSession
from icefield.sql.syntax.cursor import Parameters
from icefield.sql.syntax.place import Place
from tests.effort import sample
from tests.spark_places import SparkPlace, changed, chosen_place

pytestmark = pytest.mark.spark

IS_CONNECT = chosen_place() is SparkPlace.CONNECT
# Without filters the queries read 750 files; without keys of small tables, Spark's own optimiser leaves 194.
MOST_FILES = 140 if IS_CONNECT else 90
MOST_FILES_WITHOUT_KEYS = 355 if IS_CONNECT else 194
# More shapes of queries, whose filters must not be applied to a wrong table or too early.
SHAPES = [
    "SELECT o.id, i.sku FROM shop.orders o LEFT JOIN shop.items i ON o.id = i.order_id AND o.id < 5 WHERE o.id < 120",
    "SELECT o.id, i.item_id FROM shop.orders o RIGHT JOIN shop.items i ON o.id = i.order_id AND i.item_id < 9",
    "SELECT o.id, i.item_id FROM shop.orders o FULL JOIN shop.items i ON o.id = order_id AND o.id < 9 AND item_id > 5",
    "SELECT id FROM shop.orders o LEFT JOIN shop.items i ON o.id = i.order_id AND i.item_id > 30 WHERE i.sku IS NULL",
    "SELECT id FROM shop.orders WHERE id NOT IN (SELECT order_id FROM shop.items WHERE item_id > 40)",
    "SELECT id FROM shop.orders o WHERE NOT EXISTS (SELECT 1 FROM shop.items WHERE order_id = o.id AND item_id > 7)",
    "SELECT id FROM shop.orders o WHERE EXISTS (SELECT 1 FROM shop.items i WHERE i.order_id = o.id AND item_id < 7)",
    "SELECT id FROM shop.orders o LEFT ANTI JOIN shop.items i ON o.id = i.order_id AND i.item_id BETWEEN 5 AND 5990",
    "SELECT id FROM shop.orders o LEFT SEMI JOIN shop.items i ON o.id = i.order_id AND i.item_id BETWEEN 5 AND 50",
    "WITH c AS (SELECT * FROM shop.orders) SELECT a.id, b.id FROM c a JOIN c b ON a.id = b.id + 1 WHERE a.id < 9",
    "WITH c AS (SELECT * FROM shop.orders) SELECT id FROM c WHERE id < 9 UNION ALL SELECT id FROM c WHERE id > 5990",
    "SELECT a.id FROM shop.orders a JOIN shop.orders b ON a.id = b.customer WHERE b.id = 77",
    "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM shop.orders) WHERE id > 300 AND n < 305",
    "SELECT * FROM (SELECT id, sum(id) OVER (PARTITION BY day) AS n FROM shop.orders) WHERE id IN (3, 333)",
    "SELECT * FROM (SELECT id FROM shop.orders ORDER BY id DESC LIMIT 10) WHERE id < 5995",
    "SELECT day, count(*) FROM shop.orders WHERE id > 50 GROUP BY day HAVING day < '2026-01-04' AND count(*) > 10",
    "SELECT id FROM shop.orders WHERE id = (SELECT max(order_id) FROM shop.items WHERE item_id < 77)",
    "SELECT id, (SELECT count(*) FROM shop.items WHERE order_id = o.id AND id < 5) FROM shop.orders o WHERE id < 6",
    "SELECT id FROM shop.orders WHERE id < 9 INTERSECT SELECT order_id FROM shop.items WHERE item_id > 3",
    "SELECT id FROM shop.orders WHERE id < 9 EXCEPT SELECT order_id FROM shop.items WHERE item_id > 3",
    "SELECT id FROM shop.orders WHERE (id < 9 OR name = 'n13') AND NOT (id < 3 AND name IS NOT NULL)",
    "SELECT id FROM shop.orders WHERE coalesce(amount, 0) = 0 AND amount IS NULL AND id < 900",
    "SELECT id FROM shop.orders, shop.items i, shop.items j WHERE id = i.order_id AND i.sku = j.sku AND j.item_id = 9",
    "SELECT o.id, x FROM shop.orders o LATERAL VIEW explode(array(id, 1)) e AS x WHERE x = 1 AND id < 40",
    "SELECT id FROM shop.orders o JOIN (VALUES (7), (4000)) AS v (k) ON o.id = v.k",
    "SELECT id FROM shop.orders WHERE id % 1000 = 3 AND rand() >= 0",
    "FROM shop.orders |> WHERE id < 7 |> AGGREGATE count(*) AS n GROUP BY day |> WHERE n > 1",
    "SELECT id FROM shop.orders WHERE day > current_date() - INTERVAL 100 YEARS AND id < 5",
    "SELECT id FROM shop.orders WHERE name LIKE 'b%' AND id < 60 OR name = 'it\\'s'",
    "SELECT /*+ BROADCAST(i) */ id FROM shop.orders JOIN shop.items i ON id = order_id WHERE sku = 'sku3' AND id < 90",
    "SELECT n.id FROM shop.orders n NATURAL JOIN (SELECT id FROM shop.orders WHERE id BETWEEN 5 AND 8) m",
    "SELECT id FROM shop.orders JOIN shop.items ON orders.id = items.order_id AND shop.items.item_id = 5",
]  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Lake]:
    with connect(tmp_path_factory.mktemp("shop")) as lake:
        build_lake(lake)
        lake.use(spark)
        yield lake


def names_of(lake: Lake, query: str, args: Mapping[str, Any] | None = None) -> QueryNames:
    """Resolve and prune a query."""
    opening = Opening(Run(SqlSession(lake), Parameters(named=dict(args or {}))))
    names = opening.names(Place(query, 0, len(query)))
    opening.prune(names)
    return names


def files_of(lake: Lake, query: str, args: Mapping[str, Any] | None = None) -> list[int]:
    """Return how many files a query reads of each of its mentions of tables."""
    return [each.scan(each.where).files().num_rows for each in names_of(lake, query, args).all_references()]


def rows_of(lake: Lake, query: str) -> list[str]:
    return sorted(map(str, lake.sql(query).collect()))


def test_the_queries_of_the_measurement_read_few_files(shop: Lake, spark: SparkSession) -> None:
    assert sum(sum(files_of(shop, query)) for query in QUERIES.values()) <= MOST_FILES
    with changed(spark, {KEY_PRUNING: "false"}):
        assert sum(sum(files_of(shop, query)) for query in QUERIES.values()) <= MOST_FILES_WITHOUT_KEYS
    with changed(spark, {PRUNING: "false"}):
        assert sum(sum(files_of(shop, query)) for query in QUERIES.values()) == 750


def test_rows_are_those_of_a_query_over_all_files(shop: Lake, spark: SparkSession) -> None:
    queries = sample([*QUERIES.values(), *SHAPES], 16)
    found = {query: rows_of(shop, query) for query in queries}
    with changed(spark, {PRUNING: "false"}):
        wanted = {query: rows_of(shop, query) for query in queries}
    assert [query for query in queries if found[query] != wanted[query]] == []
    assert sum(1 for rows in wanted.values() if rows) > len(queries) - 5


def test_queries_with_metadata_columns_are_pruned_and_return_the_same_rows(shop: Lake, spark: SparkSession) -> None:
    day = "day = DATE '2026-01-15'"
    queries = {
        f"SELECT id, _file FROM shop.orders WHERE {day}": 1,
        f"SELECT *, o._pos, _partition FROM shop.orders o WHERE o.{day} AND o._pos >= 0": 1,
        f"SELECT _spec_id, count(*) FROM shop.orders WHERE {day} GROUP BY _spec_id": 1,
        f"SELECT _deleted, id FROM shop.orders WHERE {day} AND NOT _deleted": 1,
        f"SELECT id FROM shop.orders WHERE {day} AND _file LIKE '%parquet'": 1,
        f"SELECT a._file = b._file FROM shop.orders a JOIN shop.orders b ON a.id = b.id WHERE a.{day} AND b.{day}": 2,
        "SELECT id FROM shop.orders WHERE _partition.day = DATE '2026-01-15'": 1,
        "SELECT id, _file FROM shop.orders WHERE id < 9 OR _pos < 0": 60,
        f"SELECT id FROM shop.orders WHERE {day} OR _file = 'nothing'": 60,
    }
    assert {query: sum(files_of(shop, query)) for query in queries} == queries
    found = {query: rows_of(shop, query) for query in queries}
    with changed(spark, {PRUNING: "false"}):
        assert {query: rows_of(shop, query) for query in queries} == found
    assert all(found.values())


def test_views_are_pruned_by_their_own_filters(shop: Lake, spark: SparkSession) -> None:
    """`view.to_spark()` reads the files that the query of the view needs, of one moment, and the same rows."""
    shop.create_table("shop.copies", "id long, day date", partition_by=["day"]).append(
        shop.table("shop.orders").scan(select=["id", "day"]).to_arrow()
    )
    view = shop.create_view(
        "shop.january", "SELECT id, day FROM copies WHERE day BETWEEN '2026-01-10' AND '2026-01-12'", replace=True
    )
    over = shop.create_view("shop.one", "SELECT id FROM january WHERE day = DATE '2026-01-11'", replace=True)
    frames = [view.to_spark(), over.to_spark()]
    read = [len(set(frame.inputFiles())) for frame in frames]
    found = [sorted(map(tuple, frame.collect())) for frame in frames]
    with changed(spark, {PRUNING: "false"}):
        assert [sorted(map(tuple, each.to_spark().collect())) for each in (view, over)] == found
        assert len(set(view.to_spark().inputFiles())) == 60
    assert read == (
        [60, 60] if IS_CONNECT else [3, 1]
    )  # over Spark Connect, filters are not taken from inside of views
    shop.drop_table("shop.copies")
    assert [len(rows) for rows in found] == [300, 100]


def test_keys_are_those_of_the_version_that_is_read(shop: Lake, spark: SparkSession) -> None:
    shop.create_table("shop.picks", "k long, tag string").append(pa.table({"k": [10], "tag": ["a"]}))
    picks = shop.table("shop.picks")
    first = picks.snapshots()[-1].snapshot_id
    picks.append(pa.table({"k": [5_000], "tag": ["a"]}))
    query = "SELECT id FROM shop.orders WHERE id IN (SELECT k FROM shop.picks{} WHERE tag = 'a')"
    assert files_of(shop, query.format("")) == [2, 2]
    assert files_of(shop, query.format(f" VERSION AS OF {first}")) == [1, 1]
    frame = shop.sql(query.format(""))
    picks.append(pa.table({"k": [300], "tag": ["a"]}))
    assert sorted(row.id for row in frame.collect()) == [10, 5_000]
    shop.drop_table("shop.picks")


def test_filters_are_in_the_zone_of_the_session(shop: Lake, spark: SparkSession) -> None:
    query = "SELECT id FROM shop.orders WHERE CAST(ts AS DATE) = DATE '2026-01-15'"
    for zone, days in {"UTC": 1, "Asia/Tokyo": 2, "America/New_York": 2}.items():
        with changed(spark, {"spark.sql.session.timeZone": zone}):
            assert files_of(shop, query) == [days]
            found = rows_of(shop, query)
            with changed(spark, {PRUNING: "false"}):
                assert found == rows_of(shop, query)


def test_the_current_time_is_not_fixed_when_a_query_is_opened(shop: Lake) -> None:
    today = datetime.datetime.now(datetime.UTC).date()
    schema = pa.schema([("day", pa.date32())])
    table = shop.create_table("shop.days", "day date", partition_by=["day"])
    table.append(pa.table({"day": [today + datetime.timedelta(days=n) for n in range(-9, 10)]}, schema))
    # Tomorrow a DataFrame of today must find the rows of tomorrow.
    for condition in ("day = current_date()", "day = DATE 'today'", "day BETWEEN current_date AND current_date() + 1"):
        assert files_of(shop, f"SELECT * FROM shop.days WHERE {condition}")[0] >= 10
    assert files_of(shop, "SELECT * FROM shop.days WHERE day >= current_date() - 2")[0] in (12, 13)
    assert len(shop.sql("SELECT * FROM shop.days WHERE day = current_date()").collect()) == 1
    shop.drop_table("shop.days")


@pytest.mark.skipif(IS_CONNECT, reason="what a session defines is seen in its plans only")
def test_a_probe_is_kept_only_if_the_session_cannot_change_its_result(shop: Lake, spark: SparkSession) -> None:
    counts = []
    for value in (5, 4_000):
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW chosen AS SELECT {value} AS k")
        shop.sql(f"CREATE OR REPLACE TEMPORARY VIEW own AS SELECT {value} AS k")
        spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION pick() RETURNS INT RETURN {value}")
        spark.sql(f"DECLARE OR REPLACE VARIABLE picked INT DEFAULT {value}")
        for query in (
            "SELECT id FROM shop.orders JOIN chosen ON id = k",
            "SELECT id FROM shop.orders JOIN own ON id = k",
            "SELECT id FROM shop.orders WHERE id = pick()",
            "SELECT id FROM shop.orders WHERE id = picked",
        ):
            assert [row.id for row in shop.sql(query).collect()] == [value]
        counts.append([row.id for row in shop.sql("SELECT id FROM shop.orders WHERE id = :v", {"v": value}).collect()])
    assert counts == [[5], [4_000]]
    spark.sql("DROP TEMPORARY VARIABLE picked")
    spark.sql("DROP TEMPORARY FUNCTION pick")


def test_small_tables_and_queries_without_conditions_are_not_probed(
    shop: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefield.spark.sql.probe.SessionProbe.settings", lambda _: pytest.fail("probed"))
    shop.create_table("shop.small", "k long").append(pa.table({"k": [1, 2]}))
    assert files_of(shop, "SELECT * FROM shop.orders ORDER BY id LIMIT 3") == [60]
    assert files_of(shop, "SELECT * FROM shop.small WHERE k = 5") == [1]
    shop.drop_table("shop.small")


@pytest.mark.skipif(IS_CONNECT, reason="conditions above a view are seen in plans only")
def test_conditions_reach_the_tables_of_views(shop: Lake, spark: SparkSession) -> None:
    shop.create_view("shop.early", "SELECT * FROM shop.orders WHERE id < 900")
    shop.create_view("shop.ends", "SELECT id FROM shop.orders WHERE id < 5 UNION ALL SELECT id FROM shop.early")
    queries = (
        "SELECT id FROM shop.early WHERE day IN ('2026-01-02', '2026-02-02')",
        "SELECT a.id FROM shop.early a LEFT JOIN shop.early b ON a.id = b.id AND b.day = '2026-01-03' WHERE a.id > 150",
        "SELECT id FROM shop.ends WHERE id > 850 OR id = 3",
    )
    found = [rows_of(shop, query) for query in queries]
    assert [len(rows) for rows in found] == [100, 749, 51]
    with changed(spark, {PRUNING: "false"}):
        assert [rows_of(shop, query) for query in queries] == found
    shown = shop.sql(f"EXPLAIN {queries[0]}").collect()[0][0]
    assert "60 in all" in shown
    assert "1 to read" in shown
    # What a view says now, not what it said when the same query was asked before.
    shop.create_view("shop.early", "SELECT * FROM shop.orders WHERE id > 900", replace=True)
    assert len(rows_of(shop, queries[0])) == 100
    assert rows_of(shop, "SELECT id FROM shop.early WHERE id = 3") == []
    shop.drop_view("shop.ends")
    shop.drop_view("shop.early")


def test_an_explanation_shows_the_filter_of_each_table(shop: Lake) -> None:
    shown = shop.sql(f"EXPLAIN {QUERIES['join by keys']}").collect()[0][0]
    assert "id >= 100 AND id <= 390" in shown
    assert "order_id" in shown
