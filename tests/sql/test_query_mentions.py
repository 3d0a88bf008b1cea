"""Which relations a query names: found by its tokens, in every place where Spark's grammar has one."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefield.errors import InvalidInput
from icefield.expr.query.functions import words
from icefield.sql.syntax.place import Place
from icefield.sql.text.mentions import Part, find_mentions

# A query, and the relations that it names, each as it is written.
QUERIES = {
    "SELECT * FROM shop.orders": ["shop.orders"],
    "TABLE shop.orders": ["shop.orders"],
    "FROM shop.orders": ["shop.orders"],
    "FROM shop.orders SELECT id": ["shop.orders"],
    "VALUES (1), (2)": [],
    "SELECT 1": [],
    "SELECT * FROM a.b, c.d e, f": ["a.b", "c.d", "f"],
    "SELECT * FROM a.b x JOIN c.d USING (i) LEFT ANTI JOIN e.f ON x.i = f.i": ["a.b", "c.d", "e.f"],
    "SELECT * FROM a.b NATURAL JOIN c CROSS JOIN d": ["a.b", "c", "d"],
    "SELECT * FROM (a.b JOIN c.d ON b.i = d.i) JOIN e": ["a.b", "c.d", "e"],
    "SELECT * FROM ((a)), (SELECT * FROM b) x, c": ["a", "b", "c"],
    "SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.i = a.i) x": ["a", "b"],
    "SELECT * FROM a LATERAL VIEW explode(t) x AS b, c WHERE d = 1": ["a"],
    "SELECT * FROM range(3), a, explode(array(1)) AS x(y), b": ["a", "b"],
    "SELECT * FROM VALUES (1), (2) AS v(x), a": ["a"],
    "SELECT * FROM f(TABLE (a.b), TABLE (SELECT * FROM c)) x": ["a.b", "c"],
    "SELECT * FROM a TABLESAMPLE (5 PERCENT) REPEATABLE (3) x, b": ["a", "b"],
    "SELECT * FROM a PIVOT (count(i) FOR s IN ('x' AS y)) JOIN b": ["a", "b"],
    "SELECT extract(year FROM t), trim(BOTH ' ' FROM s), substring(s FROM 2) FROM a": ["a"],
    "SELECT (SELECT :from FROM a), x IN (SELECT :x) FROM b": ["a", "b"],
    "SELECT from IN (SELECT id FROM a) FROM b": ["a", "b"],
    "SELECT id FROM not": ["not"],
    "SELECT from, (TABLE a) FROM (SELECT from.x FROM b)": ["a", "b"],
    "SELECT x IS DISTINCT FROM y, x IS NOT DISTINCT FROM z FROM a": ["a"],
    "SELECT * EXCEPT (x) FROM a EXCEPT SELECT * FROM b": ["a", "b"],
    "(SELECT * FROM a) UNION ALL (TABLE b) INTERSECT SELECT * FROM c MINUS FROM d": ["a", "b", "c", "d"],
    "SELECT (SELECT max(i) FROM a) FROM b WHERE EXISTS (SELECT 1 FROM c) ORDER BY (SELECT 1 FROM e)": [
        "a",
        "b",
        "c",
        "e",
    ],
    "SELECT * FROM a WHERE i IN (FROM b) AND i NOT IN (TABLE c)": ["a", "b", "c"],
    "SELECT array((SELECT 1 FROM a))[0], m['FROM b'] FROM c": ["a", "c"],
    "FROM a |> WHERE i > 1 |> JOIN b ON a.i = b.i |> SELECT x, y |> UNION ALL (SELECT * FROM c)": ["a", "b", "c"],
    "TABLE a |> AGGREGATE sum(x), count(*) GROUP BY y |> ORDER BY 1, 2": ["a"],
    "SELECT * FROM a VERSION AS OF 12": ["a VERSION AS OF 12"],
    "SELECT * FROM a FOR SYSTEM_VERSION AS OF 'b' x, c": ["a FOR SYSTEM_VERSION AS OF 'b'", "c"],
    "SELECT * FROM a TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY x JOIN b": [
        *("a TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY", "b")
    ],
    "SELECT * FROM a TIMESTAMP AS OF TIMESTAMP '2026-01-01' WHERE i = 1": ["a TIMESTAMP AS OF TIMESTAMP '2026-01-01'"],
    "SELECT * FROM a FOR TIMESTAMP AS OF CAST(:t AS TIMESTAMP) + INTERVAL '1' HOUR": [
        "a FOR TIMESTAMP AS OF CAST(:t AS TIMESTAMP) + INTERVAL '1' HOUR"
    ],
    "SELECT * FROM a WITH ('x' = 1, y.z 'w') o JOIN b WITH (k = :v) ON o.i": [
        "a WITH ('x' = 1, y.z 'w')",
        "b WITH (k = :v)",
    ],
    "SELECT * FROM a version, b timestamp": ["a", "b"],
    "SELECT * FROM {x}, {y} z": ["{x}", "{y}"],
    "SELECT '{x}' FROM IDENTIFIER(:t) x JOIN IDENTIFIER('a.' || 'b')": ["IDENTIFIER(:t)", "IDENTIFIER('a.' || 'b')"],
    "SELECT * FROM `a b`.`c``d` -- FROM no\n, /* FROM no /* nested */ */ `from`": ["`a b`.`c``d`", "`from`"],
    "SELECT 'FROM a', \"FROM b\", r'FROM c', $$FROM d$$ FROM e": ["e"],
    "SELECT /*+ BROADCAST(b), MERGE(a.b) */ * FROM a.b JOIN c": ["a.b", "c"],
    "SELECT t.from, t.`join`.x FROM t": ["t"],
    "SELECT from FROM t": ["t"],
    "SELECT :from, ? FROM t WHERE i > :join": ["t"],
    "SELECT * FROM a WHERE": ["a"],
    "SELECT CAST(x AS STRUCT<y: INT, z: STRING>) FROM a": ["a"],
    "SELECT transform(x, from_x -> from_x + 1) FROM a": ["a"],
    "SELECT window(t, '1 day'), sum(x) OVER w FROM a GROUP BY window(t, '1 day') WINDOW w AS (PARTITION BY b, c)": [
        "a"
    ],
    "SELECT count(*) FILTER (WHERE i > 1), i FROM a GROUP BY i WITH ROLLUP HAVING i > 1 LIMIT 3 OFFSET 1": ["a"],
}

# A query with common table expressions, and the relations that are none of them.
COMMON = {
    "WITH a AS (SELECT * FROM b) SELECT * FROM a": ["b"],
    "WITH a AS (SELECT * FROM a) SELECT * FROM a": ["a"],
    "WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM A JOIN b JOIN x.a": ["x.a"],
    "WITH a (i, j) AS (SELECT 1, 2), b AS MATERIALIZED (SELECT 3) SELECT * FROM a, b, c": ["c"],
    "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a JOIN b) SELECT * FROM a": ["b"],
    "WITH a AS (WITH b AS (SELECT * FROM c) SELECT * FROM b) SELECT * FROM a, b": ["c", "b"],
    "SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) x JOIN a": ["a"],
    "SELECT * FROM b WHERE i IN (WITH b AS (SELECT 1 AS i) SELECT i FROM b)": ["b"],
    "WITH a AS (SELECT 1) (SELECT * FROM a UNION TABLE a) EXCEPT SELECT * FROM (TABLE a)": [],
    "WITH `a b` AS (SELECT 1) SELECT * FROM `A B`, c": ["c"],
    "WITH a AS (SELECT 1) FROM a |> JOIN b": ["b"],
}


@pytest.mark.every_case
@pytest.mark.parametrize("text", [*QUERIES, *COMMON])
def test_relations_of_a_query(text: str) -> None:
    shape = find_mentions(Place(text, 0, len(text)))
    assert [mention.place.text for mention in shape.mentions] == (QUERIES | COMMON)[text]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("id IN (SELECT id FROM a.b) AND (SELECT max(x) FROM c) > 1", ["a.b", "c"]),
        ("extract(year FROM t) = 2026 AND (select > 1)", []),
        ("x = (TABLE a)", ["a"]),
        ("EXISTS (WITH a AS (FROM b) SELECT * FROM a)", ["b"]),
    ],
)
def test_relations_of_an_expression(text: str, found: list[str]) -> None:
    shape = find_mentions(Place(text, 0, len(text)), Part.EXPRESSION)
    assert [mention.place.text for mention in shape.mentions] == found


def test_a_part_of_a_longer_text_has_its_places_there() -> None:
    text = "INSERT INTO a.b SELECT * FROM c.d WHERE x"
    shape = find_mentions(Place(text, text.index("SELECT"), text.index(" WHERE")))
    (mention,) = shape.mentions
    assert (mention.place.start, mention.place.text) == (text.index("c.d"), "c.d")


def test_aliases_and_where_one_can_be_added() -> None:
    text = "SELECT * FROM a TABLESAMPLE (1 ROWS), b AS x, c y (p, q), d"
    shape = find_mentions(Place(text, 0, len(text)))
    assert [mention.alias for mention in shape.mentions] == [None, "x", "y", None]
    first = shape.mentions[0]
    assert first.after == text.index(", b")


def test_an_insert_in_a_query_is_found() -> None:
    for text in ("WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a", "FROM a INSERT OVERWRITE b SELECT *"):
        shape = find_mentions(Place(text, 0, len(text)))
        assert shape.writes is not None
        assert shape.writes.text == "INSERT"


TOKENS = sorted(
    words(
        "SELECT FROM WITH AS ( ) , JOIN TABLE VALUES LATERAL VIEW UNION EXCEPT t a.b `x` 'q' 1 * . { } IDENTIFIER FOR "
        "VERSION OF TIMESTAMP |> WHERE : ? ON /*+ */ [ ] INTERVAL CASE END + - TABLESAMPLE INSERT INTO IS DISTINCT $ ${"
    )
)


@given(st.lists(st.sampled_from(TOKENS), max_size=16), st.sampled_from(Part))
def test_any_text_is_followed_to_its_end(tokens: list[str], part: Part) -> None:
    text = " ".join(tokens)
    with suppress(InvalidInput):  # the value of a version may be missing
        shape = find_mentions(Place(text, 0, len(text)), part)
        assert all(0 <= mention.place.start < mention.place.end <= len(text) for mention in shape.mentions)
