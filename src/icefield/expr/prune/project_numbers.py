"""Project comparisons through monotonic transforms on numbers: truncate, and year to hour.

Such a transform preserves order, so a range of rows is a range of partitions, with two exceptions for historical
reasons:

- Truncating a number near the minimum of its type wraps around to a high partition value (Iceberg Java computes
  in machine integers). All such rows are in one partition, which every "less than" includes.
- Version 0.10 and older of Iceberg Java wrote partition values one too high for times before 1970. Ranges with an
  upper end before 1970 are widened by one, as Iceberg Java does. (Not for days of dates, which were right.)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from icefield.expr.bind.bound import Bound, Compare, InSet, Leaf, NotNull, Reference, any_of, one_of
from icefield.expr.bind.discrete import Domain, at_least, below, domain_of
from icefield.expr.parse.ast import Operator
from icefield.types.datatypes import DecimalType, PrimitiveType, Value
from icefield.types.transforms import Day, Hour, Month, Transform, Truncate, Year, units_per_day


@dataclass(frozen=True)
class Steps:
    """A transform on numbers: `step` maps a source number to a partition number, and is monotonic."""

    source: Domain
    result: Domain
    step: Callable[[int], int]
    wrapped: int | None
    may_be_one_high: bool


def steps_of(transform: Transform, source: PrimitiveType) -> Steps:
    """Return the steps of a transform on a discrete type."""
    domain, result = domain_of(source), domain_of(transform.result_type(source))
    assert domain is not None
    assert result is not None
    if isinstance(transform, Truncate):
        return _truncation(transform.width, domain, source)
    return Steps(domain, result, _calendar_step(transform, source), wrapped=None, may_be_one_high=True)


def project_steps(leaf: Leaf, reference: Reference, steps: Steps) -> Bound:
    """Project a leaf on a column of a discrete type."""
    match leaf:
        case Compare(_, operator, value):
            return _project_comparison(operator, steps.source.number(value), reference, steps)
        case InSet(_, values):
            return one_of(reference, [p for v in values for p in _partitions(steps.source.number(v), steps)])
        case _:
            return NotNull(reference)


def _project_comparison(operator: Operator, number: int, reference: Reference, steps: Steps) -> Bound:
    match operator:
        case Operator.LT:
            return _up_to(steps.step(number - 1), reference, steps)
        case Operator.LE:
            return _up_to(steps.step(number), reference, steps)
        case Operator.GT:
            return at_least(reference, steps.step(number + 1), steps.result)
        case Operator.GE:
            return at_least(reference, steps.step(number), steps.result)
        case Operator.EQ:
            return one_of(reference, _partitions(number, steps))
        case Operator.NE:
            return NotNull(reference)


def _up_to(partition: int, reference: Reference, steps: Steps) -> Bound:
    if steps.may_be_one_high and partition < 0:
        partition += 1
    within = below(reference, partition + 1, steps.result)
    if steps.wrapped is None:
        return within
    return any_of(within, Compare(reference, Operator.EQ, steps.result.value(steps.wrapped)))


def _partitions(number: int, steps: Steps) -> list[Value]:
    partition = steps.step(number)
    if partition < steps.result.lowest and steps.wrapped is not None:
        partition = steps.wrapped
    found = [partition, partition + 1] if steps.may_be_one_high and partition < 0 else [partition]
    return [steps.result.value(p) for p in found]


def _truncation(width: int, domain: Domain, source: PrimitiveType) -> Steps:
    def step(number: int) -> int:
        return number - number % width

    lowest = step(domain.lowest)
    if isinstance(source, DecimalType):
        # Decimals do not wrap; the lowest partition value may need one more digit than the column has.
        room = Domain(lowest, domain.highest, domain.number, domain.value)
        return Steps(domain, room, step, wrapped=None, may_be_one_high=False)
    size = domain.highest - domain.lowest + 1
    wrapped = lowest + size if lowest < domain.lowest else None
    return Steps(domain, domain, step, wrapped, may_be_one_high=False)


def _calendar_step(transform: Transform, source: PrimitiveType) -> Callable[[int], int]:
    per_day = units_per_day(source)
    match transform:
        case Hour():
            return lambda number: number // (per_day // 24)
        case Day():
            return lambda number: number // per_day
        case Month():
            return lambda number: _calendar_units(number // per_day, "M")
        case Year():
            return lambda number: _calendar_units(number // per_day, "Y")
        case _:
            raise AssertionError(transform)


def _calendar_units(days: int, unit: str) -> int:
    return int(np.datetime64(days, "D").astype(f"datetime64[{unit}]").astype(np.int64))
