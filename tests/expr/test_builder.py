"""Filters built in Python."""

import numpy as np
import pytest

from icefield.errors import InvalidFilter
from icefield.expr.parse import ast
from icefield.expr.parse.ast import Predicate
from icefield.expr.parse.builder import col
from icefield.expr.parse.sql import parse_filter


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (col("a") == 1, "a = 1"),
        (col("a") != 1, "a != 1"),
        (col("a.b") > 3, "a.b > 3"),
        (col("a") >= 3, "a >= 3"),
        (col("a") <= 3, "a <= 3"),
        (col("a") > 3, "a > 3"),
        (col("a").isin(1, 2), "a IN (1, 2)"),
        (col("a").isin([1, 2]), "a IN (1, 2)"),
        (col("a").isin("xy"), "a IN ('xy')"),
        (col("a").is_null(), "a IS NULL"),
        (col("a").is_not_null(), "a IS NOT NULL"),
        (col("a").is_nan(), "isnan(a)"),
        (col("a").between(1, 2), "a BETWEEN 1 AND 2"),
        (col("a").same_as(None), "a <=> NULL"),
        (col("a").starts_with("x"), "startswith(a, 'x')"),
        (col("a").like("x%"), "a LIKE 'x%'"),
        ((col("a") == 1) & (col("b") == 2) & (col("c") == 3), "a = 1 AND b = 2 AND c = 3"),
        ((col("a") == 1) | (col("b") == 2), "a = 1 OR b = 2"),
        (~(col("a") == 1), "NOT a = 1"),
        (col("a") == np.int64(5), "a = 5"),
        (col("a") == np.str_("x"), "a = 'x'"),
    ],
)  # fmt: skip
def test_built_filters_are_those_of_the_text(built: Predicate, text: str) -> None:
    assert built == parse_filter(text)


def test_numpy_values_become_plain() -> None:
    built = col("a") == np.float32(0.1)
    assert isinstance(built, ast.Comparison)
    assert type(built.value) is float


def test_truth_values_are_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidFilter, match="&"):
        bool(1 < col("a") < 3)
    with pytest.raises(InvalidFilter, match="&"):
        _ = (col("a") == 1) and (col("b") == 2)


def test_columns_are_compared_with_values_only() -> None:
    with pytest.raises(InvalidFilter, match=r"col\('b'\)"):
        assert col("a") == col("b")
    with pytest.raises(InvalidFilter, match="combine"):
        (col("a") == 1) & 5  # type: ignore[operator]
    with pytest.raises(InvalidFilter, match="name"):
        col("")
