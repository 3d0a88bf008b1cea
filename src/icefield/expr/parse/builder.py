"""Filters in Python: `(col("a.b") > 3) & col("x").isin(1, 2)`."""

from collections.abc import Iterable

import numpy as np

from icefield.errors import InvalidFilter
from icefield.expr.parse.ast import (
    Column,
    Comparison,
    In,
    IsNaN,
    IsNull,
    Like,
    Lit,
    Literal,
    Not,
    NullSafeEqual,
    Operator,
    Predicate,
    StartsWith,
)


def col(name: str) -> "ColumnTerm":
    """Refer to a column in a filter. Dots separate the fields of structs."""
    if not name:
        raise InvalidFilter("a column needs a name")
    return ColumnTerm(Column(tuple(name.split("."))))


def lit(value: Literal) -> Lit:
    """Return a literal for `update` and `merge`, where a plain string is SQL text."""
    return Lit(value)


class ColumnTerm:
    """A column in a filter: compare it with `==`, `!=`, `<`, `<=`, `>`, `>=`, or call a method."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, column: Column) -> None:
        self._column = column

    def __repr__(self) -> str:
        return f"col({str(self._column)!r})"

    def __eq__(self, value: object) -> Predicate:  # type: ignore[override]
        return self._compare(Operator.EQ, value)

    def __ne__(self, value: object) -> Predicate:  # type: ignore[override]
        return self._compare(Operator.NE, value)

    def __lt__(self, value: Literal) -> Predicate:
        return self._compare(Operator.LT, value)

    def __le__(self, value: Literal) -> Predicate:
        return self._compare(Operator.LE, value)

    def __gt__(self, value: Literal) -> Predicate:
        return self._compare(Operator.GT, value)

    def __ge__(self, value: Literal) -> Predicate:
        return self._compare(Operator.GE, value)

    def isin(self, *values: Literal | Iterable[Literal]) -> Predicate:
        """Match any of the values, given one by one or as one list."""
        given = values[0] if len(values) == 1 and not isinstance(values[0], str | bytes) else values
        items = given if isinstance(given, Iterable) else values
        return In(self._column, tuple(_plain(v) for v in items))

    def is_null(self) -> Predicate:
        """Match null."""
        return IsNull(self._column)

    def is_not_null(self) -> Predicate:
        """Match every value except null."""
        return Not(IsNull(self._column))

    def is_nan(self) -> Predicate:
        """Match NaN."""
        return IsNaN(self._column)

    def between(self, low: Literal, high: Literal) -> Predicate:
        """Match values from low to high, both inclusive."""
        return (self >= low) & (self <= high)

    def same_as(self, value: Literal) -> Predicate:
        """Match like `==`, but None matches null, as SQL's `<=>` does."""
        return NullSafeEqual(self._column, _plain(value))

    def starts_with(self, prefix: str) -> Predicate:
        """Match strings that begin with a prefix."""
        return StartsWith(self._column, prefix)

    def like(self, pattern: str, escape: str = "\\") -> Predicate:
        """Match like SQL's LIKE: `%` is any text, `_` any one character."""
        return Like(self._column, pattern, escape)

    def _compare(self, operator: Operator, value: object) -> Predicate:
        if isinstance(value, ColumnTerm):
            raise InvalidFilter(f"cannot compare {self!r} with {value!r}: a filter compares a column with a value")
        return Comparison(self._column, operator, _plain(value))


def _plain(value: object) -> Literal:
    # Whether the value fits the column is checked in bind, where the column's type is known.
    return value.item() if isinstance(value, np.generic) else value  # type: ignore[return-value]
