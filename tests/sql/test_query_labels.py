"""The aliases by which columns find the relations that are replaced in a query."""

import pytest

from icefield.errors import InvalidInput
from icefield.sql.syntax.place import Place
from icefield.sql.text.labels import Replaced, edits_of
from icefield.sql.text.mentions import find_mentions
from icefield.sql.text.rewrite import rewrite


def written(
    text: str, tables: dict[str, str], columns: dict[str, str] | None = None, *, is_strict: bool = False
) -> str:
    """Rewrite a query; `tables`, `columns`: the whole name and the columns of each table, by its name in the query."""
    place = Place(text, 0, len(text))
    shape = find_mentions(place)
    replaced = [
        Replaced(
            mention, f"t{at}", tuple(tables[name].split(".")), frozenset(columns[name].split()) if columns else None
        )
        for at, mention in enumerate(shape.mentions)
        if (name := mention.name_place.text) in tables
    ]
    return rewrite(place, list(edits_of(shape, replaced, is_strict=is_strict))).text


ORDERS = {"shop.orders": "lake.shop.orders", "orders": "lake.shop.orders"}
TWO = {"a.t": "lake.a.t", "b.t": "lake.b.t"}


def test_a_name_becomes_an_alias() -> None:
    assert written("SELECT id FROM shop.orders WHERE x", ORDERS) == "SELECT id FROM t0 AS `orders` WHERE x"
    assert written("SELECT id FROM shop.orders o", ORDERS) == "SELECT id FROM t0 o"
    assert written("TABLE shop.orders", ORDERS) == "TABLE t0"


def test_columns_with_the_name_of_their_table_are_shortened() -> None:
    text = "SELECT shop.orders.id, LAKE.Shop.Orders.x.y, orders.z, shop.orders.* FROM orders"
    assert written(text, ORDERS) == "SELECT `orders`.id, `orders`.x.y, orders.z, `orders`.* FROM t0 AS `orders`"


def test_columns_of_a_relation_with_an_alias_stay() -> None:
    assert written("SELECT shop.orders.id FROM shop.orders o", ORDERS) == "SELECT shop.orders.id FROM t0 o"


def test_two_tables_of_one_last_name_keep_their_whole_names() -> None:
    text = "SELECT a.t.id, b.t.id FROM a.t JOIN b.t ON a.t.id = b.t.id"
    expected = (
        "SELECT `lake.a.t`.id, `lake.b.t`.id FROM t0 AS `lake.a.t` JOIN t1 AS `lake.b.t` ON `lake.a.t`.id = "
        "`lake.b.t`.id"
    )
    assert written(text, TWO) == expected


def test_two_tables_of_one_last_name_in_two_selects_do_not_meet() -> None:
    text = "SELECT t.id FROM a.t UNION SELECT t.id FROM b.t"
    assert written(text, TWO) == "SELECT t.id FROM t0 AS `t` UNION SELECT t.id FROM t1 AS `t`"


def test_an_alias_of_a_subquery_does_not_catch_columns_of_the_table_around_it() -> None:
    text = "SELECT orders.id FROM shop.orders WHERE EXISTS (SELECT 1 FROM x orders WHERE orders.i = shop.orders.id)"
    expected = (
        "SELECT `lake.shop.orders`.id FROM t0 AS `lake.shop.orders` WHERE EXISTS "
        "(SELECT 1 FROM x orders WHERE orders.i = `lake.shop.orders`.id)"
    )
    assert written(text, ORDERS) == expected


def test_hints_name_the_alias() -> None:
    text = "SELECT /*+ BROADCAST(shop.orders) */ * FROM shop.orders"
    assert written(text, ORDERS) == "SELECT /*+ BROADCAST(`orders`) */ * FROM t0 AS `orders`"


def test_an_alias_stands_after_a_sample() -> None:
    text = "SELECT * FROM shop.orders VERSION AS OF 3 TABLESAMPLE (1 ROWS) WHERE x"
    assert written(text, ORDERS) == "SELECT * FROM t0 TABLESAMPLE (1 ROWS) AS `orders` WHERE x"


def test_functions_and_fields_are_not_tables() -> None:
    text = "SELECT shop.orders(1), x.shop.orders FROM shop.orders"
    assert written(text, ORDERS) == "SELECT shop.orders(1), x.shop.orders FROM t0 AS `orders`"


COLUMNS = {"a.t": "id x", "b.t": "id y"}


def test_a_short_name_is_of_the_only_relation_that_has_the_column() -> None:
    text = "SELECT t.x, t.y, b.t.id FROM a.t JOIN b.t ON a.t.id = b.t.id"
    expected = (
        "SELECT `lake.a.t`.x, `lake.b.t`.y, `lake.b.t`.id FROM t0 AS `lake.a.t` JOIN t1 AS `lake.b.t` "
        "ON `lake.a.t`.id = `lake.b.t`.id"
    )
    assert written(text, TWO, COLUMNS) == expected


def test_only_the_relation_that_a_longer_name_tells_apart_gets_its_whole_name() -> None:
    text = "SELECT a.t.id, t.y FROM a.t JOIN b.t"
    assert written(text, TWO, COLUMNS) == "SELECT `lake.a.t`.id, t.y FROM t0 AS `lake.a.t` JOIN t1 AS `t`"


@pytest.mark.parametrize("column", ["id", "*", "nothing"])
@pytest.mark.every_case
def test_a_short_name_without_longer_ones_is_left_to_spark(column: str) -> None:
    """Which refuses it as ambiguous or unknown, or finds both, as `*` does."""
    text = f"SELECT t.{column} FROM a.t JOIN b.t"
    assert written(text, TWO, COLUMNS) == f"SELECT t.{column} FROM t0 AS `t` JOIN t1 AS `t`"


def test_a_short_name_of_two_relations_that_have_the_column_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"t\.id may be of lake\.a\.t or of lake\.b\.t") as refused:
        written("SELECT t.id FROM a.t JOIN b.t ON a.t.id = b.t.id", TWO, COLUMNS)
    assert refused.value.position == (1, 7)


def test_a_short_name_is_of_no_relation_whose_columns_are_not_known() -> None:
    with pytest.raises(InvalidInput, match=r"t\.id may be of lake\.a\.t or of another relation called t"):
        written("SELECT t.id FROM a.t JOIN (SELECT 1 AS id) t ON a.t.id = 1", TWO, COLUMNS)


def test_a_column_of_a_closer_relation_comes_before_a_table_further_out() -> None:
    tables, columns = {"a.t": "lake.a.t", "b.u": "lake.b.u"}, {"a.t": "id", "b.u": "id t"}
    text = "SELECT 1 FROM a.t WHERE EXISTS (SELECT t.id FROM b.u WHERE a.t.id = 1)"
    expected = "SELECT 1 FROM t0 AS `lake.a.t` WHERE EXISTS (SELECT t.id FROM t1 AS `u` WHERE `lake.a.t`.id = 1)"
    assert written(text, tables, columns) == expected
    text = "WITH u AS (SELECT named_struct('id', 1) AS t) SELECT t.x FROM a.t WHERE (SELECT a.t.id FROM u) = 1"
    expected = (
        "WITH u AS (SELECT named_struct('id', 1) AS t) SELECT `lake.a.t`.x FROM t0 AS `lake.a.t` "
        "WHERE (SELECT `lake.a.t`.id FROM u) = 1"
    )
    assert written(text, tables, {"a.t": "id x"}) == expected


def test_an_alias_of_a_common_table_hides_its_name() -> None:
    text = "WITH t AS (SELECT 1) SELECT t.id FROM t AS c JOIN a.t"
    assert written(text, TWO, COLUMNS | {"t": ""}) == "WITH t AS (SELECT 1) SELECT t.id FROM t AS c JOIN t0 AS `t`"


def test_no_two_relations_of_a_select_have_one_alias_where_that_is_an_error() -> None:
    text = "SELECT x, y FROM a.t JOIN b.t"
    assert written(text, TWO, COLUMNS, is_strict=True) == "SELECT x, y FROM t0 AS `lake.a.t` JOIN t1 AS `lake.b.t`"
