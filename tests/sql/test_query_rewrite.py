"""The text of a query for Spark: what is replaced, and how positions in it are mapped back."""

from hypothesis import given
from hypothesis import strategies as st

from icefield.sql.query.mentions import find_mentions
from icefield.sql.query.rewrite import Edit, Replaced, Rewritten, edits_of, rewrite
from icefield.sql.syntax.place import Place


@st.composite
def edited(draw: st.DrawFn) -> Rewritten:
    """Draw a text, a part of it, and edits of that part that do not overlap."""
    source = draw(st.text("abc \n", min_size=1, max_size=60))
    start = draw(st.integers(0, len(source)))
    end = draw(st.integers(start, len(source)))
    cuts = sorted(draw(st.lists(st.integers(start, end), max_size=8)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    strings = draw(st.lists(st.text("XYZ", max_size=9), min_size=len(pairs), max_size=len(pairs)))
    return rewrite(Place(source, start, end), [Edit(a, b, new) for (a, b), new in zip(pairs, strings, strict=True)])


@given(edited())
def test_every_character_of_the_new_text_leads_to_where_it_comes_from(rewritten: Rewritten) -> None:
    source, new, at = rewritten.origin.source, rewritten.text, 0
    old = rewritten.origin.start
    for edit in rewritten.edits:
        for _ in range(old, edit.start):
            place = rewritten.place(at, at + 1)
            assert (place.start, place.end, place.text) == (old, old + 1, new[at])
            at, old = at + 1, old + 1
        for _ in edit.text:
            place = rewritten.place(at, at + 1)
            assert (place.start, place.end) == (edit.start, edit.end)
            at += 1
        old = edit.end
    assert new[at:] == source[old : rewritten.origin.end]
    for index in range(at, len(new)):
        place = rewritten.place(index, index + 1)
        assert (place.start, place.text) == (old + index - at, new[index])


@given(edited(), st.data())
def test_a_part_of_the_new_text_leads_to_all_that_it_comes_from(rewritten: Rewritten, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(rewritten.text)))
    stop = data.draw(st.integers(start, len(rewritten.text)))
    place = rewritten.place(start, stop)
    singles = [rewritten.place(index, index + 1) for index in range(start, stop)]
    if singles:
        assert place.start == singles[0].start
        assert place.end == max(place.start, singles[-1].end)
    assert rewritten.origin.start <= place.start <= place.end <= rewritten.origin.end


def written(text: str, tables: dict[str, str]) -> str:
    """Rewrite a query; `tables`: the whole name of each table, by its name in the query."""
    place = Place(text, 0, len(text))
    shape = find_mentions(place)
    replaced = [
        Replaced(mention, f"t{at}", tuple(tables[mention.name_place.text].split(".")))
        for at, mention in enumerate(shape.mentions)
        if mention.name_place.text in tables
    ]
    return rewrite(place, list(edits_of(shape, replaced))).text


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
