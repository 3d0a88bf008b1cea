"""INSERT INTO of literals, and what INSERT refuses before anything is written, without a JVM."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from icefield.errors import InvalidInput, NeedsSpark, NoSuchSnapshot, NoSuchTable, SchemaMismatch, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table
from tests.sql.changing import change, refuse, rows

ITEMS = "id long not null, name string, price decimal(10,2), at timestamptz, day date, tags list<string>"


@pytest.fixture
def items(lake: Lake) -> Table:
    return lake.create_table("shop.items", ITEMS, partition_by=["day"], format_version=3)


def test_literals_get_the_types_of_the_columns(lake: Lake, items: Table) -> None:
    done = change(
        lake,
        "INSERT INTO shop.items VALUES (1, 'it''s; -- no comment', 10, TIMESTAMP '2026-01-01 08:00:00', "
        "DATE '2026-01-01', NULL), (-2, DEFAULT, 7.5, TIMESTAMP '2026-01-01 08:00:00+02:00', NULL, NULL);",
    )
    at = datetime.datetime(2026, 1, 1, 8, tzinfo=datetime.UTC)
    assert rows(items) == [
        (-2, None, Decimal("7.50"), at - datetime.timedelta(hours=2), None, None),
        (1, "it's; -- no comment", Decimal("10.00"), at, datetime.date(2026, 1, 1), None),
    ]
    assert done["rows_inserted"] == 2
    assert done["files_added"] == 2
    assert done["snapshot_id"] == str(items.metadata.current_snapshot_id)


def test_a_list_of_columns_has_any_order_and_the_rest_gets_its_default(lake: Lake, items: Table) -> None:
    with items.evolve() as evolution:
        evolution.add_column("stars", "int", default=3)
    change(lake, "INSERT INTO TABLE shop.items (Name, ID) VALUES ('a', 1), ('b', 2)")
    change(lake, "INSERT INTO shop.items (id, stars) VALUES (3, DEFAULT)")
    change(lake, "INSERT INTO shop.items (id, stars) VALUES (4, NULL)")
    assert rows(items, "id", "name", "stars") == [(1, "a", 3), (2, "b", 3), (3, None, 3), (4, None, None)]


def test_parameters_are_values_of_any_type(lake: Lake, items: Table) -> None:
    change(lake, "INSERT INTO shop.items (id, name, tags) VALUES (?, ?, ?)", [1, "it's", ["a", None]])
    change(lake, "INSERT INTO shop.items (id, day) VALUES (:n, :d)", {"n": 2, "d": datetime.date(2026, 1, 2)})
    day = datetime.date(2026, 1, 2)
    assert rows(items, "id", "name", "day", "tags") == [(1, "it's", None, ["a", None]), (2, None, day, None)]
    refuse(lake, "INSERT INTO shop.items (id, tags) VALUES (1, :t)", SchemaMismatch, at=":t", args={"t": {"a": 1}})
    refuse(lake, "INSERT INTO shop.items (id) VALUES (:x)", InvalidInput, at=":x")


def test_values_of_one_column_need_no_parentheses(lake: Lake) -> None:
    table = lake.create_table("shop.ids", "id long")
    change(lake, "INSERT INTO shop.ids VALUES 1, 2, -3")
    assert rows(table) == [(-3,), (1,), (2,)]


def test_a_static_partition_is_a_column_of_all_rows(lake: Lake, items: Table) -> None:
    change(lake, "INSERT INTO shop.items PARTITION (day = DATE '2026-01-09') (id) VALUES (1), (2)")
    assert rows(items, "id", "day") == [(1, datetime.date(2026, 1, 9)), (2, datetime.date(2026, 1, 9))]
    refuse(lake, "INSERT INTO shop.items PARTITION (name = 'x') (id) VALUES (1)", InvalidInput, at="name")
    refuse(lake, "INSERT INTO shop.items PARTITION (day = NULL) (id, day) VALUES (1, NULL)", InvalidInput, at="day")


def test_rows_go_to_a_branch(lake: Lake, items: Table) -> None:
    items.append(pa.table({"id": [1]}))
    items.create_branch("b")
    change(lake, "INSERT INTO shop.items.branch_b (id) VALUES (2)")
    assert (items.count(), items.at("b").count()) == (1, 2)
    refuse(lake, "INSERT INTO shop.items.branch_x (id) VALUES (2)", NoSuchSnapshot, at="shop.items.branch_x")
    refuse(lake, "INSERT INTO shop.items.files VALUES (2)", Unsupported, at="shop.items.files")


def test_rows_of_another_width_are_refused_with_the_columns(lake: Lake, items: Table) -> None:
    few = refuse(lake, "INSERT INTO shop.items VALUES (1, 'x')", SchemaMismatch, at="(1, 'x')")
    assert "id, name, price, at, day, tags" in few.message
    refuse(lake, "INSERT INTO shop.items (id) VALUES (1), (2, 'y')", SchemaMismatch, at="(2, 'y')")
    assert items.metadata.current_snapshot is None


def test_a_required_column_without_a_value_is_refused_by_its_name(lake: Lake, items: Table) -> None:
    error = refuse(lake, "INSERT INTO shop.items (name, day) VALUES ('x', NULL)", SchemaMismatch, at="name, day")
    assert "'id'" in error.message
    refuse(lake, "INSERT INTO shop.items (id) VALUES (1), (NULL)", InvalidInput, at="NULL")
    assert items.metadata.current_snapshot is None


def test_columns_that_are_not_there_or_are_named_twice_are_refuse(lake: Lake, items: Table) -> None:
    near = refuse(lake, "INSERT INTO shop.items (id, nme) VALUES (1, 'x')", SchemaMismatch, at="nme")
    assert "'name'" in str(near.hint)
    refuse(lake, "INSERT INTO shop.items (id, ID) VALUES (1, 2)", InvalidInput, at="ID")
    refuse(lake, "INSERT INTO shop.itms (id) VALUES (1)", NoSuchTable, at="shop.itms")


def test_values_that_do_not_fit_are_refused_where_they_stand(lake: Lake, items: Table) -> None:
    refuse(lake, "INSERT INTO shop.items (id, price) VALUES (1, 1), ('two', 2)", NeedsSpark, at="1, 1")
    refuse(lake, "INSERT INTO shop.items (id) VALUES ('one')", InvalidInput, at="'one'")
    refuse(lake, "INSERT INTO shop.items (id, price) VALUES (1, 123456789.12)", InvalidInput, at="123456789.12")
    refuse(lake, "INSERT INTO shop.items (id, day) VALUES (1, true)", InvalidInput, at="true")
    assert items.metadata.current_snapshot is None


def test_numbers_of_several_types_are_one_column_and_become_text_only_by_spark(lake: Lake, items: Table) -> None:
    change(lake, "INSERT INTO shop.items (id, price) VALUES (1, 1), (2, 2.5), (3, 3.25)")
    assert [price for _, price in rows(items, "id", "price")] == [Decimal("1.00"), Decimal("2.50"), Decimal("3.25")]
    # Spark writes 1.0 here, because the column is a decimal.
    refuse(lake, "INSERT INTO shop.items (id, name) VALUES (1, 1), (2, 2.5)", NeedsSpark, at="1), (2")


def test_a_query_needs_spark(lake: Lake, items: Table) -> None:
    refuse(lake, "INSERT INTO shop.items SELECT * FROM shop.items", NeedsSpark, at="SELECT * FROM shop.items")


def test_a_dry_run_writes_nothing(lake: Lake, items: Table) -> None:
    assert change(lake, "INSERT INTO shop.items (id) VALUES (1), (2)", dry_run=True)["rows_inserted"] == 2
    assert items.metadata.current_snapshot is None


def test_statements_that_are_cut_short_say_what_is_missing(lake: Lake, items: Table) -> None:
    for text, at in (
        ("INSERT shop.items VALUES (1)", "shop"),
        ("INSERT INTO shop.items", ""),
        ("INSERT INTO shop.items (id VALUES (1)", "VALUES"),
        ("INSERT INTO shop.items (id) VALUES (1,)", ")"),
        ("INSERT INTO shop.items (id) VALUES (1", "("),
        ("INSERT OVERWRITE DIRECTORY '/x' SELECT 1", "DIRECTORY"),
        ("INSERT INTO shop.items IF NOT EXISTS VALUES (1)", "IF"),
    ):
        refuse(lake, text, (InvalidInput, Unsupported), at=at)
