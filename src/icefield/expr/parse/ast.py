"""Filters as users write them: columns by name, values as given, SQL's three-valued logic not yet resolved.

`expr.parse.sql` makes these from text, `expr.parse.builder` from Python; `expr.bind.bind` turns them into bound
expressions, which everything else works on.
"""

import datetime
import uuid
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from icefield.errors import InvalidFilter


@dataclass(frozen=True)
class Date:
    """A date as days since 1970-01-01; unlike Python's dates it is not limited in years."""

    days: int


@dataclass(frozen=True)
class Timestamp:
    """Microseconds since the epoch, plus nanoseconds; `zoned`: whether the literal has a time zone."""

    micros: int
    zoned: bool
    nanos: int = 0

    @property
    def total_nanos(self) -> int:
        return self.micros * 1000 + self.nanos


@dataclass(frozen=True)
class Time:
    """A time of day in microseconds."""

    micros: int


Literal = (
    bool
    | int
    | float
    | Decimal
    | str
    | bytes
    | uuid.UUID
    | Date
    | Timestamp
    | Time
    | datetime.date
    | datetime.datetime
    | datetime.time
    | None
)


@dataclass(frozen=True)
class Lit:
    """A literal where text would be SQL."""

    value: Literal


class Operator(Enum):
    """A comparison; the value is its SQL spelling."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def negated(self) -> "Operator":
        """The operator that is true where this one is false (neither is true for null)."""
        return _NEGATED[self]

    @property
    def flipped(self) -> "Operator":
        """The operator with its two sides exchanged: 3 < a is a > 3."""
        return _FLIPPED[self]


_EACH_WAY = ((Operator.LT, Operator.GE), (Operator.GT, Operator.LE), (Operator.EQ, Operator.NE))
_NEGATED = {a: b for pair in _EACH_WAY for a, b in (pair, pair[::-1])}
_FLIPPED = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.GT: Operator.LT,
    Operator.LE: Operator.GE,
    Operator.GE: Operator.LE,
}


class Predicate:
    """Any filter; combine with `&`, `|` and `~`."""

    def __and__(self, other: "Predicate") -> "Predicate":
        return And((*_parts(self, And), *_parts(other, And)))

    def __or__(self, other: "Predicate") -> "Predicate":
        return Or((*_parts(self, Or), *_parts(other, Or)))

    def __invert__(self) -> "Predicate":
        return Not(self)

    def __bool__(self) -> bool:
        raise InvalidFilter(
            "a filter has no truth value of its own",
            hint="Combine filters with &, | and ~ (each side in parentheses) instead of and, or, not and a < b < c",
        )


@dataclass(frozen=True)
class Column:
    """A column by name; more than one part for a field inside a struct."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True)
class AlwaysTrue(Predicate):
    pass


@dataclass(frozen=True)
class AlwaysFalse(Predicate):
    pass


@dataclass(frozen=True)
class AlwaysNull(Predicate):
    """SQL's NULL as a condition: it matches nothing, and neither does its negation."""


@dataclass(frozen=True)
class Comparison(Predicate):
    column: Column
    operator: Operator
    value: Literal


@dataclass(frozen=True)
class NullSafeEqual(Predicate):
    """SQL's `<=>`: like `=`, but null equals null and the result is never null."""

    column: Column
    value: Literal


@dataclass(frozen=True)
class In(Predicate):
    column: Column
    values: tuple[Literal, ...]


@dataclass(frozen=True)
class IsNull(Predicate):
    column: Column


@dataclass(frozen=True)
class IsNaN(Predicate):
    column: Column


@dataclass(frozen=True)
class StartsWith(Predicate):
    column: Column
    prefix: str


@dataclass(frozen=True)
class Like(Predicate):
    column: Column
    pattern: str
    escape: str = "\\"


@dataclass(frozen=True)
class Not(Predicate):
    part: Predicate


@dataclass(frozen=True)
class And(Predicate):
    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or(Predicate):
    parts: tuple[Predicate, ...]


def _parts(predicate: Predicate, kind: type[And] | type[Or]) -> tuple[Predicate, ...]:
    if not isinstance(predicate, Predicate):
        raise InvalidFilter(f"cannot combine a filter with {predicate!r}", hint="Put each side in parentheses")
    return predicate.parts if isinstance(predicate, kind) else (predicate,)
