"""Bound expressions: filters over field ids and typed values, in one normal form.

There is no NOT: negation was pushed into the leaves. A leaf is true only where it is known to be true, so there is no
third truth value: a row matches or it does not. NaN follows Spark: it equals itself and is greater than every
other number; no leaf has NaN as its value (bind turns `= NaN` into IsNaN). -0.0 equals 0.0.
Values have the in-memory form of `icefield.types.values.binary`.

Build with `all_of`, `any_of`, `one_of`, `none_of`: they flatten, and simplify parts that are always true or false.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from icefield.expr.parse.ast import Operator
from icefield.expr.parse.like import LikePattern
from icefield.types.datatypes import DoubleType, FloatType, PrimitiveType, Value


@dataclass(frozen=True)
class Reference:
    """A column of a table, or a field of a partition tuple. The id identifies it; the path is for display.

    A type that is not primitive appears as `unknown`: such a column can only be tested for null.
    """

    field_id: int
    type: PrimitiveType
    path: tuple[str, ...]

    def __hash__(self) -> int:
        # Expressions are often dictionary keys, and ids identify columns; equality compares the rest.
        return hash(self.field_id)


@dataclass(frozen=True)
class Constant:
    """TRUE or FALSE for every row."""

    value: bool


TRUE = Constant(value=True)
FALSE = Constant(value=False)


@dataclass(frozen=True)
class Leaf:
    """A test of one column."""

    reference: Reference


@dataclass(frozen=True)
class Compare(Leaf):
    operator: Operator
    value: Value


@dataclass(frozen=True)
class InSet(Leaf):
    """Equal to one of the values: two or more, sorted and unique."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class NotInSet(Leaf):
    """Not null and equal to none of the values: two or more, sorted and unique."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class IsNull(Leaf):
    pass


@dataclass(frozen=True)
class NotNull(Leaf):
    pass


@dataclass(frozen=True)
class IsNaN(Leaf):
    pass


@dataclass(frozen=True)
class NotNaN(Leaf):
    """True also for null, as `NOT isnan(x)` is in Spark."""


@dataclass(frozen=True)
class StartsWith(Leaf):
    prefix: str


@dataclass(frozen=True)
class NotStartsWith(Leaf):
    prefix: str


@dataclass(frozen=True)
class Like(Leaf):
    pattern: LikePattern


@dataclass(frozen=True)
class NotLike(Leaf):
    pattern: LikePattern


@dataclass(frozen=True)
class AllOf:
    parts: tuple["Bound", ...]


@dataclass(frozen=True)
class AnyOf:
    parts: tuple["Bound", ...]


Bound = Constant | AllOf | AnyOf | Leaf


def all_of(*parts: Bound) -> Bound:
    """Combine by AND."""
    kept = _without_idle_not_null(_flatten(parts, AllOf, neutral=TRUE))
    if FALSE in kept or _both_ways_null(kept):
        return FALSE
    return TRUE if not kept else kept[0] if len(kept) == 1 else AllOf(kept)


def any_of(*parts: Bound) -> Bound:
    """Combine by OR."""
    kept = _flatten(parts, AnyOf, neutral=FALSE)
    if TRUE in kept or _both_ways_null(kept):
        return TRUE
    return FALSE if not kept else kept[0] if len(kept) == 1 else AnyOf(kept)


def one_of(reference: Reference, values: Iterable[Value]) -> Bound:
    """Test for equality with any of the values."""
    unique = _sorted_unique(values)
    if len(unique) > 1:
        return InSet(reference, unique)
    return Compare(reference, Operator.EQ, unique[0]) if unique else FALSE


def none_of(reference: Reference, values: Iterable[Value]) -> Bound:
    """Test for a value that is not null and equals none of the values."""
    unique = _sorted_unique(values)
    if len(unique) > 1:
        return NotInSet(reference, unique)
    return Compare(reference, Operator.NE, unique[0]) if unique else NotNull(reference)


def complement(expression: Bound) -> Bound:
    """Return the expression that matches exactly the rows that this one does not."""
    match expression:
        case Constant(value):
            return FALSE if value else TRUE
        case AllOf(parts):
            return any_of(*(complement(part) for part in parts))
        case AnyOf(parts):
            return _any_complement(parts)
        case Leaf():
            return _leaf_complement(expression)


def passes_nan(leaf: Leaf) -> bool:
    """Return whether a comparison is true for NaN, which minimum and maximum do not cover."""
    if not isinstance(leaf.reference.type, FloatType | DoubleType):
        return False
    return isinstance(leaf, NotInSet) or (
        isinstance(leaf, Compare) and leaf.operator in (Operator.GT, Operator.GE, Operator.NE)
    )


def conjuncts(expression: Bound) -> tuple[Bound, ...]:
    """Return the conjuncts of an expression; none for TRUE."""
    if isinstance(expression, AllOf):
        return expression.parts
    return () if expression == TRUE else (expression,)


def references_of(expression: Bound) -> dict[int, Reference]:
    """Return the columns that the expression refers to, by field id."""
    if isinstance(expression, Leaf):
        return {expression.reference.field_id: expression.reference}
    found: dict[int, Reference] = {}
    if isinstance(expression, AllOf | AnyOf):
        for part in expression.parts:
            found |= references_of(part)
    return found


def columns_of(expression: Bound) -> set[int]:
    """Return the ids of the columns that the expression refers to."""
    return set(references_of(expression))


def _any_complement(parts: tuple[Bound, ...]) -> Bound:
    """Turn `x < 3 OR x IS NULL` back into `x >= 3`, so that the complement of a complement is the original."""
    null = {part.reference for part in parts if isinstance(part, IsNull)}
    tested = {p.reference for p in parts if isinstance(p, Leaf) and not isinstance(p, _NULL_TESTS)} & null
    kept: list[Bound] = []
    for part in parts:
        if isinstance(part, Leaf) and part.reference in tested and not isinstance(part, _NULL_TESTS):
            kept.append(_opposite(part))
        elif not (isinstance(part, IsNull) and part.reference in tested):
            kept.append(complement(part))
    return all_of(*kept)


def _leaf_complement(leaf: Leaf) -> Bound:
    reference = leaf.reference
    match leaf:
        case IsNull():
            return NotNull(reference)
        case NotNull():
            return IsNull(reference)
        case IsNaN():
            return NotNaN(reference)
        case NotNaN():
            return IsNaN(reference)
    return AnyOf((_opposite(leaf), IsNull(reference)))


def _opposite(leaf: Leaf) -> Bound:
    """Return the leaf that is true for exactly the non-null values for which this one is false."""
    reference = leaf.reference
    match leaf:
        case Compare(_, operator, value):
            return Compare(reference, operator.negated, value)
        case InSet(_, values):
            return NotInSet(reference, values)
        case NotInSet(_, values):
            return InSet(reference, values)
        case StartsWith(_, prefix):
            return NotStartsWith(reference, prefix)
        case NotStartsWith(_, prefix):
            return StartsWith(reference, prefix)
        case Like(_, pattern):
            return NotLike(reference, pattern)
        case NotLike(_, pattern):
            return Like(reference, pattern)
        case _:
            raise AssertionError(leaf)


_NULL_TESTS = (IsNull, NotNull, IsNaN, NotNaN)


def _flatten(parts: Iterable[Bound], kind: type[AllOf] | type[AnyOf], neutral: Constant) -> tuple[Bound, ...]:
    kept: dict[Bound, None] = {}
    for part in parts:
        for inner in part.parts if isinstance(part, kind) else (part,):
            if inner != neutral:
                kept.setdefault(inner)
    return tuple(kept)


def _without_idle_not_null(parts: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """Drop `x IS NOT NULL` beside a test of x that null fails anyway."""
    tested = {part.reference for part in parts if isinstance(part, Leaf) and not isinstance(part, _NULL_TESTS)}
    return tuple(part for part in parts if not (isinstance(part, NotNull) and part.reference in tested))


def _both_ways_null(parts: tuple[Bound, ...]) -> bool:
    """Return whether one part requires null and another not null in the same column."""
    null = {part.reference for part in parts if isinstance(part, IsNull)}
    return any(part.reference in null for part in parts if isinstance(part, NotNull))


def _sorted_unique(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(sorted(set(values)))
