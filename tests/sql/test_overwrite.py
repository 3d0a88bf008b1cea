"""INSERT OVERWRITE, REPLACE WHERE and REPLACE USING of literals, without a JVM."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from icefield.errors import InvalidInput, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table
from tests.sql.changing import change, counts, refuse, rows


@pytest.fixture
def sales(lake: Lake) -> Table:
    """Six rows of three days, in a file for each day."""
    table = lake.create_table("shop.sales", "id long, day string, n int", partition_by=["day"])
    change(
        lake,
        "INSERT INTO shop.sales VALUES (1, 'mon', 1), (2, 'mon', 2), (3, 'tue', 3), (4, 'tue', 4), (5, 'wed', 5), "
        "(6, 'wed', 6)",
    )
    return table


def test_without_a_partition_all_rows_go_and_the_row_says_how_many(lake: Lake, sales: Table) -> None:
    done = change(lake, "INSERT OVERWRITE shop.sales VALUES (9, 'mon', 9)")
    assert rows(sales) == [(9, "mon", 9)]
    assert (done["rows_inserted"], done["rows_deleted"], done["files_added"], done["files_removed"]) == (1, 6, 1, 3)


def test_a_static_partition_is_replaced_even_by_no_rows(lake: Lake, sales: Table) -> None:
    done = counts(lake, "INSERT OVERWRITE TABLE shop.sales PARTITION (day = 'mon') (id) VALUES (7)")
    assert done == {"inserted": 1, "deleted": 2}
    assert rows(sales, "id", "day")[-1] == (7, "mon")
    assert sales.count() == 5
    change(lake, "DELETE FROM shop.sales WHERE day = 'mon'")
    done = counts(lake, "INSERT OVERWRITE shop.sales PARTITION (day = 'mon') (id) VALUES (8)")
    assert done == {"inserted": 1}


def test_overwrite_partitions_replaces_those_that_get_rows(lake: Lake, sales: Table) -> None:
    done = counts(lake, "INSERT OVERWRITE PARTITIONS shop.sales VALUES (7, 'mon', 7), (8, 'new', 8)")
    assert done == {"inserted": 2, "deleted": 2}
    assert [row[0] for row in rows(sales)] == [3, 4, 5, 6, 7, 8]


def test_a_table_may_be_called_partitions(lake: Lake) -> None:
    lake.create_table("partitions.partitions", "id long")
    change(lake, "INSERT OVERWRITE PARTITIONS partitions.partitions VALUES (1)")
    change(lake, "INSERT OVERWRITE partitions.partitions VALUES (2)")
    assert rows(lake.table("partitions.partitions")) == [(2,)]


def test_replace_where_rewrites_files_of_which_some_rows_match(lake: Lake, sales: Table) -> None:
    done = change(lake, "INSERT INTO shop.sales REPLACE WHERE n IN (1, 3) VALUES (10, 'mon', 1)")
    assert [row[0] for row in rows(sales)] == [2, 4, 5, 6, 10]
    assert (done["rows_inserted"], done["rows_deleted"], done["rows_copied"]) == (1, 2, 2)


def test_replace_where_takes_qualified_columns_and_parameters(lake: Lake, sales: Table) -> None:
    text = "INSERT INTO shop.sales (n, id, day) REPLACE WHERE shop.sales.day = :d AND sales.n > 1 VALUES (5, 20, 'mon')"
    assert counts(lake, text, {"d": "mon"})["deleted"] == 1
    assert [row[0] for row in rows(sales)] == [1, 3, 4, 5, 6, 20]


def test_new_rows_outside_of_the_condition_are_refused(lake: Lake, sales: Table) -> None:
    refuse(lake, "INSERT INTO shop.sales REPLACE WHERE day = 'mon' VALUES (7, 'tue', 7)", InvalidInput, at="day")
    refuse(lake, "INSERT INTO shop.sales REPLACE WHERE dai = 'mon' VALUES (7, 'mon', 7)", InvalidInput, at="dai")
    assert sales.count() == 6


def test_replace_using_replaces_rows_with_equal_columns(lake: Lake, sales: Table) -> None:
    done = counts(lake, "INSERT INTO shop.sales REPLACE USING (day, n) VALUES (20, 'mon', 1), (21, 'mon', 1)")
    assert done == {"inserted": 2, "deleted": 1, "copied": 1}
    assert [row[0] for row in rows(sales)] == [2, 3, 4, 5, 6, 20, 21]
    refuse(lake, "INSERT INTO shop.sales REPLACE USING (dai) VALUES (1, 'x', 1)", InvalidInput, at="dai")


def test_a_dry_run_and_explain_say_what_would_go(lake: Lake, sales: Table) -> None:
    text = "INSERT OVERWRITE shop.sales PARTITION (day = 'mon') (id) VALUES (7)"
    done = change(lake, text, dry_run=True)
    assert (done["rows_inserted"], done["rows_deleted"], done["files_removed"]) == (1, 2, 1)
    assert "snapshot_id" not in done
    plan = change(lake, f"EXPLAIN {text}")["plan"]
    assert "pruned: 0 with their manifests, 2 by partition" in plan
    assert sales.count() == 6


def test_partitions_are_identity_columns(lake: Lake) -> None:
    lake.create_table("shop.logs", "level string, at timestamptz", partition_by=["level", "day(at)"])
    values = "VALUES (NULL)"
    refuse(lake, f"INSERT OVERWRITE shop.logs PARTITION (at_day = 1) {values}", InvalidInput, at="at_day")
    refuse(lake, f"INSERT OVERWRITE shop.logs PARTITION (level = 'a', level = 'b') {values}", InvalidInput, at="level")
    refuse(
        lake,
        f"INSERT WITH SCHEMA EVOLUTION OVERWRITE PARTITIONS shop.logs (level) {values}",
        Unsupported,
        at=values,
    )


def test_truncate_empties_a_table_or_a_partition(lake: Lake, sales: Table) -> None:
    assert counts(lake, "TRUNCATE TABLE shop.sales PARTITION (day = 'mon')") == {"deleted": 2, "matched": 2}
    refuse(lake, "TRUNCATE TABLE shop.sales PARTITION (n = 3)", InvalidInput, at="n ")
    assert counts(lake, "TRUNCATE TABLE shop.sales") == {"deleted": 4, "matched": 4}
    assert sales.count() == 0


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("day", "'2026-01-02'", date(2026, 1, 2)),
        ("ts", "'2026-01-02 03:00:00'", datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("ts", "'2026-01-02 03:00:00+02:00'", datetime(2026, 1, 2, 1, tzinfo=UTC)),
        ("local", "'2026-01-02 03:00:00'", datetime(2026, 1, 2, 3)),
        ("n", "' 5 '", 5),
        ("price", "'1.50'", Decimal("1.50")),
        ("flag", "'TRUE'", True),
        ("name", "7", "7"),
        ("name", "DATE '2026-01-02'", "2026-01-02"),
        ("name", "true", "true"),
        ("n", "NULL", None),
    ],
)
def test_values_of_partition_are_cast_to_their_columns(lake: Lake, column: str, value: str, stored: object) -> None:
    kinds = "day date, ts timestamptz, local timestamp, n int, price decimal(9, 2), flag boolean, name string"
    table = lake.create_table("shop.p", f"id int, {kinds}", partition_by=[column])
    others = ", ".join("NULL" for _ in range(6))
    for number in (1, 2):
        change(lake, f"INSERT OVERWRITE shop.p PARTITION ({column} = {value}) VALUES ({number}, {others})")
    assert rows(table, "id", column) == [(2, stored)]
    assert change(lake, f"TRUNCATE TABLE shop.p PARTITION ({column} = {value})")["rows_deleted"] == 1
    if value.startswith("'"):
        text = f"INSERT INTO shop.p PARTITION ({column} = 'x') VALUES (1, {others})"
        refuse(lake, text, InvalidInput, at="'x'")
