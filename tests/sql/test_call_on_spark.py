"""Commands that need Spark: changelog views, DESCRIBE of queries and temporary views; results as DataFrames."""

from pathlib import Path
from typing import Any

import pytest

import icefield
from icefield.codec.puffin.puffin import decode_blob, decode_footer
from icefield.errors import InvalidInput, NoSuchTable
from icefield.lake import Lake
from tests.equality_deletes import delete_keys

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path, spark: Any) -> Lake:
    lake = icefield.connect(tmp_path / "lake").use(spark)
    lake.sql_script(
        """
        CREATE NAMESPACE shop;
        CREATE TABLE shop.stock (sku STRING, qty INT, m MAP<STRING, INT>)
        TBLPROPERTIES ('write.delete.mode' = 'merge-on-read');
        INSERT INTO shop.stock VALUES ('a', 1, map('x', 1)), ('b', 2, NULL), ('b', 2, NULL), ('c', 3, NULL);
        """,
    )
    return lake


def rows(lake: Lake, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in lake.sql(text).collect()), key=repr)


def test_a_changelog_has_what_each_snapshot_changed(lake: Lake) -> None:
    lake.sql("UPDATE shop.stock SET qty = 100 WHERE sku = 'a'")
    lake.sql("CALL system.rewrite_data_files('shop.stock', options => map('rewrite-all', 'true'))")
    lake.sql("DELETE FROM shop.stock WHERE sku = 'b'")
    lake.sql("INSERT INTO shop.stock VALUES ('b', 2, NULL)")
    call = "CALL system.create_changelog_view(table => 'shop.stock'"
    assert rows(lake, f"{call})") == [("stock_changes",)]
    query = "SELECT sku, qty, m['x'], _change_type, _change_ordinal FROM"
    inserted = [("a", 1, 1), ("b", 2, None), ("b", 2, None), ("c", 3, None)]
    expected = [(*row, "INSERT", 0) for row in inserted]
    expected += [("a", 1, 1, "DELETE", 1), ("a", 100, 1, "INSERT", 1)]
    expected += [("b", 2, None, "DELETE", 2), ("b", 2, None, "DELETE", 2), ("b", 2, None, "INSERT", 3)]
    assert rows(lake, f"{query} stock_changes") == sorted(expected, key=repr)
    lake.sql(f"{call}, changelog_view => 'ch', identifier_columns => array('SKU'))")
    updates = [("a", 1, "UPDATE_BEFORE"), ("a", 100, "UPDATE_AFTER")]
    assert rows(lake, "SELECT sku, qty, _change_type FROM ch WHERE _change_ordinal = 1") == updates
    first = lake.table("shop.stock").snapshots()[0].snapshot_id
    lake.sql(
        f"{call}, changelog_view => 'ch', options => map('start-snapshot-id', '{first}', 'end-snapshot-id', '{first}'))"
    )
    assert rows(lake, "SELECT * FROM ch") == []
    assert lake.sql("SELECT * FROM ch").columns == [
        *("sku", "qty", "m", "_change_type", "_change_ordinal", "_commit_snapshot_id"),
    ]
    for wrong in (
        "net_changes => true, compute_updates => true",
        "compute_updates => true",
        "options => map('from', '1')",
        "identifier_columns => array('x')",
    ):
        with pytest.raises(InvalidInput) as caught:
            lake.sql(f"{call}, {wrong})")
        assert caught.value.position is not None


def test_net_changes_are_without_what_was_undone(lake: Lake) -> None:
    lake.sql_script(
        """
        CREATE TABLE shop.t (id INT);
        INSERT INTO shop.t VALUES (1), (2), (2);
        DELETE FROM shop.t WHERE id = 2;
        INSERT INTO shop.t VALUES (2), (3);
        """
    )
    lake.sql("CALL system.create_changelog_view(table => 'shop.t', changelog_view => 'net', net_changes => true)")
    net = [(1, "INSERT", 0), (2, "INSERT", 2), (3, "INSERT", 2)]
    assert rows(lake, "SELECT id, _change_type, _change_ordinal FROM net") == net
    lake.table("shop.t").create_tag("last")
    first = lake.table("shop.t").snapshots()[0].snapshot_id
    options = f"options => map('start-snapshot-id', '{first}')"
    lake.sql(f"CALL system.create_changelog_view('shop.t', 'net', net_changes => true, {options})")
    assert rows(lake, "SELECT id, _change_type FROM net") == [(2, "DELETE"), (3, "INSERT")]


def test_queries_and_temporary_views_are_described(lake: Lake, spark: Any) -> None:
    assert rows(lake, "DESCRIBE QUERY SELECT qty, sku AS s FROM shop.stock") == [
        ("qty", "int", None),
        ("s", "string", None),
    ]
    lake.sql("CREATE OR REPLACE TEMPORARY VIEW mine AS SELECT qty FROM shop.stock")
    assert rows(lake, "DESCRIBE mine") == [("qty", "int", None)]
    assert ("", "mine", True) in rows(lake, "SHOW TABLES IN shop")
    spark.range(1).createOrReplaceTempView("icefield_test_of_spark")
    assert rows(lake, "DESCRIBE icefield_test_of_spark") == [("id", "bigint", None)]
    with pytest.raises(NoSuchTable, match="shop.stok") as caught:
        lake.sql("DESCRIBE shop.stok")
    assert caught.value.position == (1, 9)
    assert rows(lake, "SHOW FUNCTIONS LIKE 'abs'") == [("abs",)]


def test_sketches_that_tasks_make_are_those_of_this_process(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE shop.many TBLPROPERTIES ('write.delete.mode' = 'merge-on-read') "
        "AS SELECT id, CAST(id % 10 AS STRING) AS text, named_struct('a', id % 7) AS s FROM range(20000)"
    )
    lake.sql("INSERT INTO shop.many SELECT id + 15000, NULL, NULL FROM range(10000)")
    lake.sql("DELETE FROM shop.many WHERE id % 2 = 1")
    table, columns = lake.table("shop.many"), ["id", "text", "s.a"]
    found = [table.compute_statistics(columns, engine="local"), table.compute_statistics(columns, engine="spark")]
    here, there = (lake.store.read(file.statistics_path) for file in found)
    assert here == there
    assert [int(blob.properties["ndv"]) for blob in found[1].blob_metadata][1:] == [5, 7]


def test_spark_reads_the_sketches_of_statistics_files(lake: Lake, spark: Any) -> None:
    lake.sql("CREATE TABLE shop.many AS SELECT id, CAST(id % 10 AS STRING) AS text FROM range(20000)")
    lake.sql("ANALYZE TABLE shop.many COMPUTE STATISTICS")
    [file] = lake.table("shop.many").statistics()
    data = lake.store.read(file.statistics_path)
    estimates = []
    for blob in decode_footer(data, file.statistics_path).blobs:
        sketch = decode_blob(data[blob.offset : blob.offset + blob.length], blob, file.statistics_path)
        query = "SELECT theta_sketch_estimate(:sketch)"
        estimates.append(spark.sql(query, {"sketch": bytearray(sketch)}).first()[0])
        assert abs(estimates[-1] - int(blob.properties["ndv"])) <= 1
    assert (abs(estimates[0] - 20_000) < 1500, estimates[1]) == (True, 10)


def test_a_changelog_has_rows_of_files_that_only_lost_rows(lake: Lake) -> None:
    """All rows of the only file that the snapshot changed are deleted by their keys, so none is left after it."""
    table = lake.table("shop.stock")
    delete_keys(table, {"sku": ["a", "b", "c"]})
    assert table.count() == 0
    query = "SELECT sku, _change_type FROM shop.stock.changes WHERE _change_ordinal = 1"
    assert rows(lake, query) == [("a", "DELETE"), ("b", "DELETE"), ("b", "DELETE"), ("c", "DELETE")]
