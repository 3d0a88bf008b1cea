"""Bind expressions to a scope: names become columns, operators and functions get Spark's types.

    value = parse_value("target.qty + source.qty", scope)
    condition = parse_condition("source.op = 'del'", scope)
    value.evaluate({"target": batch, "source": batch}, rows)   -> an Arrow array of the type value.type

Raises InvalidInput for a wrong expression, NeedsSpark for a part whose result could differ from Spark's.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.values import functions, syntax
from icefield.expr.values.arithmetic import absolute, arithmetic, negative
from icefield.expr.values.casts import cast
from icefield.expr.values.coerce import NUMBERS, coerce, to_common_type
from icefield.expr.values.compare import BOOLEAN, compare, extreme, is_in, is_nan, is_null, like
from icefield.expr.values.constants import from_value
from icefield.expr.values.fold import fold
from icefield.expr.values.parse import parse
from icefield.expr.values.scope import Scope
from icefield.expr.values.syntax import Syntax
from icefield.expr.values.value import And, Call, Choose, Coalesce, Column, ColumnReference, Constant, Or, Value
from icefield.types.datatypes import BooleanType, DateType, IntegerType, TimestamptzType, UnknownType


def parse_value(given: object, scope: Scope) -> Value:
    """Bind a value: a string is SQL text, any other Python value and `lit(...)` a literal."""
    return bind(parse(given) if isinstance(given, str) else from_value(given), scope)


def bind(written: Syntax, scope: Scope) -> Value:
    """Bind a parsed expression."""
    try:
        return fold(_bind(written, scope))
    except RecursionError as error:
        raise InvalidInput("the expression is nested too deeply") from error


def parse_condition(given: object, scope: Scope) -> Value:
    """Bind a condition: SQL text of type boolean, or True, False or None."""
    value = parse_value(given, scope)
    if isinstance(value.type, UnknownType):
        return Constant(BOOLEAN, None)
    if not isinstance(value.type, BooleanType):
        raise InvalidInput(f"the condition {given!r} has the type {value.type}, not boolean")
    return value


def _bind(written: Syntax, scope: Scope) -> Value:
    match written:
        case syntax.Call("current_timestamp" | "now", ()) if scope.moment is not None:
            return Constant(TimestamptzType(), scope.moment.micros)
        case syntax.Call("current_date" | "curdate", ()) if scope.moment is not None and scope.moment.days is not None:
            return Constant(DateType(), scope.moment.days)
        case syntax.Name(parts) if scope.is_function(parts):
            return _bind(syntax.Call(parts[0].lower(), ()), scope)
        case syntax.Name(parts):
            place = scope.find(parts)
            return Column(place.field.type, ColumnReference(place.side, place.field.field_id, place.path))
        case syntax.Constant(kind, value):
            return Constant(kind, value)
        case syntax.Cast(value, kind):
            bound = _bind(value, scope)
            return coerce(bound, kind) if isinstance(bound, Constant) else cast(bound, kind)
        case syntax.Case(branches, otherwise):
            conditions = [_case_condition(_bind(condition, scope)) for condition, _ in branches]
            values = [_bind(value, scope) for _, value in branches]
            return _choose(conditions, [*values, _bind(otherwise, scope)])
        case syntax.Call(name, arguments):
            return _call(name, tuple(_bind(argument, scope) for argument in arguments))
        case syntax.OnlySpark(part, hint):
            raise NeedsSpark(part, hint=hint)
        case syntax.Default():
            raise InvalidInput("DEFAULT can only be the whole value that is assigned to a column")


def _call(name: str, arguments: tuple[Value, ...]) -> Value:
    least, most, build = _FUNCTIONS.get(name, (_MANY, 0, _coalesce))
    if not least <= len(arguments) <= most:
        raise NeedsSpark(f"the function {name} with {len(arguments)} argument{'s' * (len(arguments) != 1)}")
    return build(*arguments)


def _case_condition(value: Value) -> Value:
    if isinstance(value.type, UnknownType):
        raise NeedsSpark("CASE WHEN NULL")  # which Spark refuses
    return _boolean(value)


def _boolean(value: Value) -> Value:
    if isinstance(value.type, BooleanType | UnknownType):
        return cast(value, BOOLEAN)
    raise InvalidInput(f"expected a condition, but found a value of type {value.type}")


def _not(value: Value) -> Value:
    return Call(BOOLEAN, pc.invert, (_boolean(value),))


def _and(*parts: Value) -> Value:
    return reduce(lambda left, right: And(BOOLEAN, left, right), map(_boolean, parts))


def _or(*parts: Value) -> Value:
    return reduce(lambda left, right: Or(BOOLEAN, left, right), map(_boolean, parts))


def _choose(conditions: Sequence[Value], values: Sequence[Value]) -> Value:
    *chosen, otherwise = to_common_type(values)
    if isinstance(otherwise.type, UnknownType):
        raise NeedsSpark("CASE without a type")
    return Choose(otherwise.type, tuple(zip(conditions, chosen, strict=True)), otherwise)


def _if(condition: Value, value: Value, otherwise: Value) -> Value:
    return _choose([_boolean(condition)], [value, otherwise])


def _coalesce(*parts: Value) -> Value:
    common = to_common_type(parts)
    if isinstance(common[0].type, UnknownType):
        raise NeedsSpark("coalesce without a type")
    return Coalesce(common[0].type, common)


def _nullif(value: Value, other: Value) -> Value:
    return _choose([compare("=", value, other)], [Constant(value.type, None), value])


def _nvl2(test: Value, value: Value, otherwise: Value) -> Value:
    return _choose([_not(is_null(test))], [value, otherwise])


def _arithmetic(operator: str, left: Value, right: Value) -> Value:
    if isinstance(left.type, DateType) and isinstance(right.type, IntegerType) and operator in ("+", "-"):
        return functions.add_days(left, right) if operator == "+" else functions.subtract_days(left, right)
    return arithmetic(operator, left, right)


def _positive(value: Value) -> Value:
    if not isinstance(value.type, NUMBERS):
        raise NeedsSpark(f"+ of a {value.type}")
    # A call, because the types of decimals depend on what is a literal.
    return Call(value.type, _same, (value,))


def _same(array: pa.Array) -> pa.Array:
    return array


def _like(value: Value, pattern: Value, escape: Value | None = None) -> Value:
    return like(value, pattern, "\\" if escape is None else str(escape.value))  # type: ignore[attr-defined]


_MANY = 1_000_000
Build = Callable[..., Value]
_FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    **{sign: (2, 2, partial(_arithmetic, sign)) for sign in ("+", "-", "*", "/", "%")},
    **{sign: (2, 2, partial(compare, sign)) for sign in ("=", "!=", "<", "<=", ">", ">=", "<=>")},
    "mod": (2, 2, partial(arithmetic, "%")),
    "negative": (1, 1, negative),
    "positive": (1, 1, _positive),
    "abs": (1, 1, absolute),
    "not": (1, 1, _not),
    "and": (2, _MANY, _and),
    "or": (2, _MANY, _or),
    "in": (2, _MANY, lambda value, *items: is_in(value, items)),
    "like": (2, 3, _like),
    "isnull": (1, 1, is_null),
    "isnotnull": (1, 1, lambda value: _not(is_null(value))),
    "isnan": (1, 1, is_nan),
    "if": (3, 3, _if),
    "coalesce": (1, _MANY, _coalesce),
    "nvl": (2, 2, _coalesce),
    "ifnull": (2, 2, _coalesce),
    "nullif": (2, 2, _nullif),
    "nvl2": (3, 3, _nvl2),
    "greatest": (2, _MANY, lambda *values: extreme(values, greatest=True)),
    "least": (2, _MANY, lambda *values: extreme(values, greatest=False)),
    "concat": (1, _MANY, functions.concat),
    "||": (2, 2, functions.concat),
    "trim": (1, 1, partial(functions.trim, "both")),
    "ltrim": (1, 1, partial(functions.trim, "left")),
    "rtrim": (1, 1, partial(functions.trim, "right")),
    "length": (1, 1, functions.length),
    "char_length": (1, 1, functions.length),
    "substring": (2, 3, functions.substring),
    "substr": (2, 3, functions.substring),
    "upper": (1, 1, partial(functions.change_case, "upper")),
    "ucase": (1, 1, partial(functions.change_case, "upper")),
    "lower": (1, 1, partial(functions.change_case, "lower")),
    "lcase": (1, 1, partial(functions.change_case, "lower")),
    "startswith": (2, 2, partial(functions.find_text, "starts_with")),
    "endswith": (2, 2, partial(functions.find_text, "ends_with")),
    "contains": (2, 2, partial(functions.find_text, "match_substring")),
    "replace": (3, 3, functions.replace_text),
    "year": (1, 1, partial(functions.date_part, "year")),
    "month": (1, 1, partial(functions.date_part, "month")),
    "day": (1, 1, partial(functions.date_part, "day")),
    "dayofmonth": (1, 1, partial(functions.date_part, "day")),
    "date_add": (2, 2, functions.add_days),
    "date_sub": (2, 2, functions.subtract_days),
    "datediff": (2, 2, functions.days_between),
}
