"""CREATE TABLE AS and REPLACE TABLE AS: one commit, and nothing left of one that fails."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefield.errors import AlreadyExists, ConcurrentChange, InvalidInput, NoSuchTable
from icefield.lake import Lake
from icefield.sql.query.statements import Query
from icefield.sql.session import Run
from tests.sql.running import run

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(lake: Lake, spark: SparkSession) -> Lake:
    lake.use(spark)
    run(lake, "CREATE NAMESPACE shop")
    run(lake, "CREATE TABLE shop.src (id BIGINT NOT NULL, s STRUCT<x: INT NOT NULL>, day DATE)")
    lake.sql(
        "INSERT INTO shop.src VALUES (1, named_struct('x', 1), DATE '2026-01-01'), "
        "(2, named_struct('x', 2), DATE '2026-01-02')"
    )
    return lake


def files(lake: Lake) -> set[str]:
    root = Path(lake.warehouse.removeprefix("file://"))
    return {str(path.relative_to(root)) for path in (root / "shop").rglob("*") if path.is_file()}


def ids(lake: Lake, name: str) -> list[int]:
    return sorted(row[0] for row in lake.sql(f"SELECT * FROM {name}").collect())


def test_a_table_is_created_from_a_query_in_one_commit(shop: Lake) -> None:
    shop.sql(
        "CREATE TABLE shop.x USING iceberg PARTITIONED BY (days(day), bucket(4, id)) COMMENT 'c' "
        "TBLPROPERTIES ('format-version' = '3', 'k' = 'v') WRITE LOCALLY ORDERED BY id DESC "
        "AS WITH a AS (SELECT * FROM shop.src) SELECT id * :n AS id, s, day FROM a",
        {"n": 10},
    )
    made = shop.table("shop.x")
    assert (made.metadata.metadata_log, len(made.snapshots()), made.metadata.format_version) == ((), 1, 3)
    assert ([f.name for f in made.spec.fields], made.properties) == (
        ["day_day", "id_bucket"],
        {"comment": "c", "k": "v"},
    )
    assert not any(field.required for field in made.schema.by_id.values())
    assert (ids(shop, "shop.x"), len(made.metadata.sort_order.fields)) == ([10, 20], 1)
    assert "shop.y in one commit" in shop.sql("EXPLAIN CREATE TABLE shop.y AS SELECT id FROM shop.src").first()[0]
    shop.sql("CREATE TABLE shop.y SELECT id FROM shop.src WHERE id > 5")
    assert ids(shop, "shop.y") == []
    shop.sql("CREATE TABLE IF NOT EXISTS shop.y AS SELECT raise_error('not run') AS id")
    shop.sql("CREATE TABLE shop.z (SELECT 7 AS seven)")
    assert ids(shop, "shop.z") == [7]


def test_a_query_that_fails_leaves_no_table_and_no_files(shop: Lake) -> None:
    before = files(shop)
    for text, error, token in (
        ("CREATE TABLE shop.x AS SELECT id, CAST(raise_error('no') AS INT) AS e FROM shop.src", InvalidInput, "SELECT"),
        ("CREATE TABLE shop.x AS SELECT 1 / (id - 1) AS e FROM shop.src", InvalidInput, "SELECT"),
        ("CREATE TABLE shop.x AS SELECT id, ID FROM shop.src", InvalidInput, "SELECT"),
        ("CREATE TABLE shop.x AS SELECT nothing FROM shop.src", InvalidInput, "nothing"),
        ("CREATE TABLE shop.x AS SELECT id FROM shop.nothing", NoSuchTable, "shop.nothing"),
        ("CREATE TABLE shop.x PARTITIONED BY (nothing) AS SELECT id FROM shop.src", InvalidInput, "nothing"),
        ("CREATE TABLE shop.x AS SELECT INTERVAL 1 DAY AS i", InvalidInput, "SELECT"),
        ("CREATE TABLE shop.src AS SELECT 1 AS id", AlreadyExists, "shop.src"),
        ("REPLACE TABLE shop.x AS SELECT 1 AS id", NoSuchTable, "shop.x"),
        ("REPLACE TABLE shop.src AS SELECT raise_error('no') AS id", InvalidInput, "SELECT"),
    ):
        with pytest.raises(error) as caught:
            shop.sql(text)
        assert caught.value.position == (1, text.index(token)), str(caught.value)
        assert "\tat " not in str(caught.value)
    assert (shop.tables(), files(shop)) == (["shop.src"], before)
    assert ids(shop, "shop.src") == [1, 2]


def test_a_replacement_may_read_itself_and_is_one_commit(shop: Lake) -> None:
    table = shop.table("shop.src")
    commits, snapshots = len(table.metadata.metadata_log), len(table.snapshots())
    made = shop.sql("CREATE OR REPLACE TABLE shop.src PARTITIONED BY (ten) AS SELECT id * 10 AS ten FROM shop.src")
    assert (made.first().rows_inserted, made.first().snapshot_id) == (2, str(table.snapshots()[-1].snapshot_id))
    assert ids(shop, "shop.src") == [10, 20]
    assert (len(table.metadata.metadata_log), len(table.snapshots())) == (commits + 1, snapshots + 1)
    assert table.scan(as_of=table.snapshots()[0].snapshot_id).count() == 2
    assert [f.name for f in table.spec.fields] == ["ten"]
    shop.sql("CREATE OR REPLACE TABLE shop.new AS SELECT 1 AS id")
    assert ids(shop, "shop.new") == [1]


def test_a_change_of_the_table_while_it_is_replaced_is_not_lost(shop: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_late(query: Query, run: Run) -> object:
        shop.table("shop.src").append(pa.table({"id": pa.array([3], pa.int64())}))
        return opened(query, run)

    opened = Query.run
    monkeypatch.setattr(Query, "run", open_late)
    with pytest.raises(ConcurrentChange):
        shop.sql("REPLACE TABLE shop.src AS SELECT id FROM shop.src")
    monkeypatch.undo()
    assert ids(shop, "shop.src") == [1, 2, 3]
