"""Expressions as they are written: a tree of names, constants and calls, not yet bound to columns and types.

Operators are calls, too: `a + 1` is Call("+", …), `a IS NULL` is Call("is null", …), `x AND y` is Call("and", …).
"""

from dataclasses import dataclass

from icefield.types.datatypes import PrimitiveType, Type, Value


@dataclass(frozen=True)
class Name:
    """A column by the parts of its name."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Constant:
    """A literal: a value in its in-memory form, or None; a null literal has the type `unknown`."""

    type: PrimitiveType
    value: Value | None


@dataclass(frozen=True)
class Call:
    """A function or an operator by name, in lower case."""

    name: str
    arguments: tuple["Syntax", ...]


@dataclass(frozen=True)
class Cast:
    """CAST(value AS type)."""

    value: "Syntax"
    type: Type


@dataclass(frozen=True)
class Case:
    """CASE WHEN condition THEN value … ELSE otherwise END; `CASE x WHEN y` is written as `x = y`."""

    branches: tuple[tuple["Syntax", "Syntax"], ...]
    otherwise: "Syntax"


@dataclass(frozen=True)
class Default:
    """The word DEFAULT: the default of the column that is assigned."""


@dataclass(frozen=True)
class OnlySpark:
    """A part that only Spark evaluates, and what to write instead, if that is known."""

    part: str
    hint: str | None


Syntax = Name | Constant | Call | Cast | Case | Default | OnlySpark


def conjuncts(syntax: Syntax) -> tuple[Syntax, ...]:
    """Split a condition by AND."""
    if isinstance(syntax, Call) and syntax.name == "and":
        return tuple(part for argument in syntax.arguments for part in conjuncts(argument))
    return (syntax,)
