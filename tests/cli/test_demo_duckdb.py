"""DuckDB as the second opinion of the demo."""

from decimal import Decimal

import pyarrow.compute as pc
import pytest

from icefield.cli.demo import duckdb as demo_duckdb
from icefield.cli.demo.duckdb import ask_duckdb
from icefield.cli.demo.orders import SCHEMA, arrow_orders
from icefield.lake import Lake

pytestmark = pytest.mark.slow


def test_duckdb_finds_what_was_written(lake: Lake) -> None:
    table = lake.create_table("shop.orders", SCHEMA, partition_by=["day(ts)"])
    orders = arrow_orders(0, 300, 300)
    table.append(orders)
    peer = ask_duckdb(table.metadata_location)
    assert peer.why_not == ""
    assert peer.totals is not None
    assert (peer.totals.rows, peer.totals.distinct_orders) == (300, 300)
    assert peer.totals.revenue == sum(orders.column("amount").to_pylist(), Decimal())
    assert peer.totals.items == pc.sum(pc.list_value_length(orders.column("items"))).as_py()
    assert peer.totals.last_order == orders.column("ts").to_pylist()[-1].strftime("%Y-%m-%dT%H:%M:%S.%f")


def test_a_missing_duckdb_is_said_and_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_duckdb, "PACKAGES", ("json", "duckdb_of_another_world"))
    assert ask_duckdb("file:///nowhere").why_not == "not installed: duckdb_of_another_world"


def test_a_duckdb_that_fails_is_said_with_its_reason(lake: Lake) -> None:
    peer = ask_duckdb(f"{lake.warehouse}/nothing.metadata.json")
    assert peer.totals is None
    assert "nothing.metadata.json" in peer.why_not
