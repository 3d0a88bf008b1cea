"""MERGE without a JVM: sources that are tables, clauses in any number, labels, and where errors point."""

import pyarrow as pa
import pytest

from icefield.errors import InvalidInput, NeedsSpark, NoSuchTable, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table
from tests.sql.changing import change, counts, refuse, rows

COLUMNS = "sku string, qty int, note string"


@pytest.fixture
def stock(lake: Lake) -> Table:
    table = lake.create_table("shop.stock", COLUMNS)
    change(lake, "INSERT INTO shop.stock VALUES ('a', 1, 'x'), ('b', 2, 'y'), ('c', 3, NULL)")
    return table


@pytest.fixture
def changes(lake: Lake) -> Table:
    table = lake.create_table("shop.changes", f"{COLUMNS}, op string")
    values = "('a', 10, 'n', 'set'), ('b', NULL, 'n', 'del'), ('d', 40, 'n', 'set')"
    change(lake, f"INSERT INTO shop.changes VALUES {values}")
    return table


def test_clauses_apply_in_order(lake: Lake, stock: Table, changes: Table) -> None:
    done = counts(
        lake,
        """MERGE INTO shop.stock AS t -- the table
           USING shop.changes AS s
           ON t.sku = s.sku
           WHEN MATCHED AND s.op = 'del' THEN DELETE
           WHEN MATCHED AND CASE WHEN t.qty > 5 THEN TRUE ELSE FALSE END THEN DELETE
           WHEN MATCHED THEN UPDATE SET t.qty = t.qty + s.qty, note = CASE WHEN s.op = 'set' THEN 'when' END
           WHEN NOT MATCHED BY TARGET AND s.qty > 100 THEN INSERT (sku) VALUES ('never')
           WHEN NOT MATCHED THEN INSERT (sku, qty) VALUES (s.sku, qty * 2)
           WHEN NOT MATCHED BY SOURCE AND t.qty = 3 THEN UPDATE SET note = 'only here; then'
           WHEN NOT MATCHED BY SOURCE THEN DELETE""",
    )
    assert rows(stock) == [("a", 11, "when"), ("c", 3, "only here; then"), ("d", 80, None)]
    assert done == {"inserted": 1, "updated": 2, "deleted": 1, "matched": 2}


def test_stars_take_all_columns_by_name(lake: Lake, stock: Table, changes: Table) -> None:
    change(lake, "MERGE INTO shop.stock t USING shop.changes s ON s.sku = t.sku "
                 "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
    assert rows(stock) == [("a", 10, "n"), ("b", None, "n"), ("c", 3, None), ("d", 40, "n")]
    text = "MERGE INTO shop.changes t USING shop.stock s ON s.sku = t.sku WHEN NOT MATCHED THEN INSERT *"
    assert "'op'" in refuse(lake, text, InvalidInput, at="*").message


def test_schema_evolution_adds_the_columns_of_the_source(lake: Lake, stock: Table, changes: Table) -> None:
    change(lake, "MERGE WITH SCHEMA EVOLUTION INTO shop.stock t USING shop.changes s ON t.sku = s.sku "
                 "WHEN MATCHED THEN UPDATE SET *")  # fmt: skip
    assert rows(stock) == [("a", 10, "n", "set"), ("b", None, "n", "del"), ("c", 3, None, None)]


def test_tables_without_aliases_go_by_their_names(lake: Lake, stock: Table, changes: Table) -> None:
    change(lake, "MERGE INTO shop.stock USING shop.changes ON stock.sku = shop.changes.sku AND op = 'set' "
                 "WHEN MATCHED THEN UPDATE SET shop.stock.qty = changes.qty")  # fmt: skip
    assert rows(stock, "sku", "qty") == [("a", 10), ("b", 2), ("c", 3)]


def test_two_tables_of_one_name_go_by_their_namespaces(lake: Lake, stock: Table) -> None:
    lake.create_table("old.stock", COLUMNS).append(pa.table({"sku": ["b", "z"], "note": ["ob", "oz"]}))
    change(lake, "MERGE INTO shop.stock USING old.stock ON shop.stock.sku = old.stock.sku "
                 "WHEN MATCHED THEN UPDATE SET note = old.stock.note WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
    assert rows(stock, "sku", "note") == [("a", "x"), ("b", "ob"), ("c", None), ("z", "oz")]
    text = "MERGE INTO shop.stock USING old.stock ON stock.sku = old.stock.sku WHEN MATCHED THEN DELETE"
    refuse(lake, text, InvalidInput, at="stock.sku = ")


def test_a_table_is_its_own_source_as_it_was_before(lake: Lake, stock: Table) -> None:
    change(lake, "MERGE INTO shop.stock t USING shop.stock s ON t.sku = s.sku "
                 "WHEN MATCHED AND s.qty > 1 THEN UPDATE SET qty = s.qty * 100, note = s.sku")  # fmt: skip
    assert rows(stock) == [("a", 1, "x"), ("b", 200, "b"), ("c", 300, "c")]
    text = "MERGE INTO shop.stock USING shop.stock ON stock.qty = stock.qty WHEN MATCHED THEN DELETE"
    refuse(lake, text, InvalidInput, at="shop.stock ON")


def test_a_branch_is_merged_into_another(lake: Lake, stock: Table) -> None:
    stock.create_branch("b")
    change(lake, "INSERT INTO shop.stock.branch_b VALUES ('n', 9, 'new')")
    text = "MERGE INTO shop.stock t USING shop.stock.branch_b s ON t.sku = s.sku WHEN NOT MATCHED THEN INSERT *"
    assert counts(lake, text) == {"inserted": 1, "matched": 3}
    assert counts(lake, text) == {"matched": 4}
    assert stock.count() == 4


def test_two_source_rows_for_one_row_are_refused_with_the_key(lake: Lake, stock: Table, changes: Table) -> None:
    change(lake, "INSERT INTO shop.changes VALUES ('a', 11, 'm', 'set')")
    text = "MERGE INTO shop.stock t USING shop.changes s ON t.sku = s.sku WHEN MATCHED THEN UPDATE SET qty = s.qty"
    assert "'a'" in refuse(lake, text, InvalidInput, at="t.sku = s.sku").message
    change(lake, "MERGE INTO shop.stock t USING shop.changes s ON t.sku = s.sku WHEN MATCHED THEN DELETE")
    assert rows(stock) == [("c", 3, None)]


def test_parameters_are_literals_in_every_clause(lake: Lake, stock: Table, changes: Table) -> None:
    change(
        lake,
        "MERGE INTO shop.stock t USING shop.changes s ON t.sku = s.sku AND s.op = ? WHEN MATCHED AND t.qty < ? THEN "
        "UPDATE SET qty = s.qty + ?, note = ? WHEN NOT MATCHED THEN INSERT (sku, qty) VALUES (?, s.qty)",
        ["set", 5, 1, "it's", "?"],
    )
    # The row b does not match because of its op, and is inserted.
    assert rows(stock) == [("?", 40, None), ("?", None, None), ("a", 11, "it's"), ("b", 2, "y"), ("c", 3, None)]


@pytest.mark.parametrize(
    ("clauses", "at"),
    [
        ("", ""),
        ("WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE", "WHEN MATCHED"),
        ("WHEN MATCHED THEN INSERT *", "INSERT"),
        ("WHEN NOT MATCHED THEN DELETE", "DELETE"),
        ("WHEN NOT MATCHED THEN INSERT (sku, qty) VALUES (s.sku)", "(s.sku)"),
        ("WHEN NOT MATCHED THEN INSERT (sku, skew) VALUES (s.sku, 1)", "skew"),
        ("WHEN NOT MATCHED THEN INSERT (sku, SKU) VALUES (s.sku, 1)", "SKU"),
        ("WHEN NOT MATCHED THEN INSERT (sku) VALUES (t.sku)", "t.sku"),
        ("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", "*"),
        ("WHEN NOT MATCHED BY SOURCE AND s.op = 'x' THEN DELETE", "s.op"),
        ("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET note = op", "op"),
        ("WHEN MATCHED AND nothing = 1 THEN DELETE", "nothing"),
        ("WHEN MATCHED AND sku = 'a' THEN DELETE", "sku"),
        ("WHEN MATCHED THEN UPDATE SET qty = s.op", "s.op"),
        ("WHEN MATCHED AND t.qty > (SELECT 1) THEN DELETE", "(SELECT"),
        ("WHEN MATCHED DELETE", "DELETE"),
        ("WHEN MATCHED THEN UPDATE qty = 1", "qty"),
        ("WHEN MATCHED BY NOBODY THEN DELETE", "BY"),
    ],
)
def test_errors_point_at_the_clause_that_is_wrong(
    lake: Lake, stock: Table, changes: Table, clauses: str, at: str
) -> None:
    refuse(lake, f"MERGE INTO shop.stock t USING shop.changes s ON t.sku = s.sku {clauses}", InvalidInput, at=at)
    assert [row[0] for row in rows(stock)] == ["a", "b", "c"]


def test_sources_that_are_not_there_or_need_spark_are_refused(lake: Lake, stock: Table) -> None:
    end = "ON t.sku = s.sku WHEN MATCHED THEN DELETE"
    refuse(lake, f"MERGE INTO shop.stock t USING shop.change s {end}", (NoSuchTable, NeedsSpark), at="shop.change ")
    refuse(lake, f"MERGE INTO shop.stock t USING (SELECT 'a' AS sku) s {end}", NeedsSpark, at="SELECT")
    refuse(lake, f"MERGE INTO shop.stock t USING shop.stock VERSION AS OF 1 s {end}", Unsupported, at="VERSION")
    refuse(lake, f"MERGE INTO shop.stock t USING shop.stock s(a) {end}", InvalidInput, at="(a)")
    refuse(lake, f"MERGE INTO shop.stock t USING {{frame}} s {end}", InvalidInput, at="{frame}")
    refuse(lake, f"MERGE INTO shop.nothing t USING shop.stock s {end}", NoSuchTable, at="shop.nothing")


def test_a_dry_run_and_explain_change_nothing(lake: Lake, stock: Table, changes: Table) -> None:
    text = "MERGE INTO shop.stock t USING shop.changes s ON t.sku = s.sku WHEN MATCHED THEN DELETE"
    assert change(lake, text, dry_run=True)["rows_deleted"] == 2
    assert "1 to read" in change(lake, f"EXPLAIN {text}")["plan"]
    assert stock.count() == 3
