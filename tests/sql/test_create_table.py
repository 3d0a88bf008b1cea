"""CREATE TABLE without a query: columns, types, clauses, and what is refused, all without a JVM."""

import pytest

from icefield.errors import (
    AlreadyExists,
    IcefieldError,
    InvalidInput,
    LocationRefused,
    NoSuchNamespace,
    NoSuchTable,
    Unsupported,
)
from icefield.lake import Lake
from tests.sql.running import refused, run


@pytest.fixture(autouse=True)
def namespace(lake: Lake) -> None:
    lake.create_namespace("shop")


def types_of(lake: Lake, columns: str) -> list[str]:
    run(lake, f"CREATE OR REPLACE TABLE shop.types ({columns}) TBLPROPERTIES ('format-version' = '3')")
    return [str(field.type) for field in lake.table("shop.types").schema.fields]


def test_types_are_those_of_spark(lake: Lake) -> None:
    spark = (
        "a BOOLEAN, b BYTE, c SHORT, d INTEGER, e LONG, f REAL, g DOUBLE, h DEC, i NUMERIC(5), j DECIMAL(38,10), "
        "k DATE, l TIMESTAMP, m TIMESTAMP_LTZ, n TIMESTAMP_NTZ, o TIMESTAMP WITHOUT TIME ZONE, p STRING, "
        "q CHARACTER(2), r VARCHAR(9), s BINARY, t VARIANT, u VOID, v STRING COLLATE UTF8_BINARY, w TIME(6)"
    )
    assert types_of(lake, spark) == (
        "boolean int int int long float double decimal(10,_0) decimal(5,_0) decimal(38,_10) date "
        "timestamptz timestamptz timestamp timestamp string string "
        "string binary variant unknown string time"
    ).replace(" ", "|").replace("_", " ").split("|")


def test_types_of_iceberg_that_spark_lacks_go_by_their_names(lake: Lake) -> None:
    found = types_of(lake, "a UUID, b FIXED[16], c FIXED(4), d TIMESTAMP_NS, e TIMESTAMPTZ_NS, f GEOMETRY(4326)")
    assert found == ["uuid", "fixed[16]", "fixed[4]", "timestamp_ns", "timestamptz_ns", "geometry(OGC:CRS84)"]


def test_nested_types_keep_their_options_however_their_brackets_are_closed(lake: Lake) -> None:
    run(
        lake,
        "CREATE TABLE shop.t (a STRUCT<x: INT NOT NULL COMMENT 'an x', `y z` ARRAY<MAP<STRING, ARRAY<INT>>>>, "
        "b MAP<INT, STRUCT<c: ARRAY<ARRAY<DECIMAL(3,1)>>, d: STRING>>)",
    )
    schema = lake.table("shop.t").schema
    x = schema.find_field("a.x")
    assert (x.required, x.doc) == (True, "an x")
    assert str(schema.find_field("a.y z").type) == "list<map<string, list<int>>>"
    assert str(schema.find_field("b.value.c").type) == "list<list<decimal(3, 1)>>"
    assert not schema.find_field("b.value").required


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("columns", "token", "error"),
    [
        ("a INTERVAL DAY", "INTERVAL", Unsupported),
        ("a NOTHING", "NOTHING", InvalidInput),
        ("a STRUCT<>", "<>", Unsupported),
        ("a STRUCT<x: INT, X: INT>", "X: INT", InvalidInput),
        ("a ARRAY<INT", ")", InvalidInput),
        ("a DECIMAL(40, 2)", "DECIMAL", InvalidInput),
        ("a VARCHAR", ")", InvalidInput),
        ("a STRING COLLATE UNICODE", "UNICODE", Unsupported),
        ("a INT GENERATED ALWAYS AS (1)", "GENERATED", Unsupported),
        ("a INT, A STRING", "A STRING", InvalidInput),
        ("a INT NOT NULL NOT NULL", "NOT NULL)", InvalidInput),
        ("a.b INT", "a.b", InvalidInput),
        ("a INT CHECK (a > 0)", "CHECK", Unsupported),
        ("a INT, UNIQUE (a)", "UNIQUE", Unsupported),
        ("a INT, PRIMARY KEY (b)", "b)", InvalidInput),
        ("a INT PRIMARY KEY ENFORCED", "ENFORCED", Unsupported),
        ("a INT DEFAULT now()", "now()", Unsupported),
        ("a INT DEFAULT b", "b)", Unsupported),
        ("a INT DEFAULT true", "true", InvalidInput),
        ("a DATE DEFAULT 5", "5", InvalidInput),
        ("a INT DEFAULT 5 + 5", "5 + 5", Unsupported),
    ],
)
def test_a_column_that_cannot_be_is_refused_at_its_token(
    lake: Lake, columns: str, token: str, error: type[IcefieldError]
) -> None:
    refused(lake, f"CREATE TABLE shop.t ({columns}) TBLPROPERTIES ('format-version' = '3')", error, at=token)
    assert lake.tables() == []


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("clauses", "token", "error"),
    [
        ("USING parquet", "parquet", Unsupported),
        ("PARTITIONED BY (c)", "c)", InvalidInput),
        ("PARTITIONED BY (days(id))", "days(id)", InvalidInput),
        ("PARTITIONED BY (bucket(0, id))", "bucket(0, id)", InvalidInput),
        ("PARTITIONED BY (id, id)", "id)", InvalidInput),
        ("PARTITIONED BY (day DATE, bucket(4, id))", "bucket", InvalidInput),
        ("PARTITIONED BY (id INT)", "id INT)", InvalidInput),
        ("COMMENT 'a' COMMENT 'b'", "COMMENT 'b'", InvalidInput),
        ("CLUSTER BY (id)", "CLUSTER", Unsupported),
        ("CLUSTERED BY (id, v) INTO 4 BUCKETS", ", v) INTO", Unsupported),
        ("STORED AS ORC", "STORED", Unsupported),
        ("TBLPROPERTIES ('format-version' = 'x')", "'format-version'", InvalidInput),
        ("TBLPROPERTIES ('a' = '1', 'a' = '2')", "'a' = '2'", InvalidInput),
        ("TBLPROPERTIES ('a')", ")", InvalidInput),
        ("TBLPROPERTIES ('write.parqet.page-version' = 'v2')", "'write.parqet", InvalidInput),
        ("TBLPROPERTIES ('location' = '/x')", "'location'", InvalidInput),
        ("TBLPROPERTIES ('sort-order' = 'nothing ASC')", "'sort-order'", InvalidInput),
        ("TBLPROPERTIES ('sort-order' = 'id,')", "'sort-order'", InvalidInput),
        ("LOCATION '/elsewhere'", "'/elsewhere'", LocationRefused),
        ("WRITE ORDERED BY id, c", "c", InvalidInput),
        ("WRITE ORDERED BY id UNORDERED", "UNORDERED", InvalidInput),
        ("ANYTHING", "ANYTHING", InvalidInput),
    ],
)
def test_a_clause_that_cannot_be_is_refused_at_its_token(
    lake: Lake, clauses: str, token: str, error: type[IcefieldError]
) -> None:
    text = "CREATE TABLE shop.t (id INT, v STRING) " + clauses
    with pytest.raises(error) as caught:
        run(lake, text)
    assert caught.value.position == (1, text.index(token, text.index(clauses))), str(caught.value)
    assert lake.tables() == []


def test_partitions_may_be_columns_with_types_transforms_or_buckets(lake: Lake) -> None:
    run(lake, "CREATE TABLE shop.a (id INT) PARTITIONED BY (day DATE COMMENT 'd', region STRING)")
    assert lake.table("shop.a").schema.column_names == ["id", "day", "region"]
    assert str(lake.table("shop.a").spec) == "[day: identity(2), region: identity(3)]"
    run(
        lake,
        "CREATE TABLE shop.b (id INT, s STRUCT<t: TIMESTAMP>, `a b` STRING, u TIMESTAMP, w TIMESTAMP) "
        "PARTITIONED BY (bucket(id, 8), hours(s.t), truncate(3, `a b`), date(u), identity(id), months(w))",
    )
    assert [(f.name, str(f.transform)) for f in lake.table("shop.b").spec.fields] == [
        ("id_bucket", "bucket[8]"),
        ("s.t_hour", "hour"),
        ("a b_trunc", "truncate[3]"),
        ("u_day", "day"),
        ("id", "identity"),
        ("w_month", "month"),
    ]
    run(lake, "CREATE TABLE shop.c (id INT) CLUSTERED BY (ID) INTO 4 BUCKETS")
    assert str(lake.table("shop.c").spec) == "[id_bucket: bucket[4](1)]"


def test_comment_properties_options_and_order_are_stored(lake: Lake) -> None:
    run(
        lake,
        "CREATE TABLE shop.t (id INT NOT NULL, v STRING) USING Iceberg OPTIONS (o = 'p') COMMENT 'it''s' ' all' "
        "TBLPROPERTIES ('a' = 1, b.c = true, 'd' -2.5, 'format-version' = 3) WRITE ORDERED BY v DESC, bucket(4, id)",
    )
    table = lake.table("shop.t")
    stored = {"o": "p", "comment": "it's all", "a": "1", "b.c": "true", "d": "-2.5", "write.distribution-mode": "range"}
    assert table.properties == stored
    assert table.metadata.format_version == 3
    order = table.metadata.sort_order.fields
    assert [(str(f.transform), str(f.direction)) for f in order] == [("identity", "desc"), ("bucket[4]", "asc")]


def test_what_show_create_table_shows_is_read_again(lake: Lake) -> None:
    run(
        lake,
        "CREATE TABLE shop.t (id INT NOT NULL COMMENT 'k', `a b` STRUCT<x: UUID NOT NULL>, "
        "d DATE DEFAULT DATE '2026-01-02') PARTITIONED BY (days(d), truncate(2, id)) "
        "TBLPROPERTIES ('format-version' = '3', 'k' = 'v') "
        "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY d DESC NULLS FIRST",
    )
    run(lake, "ALTER TABLE shop.t SET IDENTIFIER FIELDS id")
    text = run(lake, "SHOW CREATE TABLE shop.t")[0][0]
    run(lake, text.replace("shop.t ", "shop.u "))
    one, other = lake.table("shop.t").metadata, lake.table("shop.u").metadata
    assert (one.schema.fields, one.schema.identifier_field_ids) == (
        other.schema.fields,
        other.schema.identifier_field_ids,
    )
    assert (one.spec.fields, one.sort_order.fields) == (other.spec.fields, other.sort_order.fields)
    assert (one.properties, one.format_version) == (other.properties, other.format_version)


def test_a_primary_key_is_the_identifier_fields(lake: Lake) -> None:
    run(lake, "CREATE TABLE shop.t (a INT, b STRING, CONSTRAINT pk PRIMARY KEY (B, a) NOT ENFORCED RELY)")
    schema = lake.table("shop.t").schema
    assert (schema.identifier_field_ids, [f.required for f in schema.fields]) == ((1, 2), [True, True])
    run(lake, "CREATE TABLE shop.u (a INT PRIMARY KEY, primary STRING, check INT)")
    assert lake.table("shop.u").schema.identifier_field_ids == (1,)


def test_defaults_are_literals_of_the_type_of_their_column(lake: Lake) -> None:
    text = (
        "CREATE TABLE shop.t (a INT DEFAULT -5, b DOUBLE DEFAULT 1, c DECIMAL(6,2) DEFAULT 1.5, d STRING DEFAULT 7, "
        "e TIMESTAMP DEFAULT TIMESTAMP '2026-01-01 00:00:00', f TIMESTAMP_NTZ DEFAULT '2026-01-01 01:00:00', "
        "g DATE DEFAULT DATE '1970-01-03' NOT NULL COMMENT 'c', h BIGINT DEFAULT :x, i BOOLEAN DEFAULT NULL, "
        "j BINARY DEFAULT X'0aff', k INT DEFAULT CAST('7' AS INT)) TBLPROPERTIES ('format-version' = '3')"
    )
    run(lake, text, {"x": 9})
    fields = lake.table("shop.t").schema.fields
    assert [str(f.write_default) for f in fields] == [
        *("-5", "1.0", "1.50", "7", "1767225600000000", "1767229200000000", "2", "9", "None", r"b'\n\xff'", "7"),
    ]
    assert (fields[6].required, fields[6].doc) == (True, "c")
    error = refused(lake, "CREATE TABLE shop.u (a INT DEFAULT 42)", InvalidInput, at="42")
    assert "'format-version' = '3'" in str(error.hint)


def test_a_name_is_taken_missing_or_in_no_namespace(lake: Lake) -> None:
    run(lake, "CREATE TABLE shop.t (id INT)")
    refused(lake, "CREATE TABLE shop.t (id INT)", AlreadyExists, at="shop.t")
    run(lake, "CREATE TABLE IF NOT EXISTS shop.t (other INT)")
    assert lake.table("shop.t").schema.column_names == ["id"]
    error = refused(lake, "CREATE TABLE shp.t (id INT)", NoSuchNamespace, at="shp.t")
    assert error.hint == "Did you mean shop?"
    refused(lake, "REPLACE TABLE shop.u (id INT)", NoSuchTable, at="shop.u")
    refused(lake, "CREATE TABLE t (id INT)", NoSuchTable, at="t (")
    refused(lake, "CREATE TABLE shop.`a.b` (id INT)", InvalidInput, at="shop.`a.b`")
    refused(lake, "CREATE NAMESPACE `a.b`", InvalidInput, at="`a.b`")
    refused(lake, "CREATE TABLE shop.u (v VARIANT)", InvalidInput, at="VARIANT")
    refused(lake, "CREATE TABLE shop.u (v INT) TBLPROPERTIES ('format-version' = '9')", Unsupported, at="'format-ver")
    refused(lake, "CREATE OR REPLACE TABLE IF NOT EXISTS shop.t (id INT)", InvalidInput, at="IF")
    refused(lake, "CREATE TABLE shop.u USING iceberg", InvalidInput, at="shop.u")
    refused(lake, "CREATE EXTERNAL TABLE shop.u (id INT)", Unsupported, at="EXTERNAL")
    refused(lake, "CREATE TEMPORARY TABLE u (id INT)", Unsupported, at="TEMPORARY")
    refused(lake, "CREATE THING shop.u", InvalidInput, at="THING")


def test_names_may_be_those_of_keywords_the_catalog_or_a_parameter(lake: Lake) -> None:
    run(lake, f"CREATE TABLE {lake.catalog.name}.shop.`table` (`select` INT, column INT)")
    run(lake, "CREATE TABLE IDENTIFIER(:name) (id INT)", {"name": "shop.by_name"})
    run(lake, "create table shop.table2 -- the second\n(id int /* a (nested) */) ;")
    assert lake.tables() == ["shop.by_name", "shop.table", "shop.table2"]


def test_a_replacement_keeps_the_history_and_merges_the_properties(lake: Lake) -> None:
    run(lake, "CREATE TABLE shop.t (id INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES ('a' = '1', 'b' = '2')")
    before = lake.table("shop.t").metadata
    run(lake, "CREATE OR REPLACE TABLE shop.t (id INT, w DOUBLE) TBLPROPERTIES ('b' = '3')")
    after = lake.table("shop.t").metadata
    assert (after.table_uuid, len(after.metadata_log)) == (before.table_uuid, 1)
    assert (after.properties, after.spec.is_unpartitioned) == ({"a": "1", "b": "3"}, True)
    run(lake, "REPLACE TABLE shop.t (x INT)")
    assert lake.table("shop.t").schema.column_names == ["x"]
    refused(lake, "REPLACE TABLE shop.t (x INT) LOCATION '/a'", Unsupported, at="'/a'")
    run(lake, "CREATE OR REPLACE TABLE shop.new (x INT)")
    assert lake.has_table("shop.new")


def test_a_table_like_another_or_like_a_view(lake: Lake) -> None:
    run(lake, "CREATE TABLE shop.t (id INT NOT NULL, ts TIMESTAMP) PARTITIONED BY (days(ts)) COMMENT 'c'")
    run(lake, "ALTER TABLE shop.t ADD PARTITION FIELD bucket(4, id) AS b")
    run(lake, "CREATE TABLE shop.u LIKE shop.t USING iceberg TBLPROPERTIES ('k' = 'v')")
    made = lake.table("shop.u")
    assert (made.schema, made.spec) == (lake.table("shop.t").schema, made.spec)
    assert ([f.name for f in made.spec.fields], made.properties) == (["ts_day", "b"], {"comment": "c", "k": "v"})
    lake.create_view("shop.v", "SELECT id FROM t", schema="id long not null")
    run(lake, "CREATE TABLE IF NOT EXISTS shop.w LIKE shop.v")
    assert [(f.name, f.required) for f in lake.table("shop.w").schema.fields] == [("id", False)]
    run(lake, "CREATE TABLE IF NOT EXISTS shop.w LIKE shop.t")
    refused(lake, "CREATE TABLE shop.x LIKE shop.nothing", NoSuchTable, at="shop.nothing")
    refused(lake, "CREATE TABLE shop.x LIKE shop.t.files", Unsupported, at="shop.t.files")
    refused(lake, "CREATE TABLE shop.v (id INT)", AlreadyExists, at="shop.v")


def test_columns_and_a_query_exclude_each_other(lake: Lake) -> None:
    refused(lake, "CREATE TABLE shop.t (id INT) AS SELECT 1 AS id", InvalidInput, at="id INT")
    refused(lake, "CREATE TABLE shop.t PARTITIONED BY (id INT) AS SELECT 1 AS id", InvalidInput, at="id INT")


def test_definitions_have_no_dry_run_and_explain_changes_nothing(lake: Lake) -> None:
    with pytest.raises(Unsupported, match="no dry run"):
        lake.sql("CREATE TABLE shop.t (id INT)", engine="local", dry_run=True)
    assert run(lake, "EXPLAIN CREATE TABLE shop.t (id INT)") == [("create shop.t in one commit",)]
    assert "no row" in run(lake, "EXPLAIN CREATE NAMESPACE x")[0][0]
    assert lake.tables() == []


def test_in_a_transaction_tables_are_not_created_dropped_or_renamed(lake: Lake) -> None:
    run(lake, "CREATE TABLE shop.t (id INT)")
    run(lake, "BEGIN")
    for text in (
        "CREATE TABLE shop.u (id INT)",
        "CREATE OR REPLACE TABLE shop.t (id INT)",
        "DROP TABLE shop.t",
        "ALTER TABLE shop.t RENAME TO shop.u",
        "UNDROP TABLE shop.t",
    ):
        with pytest.raises(Unsupported, match="a transaction cannot"):
            run(lake, text)
    run(lake, "ALTER TABLE shop.t ADD COLUMN v STRING")
    run(lake, "ALTER TABLE shop.t WRITE ORDERED BY v")
    run(lake, "ALTER TABLE shop.t SET TBLPROPERTIES ('k' = 'v')")
    assert lake.table("shop.t").schema.column_names == ["id"]
    run(lake, "COMMIT")
    table = lake.table("shop.t")
    assert (table.schema.column_names, table.properties["k"]) == (["id", "v"], "v")
    assert len(table.metadata.metadata_log) == 1


def test_tables_are_dropped_purged_and_restored(lake: Lake) -> None:
    run(lake, "CREATE TABLE shop.t (id INT)")
    run(lake, "DROP TABLE shop.t")
    refused(lake, "DROP TABLE shop.t", NoSuchTable, at="shop.t")
    run(lake, "DROP TABLE IF EXISTS shop.t")
    run(lake, "UNDROP TABLE shop.t AS shop.u")
    assert lake.tables() == ["shop.u"]
    uuid = str(lake.table("shop.u").metadata.table_uuid)
    run(lake, "DROP TABLE shop.u PURGE")
    assert [(each.table, each.purge) for each in lake.dropped()] == [("shop.u", True)]
    run(lake, f"UNDROP TABLE '{uuid}'")
    assert lake.tables() == ["shop.u"]
    lake.create_view("shop.v", "SELECT 1", schema="id long")
    refused(lake, "DROP TABLE shop.v", NoSuchTable, at="shop.v")
    refused(lake, "DROP VIEW shop.u", NoSuchTable, at="shop.u")
    refused(lake, "DROP TABLE shop.u.files", Unsupported, at="shop.u.files")
    refused(lake, "DROP TABLE shop.u NOW", InvalidInput, at="NOW")


def test_a_table_is_created_from_a_query_without_a_jvm(lake: Lake) -> None:
    pytest.importorskip("duckdb")
    made = run(lake, "CREATE TABLE shop.t PARTITIONED BY (b) AS SELECT * FROM VALUES (1, 'x'), (2, 'y') AS t(a, b)")
    assert (made[0][0], made[0][-1]) == (2, str(lake.table("shop.t").snapshots()[0].snapshot_id))
    assert lake.table("shop.t").scan().to_arrow().read_all().sort_by("a").to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    run(lake, "CREATE OR REPLACE TABLE shop.t AS SELECT a * 2 AS a FROM shop.t WHERE a = 1")
    assert lake.table("shop.t").scan().to_arrow().read_all().to_pydict() == {"a": [2]}
