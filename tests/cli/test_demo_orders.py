"""The orders of the demo are the same whoever makes them."""

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icefield.cli.demo.orders import COUNTRIES, CUSTOMERS, SCHEMA, arrow_orders, customer_of, spark_orders
from icefield.parquet.write.conform import check_arrow_schema
from icefield.types.text import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOTAL = 10_000


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, TOTAL), st.integers(0, TOTAL))
def test_slices_put_together_are_the_whole(one: int, other: int) -> None:
    low, high = sorted((one, other))
    slices = [arrow_orders(a, b, TOTAL) for a, b in ((0, low), (low, high), (high, TOTAL))]
    assert pa.concat_tables(slices).combine_chunks().equals(arrow_orders(0, TOTAL, TOTAL).combine_chunks())


def test_orders_are_believable() -> None:
    orders = arrow_orders(0, TOTAL, TOTAL)
    check_arrow_schema(orders.schema, parse_schema(SCHEMA))
    times = orders.column("ts").to_pylist()
    assert times == sorted(times)
    assert (times[0].date(), times[-1].date()) == (datetime.date(2026, 1, 1), datetime.date(2026, 1, 30))
    assert pc.count_distinct(orders.column("customer_id")).as_py() > CUSTOMERS * 0.8
    assert set(orders.column("country").to_pylist()) == set(COUNTRIES)
    assert Decimal("0.99") <= pc.min(orders.column("amount")).as_py() < pc.max(orders.column("amount")).as_py()
    assert set(pc.list_value_length(orders.column("items")).to_pylist()) == {1, 2, 3}


def test_a_customer_lives_in_one_country_and_pays_different_amounts() -> None:
    orders = arrow_orders(0, TOTAL, TOTAL)
    by_customer = orders.group_by("customer_id").aggregate(
        [("country", "count_distinct"), ("amount", "count_distinct")]
    )
    assert set(by_customer.column("country_count_distinct").to_pylist()) == {1}
    assert pc.mean(by_customer.column("amount_count_distinct")).as_py() > 2


def test_customer_of_names_who_placed_an_order() -> None:
    customers = arrow_orders(0, 50, TOTAL).column("customer_id").to_pylist()
    assert [customer_of(order) for order in range(50)] == customers


@pytest.mark.spark
def test_spark_makes_the_same_orders(spark: "SparkSession") -> None:
    made = spark.range(1_234, 2_345).selectExpr(*spark_orders(TOTAL)).toArrow()
    assert made.to_pylist() == arrow_orders(1_234, 2_345, TOTAL).to_pylist()
