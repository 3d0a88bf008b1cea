"""Project tests of strings and bytes through truncate, which keeps the first `width` characters or bytes.

A partition value shorter than the width is the row's whole value; one of full width is its prefix.
"""

from icefield.expr.bind.bound import (
    Bound,
    Compare,
    InSet,
    Leaf,
    Like,
    NotInSet,
    NotNull,
    NotStartsWith,
    Reference,
    StartsWith,
    none_of,
    one_of,
)
from icefield.expr.parse.ast import Operator
from icefield.types.datatypes import Value


def project_cut(leaf: Leaf, reference: Reference, width: int) -> Bound:
    """Project a leaf on a string or binary column."""
    match leaf:
        case Compare(_, operator, value):
            return _project_comparison(operator, value, reference, width)
        case InSet(_, values):
            return one_of(reference, (_cut(value, width) for value in values))
        case NotInSet(_, values):
            return none_of(reference, (value for value in values if _is_whole(value, width)))
        case StartsWith(_, prefix):
            return _project_prefix(prefix, reference, width)
        case NotStartsWith(_, prefix):
            return _project_no_prefix(prefix, reference, width)
        case Like(_, pattern) if pattern.prefix:
            return _project_prefix(pattern.prefix, reference, width)
        case _:
            return NotNull(reference)


def _project_comparison(operator: Operator, value: Value, reference: Reference, width: int) -> Bound:
    cut = _cut(value, width)
    match operator:
        case Operator.LT if cut == value:
            # The value fits in the width, so a row below it has a prefix below it too.
            return Compare(reference, Operator.LT, cut)
        case Operator.LT | Operator.LE:
            return Compare(reference, Operator.LE, cut)
        case Operator.GT if _is_whole(value, width):
            return Compare(reference, Operator.GT, value)
        case Operator.GT | Operator.GE:
            return Compare(reference, Operator.GE, cut)
        case Operator.EQ:
            return Compare(reference, Operator.EQ, cut)
        case Operator.NE:
            return none_of(reference, (value,) if _is_whole(value, width) else ())


def _project_prefix(prefix: str, reference: Reference, width: int) -> Bound:
    if len(prefix) < width:
        return StartsWith(reference, prefix)
    return Compare(reference, Operator.EQ, prefix[:width])


def _project_no_prefix(prefix: str, reference: Reference, width: int) -> Bound:
    if len(prefix) < width:
        return NotStartsWith(reference, prefix)
    if len(prefix) == width:
        return Compare(reference, Operator.NE, prefix)
    return NotNull(reference)


def _cut(value: Value, width: int) -> Value:
    assert isinstance(value, str | bytes)
    return value[:width]


def _is_whole(value: Value, width: int) -> bool:
    """Return whether the partition of this value contains no other value."""
    assert isinstance(value, str | bytes)
    return len(value) < width
