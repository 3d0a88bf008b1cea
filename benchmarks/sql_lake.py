"""A lake for queries: orders in 60 files, one for each day, and items in 30 files, each with a range of keys."""

import datetime
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa

from icefield.lake import Lake

DAYS = 60
FIRST_DAY = datetime.date(2026, 1, 1)
ORDERS_OF_A_DAY = 100
ITEM_FILES = 30
ITEMS_OF_A_FILE = DAYS * ORDERS_OF_A_DAY // ITEM_FILES

ORDERS = "id long, day date, ts timestamptz, amount decimal(10, 2), name string, customer int"
ITEMS = "item_id long, order_id long, month date, sku string, price double"

# The queries of the measurement of filters: by a name, with the files that each reads if nothing is pruned.
QUERIES = {
    "partition": "SELECT * FROM shop.orders WHERE day = DATE '2026-01-20'",
    "dates as strings": "SELECT id FROM shop.orders WHERE day >= '2026-02-10' AND day < '2026-02-12'",
    "cast to date": "SELECT id, ts FROM shop.orders WHERE CAST(ts AS DATE) = DATE '2026-01-15'",
    "truncated": """SELECT count(*) FROM shop.orders
        WHERE date_trunc('month', ts) = TIMESTAMP '2026-02-01 00:00:00' AND year(day) = 2026""",
    "join": """SELECT o.id, i.sku FROM shop.orders o JOIN shop.items i ON o.id = i.order_id
        WHERE o.day = DATE '2026-01-05' AND i.month = DATE '2026-01-01'""",
    "join by keys": """SELECT o.id, i.sku FROM shop.orders o JOIN shop.items i ON o.id = i.order_id
        WHERE o.id BETWEEN 100 AND 390""",
    "in subquery": "SELECT * FROM shop.orders WHERE id IN (SELECT order_id FROM shop.items WHERE item_id = 1234)",
    "grouped": """WITH d AS (SELECT day, count(*) AS n, sum(amount) AS total FROM shop.orders GROUP BY day)
        SELECT day, n FROM d WHERE day < '2026-01-10' AND n > 0""",
    "left join": """SELECT o.id, i.sku FROM shop.orders o
        LEFT JOIN shop.items i ON o.id = i.order_id AND i.order_id < 400 AND i.sku <> 'none'
        WHERE o.day IN (DATE '2026-01-02', DATE '2026-01-03')""",
    "union": """SELECT id FROM shop.orders
        WHERE day = date_sub(DATE '2026-01-10', 3) OR day BETWEEN DATE '2026-02-01' AND DATE '2026-02-04'
        UNION SELECT order_id FROM shop.items WHERE CAST(order_id AS INT) = 77""",
}


def build_lake(lake: Lake) -> None:
    """Create the tables."""
    orders = lake.create_table("shop.orders", ORDERS, partition_by=["day"])
    orders.append(pa.Table.from_pylist(list(_orders()), _schema(orders)))
    items = lake.create_table("shop.items", ITEMS)
    for file in range(ITEM_FILES):
        items.append(pa.Table.from_pylist(list(_items(file)), _schema(items)))


def _schema(table: object) -> pa.Schema:
    return table.scan().to_arrow().schema  # type: ignore[attr-defined]


def _orders() -> Iterator[dict[str, object]]:
    for number in range(DAYS * ORDERS_OF_A_DAY):
        day, within = divmod(number, ORDERS_OF_A_DAY)
        begin = datetime.datetime.combine(FIRST_DAY, datetime.time(), datetime.UTC)
        yield {
            "id": number,
            "day": FIRST_DAY + datetime.timedelta(days=day),
            "ts": begin + datetime.timedelta(days=day, minutes=14 * within),
            "amount": Decimal(number % 977) / 4 if number % 11 else None,
            "name": f"{chr(97 + number % 26)}{number}" if number % 13 else None,
            "customer": number % 40,
        }


def _items(file: int) -> Iterator[dict[str, object]]:
    for within in range(ITEMS_OF_A_FILE):
        number = file * ITEMS_OF_A_FILE + within
        yield {
            "item_id": number,
            "order_id": number,
            "month": datetime.date(2026, 1 if file < ITEM_FILES // 2 else 2, 1),
            "sku": f"sku{number % 7}",
            "price": number / 8,
        }
