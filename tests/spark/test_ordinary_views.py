"""Queries that people write: each is taken as a view, and gives the rows that Spark gives over the same tables.

A run has a sample of the rows, by a seed; ICEFIELD_DEEP=1 has all.
"""

import datetime
import decimal
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.effort import DEEP

from icefield.expr.query.select import parse_query
from icefield.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = Path(__file__).with_name("ordinary_views.sql").read_text(encoding="utf8").strip("\n").split("\n;;\n")
SAMPLE = 8
ORDERS = (
    "id long, ts timestamptz, d date, customer string, amount decimal(9, 2), qty int, tags list<string>, "
    "attrs map<string, string>, addr struct<city: string, zip: int>, price double, `odd name` string, "
    "items list<struct<sku: string, n: int>>, `date` date, `user` string, `order` int"
)
# By a name of the lake; the session has temporary views.
QUALIFIED = re.compile(r"\b(icefield\.)?shop\.(?=orders|customers)")


def order(at: int) -> dict[str, object]:
    return {
        "id": at,
        "ts": datetime.datetime(2026, 1, 1 + at, 9, 10, tzinfo=datetime.UTC),
        "d": datetime.date(2026, 1, 1 + at),
        "customer": ("ada", "grace", "edsger", None)[at % 4],
        "amount": decimal.Decimal(at * 10) + decimal.Decimal("0.50"),
        "qty": at % 5,
        "tags": ["a", "b"][: at % 3],
        "attrs": [("k", str(at))],
        "addr": {"city": ("Paris", "Rome")[at % 2], "zip": at},
        "price": at / 2,
        "odd name": f"n{at}",
        "items": [{"sku": f"s{at}", "n": at}],
        "date": datetime.date(2026, 2, 1),
        "user": "u",
        "order": at,
    }


@pytest.fixture
def shop(lake: Lake, spark: "SparkSession") -> Iterator[Lake]:
    orders = lake.create_table("shop.orders", ORDERS)
    orders.append(pa.Table.from_pylist([order(at) for at in range(12)], schema=orders.scan().to_arrow().schema))
    customers = lake.create_table("shop.customers", "name string, country string, since int")
    people = {"name": ["ada", "grace", "edsger", "x"], "country": ["UK", "US", "NL", "ÖÄ"], "since": [1, 2, 3, 4]}
    customers.append(pa.table(people, schema=customers.scan().to_arrow().schema))
    tables = {"orders": orders, "customers": customers}
    for name, table in tables.items():
        table.scan().to_spark().createOrReplaceTempView(name)
    yield lake
    for name in tables:
        spark.catalog.dropTempView(name)


def test_ordinary_queries_are_taken() -> None:
    assert len(QUERIES) >= 300
    for query in QUERIES:
        parse_query(query)


@pytest.mark.spark
def test_views_give_the_rows_of_their_queries(shop: Lake, spark: "SparkSession") -> None:
    chosen = QUERIES if DEEP else random.Random(13).sample(QUERIES, SAMPLE)
    for number, query in enumerate(chosen):
        plain = spark.sql(QUALIFIED.sub("", query).strip().removesuffix(";"))
        shop.create_view(f"shop.v{number}", query)
        view = shop.view(f"shop.v{number}").to_spark()
        assert view.columns == plain.columns, query
        assert sorted(map(repr, view.collect())) == sorted(map(repr, plain.collect())), query
