"""Subqueries in the text of expressions: which names are tables, and what stays as it is."""

import pytest

from icefield.errors import InvalidInput, Unsupported
from icefield.expr.query.subqueries import Subqueries, has_subquery, without_subqueries

RENAMED = {
    "id IN (SELECT id FROM shop.r)": "id IN (SELECT id FROM `T_shop_r` AS `r`)",
    "id IN (SELECT x.id FROM shop.r x)": "id IN (SELECT x.id FROM `T_shop_r` x)",
    "id IN (SELECT shop.r.id FROM shop.r)": "id IN (SELECT `r`.id FROM `T_shop_r` AS `r`)",
    "a > (SELECT max(n) FROM `my s`.`o``d`) -- (select": "a > (SELECT max(n) FROM `T_my s_o``d` AS `o``d`) -- (select",
    "EXISTS (WITH r AS (SELECT * FROM r) SELECT 1 FROM r, s)": (
        "EXISTS (WITH r AS (SELECT * FROM `T_r` AS `r`) SELECT 1 FROM r, `T_s` AS `s`)"
    ),
    "id IN (SELECT id FROM a WHERE n IN (SELECT n FROM b.c))": (
        "id IN (SELECT id FROM `T_a` AS `a` WHERE n IN (SELECT n FROM `T_b_c` AS `c`))"
    ),
    "id IN (SELECT id FROM kept.t) AND n = (/* ; */ select my_udf(id) from t)": (
        "id IN (SELECT id FROM kept.t) AND n = (/* ; */ select my_udf(id) from `T_t` AS `t`)"
    ),
    "id IN (SELECT id FROM t TABLESAMPLE (10 PERCENT))": "id IN (SELECT id FROM `T_t` TABLESAMPLE (10 PERCENT) AS `t`)",
    "id IN (FROM t SELECT id)": "id IN (FROM `T_t` AS `t` SELECT id)",
    "id IN (SELECT id FROM range(5))": "id IN (SELECT id FROM range(5))",
}


@pytest.mark.parametrize("text", RENAMED)
def test_names_of_tables_are_replaced_and_nothing_else(text: str) -> None:
    renamed = Subqueries(text).rename(lambda parts: None if parts[0] == "kept" else "T_" + "_".join(parts))
    assert renamed == RENAMED[text]
    assert has_subquery(text)


@pytest.mark.parametrize(
    "text",
    [
        "x = '(SELECT 1 FROM t)'",
        "`(select` > 1 /* (select 1) */",
        "(select > 1) AND (from IS NULL) AND (values = 3) AND (table IN (1, 2))",
        "(with.x = 1) OR (selected = 2)",
    ],
)
def test_columns_and_strings_are_not_subqueries(text: str) -> None:
    assert not has_subquery(text)
    assert without_subqueries(text) == text


def test_the_rest_of_an_expression_is_kept() -> None:
    text = "day = 3 AND id IN ((SELECT 1 UNION SELECT 2)) AND (SELECT 'a)') = b"
    assert without_subqueries(text) == "day = 3 AND id IN ((icefield_subquery())) AND (icefield_subquery()) = b"
    assert Subqueries("a IN (SELECT 1) AND EXISTS (SELECT 2) AND (SELECT 3) > 0").are_scalar == [False, False, True]


@pytest.mark.parametrize(
    "text", ["id IN (SELECT id FROM", "id IN (TABLE t)", "id IN (SELECT id FROM t |> WHERE 1)", "id IN (SELECT ?)"]
)
def test_a_subquery_that_cannot_be_parsed_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot read the subquery"):
        _ = Subqueries(text).tables


def test_older_versions_are_refused() -> None:
    with pytest.raises(Unsupported, match="older version inside a subquery"):
        _ = Subqueries("id IN (SELECT id FROM t VERSION AS OF 3)").tables
