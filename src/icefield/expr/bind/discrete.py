"""Types whose values map one to one to integers, and comparisons among them.

Integers, dates, times, timestamps, decimals of one scale and booleans are all represented as integers. A comparison
with a value that can be ordered among them (3.5 on an int column, a timestamp on a date column, a decimal with more
digits, a number out of range) becomes a comparison with one of them, or is always true or false.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from icefield.expr.bind.bound import FALSE, Bound, Compare, NotNull, Reference, all_of, any_of
from icefield.expr.parse.ast import Operator
from icefield.types.datatypes import (
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    PrimitiveType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Value,
)
from icefield.types.values.binary import scaled, unscaled

_INT_BITS: dict[type[PrimitiveType], int] = {
    IntegerType: 32,
    DateType: 32,
    LongType: 64,
    TimeType: 64,
    TimestampType: 64,
    TimestamptzType: 64,
    TimestampNsType: 64,
    TimestamptzNsType: 64,
}


@dataclass(frozen=True)
class Domain:
    """The integers that represent a type's values, from lowest to highest."""

    lowest: int
    highest: int
    number: Callable[[Value], int]
    value: Callable[[int], Value]


@dataclass(frozen=True)
class Place:
    """The position of a value in a domain: the first number not below it, and the first number above it."""

    first_at: int
    first_above: int


def domain_of(kind: PrimitiveType) -> Domain | None:
    """Return the domain of a type, or None if its values are not discrete."""
    if isinstance(kind, DecimalType):
        return _decimals(kind)
    if isinstance(kind, BooleanType):
        return Domain(0, 1, int, bool)
    bits = _INT_BITS.get(type(kind))
    if bits is None:
        return None
    return Domain(-(1 << bits - 1), (1 << bits - 1) - 1, int, int)


def place_exactly(numerator: int, denominator: int = 1) -> Place:
    """Find the position of a fraction."""
    floor, rest = divmod(numerator, denominator)
    return Place(floor + 1 if rest else floor, floor + 1)


def place_by(domain: Domain, reaches: Callable[[int], bool], exceeds: Callable[[int], bool]) -> Place:
    """Find the position of a value by binary search; both tests must be monotonic, false and then true."""
    return Place(_first(domain, reaches), _first(domain, exceeds))


def compare_at(reference: Reference, operator: Operator, place: Place, domain: Domain) -> Bound:
    """Compare a column with a value at a position in its domain."""
    folded = _fold(reference, operator, place, domain)
    if not isinstance(folded, Compare):
        return folded
    if isinstance(reference.type, BooleanType):
        return Compare(reference, Operator.EQ, _only_boolean(folded))
    exact = place.first_above == place.first_at + 1
    return Compare(reference, operator, domain.value(place.first_at)) if exact else folded


def below(reference: Reference, number: int, domain: Domain) -> Bound:
    """Test for values below a number, which may be outside the domain."""
    if number > domain.highest:
        return NotNull(reference)
    return Compare(reference, Operator.LE, domain.value(number - 1)) if number > domain.lowest else FALSE


def at_least(reference: Reference, number: int, domain: Domain) -> Bound:
    """Test for values not below a number, which may be outside the domain."""
    if number <= domain.lowest:
        return NotNull(reference)
    return Compare(reference, Operator.GE, domain.value(number)) if number <= domain.highest else FALSE


def _fold(reference: Reference, operator: Operator, place: Place, domain: Domain) -> Bound:
    first_at, first_above = place.first_at, place.first_above
    match operator:
        case Operator.LT:
            return below(reference, first_at, domain)
        case Operator.LE:
            return below(reference, first_above, domain)
        case Operator.GE:
            return at_least(reference, first_at, domain)
        case Operator.GT:
            return at_least(reference, first_above, domain)
    in_range = domain.lowest <= first_at <= domain.highest
    if first_above == first_at + 1 and in_range:
        return Compare(reference, operator, domain.value(first_at))
    nowhere = first_at == first_above or not in_range
    if operator is Operator.EQ:
        return FALSE if nowhere else _both(reference, place, domain)
    return NotNull(reference) if nowhere else _neither(reference, place, domain)


def _both(reference: Reference, place: Place, domain: Domain) -> Bound:
    return all_of(at_least(reference, place.first_at, domain), below(reference, place.first_above, domain))


def _neither(reference: Reference, place: Place, domain: Domain) -> Bound:
    return any_of(below(reference, place.first_at, domain), at_least(reference, place.first_above, domain))


def _only_boolean(leaf: Compare) -> bool:
    """Return the only boolean for which a comparison is true, given that it is not always true or false."""
    match leaf.operator:
        case Operator.EQ:
            return bool(leaf.value)
        case Operator.NE:
            return not leaf.value
        case Operator.LE | Operator.LT:
            return False
        case _:
            return True


def _first(domain: Domain, holds: Callable[[int], bool]) -> int:
    low, high = domain.lowest, domain.highest + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _decimals(kind: DecimalType) -> Domain:
    top = 10**kind.precision - 1

    def number(value: Value) -> int:
        return unscaled(Decimal(value), kind.scale)  # type: ignore[arg-type]

    def make(unscaled_number: int) -> Value:
        return scaled(unscaled_number, kind.scale)

    return Domain(-top, top, number, make)
