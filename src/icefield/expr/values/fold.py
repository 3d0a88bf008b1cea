"""Simplify bound values as Spark's optimizer does: constants are computed once, and null makes null.

This is more than speed: Spark does not evaluate, and so does not fail in, what a literal decides. `1 / x + NULL` is
null even where x is 0. A constant that fails, such as `1 / 0`, fails before there are rows, unless it is in a branch.
(Spark: NullPropagation, ConstantFolding, BooleanSimplification, SimplifyConditionals)
"""

from collections.abc import Callable
from dataclasses import replace

from icefield.errors import InvalidInput
from icefield.expr.values.value import And, Call, Choose, Coalesce, Constant, Or, Value
from icefield.types.arrow import python_values
from icefield.types.datatypes import BooleanType, PrimitiveType

_TRUE, _FALSE = (Constant(BooleanType(), value) for value in (True, False))


def fold(value: Value) -> Value:
    """Return a simpler value that is equal to the given one; raises InvalidInput for a constant that fails."""
    return _fold(_propagate_nulls(value), in_branch=False)


def _propagate_nulls(value: Value) -> Value:
    value = _with_children(value, _propagate_nulls)
    if isinstance(value, Call) and value.strict and any(map(_is_null, value.arguments)):
        return Constant(value.type, None)
    return value


def _fold(value: Value, *, in_branch: bool) -> Value:
    in_branch = in_branch or isinstance(value, Choose | Coalesce)
    value = _with_children(value, lambda child: _fold(child, in_branch=in_branch))
    match value:
        case Call():
            return _fold_call(value, in_branch=in_branch)
        case And():
            return _joined(value, absorbing=_FALSE)
        case Or():
            return _joined(value, absorbing=_TRUE)
        case Choose():
            return _fold_choose(value)
        case Coalesce():
            return _fold_coalesce(value)
        case _:
            return value


def _with_children(value: Value, change: Callable[[Value], Value]) -> Value:
    match value:
        case Call():
            return replace(value, arguments=tuple(map(change, value.arguments)))
        case And() | Or():
            return replace(value, left=change(value.left), right=change(value.right))
        case Choose():
            branches = tuple((change(condition), change(result)) for condition, result in value.branches)
            return replace(value, branches=branches, otherwise=change(value.otherwise))
        case Coalesce():
            return replace(value, parts=tuple(map(change, value.parts)))
        case _:
            return value


def _is_null(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def _fold_call(call: Call, *, in_branch: bool) -> Value:
    if call.strict and any(map(_is_null, call.arguments)):
        return Constant(call.type, None)
    is_constant = all(isinstance(argument, Constant) for argument in call.arguments)
    if not is_constant or not isinstance(call.type, PrimitiveType):
        return call
    try:
        (found,) = python_values(call.evaluate({}, 1), call.type)
    except InvalidInput:
        if not in_branch:
            raise
        return call
    return Constant(call.type, found)


def _joined(value: And | Or, *, absorbing: Constant) -> Value:
    for one, other in ((value.left, value.right), (value.right, value.left)):
        if one in (_TRUE, _FALSE):
            return one if one == absorbing else other
    return value


def _fold_choose(value: Choose) -> Value:
    branches: list[tuple[Value, Value]] = []
    otherwise = value.otherwise
    for condition, result in value.branches:
        if condition == _TRUE:
            otherwise = result
            break
        if condition != _FALSE and not _is_null(condition):
            branches.append((condition, result))
    return replace(value, branches=tuple(branches), otherwise=otherwise) if branches else otherwise


def _fold_coalesce(value: Coalesce) -> Value:
    parts: list[Value] = []
    for part in value.parts:
        if not _is_null(part):
            parts.append(part)
        if isinstance(part, Constant) and part.value is not None:
            break
    if not parts:
        return Constant(value.type, None)
    return parts[0] if len(parts) == 1 else replace(value, parts=tuple(parts))
