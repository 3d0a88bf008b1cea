"""DELETE and UPDATE without a JVM: names, aliases, parameters, comments, counts, and where errors point."""

import datetime
import math

import pytest

from icefield.errors import InvalidInput, NeedsSpark, NoSuchTable, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table
from tests.sql.changing import change, counts, refuse, rows


@pytest.fixture
def stock(lake: Lake) -> Table:
    table = lake.create_table("shop.stock", "sku string, qty int, note string, size struct<w: int, h: int>")
    change(lake, "INSERT INTO shop.stock (sku, qty, note) VALUES ('a', 1, 'x'), ('b', 2, 'y'), ('c', 3, NULL)")
    return table


@pytest.mark.parametrize(
    "condition",
    [
        "FROM shop.stock WHERE qty = 1",
        "FROM shop.stock AS s WHERE s.qty = 1",
        "FROM shop.stock s WHERE `s`.`qty` = 1",
        "FROM shop.stock WHERE stock.qty = 1",
        "FROM shop.stock WHERE shop.stock.qty = 1 AND SHOP.Stock.SKU = 'a'",
        "FROM `shop`.`stock` WHERE shop . stock . qty = 1",
        "FROM shop.stock /* WHERE */ x -- ;\nWHERE x.qty = 1 -- AND FALSE",
        "FROM shop.stock note WHERE note.note = 'x'",
        "FROM IDENTIFIER('shop.stock') WHERE qty = 1;",
        "FROM shop.stock WHERE note <> 'y; DELETE FROM shop.stock'\n AND qty < 2",
    ],
)
def test_a_row_is_deleted_however_its_columns_are_called(lake: Lake, stock: Table, condition: str) -> None:
    assert counts(lake, f"DELETE {condition}") == {"deleted": 1, "matched": 1, "copied": 2}
    assert [row[0] for row in rows(stock)] == ["b", "c"]


def test_the_catalog_may_be_part_of_the_name(lake: Lake, stock: Table) -> None:
    name = f"{lake.catalog.name}.shop.stock"
    assert counts(lake, f"DELETE FROM {name} WHERE {name}.qty > 1")["deleted"] == 2


def test_no_match_is_no_commit_and_nulls_do_not_match(lake: Lake, stock: Table) -> None:
    before = stock.metadata.current_snapshot_id
    assert change(lake, "DELETE FROM shop.stock WHERE qty > 100") == {}
    assert change(lake, "UPDATE shop.stock SET qty = 1 WHERE FALSE") == {}
    assert stock.metadata.current_snapshot_id == before
    assert counts(lake, "DELETE FROM shop.stock WHERE note <> 'x'")["deleted"] == 1


def test_everything_is_deleted_only_without_where(lake: Lake, stock: Table) -> None:
    # Spark takes this WHERE for an alias.
    refuse(lake, "DELETE FROM shop.stock WHERE", InvalidInput, at="")
    assert counts(lake, "DELETE FROM shop.stock") == {"deleted": 3, "matched": 3}


@pytest.mark.parametrize("text", ["a\tb", "a\nb", "\x00", "${x}", "\x1f\x7f", "\\u0041", "a\\'b", "%_\\%", "😀"])
@pytest.mark.every_case
def test_a_parameter_is_any_text(lake: Lake, stock: Table, text: str) -> None:
    change(lake, "UPDATE shop.stock SET note = :n WHERE qty = 1", {"n": text})
    assert rows(stock)[0][2] == text
    assert counts(lake, "DELETE FROM shop.stock WHERE note = :n", {"n": text})["deleted"] == 1


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
@pytest.mark.every_case
def test_a_parameter_is_any_double(lake: Lake, number: float) -> None:
    lake.create_table("shop.d", "x double")
    change(lake, "INSERT INTO shop.d VALUES (1.5), (2.5)")
    change(lake, "UPDATE shop.d SET x = :n WHERE x = 1.5", {"n": number})
    assert counts(lake, "DELETE FROM shop.d WHERE x = :n", {"n": number})["deleted"] == 1
    assert rows(lake.table("shop.d")) == [(2.5,)]


def test_parameters_are_literals(lake: Lake, stock: Table) -> None:
    change(lake, "UPDATE shop.stock SET note = :n, qty = qty + :q WHERE sku = :s", {"n": "it's :q", "q": 5, "s": "a"})
    change(lake, "UPDATE shop.stock SET note = ? WHERE sku IN (?, ?)", [None, "b", "c"])
    assert rows(stock, "sku", "qty", "note") == [("a", 6, "it's :q"), ("b", 2, None), ("c", 3, None)]
    refuse(lake, "DELETE FROM shop.stock WHERE sku = :x", InvalidInput, at=":x")
    refuse(lake, "DELETE FROM shop.stock WHERE sku = ? AND qty = ?", InvalidInput, at="?", args=["a"])


def test_assignments_see_the_old_row(lake: Lake, stock: Table) -> None:
    change(lake, "UPDATE shop.stock t SET t.qty = t.qty * 10, note = concat(note, sku), t.sku = DEFAULT")
    assert rows(stock, "qty", "note", "sku") == [(10, "xa", None), (20, "yb", None), (30, None, None)]


def test_fields_of_structs_are_assigned(lake: Lake, stock: Table) -> None:
    change(lake, "UPDATE shop.stock SET size.w = 1, stock.size.h = qty WHERE sku = 'b'")
    assert [row[1] for row in rows(stock, "sku", "size")] == [None, {"w": 1, "h": 2}, None]
    refuse(lake, "UPDATE shop.stock SET size.w = 1, size = NULL", InvalidInput, at="size")


def test_a_struct_that_is_called_like_the_table_is_found_after_it(lake: Lake) -> None:
    table = lake.create_table("shop.t", "id long, t struct<a: int, id: long>")
    change(lake, "INSERT INTO shop.t VALUES (1, :s), (2, :s)", {"s": {"a": 5, "id": 2}})
    assert counts(lake, "DELETE FROM shop.t WHERE t.a = 5 AND t.id = 1")["deleted"] == 1
    change(lake, "UPDATE shop.t SET t.a = 6 WHERE t.t.id = 2")
    assert rows(table) == [(2, {"a": 6, "id": 2})]


def test_odd_names_are_quoted(lake: Lake) -> None:
    table = lake.create_table("odd.select", "`from` long, `a b` string, `o``clock` int")
    change(lake, "INSERT INTO odd.select VALUES (1, 'x', 2), (2, 'y', 3)")
    change(lake, "UPDATE odd.`select` AS `my table` SET `a b` = 'z', `o``clock` = `my table`.`from` WHERE `from` = 2")
    change(lake, "DELETE FROM odd.select WHERE odd.select.`from` = 1")
    assert rows(table) == [(2, "z", 2)]


def test_times_without_a_zone_are_utc_without_a_session(lake: Lake) -> None:
    table = lake.create_table("shop.events", "id long, at timestamptz")
    change(lake, "INSERT INTO shop.events VALUES (1, TIMESTAMP '2026-01-01 08:00:00'), (2, NULL)")
    change(lake, "UPDATE shop.events SET at = TIMESTAMP '2026-01-01' WHERE at >= TIMESTAMP '2026-01-01 08:00:00'")
    assert rows(table)[0] == (1, datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
    assert counts(lake, "DELETE FROM shop.events WHERE at < '2026-01-01 00:00:01'")["deleted"] == 1


def test_errors_point_at_the_name_that_is_wrong(lake: Lake, stock: Table) -> None:
    near = refuse(lake, "DELETE FROM shop.stock\nWHERE qty = 1 AND nothing = 1", InvalidInput, at="nothing")
    assert "sku, qty, note, size" in near.message
    refuse(lake, "DELETE FROM shop.stock s WHERE shop.stock.qty = 1", InvalidInput, at="shop.stock.qty")
    refuse(lake, "DELETE FROM shop.stack WHERE qty = 1", NoSuchTable, at="shop.stack")
    refuse(lake, "UPDATE shop.stock SET qty = 1, nothing = 1", InvalidInput, at="nothing")
    refuse(lake, "UPDATE shop.stock SET qty = 1, QTY = 2", InvalidInput, at="QTY")
    refuse(lake, "UPDATE shop.stock SET qty = 'many'", InvalidInput, at="'many'")
    refuse(lake, "UPDATE shop.stock SET qty = qty + 3000000000", InvalidInput, at="qty + 3000000000")
    refuse(lake, "UPDATE shop.stock SET qty 1", InvalidInput, at="1")
    refuse(lake, "UPDATE shop.stock qty = 1", InvalidInput, at="=")
    refuse(lake, "DELETE shop.stock", InvalidInput, at="shop")
    refuse(lake, "DELETE FROM shop.stock s, x", InvalidInput, at=",")
    refuse(lake, "DELETE FROM shop.stock VERSION AS OF 1 WHERE qty = 1", InvalidInput, at="VERSION")
    refuse(lake, "UPDATE shop.stock.files SET qty = 1", Unsupported, at="shop.stock.files")
    assert rows(stock, "qty") == [(1,), (2,), (3,)]


def test_a_required_column_is_named_before_a_commit(lake: Lake) -> None:
    table = lake.create_table("shop.t", "id long not null")
    change(lake, "INSERT INTO shop.t VALUES (1)")
    error = refuse(lake, "UPDATE shop.t SET id = NULL", InvalidInput, at="NULL")
    assert "'id'" in error.message
    assert rows(table) == [(1,)]


def test_subqueries_need_spark(lake: Lake, stock: Table) -> None:
    text = "DELETE FROM shop.stock WHERE qty = (SELECT max(qty) FROM shop.stock)"
    refuse(lake, text, NeedsSpark, at="shop.stock")


def test_rows_of_a_branch_are_changed(lake: Lake, stock: Table) -> None:
    stock.create_branch("b")
    change(lake, "UPDATE shop.stock.branch_b SET note = 'b' WHERE branch_b.sku = 'a' AND stock.qty = 1")
    change(lake, "DELETE FROM shop.stock.branch_b WHERE shop.stock.branch_b.qty > 1")
    assert rows(stock.at("b"), "sku", "note") == [("a", "b")]
    assert stock.count() == 3


def test_a_dry_run_and_explain_change_nothing(lake: Lake, stock: Table) -> None:
    before = stock.metadata.current_snapshot_id
    done = change(lake, "DELETE FROM shop.stock WHERE sku = 'a'", dry_run=True)
    assert (done["rows_deleted"], done["rows_copied"], done["files_removed"]) == (1, 2, 1)
    assert "1 rewritten" in done["plan"]
    plan = change(lake, "EXPLAIN UPDATE shop.stock s SET qty = 0 WHERE s.sku > 'z'")["plan"]
    assert "1 by statistics" in plan
    refuse(lake, "EXPLAIN DELETE FROM shop.stock WHERE nothing = 1", InvalidInput, at="nothing")
    assert stock.metadata.current_snapshot_id == before
