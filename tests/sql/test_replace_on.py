"""INSERT ... REPLACE ON and REPLACE USING: rows of the table that go with new rows, against a model."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from icefield.errors import InvalidInput, NeedsSpark, NoSuchTable
from icefield.lake import Lake
from tests.sql.changing import counts, refuse, rows

pytestmark = pytest.mark.spark

OLD = [(1, "a", 10), (2, "b", 20), (2, "bb", 25), (3, None, 30), (None, "n", 40)]
NEW = [(2, "new", 22), (2, "newer", 21), (4, "d", 1), (None, "m", 0)]


@pytest.fixture
def shop(lake: Lake, spark: SparkSession) -> Lake:
    lake.use(spark)
    lake.create_table("shop.stock", "id int, name string, qty int")
    lake.create_table("shop.changes", "key int, text string, amount int")
    insert(lake, "shop.stock", OLD)
    insert(lake, "shop.changes", NEW)
    return lake


def insert(lake: Lake, table: str, values: list[tuple[Any, ...]]) -> None:
    lake.sql(f"INSERT INTO {table} VALUES " + ", ".join("(?, ?, ?)" for _ in values), sum(values, ()), engine="local")


def equal(old: Any, new: Any) -> bool:
    return old is not None and new is not None and bool(old == new)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        (
            "AS t REPLACE ON t.id = s.key (SELECT * FROM shop.changes) AS s",
            lambda old, new: equal(old[0], new[0]),
        ),
        (
            "t REPLACE ON t.id <=> s.key AND qty < amount (SELECT * FROM shop.changes) s",
            lambda old, new: old[0] == new[0] and old[2] < new[2],
        ),
        (
            "BY NAME REPLACE ON stock.id = key (SELECT key, key AS id, text AS name, amount AS qty FROM shop.changes)",
            None,
        ),
        ("REPLACE ON shop.stock.id = changes.key TABLE shop.changes", lambda old, new: equal(old[0], new[0])),
        ("REPLACE ON id IS NOT DISTINCT FROM key SELECT * FROM shop.changes", lambda old, new: old[0] == new[0]),
        ("REPLACE ON qty > amount AND key = (1 + 3) SELECT * FROM shop.changes", lambda old, new: new[0] == 4),
        ("REPLACE ON FALSE SELECT * FROM shop.changes", lambda old, new: False),
        ("REPLACE USING (id) SELECT * FROM shop.changes", lambda old, new: equal(old[0], new[0])),
        ("x REPLACE USING (id) SELECT * FROM shop.changes", lambda old, new: equal(old[0], new[0])),
    ],
)
def test_rows_that_match_a_new_row_are_replaced(shop: Lake, text: str, matches: Any) -> None:
    if matches is None:
        refuse(shop, f"INSERT INTO shop.stock {text}", InvalidInput, at="BY NAME", engine=None)
        return
    kept = [old for old in OLD if not any(matches(old, new) for new in NEW)]
    done = counts(shop, f"INSERT INTO shop.stock {text}", engine=None)
    assert rows(shop.table("shop.stock")) == sorted([*kept, *NEW], key=lambda row: (row[0] is None, row[0], repr(row)))
    assert (done.get("deleted", 0), done["inserted"]) == (len(OLD) - len(kept), len(NEW))


@pytest.mark.parametrize("text", ["REPLACE USING (id) {}", "t REPLACE ON t.id = s.id ({}) s"])
def test_a_query_with_other_rows_at_each_read_is_read_once(shop: Lake, text: str) -> None:
    """What goes and what comes are the same ids, so that each id is there once."""
    shop.sql(
        "CREATE OR REPLACE TABLE shop.stock AS SELECT CAST(id AS INT) AS id, 'old' AS name, 0 AS qty FROM range(500)"
    )
    some = "SELECT DISTINCT CAST(rand() * 500 AS INT) AS id, 'new' AS name, 1 AS qty FROM range(100)"
    done = counts(shop, f"INSERT INTO shop.stock {text.format(some)}", engine=None)
    assert done["deleted"] == done["inserted"] > 0
    assert [row[0] for row in rows(shop.table("shop.stock"))] == list(range(500))


def test_a_dry_run_counts_and_changes_nothing(shop: Lake) -> None:
    text = "INSERT INTO shop.stock t REPLACE ON t.id = s.key (SELECT * FROM shop.changes) s"
    done = counts(shop, text, engine=None, dry_run=True)
    assert (done["deleted"], done["inserted"]) == (2, 4)
    assert len(rows(shop.table("shop.stock"))) == len(OLD)
    assert "rows are replaced where t.id = s.key" in shop.sql(f"EXPLAIN {text}").first()[0]


def test_rows_are_added_by_name_and_with_new_columns(shop: Lake) -> None:
    text = "BY NAME REPLACE ON t.id = s.id (SELECT 2 AS id, 7L AS size) AS s"
    counts(shop, f"INSERT WITH SCHEMA EVOLUTION INTO shop.stock AS t {text}", engine=None)
    assert (2, None, None, 7) in rows(shop.table("shop.stock"))
    assert len(rows(shop.table("shop.stock"))) == 4


def test_what_cannot_be_is_refused_at_its_place(shop: Lake) -> None:
    def wrong(text: str, at: str, kind: Any = InvalidInput, engine: Any = None) -> None:
        before = shop.table("shop.stock").metadata_location
        refuse(shop, f"INSERT INTO shop.stock {text}", kind, at=at, engine=engine)
        assert shop.table("shop.stock").metadata_location == before

    wrong("(id) REPLACE ON id = key SELECT * FROM shop.changes", "id)")
    wrong("REPLACE ON id IN (SELECT 1) (SELECT * FROM shop.changes) s", "(SELECT 1")
    wrong("REPLACE ON id = keyy SELECT * FROM shop.changes", "keyy")
    wrong("REPLACE ON sum(id) = key SELECT * FROM shop.changes", "sum")
    wrong("REPLACE ON id = key SELECT * FROM shop.nothing", "shop.nothing", NoSuchTable)
    wrong("s REPLACE ON s.id = s.key (SELECT * FROM shop.changes) s", "s")
    wrong("x REPLACE WHERE x.id = 1 SELECT * FROM shop.changes", "x REPLACE")
    wrong("x SELECT * FROM shop.changes", "x SELECT")
    wrong("REPLACE ON", "")
    wrong("REPLACE ON id = 1", "")
    wrong("REPLACE ON id = col1 VALUES (1, 'x', 1)", "VALUES", NeedsSpark, "local")
