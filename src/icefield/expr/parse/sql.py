"""Filters as SQL text, in Spark's dialect: `day >= DATE '2026-01-01' AND name LIKE 'a%'`.

Columns are compared with values, never with each other. A filter with any unsupported part is refused as a whole,
because applying only part of it would return wrong rows. Raises InvalidFilter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

from sqlglot import ParseError, TokenError, TokenType, exp
from sqlglot.dialects.spark import Spark

from icefield.deferred import deferred_imports
from icefield.errors import InvalidFilter
from icefield.expr.parse.ast import Column, Literal, Operator, Predicate

with deferred_imports(__name__):
    from icefield.expr.parse import ast
    from icefield.expr.parse.sql_literals import literal_value, sql_text

SUPPORTED = (
    "Supported: =, !=, <, <=, >, >=, <=>, IN, BETWEEN, LIKE, IS NULL, IS NaN, isnan, startswith, AND, OR, NOT "
    "between a column and a value"
)


class _Dialect(Spark):
    """Spark's dialect with '' for a quote inside a string, as in Spark 4; sqlglot's own would join two strings."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = ["\\", "'"]


_DIALECT = _Dialect()

# Escapes that Spark and the parser interpret alike; octal escapes such as \101 differ.
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PLAIN_ESCAPES = "\\'\"nrt%_"


# Programs repeat the same filters; long generated ones are seldom repeated.
MOST_REMEMBERED_CHARACTERS = 1_000


def parse_filter(text: str) -> Predicate:
    """Parse the condition of a WHERE clause, without the word WHERE."""
    return _remembered(text) if len(text) <= MOST_REMEMBERED_CHARACTERS else _filter(text)


def _filter(text: str) -> Predicate:
    if not text.strip():
        raise InvalidFilter("the filter is empty", hint="Leave it out to match every row, or write TRUE")
    try:
        return _predicate(_parse(text))
    except RecursionError as error:
        raise InvalidFilter("the filter is nested too deeply") from error


_remembered = lru_cache(maxsize=256)(_filter)


def _parse(text: str) -> exp.Expression:
    try:
        tokens = _DIALECT.tokenize(text)
        _check_texts(text, tokens)
        parsed = _DIALECT.parser().parse_into(exp.Condition, tokens, text)
    except TokenError as error:
        raise InvalidFilter(f"cannot parse the filter {_short(text)!r}: a quote or comment is not closed") from error
    except ParseError as error:
        raise InvalidFilter(f"cannot parse the filter {_short(text)!r}{_place(error)}", hint=SUPPORTED) from error
    if len(parsed) != 1 or parsed[0] is None:
        raise InvalidFilter(f"cannot parse the filter {_short(text)!r}: expected a single condition")
    return parsed[0]  # type: ignore[return-value]


def _check_texts(text: str, tokens: list[Any]) -> None:
    for token in tokens:
        if token.token_type is not TokenType.STRING:
            continue
        raw = text[token.start : token.end + 1]
        odd = next((found[0] for found in _ESCAPE.finditer(raw) if found[1] not in _PLAIN_ESCAPES), None)
        if odd:
            raise InvalidFilter(
                f"invalid escape {odd} in the string {_short(raw)}",
                hint="Write the character itself, or a doubled backslash for a backslash",
            )
        if raw.startswith('"') and "''" in raw:
            raise InvalidFilter(f"cannot parse the string {_short(raw)}", hint="Put it between single quotes")


def _place(error: ParseError) -> str:
    details = error.errors[0] if error.errors else {}
    near = details.get("highlight")
    return f" near {near!r} at character {details['col'] - len(near) + 1}" if near else ""


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."


def _predicate(node: Any) -> Predicate:
    convert = _CONVERT.get(type(node))
    if convert is None:
        raise _unsupported(node)
    return convert(node)


def _unsupported(node: exp.Expression) -> InvalidFilter:
    return InvalidFilter(f"cannot use {sql_text(node)} in a filter", hint=SUPPORTED)


def _only(node: exp.Expression, *names: str) -> None:
    """Refuse a node with arguments that are not supported."""
    if any(value for name, value in node.args.items() if name not in names):
        raise _unsupported(node)


def _column(node: exp.Expression) -> Column:
    parts = node.parts if isinstance(node, exp.Column | exp.Dot) else []
    if isinstance(node, exp.Column):
        _only(node, "this", "table", "db", "catalog")
    if not parts or not all(isinstance(part, exp.Identifier) for part in parts):
        raise _unsupported(node)
    return Column(tuple(part.name for part in parts))


def _is_column(node: object) -> bool:
    return isinstance(node, exp.Column | exp.Dot)


def _bare(node: exp.Expression) -> exp.Expression:
    return _bare(node.this) if isinstance(node, exp.Paren) else node


def _value(node: exp.Expression, whole: exp.Expression) -> Literal:
    if any(_is_column(inner) for inner in node.walk()):
        raise InvalidFilter(
            f"cannot use {sql_text(whole)} in a filter: it does not compare a column with a value", hint=SUPPORTED
        )
    return literal_value(node)


def _from_column(node: exp.Expression) -> Predicate:
    return ast.Comparison(_column(node), Operator.EQ, value=True)


def _from_constant(node: exp.Expression) -> Predicate:
    return ast.AlwaysNull() if isinstance(node, exp.Null) else _truth(bool(node.this))


def _truth(value: bool) -> Predicate:  # noqa: FBT001
    return ast.AlwaysTrue() if value else ast.AlwaysFalse()


def _from_comparison(node: exp.Expression) -> Predicate:
    _only(node, "this", "expression")
    left, right = _bare(node.this), _bare(node.expression)
    operator = _OPERATORS[type(node)]
    if _is_column(left):
        return ast.Comparison(_column(left), operator, _value(right, node))
    if _is_column(right):
        return ast.Comparison(_column(right), operator.flipped, _value(left, node))
    return _compare_values(_value(left, node), operator, _value(right, node), node)


def _compare_values(left: Literal, operator: Operator, right: Literal, node: exp.Expression) -> Predicate:
    """Evaluate a comparison of two constants such as `1 = 1`, which programs generate."""
    if left is None or right is None:
        return ast.AlwaysNull()
    if type(left) is not type(right) or not isinstance(left, int | str):
        raise _unsupported(node)
    return _truth(
        {
            Operator.EQ: left == right,
            Operator.NE: left != right,
            Operator.LT: left < right,  # type: ignore[operator]
            Operator.LE: left <= right,  # type: ignore[operator]
            Operator.GT: left > right,  # type: ignore[operator]
            Operator.GE: left >= right,  # type: ignore[operator]
        }[operator]
    )


def _from_null_safe(node: exp.Expression) -> Predicate:
    _only(node, "this", "expression")
    left, right = _bare(node.this), _bare(node.expression)
    if not _is_column(left):
        left, right = right, left
    equal = ast.NullSafeEqual(_column(left), _value(right, node))
    return ast.Not(equal) if isinstance(node, exp.NullSafeNEQ) else equal


def _from_in(node: exp.Expression) -> Predicate:
    _only(node, "this", "expressions")
    if not node.expressions:
        raise _unsupported(node)
    return ast.In(_column(_bare(node.this)), tuple(_value(item, node) for item in node.expressions))


def _from_between(node: exp.Expression) -> Predicate:
    _only(node, "this", "low", "high")
    column = _column(_bare(node.this))
    low = ast.Comparison(column, Operator.GE, _value(node.args["low"], node))
    return low & ast.Comparison(column, Operator.LE, _value(node.args["high"], node))


def _from_like(node: exp.Expression, escape: str = "\\") -> Predicate:
    _only(node, "this", "expression", "negate")
    pattern = _value(_bare(node.expression), node)
    if pattern is None:
        return ast.AlwaysNull()
    if not isinstance(pattern, str):
        raise _unsupported(node)
    like = ast.Like(_column(_bare(node.this)), pattern, escape)
    return ast.Not(like) if node.args.get("negate") else like


def _from_escape(node: exp.Expression) -> Predicate:
    _only(node, "this", "expression")
    escape = _value(node.expression, node)
    if not isinstance(node.this, exp.Like) or not isinstance(escape, str):
        raise _unsupported(node)
    return _from_like(node.this, escape)


def _from_is(node: exp.Expression) -> Predicate:
    _only(node, "this", "expression")
    column, what = _column(_bare(node.this)), node.expression
    if isinstance(what, exp.Null):
        return ast.IsNull(column)
    if isinstance(what, exp.Boolean):
        return ast.NullSafeEqual(column, bool(what.this))
    if _is_word(what, "nan"):
        return ast.IsNaN(column)
    raise _unsupported(node)


def _is_word(node: exp.Expression, word: str) -> bool:
    """Return whether a node is a bare word, which the parser takes for a column name."""
    parts = node.parts if isinstance(node, exp.Column) else []
    return len(parts) == 1 and not parts[0].args.get("quoted") and parts[0].name.lower() == word


def _from_is_nan(node: exp.Expression) -> Predicate:
    _only(node, "this")
    return ast.IsNaN(_column(_bare(node.this)))


def _from_starts_with(node: exp.Expression) -> Predicate:
    _only(node, "this", "expression")
    prefix = _value(node.expression, node)
    if prefix is None:
        return ast.AlwaysNull()
    if not isinstance(prefix, str):
        raise _unsupported(node)
    return ast.StartsWith(_column(_bare(node.this)), prefix)


def _from_function(node: exp.Expression) -> Predicate:
    name = str(node.this).lower()
    if name not in ("isnull", "isnotnull") or len(node.expressions) != 1:
        raise _unsupported(node)
    test = ast.IsNull(_column(_bare(node.expressions[0])))
    return test if name == "isnull" else ast.Not(test)


def _from_not(node: exp.Expression) -> Predicate:
    _only(node, "this")
    return ast.Not(_predicate(node.this))


def _from_paren(node: exp.Expression) -> Predicate:
    _only(node, "this")
    return _predicate(node.this)


def _from_connector(node: exp.Expression) -> Predicate:
    # Programs generate chains of thousands of ORs; flattening avoids deep recursion.
    parts = tuple(_predicate(part) for part in node.flatten(unnest=False))
    return ast.And(parts) if isinstance(node, exp.And) else ast.Or(parts)


_OPERATORS: dict[type[exp.Expression], Operator] = {
    exp.EQ: Operator.EQ,
    exp.NEQ: Operator.NE,
    exp.LT: Operator.LT,
    exp.LTE: Operator.LE,
    exp.GT: Operator.GT,
    exp.GTE: Operator.GE,
}
_CONVERT: dict[type[exp.Expression], Callable[[exp.Expression], Predicate]] = {
    **dict.fromkeys(_OPERATORS, _from_comparison),
    exp.Column: _from_column,
    exp.Dot: _from_column,
    exp.Boolean: _from_constant,
    exp.Null: _from_constant,
    exp.NullSafeEQ: _from_null_safe,
    exp.NullSafeNEQ: _from_null_safe,
    exp.In: _from_in,
    exp.Between: _from_between,
    exp.Like: _from_like,
    exp.Escape: _from_escape,
    exp.Is: _from_is,
    exp.IsNan: _from_is_nan,
    exp.StartsWith: _from_starts_with,
    exp.Anonymous: _from_function,
    exp.Not: _from_not,
    exp.Paren: _from_paren,
    exp.And: _from_connector,
    exp.Or: _from_connector,
}
