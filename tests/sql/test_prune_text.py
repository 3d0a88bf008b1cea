"""Filters that are taken from the text of a query, without a session."""

import pytest

from icefield.expr.bind.bound import TRUE, Bound, all_of
from icefield.expr.render.describe import describe
from icefield.sql.filters.filters import filter_of, without_nulls
from icefield.sql.filters.query_text import TextTable, read_text
from icefield.sql.filters.text_expressions import Moment, known_values
from icefield.sql.filters.zone import Zone
from icefield.sql.syntax.place import Place
from icefield.sql.text.mentions import find_mentions
from icefield.types.calendar import MICROS_PER_DAY
from icefield.types.text import parse_schema

SCHEMAS = {
    "orders": parse_schema("id long, day date, ts timestamptz, name string, amount decimal(10, 2), st struct<a: int>"),
    "items": parse_schema("item_id long, order_id long, sku string, id long"),
}
UTC = Zone("UTC", lambda _: [])
MOMENT = Moment(20_000 * MICROS_PER_DAY + MICROS_PER_DAY // 2, UTC)


def filters_of(text: str, **values: object) -> tuple[list[str], set[tuple[int, int]]]:
    """Return the filter of each table in a text, and which of them are restricted by keys of which others."""
    place = Place(text, 0, len(text))
    tables = [
        TextTable(index, each.place, () if each.alias else each.parts, SCHEMAS[each.parts[-1]])
        for index, each in enumerate(find_mentions(place).mentions)
    ]
    found = read_text(place, tables, known_values(values.items()), MOMENT)
    wheres: list[Bound] = [TRUE] * len(tables)
    for each in found.conditions:
        where = filter_of(each.expression, tables[each.table].schema, UTC)
        wheres[each.table] = all_of(wheres[each.table], without_nulls(where) if each.is_optional else where)
    assert set(found.tables) <= set(range(len(tables)))
    return [describe(where) for where in wheres], {(key.target, key.source) for key in found.keys}


ONE = "SELECT * FROM shop.orders WHERE "


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("day = DATE '2026-01-20'", "day = DATE '2026-01-20'"),
        ("day >= '2026-01-20' AND upper(name) = 'X'", "day >= DATE '2026-01-20'"),
        ("(id = 1 OR id = -2)", "id = 1 OR id = -2"),
        ("id = 1 OR length(name) = 2", "TRUE"),
        ("NOT (id = 1 OR length(name) = 2)", "id != 1"),
        ("id BETWEEN 1 AND 5 AND name LIKE 'a%'", "id >= 1 AND id <= 5 AND startswith(name, 'a')"),
        ("name LIKE 'a!%' ESCAPE '!'", "name = 'a%'"),
        ("orders.id = 1 AND shop.orders.day IS NULL", "id = 1 AND day IS NULL"),
        ("st.a = 4 AND orders.st.a < 9", "st.a = 4 AND st.a < 9"),
        ("shop.id = 1", "TRUE"),
        ("amount > 1.50 AND amount < 10", "amount > 1.50 AND amount < 10.00"),
        ("year(day) = 2026", "day >= DATE '2026-01-01' AND day < DATE '2027-01-01'"),
        ("to_date(ts) >= '2026-01-02'", "ts >= TIMESTAMP '2026-01-02 00:00:00+00:00'"),
        ("day = date_sub(DATE '2026-01-10', 3)", "day = DATE '2026-01-07'"),
        ("day > current_date() - 7", "day > DATE '2024-09-27'"),
        ("day < current_date", "day IS NOT NULL"),
        ("ts > now() - INTERVAL 12 HOURS", "ts > TIMESTAMP '2024-10-03 23:00:00+00:00'"),
        ("day >= current_date - INTERVAL 1 MONTH", "day >= DATE '2024-09-03'"),
        # Strings that Spark may read otherwise than the parser.
        (r"name = 'a\%'", "TRUE"),
        ("name = 'it''s' AND id = 1", "id = 1"),
        ('name = "x" AND id = 1', "id = 1"),
        ("name = r'x'", "TRUE"),
        ("name = 'a' 'b' AND id = 2", "id = 2"),
        ("name = /* id = 3 */ 'a' -- id = 4", "name = 'a'"),
        ("id = 1e3 AND day = '2026-01-01'", "day = DATE '2026-01-01'"),
        ("day IN ('2026-01-01') AND day NOT IN ('2026-01-02')", "day = DATE '2026-01-01'"),
        ("name NOT IN ('a')", "name != 'a'"),
        ("CAST(id AS INT) = 5", "TRUE"),
        ("id = CAST('5' AS INT)", "TRUE"),
        ("id = '5'", "TRUE"),
        ("id = :x AND name = :y AND day = :z", "id = 7 AND name = 'n'"),
        ("id = ? AND day = '2026-01-01'", "day = DATE '2026-01-01'"),
    ],
)
def test_a_condition_on_one_table(where: str, expected: str) -> None:
    found, _ = filters_of(ONE + where, x=7, y="n", z="it's")
    assert found == [expected]


JOIN = "FROM shop.orders o {} JOIN shop.items i ON o.id = order_id AND o.id < 5 AND i.sku = 'a'"
BOTH = {(0, 1), (1, 0)}


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("text", "filters", "keys"),
    [
        (JOIN.format(""), "id < 5; sku = 'a'", BOTH),
        ("FROM shop.orders o, shop.items i WHERE o.id = i.order_id AND o.id < 5", "id < 5; TRUE", BOTH),
        # A name that both tables have.
        ("FROM shop.orders o JOIN shop.items i ON o.name = 'n' WHERE id < 5", "name = 'n'; TRUE", set()),
        # The preserved side of an outer join is not filtered by ON.
        (JOIN.format("LEFT"), "TRUE; sku = 'a'", {(1, 0)}),
        (JOIN.format("RIGHT"), "id < 5; TRUE", {(0, 1)}),
        (JOIN.format("FULL OUTER"), "TRUE; TRUE", set()),
        (JOIN.format("FULL OUTER") + " WHERE i.sku = 'b'", "TRUE; sku = 'b'", set()),
        (JOIN.format("LEFT ANTI"), "TRUE; sku = 'a'", {(1, 0)}),
        (JOIN.format("LEFT SEMI"), "id < 5; sku = 'a'", BOTH),
        (JOIN.format("LEFT SEMI") + " WHERE order_id = 1", "id < 5; sku = 'a'", BOTH),
        # WHERE comes after the join: rows of nulls pass it.
        (JOIN.format("LEFT") + " WHERE i.sku IS NULL AND o.name IS NULL", "name IS NULL; sku = 'a'", {(1, 0)}),
        # Subqueries.
        ("FROM shop.orders WHERE id IN (SELECT order_id FROM shop.items WHERE sku = 'a')", "TRUE; sku = 'a'", {(0, 1)}),
        ("FROM shop.orders WHERE id NOT IN (SELECT order_id FROM shop.items)", "TRUE; TRUE", set()),
        ("FROM shop.orders WHERE id IN (SELECT max(order_id) FROM shop.items)", "TRUE; TRUE", set()),
        ("FROM shop.orders o WHERE EXISTS (SELECT 1 FROM shop.items WHERE o.id < 5)", "TRUE; TRUE", set()),
        # One mention, one filter.
        ("FROM shop.orders a JOIN shop.orders b ON a.id = b.id WHERE a.id < 5", "id < 5; TRUE", BOTH),
        ("FROM shop.orders WHERE id = 1 UNION SELECT * FROM shop.orders WHERE id = 2", "id = 1; id = 2", set()),
        # A filter of samples, and above limits, is not one of the table.
        ("FROM shop.orders TABLESAMPLE (5 ROWS) WHERE id = 1", "TRUE", set()),
        ("FROM (SELECT * FROM shop.orders LIMIT 5) WHERE id = 1", "TRUE", set()),
        ("FROM (SELECT * FROM shop.orders WHERE id = 2 LIMIT 5) WHERE id = 1", "id = 2", set()),
        # Names that may be other columns.
        ("FROM shop.orders AS o (x, y, z) WHERE o.id = 1", "TRUE", set()),
        ("FROM shop.orders LATERAL VIEW explode(array(1)) AS id WHERE id = 1", "TRUE", set()),
        ("FROM shop.orders o JOIN (SELECT 1 AS id) x WHERE id = 1 AND o.id = 2", "id = 2", set()),
        ("FROM shop.orders GROUP BY ALL HAVING id = 1", "TRUE", set()),
        ("FROM shop.orders |> WHERE id = 1", "TRUE", set()),
    ],
)
def test_conditions_on_several_tables(text: str, filters: str, keys: set[tuple[int, int]]) -> None:
    assert filters_of(f"SELECT * {text}") == (filters.split("; "), keys)


def test_a_text_that_cannot_be_parsed_says_nothing() -> None:
    assert filters_of("SELECT * FROM shop.orders WHERE id = 1 AND") == (["TRUE"], set())
    assert filters_of("SELECT * FROM shop.orders WHERE id = 1; SELECT 1") == (["TRUE"], set())
