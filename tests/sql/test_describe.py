"""DESCRIBE: the rows that Spark shows for tables of Iceberg, and Delta's history and details, without a JVM."""

import pyarrow as pa
import pytest

import icefield
from icefield.errors import InvalidInput, NeedsSpark, NoSuchNamespace, NoSuchTable, Unsupported
from icefield.lake import Lake
from tests.sql.running import columns, refused, run


@pytest.fixture
def lake() -> Lake:
    lake = icefield.connect("memory:")
    table = lake.create_table(
        "shop.logs",
        "id int, level string, ts timestamptz, info struct<kind: string, pos: struct<x: double>>, m map<string, int>",
        partition_by=["level", "day(ts)"],
        properties={"comment": "all logs"},
    )
    with table.evolve() as change:
        change.set_doc("id", "the key")
    return lake


PLAIN = [
    ("id", "int", "the key"),
    ("level", "string", None),
    ("ts", "timestamp", None),
    ("info", "struct<kind:string,pos:struct<x:double>>", None),
    ("m", "map<string,int>", None),
    ("", "", ""),
    ("# Partitioning", "", ""),
    ("Part 0", "level", ""),
    ("Part 1", "days(ts)", ""),
]


def test_columns_and_partitioning_of_a_table(lake: Lake) -> None:
    assert columns(lake, "DESCRIBE shop.logs") == ["col_name", "data_type", "comment"]
    assert run(lake, "DESCRIBE shop.logs") == PLAIN
    assert run(lake, "desc table icefield.shop.logs") == PLAIN
    refused(lake, "DESCRIBE shop.log", NoSuchTable, at="shop.log", match="Did you mean shop.logs")


def test_partitions_by_columns_alone_are_shown_as_columns(lake: Lake) -> None:
    lake.create_table("shop.p", "id int, day date", partition_by=["day"])
    assert run(lake, "DESCRIBE shop.p")[2:] == [
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        ("day", "date", None),
    ]


def test_details_follow_when_they_are_asked_for(lake: Lake) -> None:
    rows = run(lake, "DESCRIBE EXTENDED shop.logs")
    assert rows == run(lake, "DESCRIBE FORMATTED shop.logs")
    assert rows[: len(PLAIN)] == PLAIN
    found = {name: value for name, value, _ in rows[len(PLAIN) :]}
    assert found["_partition"] == "struct<level:string,ts_day:date>"
    assert "_row_id" not in found
    assert (found["Name"], found["Comment"], found["Provider"]) == ("icefield.shop.logs", "all logs", "iceberg")
    assert found["Location"] == lake.table("shop.logs").location
    lake.table("shop.logs").append(pa.table({"id": pa.array([1], pa.int32())}))
    [statistics] = [row[1] for row in run(lake, "DESCRIBE EXTENDED shop.logs") if row[0] == "Statistics"]
    assert statistics.endswith(" bytes, 1 rows")
    lake.table("shop.logs").upgrade_format_version(3)
    assert ("_row_id", "bigint", "") in run(lake, "DESCRIBE EXTENDED shop.logs")


def test_one_column_may_be_inside_a_struct(lake: Lake) -> None:
    assert columns(lake, "DESCRIBE shop.logs id") == ["info_name", "info_value"]
    assert run(lake, "DESCRIBE shop.logs ID") == [("col_name", "id"), ("data_type", "int"), ("comment", "the key")]
    assert run(lake, "DESCRIBE TABLE shop.logs info.pos.x")[1:] == [("data_type", "double"), ("comment", "NULL")]
    refused(lake, "DESCRIBE shop.logs levle", InvalidInput, at="levle", match="Did you mean 'level'")


def test_views_metadata_tables_and_tables_with_odd_names(lake: Lake) -> None:
    lake.create_view("shop.v", "SELECT id AS key FROM shop.logs", schema="key int")
    assert run(lake, "DESCRIBE shop.v") == [("key", "int", "")]
    assert ("View Text", "SELECT id AS key FROM shop.logs", "") in run(lake, "DESCRIBE EXTENDED shop.v")
    assert run(lake, "DESCRIBE shop.logs.refs")[0] == ("name", "string", None)
    for name in ("table", "extended", "history", "select", "namespace"):
        lake.create_table(f"shop.{name}", "id int")
        assert run(lake, f"DESCRIBE TABLE shop.{name}") == [("id", "int", None)]
    run(lake, "USE shop")
    assert run(lake, "DESCRIBE history") == run(lake, "DESCRIBE extended") == [("id", "int", None)]
    assert run(lake, "DESCRIBE TABLE history id")[1] == ("data_type", "int")


def test_a_branch_has_the_columns_of_the_table_and_a_tag_its_own(lake: Lake) -> None:
    table = lake.create_table("shop.t", "id int")
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    table.create_branch("b")
    table.create_tag("g")
    with table.evolve() as change:
        change.add_column("new", "string")
    assert [row[0] for row in run(lake, "DESCRIBE shop.t.branch_b")] == ["id", "new"]
    assert [row[0] for row in run(lake, "DESCRIBE shop.t.tag_g")] == ["id"]


def test_namespaces_have_their_comment_apart_from_other_properties(lake: Lake) -> None:
    lake.create_namespace("depot", {"comment": "a", "k": "v"})
    rows = [("Catalog Name", "icefield"), ("Namespace Name", "depot"), ("Comment", "a")]
    assert run(lake, "DESCRIBE NAMESPACE depot") == run(lake, "DESC DATABASE icefield.depot") == rows
    assert run(lake, "DESCRIBE SCHEMA EXTENDED depot") == [*rows, ("Properties", "((k,v))")]
    refused(lake, "DESCRIBE NAMESPACE dept", NoSuchNamespace, at="dept", match="Did you mean depot")


def test_history_has_a_row_for_each_snapshot_the_newest_first(lake: Lake) -> None:
    table = lake.create_table("shop.t", "id int")
    table.append(pa.table({"id": pa.array([1, 2], pa.int32())}))
    table.create_tag("first")
    table.delete("id = 1")
    old, new = (snapshot.snapshot_id for snapshot in table.snapshots())
    found = lake.sql("DESCRIBE HISTORY shop.t", engine="local").to_pylist()
    assert [row["version"] for row in found] == [new, old]
    assert [row["readVersion"] for row in found] == [old, None]
    assert [row["operation"] for row in found] == ["overwrite", "append"]
    assert [row["refs"] for row in found] == [["main"], ["first"]]
    assert dict(found[1]["operationMetrics"])["added-records"] == "2"
    assert [row[0] for row in run(lake, "DESCRIBE HISTORY shop.t LIMIT 1")] == [new]
    assert [row[0] for row in run(lake, "DESCRIBE HISTORY shop.t LIMIT ?", [1])] == [new]


def test_details_of_a_table_are_one_row(lake: Lake) -> None:
    [row] = lake.sql("DESCRIBE DETAIL shop.logs", engine="local").to_pylist()
    assert (row["format"], row["name"], row["description"]) == ("iceberg", "icefield.shop.logs", "all logs")
    assert (row["partitionColumns"], row["numFiles"], row["numRows"]) == (["level", "days(ts)"], 0, 0)


def test_what_needs_a_query_or_is_not_there_is_refused(lake: Lake) -> None:
    with pytest.raises((Unsupported, NeedsSpark)):
        run(lake, "DESCRIBE FUNCTION abs")
    refused(lake, "DESCRIBE shop.logs PARTITION (level = 'a')", Unsupported, at="(", match="SHOW PARTITIONS")
    refused(lake, "DESCRIBE shop.logs AS JSON", Unsupported, at="shop.logs")
