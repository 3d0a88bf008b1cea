"""Render bound expressions as SQL; the caller chooses how names and values are written."""

from collections.abc import Callable
from dataclasses import dataclass

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
    NotLike,
    NotNaN,
    NotNull,
    NotStartsWith,
    Reference,
    StartsWith,
)
from icefield.expr.parse.like import LikePattern
from icefield.types.datatypes import PrimitiveType, StringType, Value

# Any character would do; this one needs no quoting in SQL dialects.
_LIKE_ESCAPE = "!"


@dataclass(frozen=True)
class Style:
    """How names and values are written."""

    name: Callable[[Reference], str]
    value: Callable[[Value, PrimitiveType], str]


def render(expression: Bound, style: Style) -> str:
    """Render an expression as the condition of a WHERE clause."""
    match expression:
        case Constant(value):
            return "TRUE" if value else "FALSE"
        case AllOf(parts):
            return " AND ".join(_inner(part, style) for part in parts)
        case AnyOf(parts):
            return " OR ".join(_inner(part, style) for part in parts)
        case Leaf():
            return _leaf(expression, style)


def _inner(part: Bound, style: Style) -> str:
    text = render(part, style)
    return f"({text})" if isinstance(part, AllOf | AnyOf) else text


def _leaf(leaf: Leaf, style: Style) -> str:
    name, kind = style.name(leaf.reference), leaf.reference.type
    match leaf:
        case IsNull():
            return f"{name} IS NULL"
        case NotNull():
            return f"{name} IS NOT NULL"
        case IsNaN():
            return f"isnan({name})"
        case NotNaN():
            return f"NOT isnan({name})"
        case Compare(_, operator, value):
            return f"{name} {operator.value} {style.value(value, kind)}"
        case InSet(_, values):
            return f"{name} IN ({_list(values, kind, style)})"
        case NotInSet(_, values):
            return f"{name} NOT IN ({_list(values, kind, style)})"
        case _:
            return _text_leaf(leaf, name, style)


def _text_leaf(leaf: Leaf, name: str, style: Style) -> str:
    match leaf:
        case StartsWith(_, prefix):
            return f"startswith({name}, {style.value(prefix, StringType())})"
        case NotStartsWith(_, prefix):
            return f"NOT startswith({name}, {style.value(prefix, StringType())})"
        case Like(_, pattern):
            return f"{name} LIKE {_pattern(pattern, style)}"
        case NotLike(_, pattern):
            return f"{name} NOT LIKE {_pattern(pattern, style)}"
        case _:
            raise AssertionError(leaf)


def _list(values: tuple[Value, ...], kind: PrimitiveType, style: Style) -> str:
    return ", ".join(style.value(value, kind) for value in values)


def _pattern(pattern: LikePattern, style: Style) -> str:
    text = pattern.sql(_LIKE_ESCAPE)
    escape = f" ESCAPE '{_LIKE_ESCAPE}'" if _LIKE_ESCAPE in text else ""
    # Without an escape character, a backslash must not become the default one.
    escape = escape or (f" ESCAPE '{_LIKE_ESCAPE}'" if "\\" in text else "")
    return f"{style.value(text, StringType())}{escape}"
