"""Conditions as trees, whatever they come from: columns of a table, constants, casts and calls."""

from collections.abc import Iterator
from dataclasses import dataclass

from icefield.expr.bind.bound import Reference
from icefield.expr.parse.ast import Literal


@dataclass(frozen=True)
class Column:
    """A column of the table."""

    reference: Reference


@dataclass(frozen=True)
class Local:
    """A time in the session's zone, in microseconds as if that were UTC."""

    micros: int


Value = Literal | Local


@dataclass(frozen=True)
class Constant:
    """A value. grows: it may be greater when the query is run, such as the current time."""

    value: Value
    grows: bool = False


@dataclass(frozen=True)
class Cast:
    """A value cast to a type, by Spark's name of it: `bigint`, `decimal(10,2)`."""

    value: "Expression"
    type: str


@dataclass(frozen=True)
class Call:
    """A function or an operator: `and`, `or`, `not`, `=`, `in`, `isnull`, `year`. Other names are not understood."""

    name: str
    arguments: tuple["Expression", ...]


Expression = Column | Constant | Cast | Call
NULL = Constant(None)
UNKNOWN = Call("unknown", ())


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """Split a condition by AND."""
    if isinstance(condition, Call) and condition.name == "and":
        for part in condition.arguments:
            yield from conjuncts(part)
    else:
        yield condition
