"""The tables of a query: found, renamed in place, and distinguished from what only looks like them."""

import random

import pytest
from tests.effort import DEEP

from icefield.errors import InvalidInput, Unsupported
from icefield.expr.query.schemas import SCHEMA_ARGUMENTS
from icefield.expr.query.select import Parts, parse_query
from icefield.expr.query.words import PLAIN_CALLS

pytestmark = pytest.mark.every_case


def written(sql: str) -> str:
    return parse_query(sql).write(lambda parts: "_".join(("T", *parts)), "S").replace("icefield_S_with_", "W")


CASES: list[tuple[str, list[Parts], str]] = [
    ("SELECT 1", [], "SELECT 1"),
    ("SELECT * FROM orders", [("orders",)], "SELECT * FROM `T_orders` AS `orders`"),
    ("select id from shop.orders o;\n", [("shop", "orders")], "select `id` from `T_shop_orders` `o`"),
    ("SELECT o.id FROM a.b.c.d AS o", [("a", "b", "c", "d")], "SELECT `o` . `id` FROM `T_a_b_c_d` AS `o`"),
    ("SELECT * FROM `a b`.`c``d`", [("a b", "c`d")], "SELECT * FROM `T_a b_c``d` AS `c``d`"),
    # A column may be written with the whole name of its table.
    ("SELECT shop.o.id, o.x FROM shop.o", [("shop", "o")], "SELECT `o` . `id` , `o` . `x` FROM `T_shop_o` AS `o`"),
    ("SELECT s.o.f FROM t.o", [("t", "o")], "SELECT `s` . `o` . `f` FROM `T_t_o` AS `o`"),
    (
        "SELECT a.t.x, b.t.x FROM a.t, b.t",
        [("a", "t"), ("b", "t")],
        "SELECT `T_a_t` . `x` , `T_b_t` . `x` FROM `T_a_t` AS `T_a_t` , `T_b_t` AS `T_b_t`",
    ),
    # Comments go, hints of joins stay, and no string is taken for anything else.
    (
        "SELECT /*+ BROADCAST(t) */ ' FROM t' -- FROM t\nFROM t",
        [("t",)],
        "SELECT /*+ BROADCAST ( `t` ) */ ' FROM t' FROM `T_t` AS `t`",
    ),
    (
        "SELECT /*+ REPARTITION(3, a), COALESCE(1), merge (t), REBALANCE */ a FROM t",
        [("t",)],
        ("SELECT /*+ REPARTITION ( 3 , `a` ) , COALESCE ( 1 ) , merge ( `t` ) , REBALANCE */ `a` FROM `T_t` AS `t`"),
    ),
    # An alias comes after a sample.
    (
        "SELECT t.a FROM s.t TABLESAMPLE (10 ROWS), u TABLESAMPLE (BUCKET 1 OUT OF 2) REPEATABLE (7) WHERE u.b",
        [("s", "t"), ("u",)],
        ("SELECT `t` . `a` FROM `T_s_t` TABLESAMPLE ( 10 ROWS ) AS `t` , "
        "`T_u` TABLESAMPLE ( BUCKET 1 OUT OF 2 ) REPEATABLE ( 7 ) AS `u` WHERE `u` . `b`"),
    ),
    (
        "WITH c AS (SELECT 1) SELECT * FROM c TABLESAMPLE (1 PERCENT) JOIN c TABLESAMPLE (1 PERCENT) AS d",
        [],
        ("WITH `W0` AS ( SELECT 1 ) SELECT * FROM `W0` TABLESAMPLE ( 1 PERCENT ) AS `c` "
        "JOIN `W0` TABLESAMPLE ( 1 PERCENT ) AS `d`"),
    ),
    (
        "SELECT window.start FROM t GROUP BY window(ts, '1 day'), a",
        [("t",)],
        "SELECT `window` . `start` FROM `T_t` AS `t` GROUP BY window ( `ts` , '1 day' ) , `a`",
    ),
    ("SELECT/* /* x */ ' */1--\\\n, reflect('a')\n", [], "SELECT 1"),
    ("SELECT * FROM range(3) r", [], "SELECT * FROM range ( 3 ) `r`"),
    (
        "SELECT * FROM t WHERE x IN (SELECT y FROM u) AND EXISTS (SELECT 1 FROM t)",
        [("t",), ("u",)],
        ("SELECT * FROM `T_t` AS `t` WHERE `x` IN ( SELECT `y` FROM `T_u` AS `u` ) "
        "AND EXISTS ( SELECT 1 FROM `T_t` AS `t` )"),
    ),
    (
        "SELECT * FROM t LATERAL VIEW explode(x) e AS y",
        [("t",)],
        "SELECT * FROM `T_t` AS `t` LATERAL VIEW explode ( `x` ) `e` AS `y`",
    ),
    (
        "(SELECT a FROM x) UNION ALL (SELECT a FROM y)",
        [("x",), ("y",)],
        "( SELECT `a` FROM `T_x` AS `x` ) UNION ALL ( SELECT `a` FROM `T_y` AS `y` )",
    ),
    # Common table expressions: seen by later ones and by the query, not by those before, nor by itself.
    (
        "WITH c AS (SELECT * FROM t) SELECT * FROM c",
        [("t",)],
        "WITH `W0` AS ( SELECT * FROM `T_t` AS `t` ) SELECT * FROM `W0` AS `c`",
    ),
    (
        "WITH t AS (SELECT * FROM t) SELECT * FROM T",
        [("t",)],
        "WITH `W0` AS ( SELECT * FROM `T_t` AS `t` ) SELECT * FROM `W0` AS `T`",
    ),
    (
        "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b, s.b",
        [("s", "b"), ("b",)],
        ("WITH `W0` AS ( SELECT * FROM `T_b` AS `T_b` ) , `W1` AS ( SELECT * FROM `W0` AS `a` ) "
        "SELECT * FROM `W1` AS `b` , `T_s_b` AS `T_s_b`"),
    ),
    (
        "WITH c AS (SELECT 1) SELECT * FROM (SELECT * FROM c)",
        [],
        "WITH `W0` AS ( SELECT 1 ) SELECT * FROM ( SELECT * FROM `W0` AS `c` )",
    ),
    (
        "WITH c AS (SELECT 1), d AS (WITH c AS (SELECT 2) SELECT * FROM c) SELECT * FROM c, d",
        [],
        ("WITH `W0` AS ( SELECT 1 ) , `W1` AS ( WITH `W2` AS ( SELECT 2 ) SELECT * FROM `W2` AS `c` ) "
        "SELECT * FROM `W0` AS `c` , `W1` AS `d`"),
    ),
    (
        "SELECT * FROM c, (WITH c AS (SELECT 1) SELECT * FROM c)",
        [("c",)],
        "SELECT * FROM `T_c` AS `c` , ( WITH `W0` AS ( SELECT 1 ) SELECT * FROM `W0` AS `c` )",
    ),
    (
        "WITH RECURSIVE c AS (SELECT 1 n UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT * FROM c",
        [],
        ("WITH RECURSIVE `W0` AS ( SELECT 1 `n` UNION ALL SELECT `n` + 1 FROM `W0` AS `c` WHERE `n` < 3 ) "
        "SELECT * FROM `W0` AS `c`"),
    ),
    (
        "WITH a(x, y) AS (SELECT 1, 2), reflect(z) AS (SELECT 3) SELECT * FROM a AS b(p, q), (SELECT 1) c(r)",
        [],
        ("WITH `W0` ( `x` , `y` ) AS ( SELECT 1 , 2 ) , `W1` ( `z` ) AS ( SELECT 3 ) "
        "SELECT * FROM `W0` AS `b` ( `p` , `q` ) , ( SELECT 1 ) `c` ( `r` )"),
    ),
    (
        "SELECT t.a, row_number() OVER (ORDER BY b) r FROM t, u QUALIFY (r = 1) ORDER BY r",
        [("t",), ("u",)],
        ("SELECT `t` . `a` , row_number ( ) OVER ( ORDER BY `b` ) `r` FROM `T_t` AS `t` , `T_u` AS `u` "
        "QUALIFY ( `r` = 1 ) ORDER BY `r`"),
    ),
    # Words are quoted unless both Spark's grammar and the parser take them for keywords.
    (
        "SELECT date, user, o.end, DATE '2020-01-01' d, timestampadd(MONTH, 1, ts) FROM t",
        [("t",)],
        ("SELECT `date` , `user` , `o` . `end` , DATE '2020-01-01' `d` , timestampadd ( MONTH , 1 , `ts` ) "
        "FROM `T_t` AS `t`"),
    ),
    (
        "SELECT transform(x, e -> e + 1), s :: struct<a: int>, `upper`(y), INTERVAL 3 days FROM t",
        [("t",)],
        ("SELECT transform ( `x` , `e` -> `e` + 1 ) , `s` :: struct < `a` : int > , `upper` ( `y` ) , INTERVAL 3 days "
        "FROM `T_t` AS `t`"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "tables", "expected"), CASES)
def test_tables_are_found_and_renamed(sql: str, tables: list[Parts], expected: str) -> None:
    assert sorted(parse_query(sql).tables) == sorted(tables)
    assert written(sql) == expected


def test_plain_functions_are_read_alike_whatever_the_parser_knows_of_them() -> None:
    """How many arguments they take, and of which kind, is for Spark to say."""
    template = (
        "SELECT {0}(), {0}(a, 'x').b, {0}(t.a)[0] FROM t JOIN u ON {0}(a) = {0}(b, c, 1) "
        "WHERE NOT {0}(a) LIKE 'x' GROUP BY {0}(a, '1 day'), {0}() HAVING {0}(DISTINCT a) > 1 ORDER BY {0}(a, b) DESC"
    )
    names = sorted(PLAIN_CALLS - SCHEMA_ARGUMENTS.keys())
    for name in names if DEEP else ["window", *random.Random(7).sample(names, 40)]:
        assert written(template.format(name)) == (
            "SELECT f ( ) , f ( `a` , 'x' ) . `b` , f ( `t` . `a` ) [ 0 ] FROM `T_t` AS `t` JOIN `T_u` AS `u` "
            "ON f ( `a` ) = f ( `b` , `c` , 1 ) WHERE NOT f ( `a` ) LIKE 'x' GROUP BY f ( `a` , '1 day' ) , f ( ) "
            "HAVING f ( DISTINCT `a` ) > 1 ORDER BY f ( `a` , `b` ) DESC"
        ).replace("f (", f"{name} (")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("'it''s'", r"'it\'s'"),
        ('"it\'s ""x"" \\""', """'it\\'s "x" "'"""),
        (r"'a\'b\\'", r"'a\'b\\'"),
        (r"'\101\u0041\%'", r"'\101\u0041\%'"),
        (r"r'a\b'", r"'a\\b'"),
        ('R"a\'b\\"', r"'a\'b\\'"),
        ("'${x}$$'", r"'\u0024{x}$$'"),
        (r"'\${x}'", r"'\u0024{x}'"),
        (r"r'${x}'", r"'\u0024{x}'"),
        ("'$.a'", "'$.a'"),
        ("'-- x /* y'", "'-- x /* y'"),
        ("X'1f'", "X'1f'"),
    ],
)
def test_strings_have_one_spelling_without_substitution(sql: str, expected: str) -> None:
    assert written(f"SELECT {sql}") == f"SELECT {expected}"
    assert parse_query(f"SELECT {sql}").has_escapes == ("\\" in expected)


@pytest.mark.parametrize(
    ("sql", "error", "fault"),
    [
        ("", InvalidInput, "single SELECT"),
        ("DROP TABLE t", InvalidInput, "single SELECT"),
        ("INSERT INTO t SELECT 1", InvalidInput, "single SELECT"),
        ("CREATE VIEW v AS SELECT 1", InvalidInput, "single SELECT"),
        ("SELECT 1; DROP TABLE t", InvalidInput, "single SELECT"),
        ("FROM t INSERT INTO u SELECT *", InvalidInput, "single SELECT"),
        ("SELECT FROM WHERE", InvalidInput, "cannot parse"),
        ("SELECT 'x", InvalidInput, "not closed"),
        ("SELECT " + "(" * 5000, InvalidInput, "nested too deeply|cannot parse"),
        ("SELECT '" + "x" * (1 << 20) + "'", InvalidInput, "characters"),
        ("SELECT TRANSFORM(a) USING 'cat' FROM t", Unsupported, "TRANSFORM"),
        ("SELECT reflect('java.lang.System', 'exit', 1)", Unsupported, "reflect"),
        ("SELECT `java_method`('java.lang.System', 'exit', 1)", Unsupported, "java_method"),
        ("SELECT * FROM IDENTIFIER('a.b')", Unsupported, "IDENTIFIER"),
        ("SELECT system.builtin.reflect('a', 'b')", Unsupported, "qualified name"),
        ("SELECT a, reflect(b) AS (select, c) FROM t", Unsupported, "reflect"),
        ("SELECT my_udf(a) FROM t", Unsupported, "my_udf"),
        ("SELECT * FROM VALUES t", InvalidInput, "no relation is named after VALUES"),
        ("SELECT * FROM (VALUES t)", InvalidInput, "no relation is named after VALUES"),
        ("SELECT * FROM u JOIN VALUES sets (1, 2)", InvalidInput, "no relation is named after VALUES"),
        ("SELECT * FROM (SELECT AS v (a, b))", InvalidInput, "no relation is named after AS"),
        ("SELECT /*+ BROADCAST(my_udf()) */ a FROM t", Unsupported, "calls nothing"),
        ("SELECT `re\u2060flect`(a) FROM t", Unsupported, "flect"),
        ("SELECT input_file_name() FROM t", Unsupported, "input_file_name"),
        ("SELECT from_xml(a, b, map('rowValidationXSDPath', '/etc/passwd')) FROM t", Unsupported, "from_xml"),
        ("SELECT current_user FROM t", Unsupported, "t.current_user"),
        ("SELECT * FROM sql_keywords()", Unsupported, "sql_keywords"),
        ("SELECT * FROM read_files('/etc')", Unsupported, "read_files"),
        ("MAP a USING 'cat' FROM t", Unsupported, "TRANSFORM"),
        ("SELECT /*+ REPARTITION(2), SKEW(t) */ a FROM t", Unsupported, "hint SKEW"),
        ("SELECT /*+ MERGE(t), x */ a FROM t", Unsupported, "hint x"),
        ("SELECT /*+ REPARTITION(1 + 1) */ a FROM t", Unsupported, "names and integers"),
        ("SELECT /*+ BROADCAST(reflect('a')) */ a FROM t", Unsupported, "hint"),
        ("SELECT a /*+ BROADCAST(t) */ FROM t", InvalidInput, "hint is not allowed"),
        ("SELECT :p", Unsupported, "parameters"),
        ("SELECT ?", InvalidInput, "outside quotes"),
        ("SELECT 1 AS ${env:HOME}", InvalidInput, "outside quotes"),
        ("SELECT `${env:HOME}`", Unsupported, "Spark would replace"),
        ("SELECT a FROM t |> SELECT b", InvalidInput, "cannot parse"),
        ("SELECT * FROM (TABLE csv.`/etc/passwd`)", InvalidInput, "cannot parse"),
        ("SELECT 1 AS from csv.`/etc/passwd`", InvalidInput, "cannot parse"),
        ("SELECT * FROM LATERAL t", InvalidInput, "no relation"),
        ("SELECT a FROM SELECT date, t", InvalidInput, "no relation"),
        ("SELECT", InvalidInput, "cannot parse|single SELECT"),
        ("SELECT a FROM t WHERE , secret", InvalidInput, "cannot parse"),
        ("SELECT map(1) FROM t", InvalidInput, "cannot parse"),
        ("SELECT\u00a01", InvalidInput, "outside quotes"),
        ("SELECT \uff52\uff45flect(1)", InvalidInput, "outside quotes"),
        ("SELECT 1a FROM t", InvalidInput, "digit"),
        ("SELECT t.1 FROM t", InvalidInput, "backquotes"),
        ("SELECT 1) UNION (SELECT 2", InvalidInput, "unexpected"),
        ("SELECT 1 /* open", InvalidInput, "not closed"),
        ('SELECT from_json(a, \'{"type": "udt"}\') FROM t', Unsupported, "one string of DDL"),
        (r"SELECT from_json(a, '\173') FROM t", Unsupported, "one string of DDL"),
        ("SELECT from_json(a, concat('a ', 'int')) FROM t", Unsupported, "one string of DDL"),
        ("SELECT from_json(a, 'a ' 'int') FROM t", Unsupported, "one string of DDL"),
        ("SELECT from_json(struct(a, b), c) FROM t", Unsupported, "one string of DDL"),
        ("SELECT `FROM_json`(a, (SELECT b)) FROM t", Unsupported, "one string of DDL"),
        ("SELECT from_json(schema => 'a int', json => a) FROM t", Unsupported, "one string of DDL"),
        ("SELECT from_json(a, schema_of_json('1') || b) FROM t", Unsupported, "one string of DDL"),
        ("SELECT from_csv(a, b) FROM t", Unsupported, "one string of DDL"),
        ("SELECT variant_get(a, '$.b', c) FROM t", Unsupported, "one string of DDL"),
        ("SELECT try_variant_get(a, '$.b', '{}') FROM t", Unsupported, "one string of DDL"),
        ("SELECT qualify('a') FROM t", InvalidInput, "cannot parse"),
        # To Spark, a relation called select.
        ("SELECT a JOIN LATERAL (SELECT 1) x ON true", InvalidInput, "no relation is named"),
        ("SELECT * FROM (SELECT a JOIN t ON true) x", InvalidInput, "no relation is named"),
        ("SELECT a CROSS JOIN t", InvalidInput, "no relation is named"),
        ("SELECT * FROM t VERSION AS OF 3", Unsupported, "older version"),
        ("SELECT * FROM t TABLESAMPLE (reflect('a') ROWS)", Unsupported, "function reflect"),
        ("SELECT a FROM t GROUP BY window(reflect('a'), '1 day')", Unsupported, "function reflect"),
    ],
)
def test_what_is_no_plain_query_is_refused(sql: str, error: type[Exception], fault: str) -> None:
    with pytest.raises(error, match=fault):
        parse_query(sql)


@pytest.mark.parametrize(
    "call",
    [
        "from_json(a, 'id INT, c STRUCT<d: ARRAY<STRING>>')",
        "from_json(a, 'id INT', map('mode', 'FAILFAST'))",
        """from_json('{"a": [1]}', schema_of_json('{"a": [1]}'))""",
        "from_csv(a, schema_of_csv('1,x'), map('sep', ';'))",
        "variant_get(a, '$.b[0]', 'int')",
        "try_variant_get(parse_json(a), '$.b')",
    ],
)
def test_schemas_in_ddl_are_taken(call: str) -> None:
    assert parse_query(f"SELECT {call} AS x FROM t").tables == [("t",)]
