"""The tables of a query: found, renamed in place, and told from what only looks like them."""

import pytest

from icefield.errors import InvalidInput, Unsupported
from icefield.expr.select import Parts, parse_query


def renamed(sql: str) -> str:
    return parse_query(sql).with_tables(lambda parts: "_".join(("T", *parts)))


CASES: list[tuple[str, list[Parts], str | None]] = [
    ("SELECT 1", [], "SELECT 1"),
    ("SELECT * FROM orders", [("orders",)], "SELECT * FROM `T_orders` AS `orders`"),
    ("select id from shop.orders o;\n", [("shop", "orders")], "select id from `T_shop_orders` o"),
    ("SELECT o.id FROM a.b.c.d AS o", [("a", "b", "c", "d")], "SELECT o.id FROM `T_a_b_c_d` AS o"),
    ("SELECT * FROM `a b`.`c``d`", [("a b", "c`d")], "SELECT * FROM `T_a b_c``d` AS `c``d`"),
    # A column may be written with the whole name of its table.
    ("SELECT shop.o.id, o.x FROM shop.o", [("shop", "o")], "SELECT `o`.id, o.x FROM `T_shop_o` AS `o`"),
    ("SELECT s.o.f FROM t.o", [("t", "o")], "SELECT s.o.f FROM `T_t_o` AS `o`"),
    (
        "SELECT a.t.x, b.t.x FROM a.t, b.t",
        [("a", "t"), ("b", "t")],
        "SELECT `T_a_t`.x, `T_b_t`.x FROM `T_a_t` AS `T_a_t`, `T_b_t` AS `T_b_t`",
    ),
    # Texts, comments and hints are left alone.
    (
        "SELECT /*+ BROADCAST(t) */ ' FROM t' -- FROM t\nFROM t",
        [("t",)],
        "SELECT /*+ BROADCAST(t) */ ' FROM t' -- FROM t\nFROM `T_t` AS `t`",
    ),
    ("SELECT * FROM range(3) r", [], "SELECT * FROM range(3) r"),
    (
        "SELECT * FROM t WHERE x IN (SELECT y FROM u) AND EXISTS (SELECT 1 FROM t)",
        [("t",), ("u",)],
        "SELECT * FROM `T_t` AS `t` WHERE x IN (SELECT y FROM `T_u` AS `u`) AND EXISTS (SELECT 1 FROM `T_t` AS `t`)",
    ),
    ("SELECT * FROM t LATERAL VIEW explode(x) e AS y", [("t",)], None),
    ("(SELECT a FROM x) UNION ALL (SELECT a FROM y)", [("x",), ("y",)], None),
    # Common table expressions: seen by later ones and by the query, not by those before, nor by itself.
    ("WITH c AS (SELECT * FROM t) SELECT * FROM c", [("t",)], "WITH c AS (SELECT * FROM `T_t` AS `t`) SELECT * FROM c"),
    ("WITH t AS (SELECT * FROM t) SELECT * FROM T", [("t",)], "WITH t AS (SELECT * FROM `T_t` AS `t`) SELECT * FROM T"),
    (
        "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b, s.b",
        [("s", "b"), ("b",)],
        "WITH a AS (SELECT * FROM `T_b` AS `T_b`), b AS (SELECT * FROM a) SELECT * FROM b, `T_s_b` AS `T_s_b`",
    ),
    ("WITH c AS (SELECT 1) SELECT * FROM (SELECT * FROM c)", [], None),
    ("SELECT * FROM c, (WITH c AS (SELECT 1) SELECT * FROM c)", [("c",)], None),
    ("WITH RECURSIVE c AS (SELECT 1 n UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT * FROM c", [], None),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "tables", "expected"), CASES)
def test_tables_are_found_and_renamed(sql: str, tables: list[Parts], expected: str | None) -> None:
    assert sorted(parse_query(sql).tables) == sorted(tables)
    if expected is not None:
        assert renamed(sql) == expected


@pytest.mark.parametrize(
    ("sql", "error", "fault"),
    [
        ("", InvalidInput, "one SELECT"),
        ("DROP TABLE t", InvalidInput, "one SELECT"),
        ("INSERT INTO t SELECT 1", InvalidInput, "one SELECT"),
        ("CREATE VIEW v AS SELECT 1", InvalidInput, "one SELECT"),
        ("SELECT 1; DROP TABLE t", InvalidInput, "one SELECT"),
        ("FROM t INSERT INTO u SELECT *", InvalidInput, "one SELECT"),
        ("SELECT FROM WHERE", InvalidInput, "cannot parse"),
        ("SELECT 'x", InvalidInput, "not closed"),
        ("SELECT " + "(" * 5000, InvalidInput, "nested too deeply|cannot parse"),
        ("SELECT '" + "x" * (1 << 20) + "'", InvalidInput, "characters"),
        ("SELECT TRANSFORM(a) USING 'cat' FROM t", Unsupported, "TRANSFORM"),
        ("SELECT reflect('java.lang.System', 'exit', 1)", Unsupported, "reflect"),
        ("SELECT `java_method`('java.lang.System', 'exit', 1)", Unsupported, "java_method"),
        ("SELECT * FROM IDENTIFIER('a.b')", Unsupported, "identifier"),
        ("SELECT * FROM t VERSION AS OF 3", Unsupported, "older version"),
        ("SELECT * FROM t TABLESAMPLE (10 ROWS)", Unsupported, "without an alias"),
    ],
)
def test_what_is_no_plain_query_is_refused(sql: str, error: type[Exception], fault: str) -> None:
    with pytest.raises(error, match=fault):
        parse_query(sql)
