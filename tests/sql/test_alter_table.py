"""ALTER TABLE: columns at any depth, properties, partition fields, order and identifier fields, without a JVM."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from icefield.errors import IcefieldError, InvalidInput, NoSuchTable, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table
from tests.sql.running import refused, run


@pytest.fixture(autouse=True)
def stock(lake: Lake) -> Table:
    lake.create_namespace("shop")
    run(
        lake,
        "CREATE TABLE shop.stock (sku STRING NOT NULL, qty INT, info STRUCT<a: INT, b: STRUCT<c: STRING>>, "
        "l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT>>, ts TIMESTAMP)",
    )
    table = lake.table("shop.stock")
    table.append(pa.table({"sku": ["a", "b"], "qty": pa.array([1, 2], pa.int32())}))
    return table


def alter(lake: Lake, *changes: str) -> None:
    for change in changes:
        run(lake, f"ALTER TABLE shop.stock {change}")


def names(table: Table, path: str = "") -> Sequence[str]:
    if not path:
        return [field.name for field in table.schema.fields]
    return [field.name for field in table.schema.find_field(path).type.fields]  # type: ignore[union-attr]


def commits(table: Table) -> int:
    return len(table.metadata.metadata_log)


def test_columns_are_added_at_any_depth_and_place_in_one_commit(lake: Lake, stock: Table) -> None:
    before = commits(stock)
    alter(
        lake,
        "ADD COLUMNS (price DOUBLE COMMENT 'each', f INT FIRST, g INT AFTER SKU, h INT AFTER g, info.b.d INT FIRST, "
        "info.z DATE AFTER A, l.element.y BIGINT, m.value.y BIGINT, `a.b` INT)",
    )
    assert commits(stock) == before + 1
    assert names(stock) == ["f", "sku", "g", "h", "qty", "info", "l", "m", "ts", "price", "a.b"]
    assert (names(stock, "info"), names(stock, "info.b")) == (["a", "z", "b"], ["d", "c"])
    assert (names(stock, "l.element"), names(stock, "m.value")) == (["x", "y"], ["x", "y"])
    assert stock.schema.find_field("price").doc == "each"
    alter(lake, "ADD COLUMN `c``d` STRUCT<`e.f`: INT>", "ADD COLUMN `c``d`.`g.h` INT AFTER `e.f`", "DROP COLUMN `a.b`")
    assert names(stock, "c`d") == ["e.f", "g.h"]


def test_a_dropped_name_that_is_added_again_has_no_old_values(lake: Lake, stock: Table) -> None:
    alter(lake, "DROP COLUMN QTY", "ADD COLUMN qty INT")
    assert stock.scan().to_arrow().read_all()["qty"].to_pylist() == [None, None]


def test_columns_are_renamed_retyped_moved_and_described(lake: Lake, stock: Table) -> None:
    alter(
        lake,
        "RENAME COLUMN info.b.c TO d",
        "RENAME COLUMN sku TO SKU",
        "ALTER COLUMN qty TYPE BIGINT, info.A TYPE BIGINT, l.element.x COMMENT 'in it'",
        "ALTER qty COMMENT 'how ' 'many'",
        "ALTER COLUMN ts FIRST",
        "CHANGE COLUMN info.b FIRST",
        "CHANGE qty AFTER ts",
        "ALTER COLUMN sku DROP NOT NULL",
        "ALTER COLUMN qty TYPE LONG",
    )
    assert names(stock) == ["ts", "qty", "SKU", "info", "l", "m"]
    assert (names(stock, "info"), names(stock, "info.b")) == (["b", "a"], ["d"])
    found = {path: stock.schema.find_field(path) for path in ("qty", "info.a", "l.element.x", "SKU")}
    assert [str(found[each].type) for each in ("qty", "info.a")] == ["long", "long"]
    assert (found["qty"].doc, found["l.element.x"].doc, found["SKU"].required) == ("how many", "in it", False)
    alter(lake, "CHANGE COLUMN qty qty BIGINT COMMENT 'n' AFTER sku", "CHANGE sku SKU STRING")
    assert (names(stock)[2], stock.schema.find_field("qty").doc) == ("qty", "n")


def test_columns_are_dropped_together(lake: Lake, stock: Table) -> None:
    before = commits(stock)
    alter(lake, "DROP COLUMNS (info.b, ts, M)")
    assert (commits(stock), names(stock), names(stock, "info")) == (before + 1, ["sku", "qty", "info", "l"], ["a"])
    alter(lake, "DROP COLUMN IF EXISTS nothing, info.nothing, qty")
    assert names(stock) == ["sku", "info", "l"]


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("change", "token"),
    [
        ("ADD COLUMN QTY INT", "QTY"),
        ("ADD COLUMNS (a INT, A STRING)", "A STRING"),
        ("ADD COLUMN info.A INT", "info.A"),
        ("ADD COLUMN nothing.x INT", "nothing.x"),
        ("ADD COLUMN qty.x INT", "qty.x"),
        ("ADD COLUMN m.key.x INT", "m.key.x"),
        ("ADD COLUMN r INT NOT NULL", "r INT"),
        ("ADD COLUMN f INT AFTER nothing", "nothing"),
        ("ADD COLUMN info.f INT AFTER sku", "sku"),
        ("ADD COLUMN f INT FIRST AFTER sku", "AFTER"),
        ("ADD COLUMN f INT DEFAULT 5", "f INT"),
        ("ADD COLUMN f", ""),
        ("DROP COLUMN nothing", "nothing"),
        ("DROP COLUMN l.element", "l.element"),
        ("RENAME COLUMN qty TO SKU", "SKU"),
        ("RENAME COLUMN nothing TO x", "nothing"),
        ("RENAME COLUMN qty TO a.b", ".b"),
        ("ALTER COLUMN sku TYPE INT", "INT"),
        ("ALTER COLUMN info TYPE STRUCT<a: BIGINT>", "STRUCT"),
        ("ALTER COLUMN qty SET NOT NULL", "SET NOT"),
        ("ALTER COLUMN qty SET DEFAULT qty", "qty"),
        ("ALTER COLUMN nothing COMMENT 'x'", "nothing"),
        ("ALTER COLUMN qty AFTER nothing", "nothing"),
        ("ALTER COLUMN qty", ""),
        ("CHANGE COLUMN qty quantity INT", "quantity"),
        ("REPLACE COLUMNS (sku INT)", "INT"),
        ("REPLACE COLUMNS (sku STRING, extra INT NOT NULL)", "extra"),
        ("ADD PARTITION FIELD nothing", "nothing"),
        ("ADD PARTITION FIELD hours(qty)", "hours(qty)"),
        ("ADD PARTITION FIELD info", "info"),
        ("DROP PARTITION FIELD qty", "qty"),
        ("DROP PARTITION FIELD bucket(4, qty)", "bucket(4, qty)"),
        ("REPLACE PARTITION FIELD qty WITH ts", "qty"),
        ("WRITE ORDERED BY nothing", "nothing"),
        ("WRITE ORDERED BY sku, info", "info"),
        ("WRITE DISTRIBUTED BY RANGE", "RANGE"),
        ("WRITE", ""),
        ("SET IDENTIFIER FIELDS sku, qty", "qty"),
        ("DROP IDENTIFIER FIELDS sku", "sku"),
        ("SET TBLPROPERTIES ('read.splt.target-size' = '1')", "'read.splt"),
        ("SET TBLPROPERTIES ('write.distribution-mode' = 'any')", "'write.distribution-mode'"),
        ("SET TBLPROPERTIES ('sort-order' = 'sku')", "'sort-order'"),
        ("UNSET TBLPROPERTIES ('a' = '1')", "="),
        ("RENAME TO nowhere.stock", "nowhere.stock"),
        ("SHUFFLE", "SHUFFLE"),
        ("SET SOMETHING", "SOMETHING"),
        ("ADD SOMETHING", "SOMETHING"),
    ],
)
def test_a_change_that_cannot_be_points_at_its_token_and_changes_nothing(
    lake: Lake, stock: Table, change: str, token: str
) -> None:
    before, text = commits(stock), f"ALTER TABLE shop.stock {change}"
    with pytest.raises(IcefieldError) as caught:
        run(lake, text)
    assert isinstance(caught.value, InvalidInput | NoSuchTable | Unsupported) or "nowhere" in text
    assert caught.value.position == (1, text.rindex(token) if token else len(text)), str(caught.value)
    assert commits(stock) == before


def test_partitions_of_hive_are_refused_with_the_way_out(lake: Lake) -> None:
    error = refused(lake, "ALTER TABLE shop.stock ADD PARTITION (qty = 1)", Unsupported, at="PARTITION")
    assert "ADD PARTITION FIELD" in str(error.hint)


def test_what_is_not_a_table_is_not_altered(lake: Lake, stock: Table) -> None:
    stock.create_branch("b")
    stock.create_tag("g")
    lake.create_view("shop.v", "SELECT 1", schema="id long")
    for name in ("shop.v", "shop.stock.branch_b", "shop.stock.tag_g", "shop.stock.files"):
        refused(lake, f"ALTER TABLE {name} ADD COLUMN x INT", Unsupported, at=name)
    error = refused(lake, "ALTER TABLE shop.stok ADD COLUMN x INT", NoSuchTable, at="shop.stok")
    assert "shop.stock" in str(error.hint)


def test_replace_columns_keeps_the_values_of_columns_that_stay(lake: Lake, stock: Table) -> None:
    before = commits(stock)
    alter(lake, "REPLACE COLUMNS (extra INT, qty BIGINT COMMENT 'n', SKU STRING)")
    assert (commits(stock), names(stock)) == (before + 1, ["extra", "qty", "sku"])
    assert stock.scan().to_arrow().read_all().to_pydict() == {"extra": [None, None], "qty": [1, 2], "sku": ["a", "b"]}
    assert (stock.schema.find_field("sku").required, stock.schema.find_field("qty").doc) == (False, "n")


@pytest.mark.parametrize("kind", ["timestamptz", "timestamp", "timestamp_ns", "timestamptz_ns", "date"])
@pytest.mark.parametrize("text", ["'yesterday'", "'2026-1-2'", "''"])
def test_a_default_that_is_no_time_is_refused(lake: Lake, kind: str, text: str) -> None:
    table = lake.create_table("shop.times", f"id long, ts {kind}", format_version=3)
    with pytest.raises(InvalidInput, match="default|is not a value of type"):
        lake.sql(f"ALTER TABLE shop.times ALTER COLUMN ts SET DEFAULT {text}", engine="local")
    assert table.schema.find_field("ts").write_default is None


def test_defaults_are_set_and_dropped(lake: Lake, stock: Table) -> None:
    alter(lake, "SET TBLPROPERTIES ('format-version' = '3')")
    run(lake, "ALTER TABLE shop.stock ADD COLUMN price DECIMAL(9,2) NOT NULL DEFAULT ? FIRST", [5])
    assert [str(each) for each in stock.scan(select=["price"]).to_arrow().read_all()["price"].to_pylist()] == [
        *("5.00", "5.00"),
    ]
    alter(lake, "ALTER COLUMN price SET DEFAULT 7.5", "ALTER COLUMN qty SET DEFAULT 3", "ALTER COLUMN qty DROP DEFAULT")
    price, qty = stock.schema.find_field("price"), stock.schema.find_field("qty")
    assert (str(price.initial_default), str(price.write_default), qty.write_default) == ("5.00", "7.50", None)
    refused(lake, "ALTER TABLE shop.stock ALTER COLUMN price DROP DEFAULT", InvalidInput, at="price")


def test_properties_and_the_format_version_are_one_commit(lake: Lake, stock: Table) -> None:
    before = commits(stock)
    alter(lake, "SET TBLPROPERTIES ('format-version' = '3', 'mine' = 'x', 'other' = 'y')")
    assert (commits(stock), stock.metadata.format_version) == (before + 1, 3)
    alter(lake, "UNSET TBLPROPERTIES ('mine', nothing)", "UNSET TBLPROPERTIES IF EXISTS ('mine')")
    assert stock.properties == {"other": "y"}
    refused(lake, "ALTER TABLE shop.stock SET TBLPROPERTIES ('format-version' = '2')", InvalidInput, at="shop.stock")


def test_partition_fields_are_named_as_iceberg_names_them(lake: Lake, stock: Table) -> None:
    alter(
        lake,
        "ADD PARTITION FIELD bucket(4, sku)",
        "ADD PARTITION FIELD truncate(sku, 2)",
        "ADD PARTITION FIELD days(ts)",
        "ADD PARTITION FIELD qty AS q",
        "ADD PARTITION FIELD truncate(10, info.a) AS `in a`",
    )
    assert [f.name for f in stock.spec.fields] == ["sku_bucket_4", "sku_trunc_2", "ts_day", "q", "in a"]
    alter(
        lake,
        "DROP PARTITION FIELD bucket(4, sku)",
        "DROP PARTITION FIELD `in a`",
        "DROP PARTITION FIELD qty",
        "REPLACE PARTITION FIELD ts_day WITH hour(ts) AS h",
        "REPLACE PARTITION FIELD truncate(2, sku) WITH bucket(8, sku)",
    )
    assert [(f.name, str(f.transform)) for f in stock.spec.fields] == [("h", "hour"), ("sku_bucket_8", "bucket[8]")]
    refused(lake, "ALTER TABLE shop.stock DROP COLUMN ts", InvalidInput, at="ts")
    alter(lake, "DROP PARTITION FIELD h", "ADD PARTITION FIELD hours(ts) AS h")
    assert stock.spec.fields[-1].field_id == stock.metadata.specs[-1].fields[-1].field_id


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("write", "order", "mode"),
    [
        ("ORDERED BY sku, qty DESC NULLS FIRST", ["asc nulls-first", "desc nulls-first"], "range"),
        ("ORDERED BY (bucket(4, sku) DESC)", ["desc nulls-last"], "range"),
        ("LOCALLY ORDERED BY qty ASC NULLS LAST", ["asc nulls-last"], None),
        ("DISTRIBUTED BY PARTITION", [], "hash"),
        ("DISTRIBUTED BY PARTITION LOCALLY ORDERED BY qty", ["asc nulls-first"], "hash"),
        ("LOCALLY ORDERED BY qty DISTRIBUTED BY PARTITION", ["asc nulls-first"], "hash"),
        ("UNORDERED", [], "none"),
    ],
)
def test_the_write_order_is_one_commit(
    lake: Lake, stock: Table, write: str, order: list[str], mode: str | None
) -> None:
    before = commits(stock)
    alter(lake, f"WRITE {write}")
    assert [f"{f.direction} {f.null_order}" for f in stock.metadata.sort_order.fields] == order
    assert (stock.properties.get("write.distribution-mode"), commits(stock)) == (mode, before + 1)


def test_identifier_fields_are_set_and_dropped(lake: Lake, stock: Table) -> None:
    alter(lake, "SET IDENTIFIER FIELDS sku")
    assert [stock.schema.name_of(i) for i in stock.schema.identifier_field_ids] == ["sku"]
    refused(lake, "ALTER TABLE shop.stock DROP COLUMN sku", InvalidInput, at="sku")
    refused(lake, "ALTER TABLE shop.stock ALTER COLUMN sku DROP NOT NULL", InvalidInput, at="sku")
    alter(lake, "DROP IDENTIFIER FIELDS SKU")
    assert stock.schema.identifier_field_ids == ()


def test_a_table_is_renamed_within_and_across_namespaces(lake: Lake) -> None:
    alter(lake, "RENAME TO renamed")
    lake.create_namespace("other")
    run(lake, f"ALTER TABLE shop.renamed RENAME TO {lake.catalog.name}.other.moved")
    assert lake.tables() == ["other.moved"]


def test_the_location_of_new_files_is_set(lake: Lake, stock: Table) -> None:
    place = f"{lake.warehouse}/shop/elsewhere"
    run(lake, "ALTER TABLE shop.stock SET LOCATION :place", {"place": place})
    assert stock.location == place


def test_comments_are_set_and_removed(lake: Lake, stock: Table) -> None:
    run(lake, "COMMENT ON TABLE shop.stock IS 'what is there'")
    run(lake, "COMMENT ON COLUMN shop.stock.info.B.c IS 'deep'")
    run(lake, "COMMENT ON SCHEMA shop IS 'the shop'")
    assert (stock.properties, lake.namespace_properties("shop")) == (
        {"comment": "what is there"},
        {"comment": "the shop"},
    )
    assert stock.schema.find_field("info.b.c").doc == "deep"
    for each in ("TABLE shop.stock", "COLUMN shop.stock.info.b.c", "NAMESPACE shop"):
        run(lake, f"COMMENT ON {each} IS NULL")
    assert (stock.properties, lake.namespace_properties("shop")) == ({}, {})
    assert stock.schema.find_field("info.b.c").doc is None
    refused(lake, "COMMENT ON COLUMN shop.stock.nothing IS 'x'", InvalidInput, at="shop.stock.nothing")
    refused(lake, "COMMENT ON COLUMN nothing.at.all IS 'x'", NoSuchTable, at="nothing.at.all")
    refused(lake, "COMMENT ON TABLE shop.stock IS 5", InvalidInput, at="5")
