"""Views: made, replaced, listed and dropped without Spark; defined and read with it."""

import datetime
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from icefield.catalog.catalog import Kind, PointerSwap
from icefield.codec.json.view import encode_view
from icefield.errors import (
    AlreadyExists,
    IcefieldError,
    InvalidInput,
    NoSuchTable,
    NotFound,
    SchemaMismatch,
    Unsupported,
)
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.model.view import SqlRepresentation, ViewDefinition, create_view
from icefield.types.text import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_view_with_given_columns_needs_no_spark(memory_lake: Lake) -> None:
    view = memory_lake.create_view("shop.v", "SELECT id FROM orders", schema="id long", properties={"comment": "x"})
    assert (view.name, view.sql, view.properties) == ("shop.v", "SELECT id FROM orders", {"comment": "x"})
    assert [str(f.type) for f in view.schema.fields] == ["long"]
    assert view.metadata.current_version.default_namespace == ("shop",)
    other = memory_lake.create_view("shop.w", "SELECT 1", schema="id long", default_namespace="a.b")
    assert other.metadata.current_version.default_namespace == ("a", "b")


def test_views_and_tables_are_listed_apart(lake: Lake) -> None:
    lake.create_table("shop.orders", "id long")
    lake.create_view("shop.v", "SELECT 1", schema="id int")
    lake.create_view("web.in.w", "SELECT 1", schema="id int")
    assert (lake.tables(), lake.views()) == (["shop.orders"], ["shop.v", "web.in.w"])
    assert (lake.views("shop"), lake.views("web")) == (["shop.v"], [])
    assert lake.has_view("shop.v")
    assert not lake.has_view("shop.orders")
    assert not lake.has_table("shop.v")
    lake.rename_view("shop.v", "shop.u")
    assert lake.view("shop.u").sql == "SELECT 1"
    lake.drop_view("shop.u")
    assert lake.views("shop") == []


def test_verbs_on_the_wrong_kind_say_what_it_is(lake: Lake) -> None:
    lake.create_table("shop.t", "id long")
    lake.create_view("shop.v", "SELECT 1", schema="id int")
    on_tables: list[Callable[[str], object]] = [lake.table, lake.drop_table, lambda n: lake.rename_table(n, "shop.x")]
    for verb in on_tables:
        with pytest.raises(NoSuchTable, match="shop.v is a view, not a table"):
            verb("shop.v")
    on_views: list[Callable[[str], object]] = [lake.view, lake.drop_view, lambda n: lake.rename_view(n, "shop.x")]
    for verb in on_views:
        with pytest.raises(NotFound, match="shop.t is a table, not a view"):
            verb("shop.t")
    with pytest.raises(AlreadyExists, match="already used by a view"):
        lake.create_table("shop.v", "id long")
    with pytest.raises(AlreadyExists, match="already used by a table"):
        lake.create_view("shop.t", "SELECT 1", schema="id int")
    with pytest.raises(NotFound, match="is a table"):
        lake.create_view("shop.t", "SELECT 1", schema="id int", replace=True)
    with pytest.raises(NotFound, match="there is no view shop.none"):
        lake.view("shop.none")


def test_replacing_needs_to_be_asked_for_and_keeps_history(memory_lake: Lake) -> None:
    view = memory_lake.create_view("a.v", "SELECT 1", schema="id int", replace=True)
    with pytest.raises(AlreadyExists):
        memory_lake.create_view("a.v", "SELECT 2", schema="id int")
    memory_lake.create_view("a.v", "SELECT 2", schema="id int", replace=True, properties={"comment": "two"})
    assert (view.sql, view.properties) == ("SELECT 2", {"comment": "two"})
    assert [v.find_sql("spark") for v in view.versions()] == ["SELECT 1", "SELECT 2"]
    assert [entry.version_id for entry in view.history()] == [1, 2]


def test_a_query_that_is_none_is_refused_and_nothing_is_made(memory_lake: Lake) -> None:
    for sql in ("DROP TABLE x", "SELEC 1", "SELECT 1; SELECT 2"):
        with pytest.raises(InvalidInput):
            memory_lake.create_view("a.v", sql, schema="id int")
    assert memory_lake.namespaces() == []


def put_view(lake: Lake, name: str, definition: ViewDefinition) -> None:
    """Put a view into the catalog as another engine would have."""
    lake.create_namespace("other")
    metadata = create_view(lake.ambient.random_uuid(), f"{lake.warehouse}/other/v", definition, {}, 1)
    location = f"{metadata.location}/metadata/00000-a.metadata.json"
    lake.store.put_new(location, encode_view(metadata))
    lake.catalog.swap([PointerSwap(parse_table_name(name), None, location, Kind.VIEW)])


def test_a_view_in_other_dialects_names_them(memory_lake: Lake) -> None:
    schema = parse_schema("id long")
    queries = (SqlRepresentation("SELECT 1", "trino"), SqlRepresentation("SELECT 1", "duckdb"))
    put_view(memory_lake, "other.v", ViewDefinition(schema, queries, ("other",)))
    with pytest.raises(Unsupported, match=r"Spark's dialect \(dialects: trino, duckdb\)"):
        memory_lake.view("other.v").to_spark()


def test_a_view_that_reads_another_catalog_is_unsupported(memory_lake: Lake) -> None:
    queries = (SqlRepresentation("SELECT id FROM t", "spark"),)
    put_view(memory_lake, "other.v", ViewDefinition(parse_schema("id long"), queries, ("x",), "elsewhere"))
    with pytest.raises(Unsupported, match="catalog 'elsewhere'"):
        memory_lake.view("other.v").to_spark()


def test_cycles_depth_and_number_are_bounded(memory_lake: Lake) -> None:
    for one, other in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "d")):
        memory_lake.create_view(f"s.{one}", f"SELECT * FROM {other}", schema="id int")
    with pytest.raises(InvalidInput, match="cycle: s.a -> s.b -> s.c -> s.a"):
        memory_lake.view("s.a").to_spark()
    with pytest.raises(InvalidInput, match="cycle: s.d -> s.d"):
        memory_lake.view("s.d").to_spark()
    for level in range(60):
        memory_lake.create_view(f"s.v{level}", f"SELECT * FROM v{level + 1}", schema="id int")
    with pytest.raises(InvalidInput, match="in more than 50"):
        memory_lake.view("s.v0").to_spark()
    with pytest.raises(NoSuchTable, match=r"view s.v59 reads s.v60, which is neither"):
        memory_lake.view("s.v59").to_spark()


ROWS = {"id": [1, 2, 3], "amount": [1.5, 20.0, 30.0], "tag": ["a", "b", None]}


@pytest.fixture
def shop(lake: Lake, spark: "SparkSession") -> Iterator[Lake]:
    """Two tables; and afterwards no new name is left in the session."""
    before = names_in(spark)
    lake.create_table("shop.orders", "id long not null, amount double, tag string").append(pa.table(ROWS))
    lake.create_table("shop.tags", "tag string, label string").append(
        pa.table({"tag": ["a", "b"], "label": ["A", "B"]})
    )
    yield lake
    assert names_in(spark) == before


def names_in(spark: "SparkSession") -> set[str]:
    """Return the tables and temporary views of the session."""
    return {row["tableName"] for row in spark.sql("SHOW TABLES").collect()}


def jobs_of(spark: "SparkSession") -> list[int]:
    """The jobs that ran so far; a server of Spark Connect does not tell of any."""
    if "connect" in type(spark).__module__:
        return []
    return list(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


@pytest.mark.spark
def test_columns_come_from_the_query_and_no_job_runs(shop: Lake, spark: "SparkSession") -> None:
    before = jobs_of(spark)
    view = shop.create_view(
        "shop.v", "SELECT id, cast(id AS smallint) n, count(*) OVER () c, DATE '2026-01-02' d FROM orders"
    )
    assert jobs_of(spark) == before
    assert [(f.name, str(f.type), f.required) for f in view.schema.fields] == [
        ("id", "long", False),
        ("n", "int", False),
        ("c", "long", False),
        ("d", "date", False),
    ]
    row = view.to_spark().where("id = 2").collect()[0]
    assert row.asDict() == {"id": 2, "n": 2, "c": 3, "d": datetime.date(2026, 1, 2)}


@pytest.mark.spark
def test_views_read_tables_and_views_of_any_namespace(shop: Lake) -> None:
    shop.create_view("shop.big", "SELECT * FROM orders WHERE amount > 10")
    labels = shop.create_view(
        "report.labels",
        """WITH big AS (SELECT * FROM shop.big)
        SELECT icefield.shop.tags.label AS `the label`, big.id
        FROM big LEFT JOIN icefield.shop.tags ON big.tag = icefield.shop.tags.tag ORDER BY big.id""",
    )
    assert [tuple(row) for row in labels.to_spark().collect()] == [("B", 2), (None, 3)]
    assert labels.to_spark().columns == ["the label", "id"]


@pytest.mark.spark
def test_a_view_shows_what_its_tables_are_now(shop: Lake) -> None:
    view = shop.create_view("shop.v", "SELECT * FROM orders")
    fixed = view.to_spark()
    shop.table("shop.orders").append(pa.table({"id": [4], "amount": [4.0], "tag": ["d"]}))
    assert (fixed.count(), view.to_spark().count()) == (3, 4)
    with shop.table("shop.orders").evolve() as change:
        change.add_column("more", "int")
    assert view.to_spark().columns == ["id", "amount", "tag"]


@pytest.mark.spark
def test_a_view_whose_query_gives_other_columns_now_is_refused(shop: Lake) -> None:
    view = shop.create_view("shop.v", "SELECT * FROM orders")
    with shop.table("shop.orders").evolve() as change:
        change.rename_column("tag", "label")
    with pytest.raises(
        SchemaMismatch, match="columns id, amount, label, but the view was created with id, amount, tag"
    ):
        view.to_spark()
    shop.create_view("shop.v", "SELECT id, label FROM orders", replace=True)
    assert view.to_spark().columns == ["id", "label"]


@pytest.mark.spark
def test_given_columns_rename_and_widen_by_position(shop: Lake) -> None:
    view = shop.create_view("shop.v", "SELECT cast(id AS int), id, tag FROM orders", schema="a long, b long, c string")
    assert [str(f.dataType.simpleString()) for f in view.to_spark().schema] == ["bigint", "bigint", "string"]
    assert [tuple(row) for row in view.to_spark().where("a = 1").collect()] == [(1, 1, "a")]
    narrow = shop.create_view("shop.n", "SELECT id FROM orders", schema="id int")
    with pytest.raises(SchemaMismatch, match="has type int, but its query now returns long"):
        narrow.to_spark()
    short = shop.create_view("shop.s", "SELECT id FROM orders", schema="id long, more long")
    with pytest.raises(SchemaMismatch, match="Replace the view"):
        short.to_spark()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sql", "error", "fault"),
    [
        ("SELECT nope FROM orders", InvalidInput, "`nope` cannot be resolved"),
        ("SELECT * FROM nowhere", NoSuchTable, "view shop.v reads shop.nowhere"),
        ("SELECT * FROM no.thing", NoSuchTable, "view shop.v reads no.thing"),
        ("SELECT * FROM v", NoSuchTable, "view shop.v reads shop.v"),
        ("SELECT * FROM parquet.`/etc/hosts`", InvalidInput, "name"),
        ("SELECT NULL AS x FROM orders", SchemaMismatch, "void"),
        ("SELECT id, id FROM orders", InvalidInput, "duplicate column names"),
    ],
)
def test_a_query_that_does_not_hold_is_refused(
    shop: Lake, capfd: pytest.CaptureFixture[str], sql: str, error: type[IcefieldError], fault: str
) -> None:
    capfd.readouterr()
    with pytest.raises(error, match=fault) as refused:
        shop.create_view("shop.v", sql)
    assert "\n" not in str(refused.value)
    assert shop.views() == []
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.spark
def test_a_replacement_that_would_read_itself_is_refused(shop: Lake) -> None:
    shop.create_view("shop.a", "SELECT id FROM orders")
    shop.create_view("shop.b", "SELECT id FROM a")
    with pytest.raises(InvalidInput, match="cycle: shop.a -> shop.b -> shop.a"):
        shop.create_view("shop.a", "SELECT id FROM b", replace=True)


@pytest.mark.spark
def test_views_that_multiply_are_stopped(shop: Lake) -> None:
    shop.create_view("shop.v0", "SELECT id FROM orders", schema="id long")
    for level in range(1, 12):
        sql = f"SELECT a.id FROM v{level - 1} a JOIN shop.v{level - 1} b ON a.id = b.id"
        shop.create_view(f"shop.v{level}", sql, schema="id long")
    # Spark Connect has a limit of its own, which comes first.
    with pytest.raises(InvalidInput, match="1024 tables in total|too many views for Spark Connect"):
        shop.view("shop.v11").to_spark()
