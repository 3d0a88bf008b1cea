"""SHOW and USE: what they list, under Spark's column names, without a JVM."""

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import icefield
from icefield.errors import InvalidInput, NoSuchNamespace, NoSuchTable, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.schema import Schema
from tests.effort import effort
from tests.schema_cases import ALL_TYPES, schemas
from tests.sql.running import columns, refused, run


@pytest.fixture
def lake() -> Lake:
    lake = icefield.connect("memory:")
    lake.create_table("shop.stock", "sku string, qty int, note string", properties={"mine": "x"})
    lake.create_table("shop.changes", "sku string")
    lake.create_view("shop.v", "SELECT sku FROM shop.stock", schema="sku string", properties={"k": "1"})
    lake.create_namespace("a")
    lake.create_namespace("a.b", {"comment": "inner", "k": "v"})
    return lake


def test_tables_and_views_are_listed_by_namespace_and_pattern(lake: Lake) -> None:
    assert columns(lake, "SHOW TABLES IN shop") == ["namespace", "tableName", "isTemporary"]
    assert run(lake, "SHOW TABLES IN shop") == [("shop", "changes", False), ("shop", "stock", False)]
    assert run(lake, "SHOW TABLES FROM icefield.shop LIKE 'ST*'") == [("shop", "stock", False)]
    assert run(lake, "show tables in shop 'x|ch*'") == [("shop", "changes", False)]
    assert run(lake, "SHOW TABLES IN shop LIKE '['") == []
    assert run(lake, "SHOW TABLES IN IDENTIFIER(:n) LIKE :p", {"n": "shop", "p": "s*"}) == [("shop", "stock", False)]
    assert columns(lake, "SHOW VIEWS IN shop") == ["namespace", "viewName", "isTemporary"]
    assert run(lake, "SHOW VIEWS IN shop") == [("shop", "v", False)]
    assert run(lake, "SHOW TABLES") == []
    refused(lake, "SHOW TABLES IN shp", NoSuchNamespace, at="shp", match="Did you mean shop")
    refused(lake, "SHOW TABLES IN shop now", InvalidInput, at="now", match="expected a pattern")


def test_namespaces_are_listed_below_a_parent(lake: Lake) -> None:
    assert columns(lake, "SHOW NAMESPACES") == ["namespace"]
    assert run(lake, "SHOW NAMESPACES") == [("a",), ("shop",)]
    assert run(lake, "SHOW DATABASES LIKE 'sh*'") == [("shop",)]
    assert run(lake, "SHOW SCHEMAS IN a") == run(lake, "SHOW SCHEMAS IN icefield.a") == [("a.b",)]
    assert run(lake, "SHOW NAMESPACES IN icefield") == [("a",), ("shop",)]
    assert run(lake, "SHOW CATALOGS") == [("icefield",)]
    refused(lake, "SHOW NAMESPACES IN nothing", NoSuchNamespace, at="nothing")


def test_use_chooses_the_namespace_of_this_lake_only(lake: Lake) -> None:
    assert run(lake, "SHOW CURRENT NAMESPACE") == [("icefield", "")]
    run(lake, "USE shop")
    assert run(lake, "SHOW CURRENT SCHEMA") == [("icefield", "shop")]
    assert run(lake, "SHOW COLUMNS IN stock") == [("sku",), ("qty",), ("note",)]
    assert [row[1] for row in run(lake, "SHOW TABLES")] == ["changes", "stock"]
    run(lake, "USE NAMESPACE icefield.a.b")
    assert run(lake, "SHOW CURRENT NAMESPACE") == [("icefield", "a.b")]
    run(lake, "USE ICEFIELD")
    assert run(lake, "SHOW CURRENT NAMESPACE") == [("icefield", "")]
    run(lake, "USE CATALOG icefield")
    refused(lake, "USE shp", NoSuchNamespace, at="shp", match="Did you mean shop")
    refused(lake, "USE CATALOG other", NoSuchNamespace, at="other", match="is called icefield")
    other = icefield.connect("memory:")
    run(lake, "USE shop")
    assert run(other, "SHOW CURRENT NAMESPACE") == [("icefield", "")]


def test_columns_and_properties_of_tables_and_views(lake: Lake) -> None:
    assert columns(lake, "SHOW COLUMNS IN shop.stock") == ["col_name"]
    assert run(lake, "SHOW COLUMNS FROM stock FROM shop") == [("sku",), ("qty",), ("note",)]
    assert run(lake, "SHOW COLUMNS IN shop.v") == [("sku",)]
    assert columns(lake, "SHOW TBLPROPERTIES shop.stock") == ["key", "value"]
    found: dict[str, str] = dict(run(lake, "SHOW TBLPROPERTIES shop.stock"))
    expected = {"current-snapshot-id": "none", "format": "iceberg/parquet", "format-version": "2", "mine": "x"}
    assert found == expected
    assert run(lake, "SHOW TBLPROPERTIES shop.stock (mine)") == [("mine", "x")]
    missing = "Table icefield.shop.stock does not have property: a.b"
    assert run(lake, "SHOW TBLPROPERTIES shop.stock ('a.b')") == [("a.b", missing)]
    assert run(lake, "SHOW TBLPROPERTIES shop.v") == [("k", "1")]
    assert run(lake, "SHOW TBLPROPERTIES shop.v ('l')")[0][1] == "View icefield.shop.v does not have property: l"
    refused(lake, "SHOW COLUMNS IN shop.stok", NoSuchTable, at="shop.stok", match="Did you mean shop.stock")


def test_sort_order_and_identifier_fields_are_shown_as_properties(lake: Lake) -> None:
    lake.create_table("shop.o", "id long not null, ts timestamptz", order_by=["bucket(8, id)", "ts desc nulls first"])
    with lake.table("shop.o").evolve() as change:
        change.set_identifier_fields(["id"])
    found: dict[str, str] = dict(run(lake, "SHOW TBLPROPERTIES shop.o"))
    assert found["sort-order"] == "bucket(8, id) ASC NULLS FIRST, ts DESC NULLS FIRST"
    assert found["identifier-fields"] == "[id]"


def test_partitions_are_the_rows_of_the_metadata_table(lake: Lake) -> None:
    table = lake.create_table("shop.p", "id long, p string", partition_by=["p"])
    table.append(pa.table({"id": [1, 2, 3], "p": ["a", "a", "b"]}))
    found = lake.sql("SHOW PARTITIONS shop.p", engine="local").to_pylist()
    assert {row["partition"]["p"]: row["record_count"] for row in found} == {"a": 2, "b": 1}
    refused(lake, "SHOW PARTITIONS shop.v", Unsupported, at="shop.v", match="it is a view")


def test_branches_and_tags_are_listed(lake: Lake) -> None:
    table = lake.table("shop.stock")
    table.append(pa.table({"sku": ["a"]}))
    table.create_branch("audit", min_snapshots_to_keep=3)
    table.create_tag("q1", max_ref_age_ms=1000)
    snapshot = table.snapshots()[-1].snapshot_id
    assert run(lake, "SHOW BRANCHES IN shop.stock LIKE 'a*'") == [("audit", snapshot, None, 3, None)]
    assert run(lake, "SHOW TAGS FROM shop.stock") == [("q1", snapshot, 1000, None, None)]


def test_table_extended_has_the_details_as_text(lake: Lake) -> None:
    [(namespace, name, is_temporary, information)] = run(lake, "SHOW TABLE EXTENDED IN shop LIKE 'st*'")
    assert (namespace, name, is_temporary) == ("shop", "stock", False)
    assert "Name: icefield.shop.stock\n" in information
    refused(lake, "SHOW TABLE EXTENDED IN shop 'st*'", InvalidInput, at="'st*'", match="expected LIKE")


def test_what_cannot_be_shown_is_refused_at_the_word(lake: Lake) -> None:
    refused(lake, "SHOW TABELS", InvalidInput, at="TABELS", match="Did you mean SHOW TABLES")
    refused(lake, "SHOW FUNCTIONS", Unsupported, at="SHOW", match="only Spark can run")
    refused(lake, "SHOW CREATE TABLE shop.stock.files", Unsupported, at="shop.stock.files")


def comparable(schema: Schema) -> object:
    names = {schema.name_of(i) for i in schema.identifier_field_ids}
    return [(f.name, str(f.type), f.required, f.doc, f.write_default) for f in schema.fields], names


def test_show_create_table_creates_an_equal_table(lake: Lake) -> None:
    schema = (
        "id long not null, `odd ``name` string, ts timestamptz, t timestamp, d decimal(20, 3), b binary, u uuid, "
        "f fixed[4], s struct<a: int not null, `b c`: list<map<string, double>>>, day date, n timestamp_ns"
    )
    made = lake.create_table(
        "shop.all",
        schema,
        partition_by=["day", "bucket(4, id)", "truncate(3, `odd ``name`)", "hour(ts)"],
        order_by=["id desc nulls first", "day(ts)"],
        properties={"comment": "it's\nall", "mine": "a\\b'c", "write.distribution-mode": "hash"},
        format_version=3,
    )
    with made.evolve() as change:
        change.set_identifier_fields(["id"])
        change.add_column("e", "int", default=7)
    _check_same(lake, made, "shop.all", "shop.copy")


def _check_same(lake: Lake, made: Table, name: str, copy: str) -> None:
    [(text,)] = run(lake, f"SHOW CREATE TABLE {name}")
    assert text.startswith(f"CREATE TABLE icefield.{name} (\n  id BIGINT NOT NULL,")
    assert "LOCATION" not in text
    run(lake, text.replace(name, copy, 1))
    same = lake.table(copy)
    assert comparable(same.schema) == comparable(made.schema)
    assert str(same.spec) == str(made.spec)
    assert same.metadata.sort_order.fields == made.metadata.sort_order.fields
    assert (same.properties, same.metadata.format_version) == (made.properties, made.metadata.format_version)
    [(again,)] = run(lake, f"SHOW CREATE TABLE {copy}")
    assert again.replace(copy, name, 1) == text


def test_show_create_table_names_a_location_that_was_chosen_for_the_table(lake: Lake) -> None:
    lake.create_table("shop.placed", "id long", location="memory://lake/elsewhere/placed")
    [(text,)] = run(lake, "SHOW CREATE TABLE shop.placed")
    assert "\nLOCATION 'memory://lake/elsewhere/placed'\n" in text


def test_show_create_table_of_a_view_has_its_query(lake: Lake) -> None:
    [(text,)] = run(lake, "SHOW CREATE TABLE shop.v")
    assert text == (
        "CREATE VIEW icefield.shop.v (\n  sku)\nTBLPROPERTIES (\n  'k' = '1')\nAS\nSELECT sku FROM shop.stock\n"
    )


def test_show_create_table_keeps_the_names_of_partition_fields(lake: Lake) -> None:
    table = lake.create_table(
        "shop.named", "id long, day date, p string", partition_by=["day", "bucket(4, id) as shard"]
    )
    with table.evolve() as change:
        change.add_partition_field("truncate(2, p)", name="odd name")
    [(text,)] = run(lake, "SHOW CREATE TABLE shop.named")
    assert "PARTITIONED BY (day, bucket(4, id) AS shard, truncate(2, p) AS `odd name`)" in text
    run(lake, text.replace("shop.named", "shop.same"))
    names = [field.name for field in lake.table("shop.same").spec.fields]
    assert names == [field.name for field in table.spec.fields] == ["day", "shard", "odd name"]


@effort(40)
@given(schemas(kinds=ALL_TYPES), st.text(max_size=6))
def test_show_create_table_creates_an_equal_table_of_any_columns_and_properties(schema: Schema, text: str) -> None:
    lake = icefield.connect("memory:")
    try:
        made = lake.create_table("shop.any", schema, format_version=3, properties={"comment": text, "mine": text[::-1]})
    except InvalidInput:
        assume(False)
    [(statement,)] = run(lake, "SHOW CREATE TABLE shop.any")
    run(lake, statement.replace("shop.any", "shop.same", 1))
    same = lake.table("shop.same")
    assert (same.schema.fields, same.properties) == (made.schema.fields, made.properties)
