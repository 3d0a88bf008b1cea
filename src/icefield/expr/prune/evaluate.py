"""Decide for many files at once whether any row might match an expression, and whether every row must.

`might_match` is False only where provably no row matches; `must_match` is True only where provably every row does.
Missing statistics make the first True and the second False.

There is one set of rules, for `might_match`: every row must match where no row might match the complement.
"""

from collections.abc import Callable

import numpy as np

from icefield.expr.bind.bound import (
    AllOf,
    AnyOf,
    Bound,
    Compare,
    Constant,
    InSet,
    IsNaN,
    IsNull,
    Leaf,
    Like,
    NotInSet,
    NotNaN,
    NotNull,
    NotStartsWith,
    StartsWith,
    complement,
)
from icefield.expr.parse.ast import Operator
from icefield.expr.prune.ordered import Bools, any_within
from icefield.expr.prune.statistics import FieldStatistics
from icefield.types.datatypes import Value

Statistics = Callable[[int], FieldStatistics | None]


def might_match(expression: Bound, statistics: Statistics, rows: int) -> Bools:
    """Return for each of `rows` files whether some row might match; `statistics` returns a column's by field id."""
    match expression:
        case Constant(value):
            return np.full(rows, value)
        case AllOf(parts):
            return _all_might(parts, statistics, rows)
        case AnyOf(parts):
            return _any_might(parts, statistics, rows)
        case Leaf():
            known = statistics(expression.reference.field_id)
            return np.ones(rows, np.bool_) if known is None else _leaf_might(expression, known)


def must_match(expression: Bound, statistics: Statistics, rows: int) -> Bools:
    """Return for each of `rows` files whether every row must match."""
    return ~might_match(complement(expression), statistics, rows)


def _all_might(parts: tuple[Bound, ...], statistics: Statistics, rows: int) -> Bools:
    answer = np.ones(rows, np.bool_)
    for part in parts:
        answer &= might_match(part, statistics, rows)
        if not answer.any():
            break
    return answer


def _any_might(parts: tuple[Bound, ...], statistics: Statistics, rows: int) -> Bools:
    answer = np.zeros(rows, np.bool_)
    for part in parts:
        answer |= might_match(part, statistics, rows)
    return answer


def _leaf_might(leaf: Leaf, known: FieldStatistics) -> Bools:
    match leaf:
        case IsNull():
            return known.may_be_null.copy()
        case NotNull():
            return known.may_be_value | known.may_be_nan
        case IsNaN():
            return known.may_be_nan.copy()
        case NotNaN():
            return known.may_be_value | known.may_be_null
        case Compare(_, operator, value):
            return _compare_might(operator, value, known)
        case InSet(_, values):
            return known.may_be_value & any_within(known.lower, known.upper, values)
        case NotInSet(_, values):
            return known.may_be_nan | (known.may_be_value & ~_single_value_in(values, known))
        case _:
            return known.may_be_value & _text_might(leaf, known)


def _compare_might(operator: Operator, value: Value, known: FieldStatistics) -> Bools:
    # Stated as "drop where provably disjoint": an unknown bound compares as False and drops nothing.
    match operator:
        case Operator.LT:
            return known.may_be_value & ~known.lower.compare(Operator.GE, value)
        case Operator.LE:
            return known.may_be_value & ~known.lower.compare(Operator.GT, value)
        case Operator.GT:
            return known.may_be_nan | (known.may_be_value & ~known.upper.compare(Operator.LE, value))
        case Operator.GE:
            return known.may_be_nan | (known.may_be_value & ~known.upper.compare(Operator.LT, value))
        case Operator.EQ:
            outside = known.lower.compare(Operator.GT, value) | known.upper.compare(Operator.LT, value)
            return known.may_be_value & ~outside
        case Operator.NE:
            return known.may_be_nan | (known.may_be_value & ~_single_value_in((value,), known))


def _single_value_in(values: tuple[Value, ...], known: FieldStatistics) -> Bools:
    """Return a mask of the files in which all ordinary values are equal, and equal to one of the given values."""
    if not known.exact:
        return np.zeros(len(known.may_be_value), np.bool_)
    return known.lower.same_as(known.upper) & known.lower.among(values)


def _text_might(leaf: Leaf, known: FieldStatistics) -> Bools:
    match leaf:
        case StartsWith(_, prefix):
            return _prefix_might(prefix, known)
        case NotStartsWith(_, prefix):
            return ~_all_start_with(prefix, known)
        case Like(_, pattern) if pattern.prefix:
            return _prefix_might(pattern.prefix, known)
        case _:
            return np.ones(len(known.may_be_value), np.bool_)


def _prefix_might(prefix: str, known: FieldStatistics) -> Bools:
    first, after = prefix.encode(), _after_prefix(prefix)
    return ~known.upper.compare(Operator.LT, first) & ~known.lower.compare(Operator.GE, after)


def _all_start_with(prefix: str, known: FieldStatistics) -> Bools:
    first, after = prefix.encode(), _after_prefix(prefix)
    return known.lower.compare(Operator.GE, first) & known.upper.compare(Operator.LT, after)


def _after_prefix(prefix: str) -> bytes:
    """Return the first bytes after all strings with the prefix. UTF-8 has no byte 0xFF, so the last can be raised."""
    data = prefix.encode()
    return data[:-1] + bytes((data[-1] + 1,))
