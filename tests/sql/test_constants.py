"""Constants of statements that are read without Spark: which are known, and that all others are left to Spark."""

import math
from decimal import Decimal
from typing import Any

import pytest

from icefield.errors import IcefieldError, InvalidInput, NeedsSpark, NoSuchSnapshot, Unsupported
from icefield.lake import Lake
from tests.sql.running import run

UNKNOWN_TIMES: list[tuple[str, Any]] = [
    *((text, None) for text in ("99999999999999", "1e300", "-1e300", "-62135596801", "9" * 400, "-" + "9" * 400)),
    *((":v", value) for value in (math.nan, math.inf, 10**30, -(10**30), Decimal("NaN"), Decimal("Infinity"), b"x")),
]
EXPRESSIONS = (
    "(current_timestamp() - INTERVAL 1 SECOND)",
    "(1 + 2)",
    "((7) * 2)",
    "CAST(1 + 2 AS BIGINT)",
    "CAST('2026-01-01' || '' AS TIMESTAMP)",
    "CAST(1 AS DECIMAL(10, 2))",
    "array(1 + 2, 3)[0]",
    "map('a', 1 + 2)['a']",
    "- (1 - 2)",
)


@pytest.fixture
def shop(memory_lake: Lake) -> Lake:
    memory_lake.create_namespace("shop")
    run(memory_lake, "CREATE TABLE shop.t (id INT)")
    run(memory_lake, "INSERT INTO shop.t VALUES (1)")
    return memory_lake


def error_of(lake: Lake, text: str, value: Any = None) -> IcefieldError:
    with pytest.raises(IcefieldError) as caught:
        run(lake, text, None if value is None else {"v": value})
    return caught.value


@pytest.mark.parametrize(("text", "value"), UNKNOWN_TIMES)
@pytest.mark.every_case
def test_a_number_that_is_no_time_is_left_to_spark(shop: Lake, text: str, value: Any) -> None:
    query = f"SELECT count(*) FROM shop.t TIMESTAMP AS OF {text}"
    error = error_of(shop, query, value)
    assert (type(error), error.position) == (NeedsSpark, (1, query.index(text)))


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.every_case
def test_what_is_more_than_a_literal_is_left_to_spark_also_in_parentheses(shop: Lake, text: str) -> None:
    for clause in ("TIMESTAMP", "VERSION"):
        error = error_of(shop, f"SELECT count(*) FROM shop.t {clause} AS OF {text}")
        assert isinstance(error, NeedsSpark), error
    call = f"CALL system.expire_snapshots(table => 'shop.t', retain_last => {text})"
    assert isinstance(error_of(shop, call), NeedsSpark)


def test_seconds_are_read_to_the_microsecond(shop: Lake) -> None:
    error = error_of(shop, "SELECT count(*) FROM shop.t TIMESTAMP AS OF 1000000000.123456")
    assert isinstance(error, NoSuchSnapshot)
    assert "2001-09-09T01:46:40.123" in error.message
    assert run(shop, "SELECT count(*) FROM shop.t TIMESTAMP AS OF 99999999999") == [(1,)]


def test_a_parenthesis_that_is_not_closed_is_pointed_at(shop: Lake) -> None:
    for text in ("(1", "CAST(1 AS INT", "array(1, 2"):
        assert isinstance(error_of(shop, f"SELECT 1 FROM shop.t VERSION AS OF {text}"), InvalidInput)


@pytest.mark.parametrize(
    "text", ["(SELECT max(id) FROM shop.t)", "coalesce((SELECT 1), 2)", "(WITH a AS (SELECT 1) SELECT 2)"]
)
@pytest.mark.every_case
def test_a_query_is_no_constant(shop: Lake, text: str) -> None:
    """Spark would look for its tables in its own catalog."""
    error = error_of(shop, f"SELECT 1 FROM shop.t VERSION AS OF {text}")
    assert (type(error), error.position) == (Unsupported, (1, 35))
    assert isinstance(error_of(shop, f"CALL system.rollback_to_snapshot('shop.t', {text})"), Unsupported)
