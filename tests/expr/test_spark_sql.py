"""Spark SQL text means the same as the expression, for Spark and for our own parser."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort
from tests.expr.cases import expressions, rows_of, typed_columns

from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import Compare, Reference
from icefield.expr.parse.ast import Operator
from icefield.expr.render.rows import matches
from icefield.expr.render.spark_sql import spark_literal, spark_sql
from icefield.types.datatypes import (
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

pytestmark = pytest.mark.every_case

MAX_FLOAT = 3.4028234663852886e38


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (-(1 << 31), IntegerType(), "-2147483648"),
        (-(1 << 63), LongType(), "-9223372036854775808L"),
        (1.5, DoubleType(), "1.5D"),
        (1e300, DoubleType(), "1e+300D"),
        (float("inf"), DoubleType(), "CAST('Infinity' AS DOUBLE)"),
        (float("-inf"), FloatType(), "CAST('-Infinity' AS FLOAT)"),
        (MAX_FLOAT, FloatType(), "3.4028234663852886e+38F"),
        (Decimal("-0.10"), DecimalType(9, 2), "CAST('-0.10' AS DECIMAL(9,2))"),
        (Decimal("1E-10"), DecimalType(38, 10), "CAST('0.0000000001' AS DECIMAL(38,10))"),
        (0, DateType(), "DATE '1970-01-01'"),
        (-719_529, DateType(), "DATE '-0001-12-31'"),
        (2_932_897, DateType(), "DATE '+10000-01-01'"),
        (-1, TimestampType(), "TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'"),
        (1_500_000, TimestamptzType(), "TIMESTAMP_LTZ '1970-01-01 00:00:01.5+00:00'"),
        (-5, TimestampNsType(), "-5L"),
        (1_500_000_001, TimestamptzNsType(), "1500000001L"),
        (5, TimeType(), "5L"),
        ("plain é 😀", StringType(), "'plain é 😀'"),
        ("it's", StringType(), "CAST(X'69742773' AS STRING)"),
        ("a\\b", StringType(), "CAST(X'615c62' AS STRING)"),
        ("${x}", StringType(), "CAST(X'247b787d' AS STRING)"),
        ("", StringType(), "''"),
        (b"\x00\xff", FixedType(2), "X'00ff'"),
    ],
)
def test_literals(value: Any, kind: PrimitiveType, text: str) -> None:
    assert spark_literal(value, kind) == text


def test_names_are_quoted_and_may_be_replaced() -> None:
    expression = bind("`a b`.`c``d` = 1 AND x IS NOT NULL", parse_schema("`a b` struct<`c``d`: int>, x int"))
    assert spark_sql(expression) == "`a b`.`c``d` = 1 AND `x` IS NOT NULL"
    assert spark_sql(expression, lambda r: [f"f{r.field_id}"]) == "`f3` = 1 AND `f2` IS NOT NULL"


def test_nested_conditions_keep_their_parentheses() -> None:
    schema = parse_schema("a int, b int")
    text = spark_sql(bind("(a = 1 OR b = 2) AND NOT (a = 3 AND b = 4)", schema))
    assert text == "(`a` = 1 OR `b` = 2) AND (`a` != 3 OR `b` != 4)"


def test_comparisons_that_nan_passes_are_kept_from_spark_s_pushdown() -> None:
    schema = parse_schema("f float, i int")
    assert spark_sql(bind("f > 1 AND i > 1", schema)) == "(`f` > 1.0F OR isnan(`f`)) AND `i` > 1"
    assert spark_sql(bind("f < 1", schema)) == "`f` < 1.0F"


# Spark has no such types, so their literals are of other types than the columns.
_OWN_TYPES = (UUIDType, TimeType, TimestampNsType, TimestamptzNsType)


@given(st.data(), typed_columns)
@effort(120)
def test_parsing_the_text_gives_the_meaning_back(data: st.DataObject, columns: tuple[Reference, ...]) -> None:
    columns = tuple(c for c in columns if not isinstance(c.type, _OWN_TYPES))
    if not columns:
        return
    expression = data.draw(expressions(columns))
    schema = Schema(tuple(NestedField(c.field_id, c.path[0], c.type) for c in columns))
    again = bind(spark_sql(expression), schema)
    assert bind(spark_sql(again), schema) == again
    for row in data.draw(st.lists(rows_of(columns), min_size=1, max_size=5)):
        assert matches(again, row) is matches(expression, row)


@given(st.text(st.characters(exclude_categories=["Cs"])))
@effort()
def test_every_text_survives_as_a_literal(text: str) -> None:
    expression = bind(f"s = {spark_literal(text, StringType())}", parse_schema("s string"))
    assert expression == Compare(Reference(1, StringType(), ("s",)), Operator.EQ, text)
