"""Residuals: the part of a filter that a file's partition values and statistics do not decide.

The filter is split into units: its leaves, and its ORs (an OR may match all rows although none of its leaves does). For
many files at once, each unit is found to be true always, never or sometimes. The results for a file are encoded as one
number, and files with the same number have the same residual. Zero means that metadata decides nothing, so the residual
is the filter itself.

    >>> from icefield.expr.bind.bind import bind
    >>> from icefield.expr.render.describe import describe
    >>> from icefield.types.text import parse_schema
    >>> where = bind("day = 5 AND amount > 10", parse_schema("day int, amount long"))
    >>> day_holds, amount_holds = ALWAYS, ALWAYS << BITS_PER_UNIT
    >>> describe(residual(where, day_holds))  # a file of the partition day=5
    'amount > 10'
    >>> describe(residual(where, amount_holds))  # a file whose least amount is 11
    'day = 5'
    >>> residual(where, day_holds | amount_holds) == TRUE
    True
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from icefield.expr.bind.bound import FALSE, TRUE, AllOf, AnyOf, Bound, Constant, Leaf, all_of, any_of
from icefield.expr.prune.evaluate import Statistics, might_match, must_match
from icefield.expr.prune.ordered import Bools
from icefield.expr.prune.project import PartitionTerm, project_inclusive, project_strict
from icefield.expr.prune.statistics import FieldStatistics
from icefield.types.arrays import Longs

ALWAYS, NEVER = 1, 2
BITS_PER_UNIT = 2
MOST_UNITS = 31  # two bits each, in a signed 64-bit integer; further units are evaluated on the rows


@dataclass(frozen=True)
class FileStatistics:
    """The partition values and column statistics of files of one partition spec."""

    terms: Sequence[PartitionTerm]
    partition: Statistics
    columns: Statistics
    rows: int

    def at(self, chosen: Bools) -> "FileStatistics":
        """Return the statistics of the chosen files."""
        if chosen.all():
            return self
        return FileStatistics(self.terms, _at(self.partition, chosen), _at(self.columns, chosen), int(chosen.sum()))

    def never(self, expression: Bound) -> Bools:
        """Return a mask of the files in which no row can match."""
        by_partition = might_match(project_inclusive(expression, self.terms), self.partition, self.rows)
        return ~(by_partition & might_match(expression, self.columns, self.rows))

    def always(self, expression: Bound) -> Bools:
        """Return a mask of the files in which every row must match."""
        by_statistics = must_match(expression, self.columns, self.rows)
        projected = project_strict(expression, self.terms)
        if projected == FALSE:
            return by_statistics
        return by_statistics | must_match(projected, self.partition, self.rows)


@dataclass(frozen=True)
class Residuals:
    """What metadata decides about a filter, for some files.

    codes: for `residual`. always, never: masks of the files in which every row must match, and in which none can.
    """

    codes: Longs
    always: Bools
    never: Bools

    def at(self, chosen: Bools) -> "Residuals":
        """Return the residuals of the chosen files."""
        return Residuals(self.codes[chosen], self.always[chosen], self.never[chosen])


def find_residuals(where: Bound, statistics: FileStatistics) -> Residuals:
    """Find the residuals of a filter in files that it might match, from partition values and statistics."""
    known: dict[Bound, _Known] = {}
    whole = _fold(where, statistics, known, inside_or=False)
    codes = np.zeros(statistics.rows, np.int64)
    for place, unit in enumerate(_units(where)):
        answer = known[unit]
        codes |= np.where(answer.always, ALWAYS << (BITS_PER_UNIT * place), 0)
        codes |= np.where(answer.never, NEVER << (BITS_PER_UNIT * place), 0)
    return Residuals(codes, whole.always, whole.never)


def residual(where: Bound, code: int) -> Bound:
    """Return the residual for files with this code; on their rows it is equivalent to the filter."""
    if code == 0:
        return where
    return _rest(where, {unit: code >> (BITS_PER_UNIT * place) for place, unit in enumerate(_units(where))})


def common_code(codes: Longs) -> int:
    """Return the code of what metadata decides alike for all of the files."""
    return int(np.bitwise_and.reduce(codes)) if len(codes) else 0


def _at(statistics: Statistics, chosen: Bools) -> Statistics:
    @cache
    def narrowed(field_id: int) -> FieldStatistics | None:
        known = statistics(field_id)
        return None if known is None else known.at(chosen)

    return narrowed


@dataclass(frozen=True)
class _Known:
    always: Bools
    never: Bools


def _units(expression: Bound) -> tuple[Bound, ...]:
    """Number the units; equal ones share a number, because their results are the same."""
    return tuple(dict.fromkeys(_walk(expression)))[:MOST_UNITS]


def _walk(expression: Bound) -> Iterator[Bound]:
    if isinstance(expression, Leaf | AnyOf):
        yield expression
    if isinstance(expression, AllOf | AnyOf):
        for part in expression.parts:
            yield from _walk(part)


def _fold(expression: Bound, statistics: FileStatistics, known: dict[Bound, _Known], *, inside_or: bool) -> _Known:
    if isinstance(expression, Constant):
        return _Known(np.full(statistics.rows, expression.value), np.full(statistics.rows, not expression.value))
    found = known.get(expression)
    if found is None:
        found = known[expression] = _judge(expression, statistics, known, inside_or=inside_or)
    return found


def _judge(expression: Bound, statistics: FileStatistics, known: dict[Bound, _Known], *, inside_or: bool) -> _Known:
    if isinstance(expression, Leaf):
        # A leaf that the whole filter requires was evaluated already: these are the files in which it might match.
        never = statistics.never(expression) if inside_or else np.zeros(statistics.rows, np.bool_)
        return _Known(statistics.always(expression), never)
    assert isinstance(expression, AllOf | AnyOf)
    within = inside_or or isinstance(expression, AnyOf)
    parts = [_fold(part, statistics, known, inside_or=within) for part in expression.parts]
    each_always, each_never = [part.always for part in parts], [part.never for part in parts]
    if isinstance(expression, AllOf):
        return _Known(np.logical_and.reduce(each_always), np.logical_or.reduce(each_never))
    always = np.logical_or.reduce(each_always) | statistics.always(expression)
    return _Known(always, np.logical_and.reduce(each_never))


def _rest(expression: Bound, codes: dict[Bound, int]) -> Bound:
    code = codes.get(expression, 0)
    if code & ALWAYS:
        return TRUE
    if code & NEVER:
        return FALSE
    match expression:
        case AllOf(parts):
            return all_of(*(_rest(part, codes) for part in parts))
        case AnyOf(parts):
            return any_of(*(_rest(part, codes) for part in parts))
        case _:
            return expression
