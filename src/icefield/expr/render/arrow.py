"""Bound expressions as Arrow compute expressions: one to filter batches, one to skip row groups in pyarrow.dataset.

Null in the result means no match, as in SQL; NaN follows Spark, unlike in Arrow's own operators. Prefix tests are
written as ranges, which Arrow can compare with the statistics of a row group.

The two must not be confused. Arrow assumes that a row group whose minimum equals its maximum has no other value, but
NaN is in neither; with a filter that matches NaN it would skip rows. `row_group_filter` is safe for this use.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefield.expr.bind.bound import (
    TRUE,
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
    NotLike,
    NotNaN,
    NotNull,
    NotStartsWith,
    Reference,
    StartsWith,
    all_of,
    any_of,
    passes_nan,
)
from icefield.expr.parse.ast import Operator
from icefield.types.arrow import arrow_array, physical_array
from icefield.types.datatypes import DoubleType, FixedType, FloatType, PrimitiveType, UUIDType, Value
from icefield.types.values.binary import truncate_upper

NameOf = Callable[[Reference], Sequence[str]]


def arrow_filter(expression: Bound, name_of: NameOf | None = None) -> pc.Expression:
    """Return the expression over columns of the table's Arrow types; `name_of` returns a column's path in the data."""
    match expression:
        case Constant(value):
            return pc.scalar(value)
        case AllOf(parts):
            return _joined([arrow_filter(part, name_of) for part in parts], lambda a, b: a & b)
        case AnyOf(parts):
            return _joined([arrow_filter(part, name_of) for part in parts], lambda a, b: a | b)
        case Leaf():
            path = name_of(expression.reference) if name_of else expression.reference.path
            return _leaf(expression, _column(path, expression.reference.type))


def row_group_filter(expression: Bound, name_of: NameOf | None = None) -> pc.Expression:
    """Return a weaker expression with which pyarrow.dataset skips row groups; the rows must still be filtered."""
    return arrow_filter(_without_nan_tests(expression), name_of)


def _without_nan_tests(expression: Bound) -> Bound:
    """Replace every float comparison that is true for NaN by IS NOT NULL."""
    match expression:
        case AllOf(parts):
            return all_of(*(_without_nan_tests(part) for part in parts))
        case AnyOf(parts):
            return any_of(*(_without_nan_tests(part) for part in parts))
        case NotNaN():
            return TRUE
        case Leaf(reference) if isinstance(expression, IsNaN) or passes_nan(expression):
            return NotNull(reference)
        case _:
            return expression


def _joined(parts: list[pc.Expression], join: Callable[[pc.Expression, pc.Expression], pc.Expression]) -> pc.Expression:
    """Combine parts in pairs, so that a thousand parts make a tree of ten levels, not of a thousand."""
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [join(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return parts[0]


def _column(path: Sequence[str], kind: PrimitiveType) -> pc.Expression:
    column = pc.field(*path) if len(path) > 1 else pc.field(path[0])
    # Arrow cannot compare UUIDs, or fixed bytes with bytes of another length.
    return column.cast(pa.binary()) if isinstance(kind, UUIDType | FixedType) else column


def _scalars(values: Sequence[Value], kind: PrimitiveType) -> pa.Array:
    if isinstance(kind, FixedType):
        return pa.array(values, pa.binary())
    array = arrow_array(values, kind)
    return physical_array(array).cast(pa.binary()) if isinstance(kind, UUIDType) else array


def _leaf(leaf: Leaf, column: pc.Expression) -> pc.Expression:
    kind = leaf.reference.type
    match leaf:
        case IsNull():
            return column.is_null()
        case NotNull():
            return column.is_valid()
        case IsNaN():
            return pc.is_nan(column)
        case NotNaN():
            return ~pc.is_nan(column) | column.is_null()
        case Compare(_, operator, value):
            return _compare(column, operator, value, kind)
        case InSet(_, values):
            return column.isin(_scalars(_with_both_zeros(values), kind))
        case NotInSet(_, values):
            return ~column.isin(_scalars(_with_both_zeros(values), kind)) & column.is_valid()
        case _:
            return _text_leaf(leaf, column)


def _compare(column: pc.Expression, operator: Operator, value: Value, kind: PrimitiveType) -> pc.Expression:
    test = _OPERATORS[operator](column, _scalars([value], kind)[0])
    if isinstance(kind, FloatType | DoubleType) and operator in (Operator.GT, Operator.GE):
        # In Arrow NaN is neither less nor greater than any value.
        return test | pc.is_nan(column)
    return test


def _with_both_zeros(values: Sequence[Value]) -> Sequence[Value]:
    """Add -0.0 for 0.0: Arrow compares the values of a set by their bits."""
    return (*values, -0.0) if any(isinstance(v, float) and v == 0 for v in values) else values


def _text_leaf(leaf: Leaf, column: pc.Expression) -> pc.Expression:
    match leaf:
        case StartsWith(_, prefix):
            return _starts_with(column, prefix)
        case NotStartsWith(_, prefix):
            return ~_starts_with(column, prefix)
        case Like(_, pattern):
            test = _like(column, pattern.regex)
            return _starts_with(column, pattern.prefix) & test if pattern.prefix else test
        case NotLike(_, pattern):
            return ~_like(column, pattern.regex)
        case _:
            raise AssertionError(leaf)


def _starts_with(column: pc.Expression, prefix: str) -> pc.Expression:
    after = truncate_upper(prefix + "\0", len(prefix))
    from_prefix = column >= pa.scalar(prefix)
    return from_prefix if after is None else from_prefix & (column < pa.scalar(after))


def _like(column: pc.Expression, regex: str) -> pc.Expression:
    return pc.match_substring_regex(column, pattern=rf"(?s)\A(?:{regex})\z")


_OPERATORS: dict[Operator, Callable[[Any, Any], pc.Expression]] = {
    Operator.EQ: lambda column, value: column == value,
    Operator.NE: lambda column, value: column != value,
    Operator.LT: lambda column, value: column < value,
    Operator.LE: lambda column, value: column <= value,
    Operator.GT: lambda column, value: column > value,
    Operator.GE: lambda column, value: column >= value,
}
