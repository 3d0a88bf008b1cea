"""What a condition says about one side alone, for planning, and which columns it holds equal, for finding matches.

    target.id = source.id AND target.day >= DATE '2026-01-01' AND upper(source.op) = 'DEL'
    equalities    target.id = source.id
    side_filter   target: day >= 2026-01-01; source: nothing that a filter can test

Conjuncts that filters do not know, even those that only Spark evaluates, are left out: a filter that is weaker than the
condition is safe for planning.
"""

from collections.abc import Callable
from dataclasses import dataclass

from icefield.errors import IcefieldError, InvalidFilter, NeedsSpark
from icefield.expr.bind.bind import bind as bind_filter
from icefield.expr.bind.bound import Bound, all_of
from icefield.expr.parse import ast
from icefield.expr.parse.ast import Literal, Operator, Predicate
from icefield.expr.values import syntax
from icefield.expr.values.parse import parse
from icefield.expr.values.scope import Place, Scope
from icefield.expr.values.syntax import Call, Name, Syntax, conjuncts
from icefield.types.datatypes import (
    DateType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
)

_MOMENTS: dict[type, Callable[[int], Literal]] = {
    DateType: ast.Date,
    TimeType: ast.Time,
    TimestampType: lambda micros: ast.Timestamp(micros, zoned=False),
    TimestamptzType: lambda micros: ast.Timestamp(micros, zoned=True),
    TimestampNsType: lambda nanos: ast.Timestamp(nanos // 1000, zoned=False, nanos=nanos % 1000),
    TimestamptzNsType: lambda nanos: ast.Timestamp(nanos // 1000, zoned=True, nanos=nanos % 1000),
}


@dataclass(frozen=True)
class Equality:
    """A conjunct `a = b` of columns of two sides, in the order of the scope's sides."""

    left: Place
    right: Place


def side_filter(condition: str, scope: Scope, side: str) -> Bound:
    """Return a filter on one side that holds for every row for which the condition is true."""
    parts = [_bound(part, scope, side) for part in _conjuncts(condition)]
    return all_of(*(part for part in parts if part is not None))


def find_equalities(condition: str, scope: Scope) -> tuple[tuple[Equality, ...], tuple[Syntax, ...]]:
    """Split a condition into its equalities of columns of two sides, and the other conjuncts.

    Raises NeedsSpark for syntax that is not known, InvalidInput for a name that is not known.
    """
    equalities, others = [], []
    order = [side.name for side in scope.sides]
    for part in conjuncts(parse(condition)):
        match part:
            case Call("=", (Name(left), Name(right))):
                places = sorted((scope.find(left), scope.find(right)), key=lambda place: order.index(place.side))
                if places[0].side != places[1].side:
                    equalities.append(Equality(*places))
                    continue
        others.append(part)
    return tuple(equalities), tuple(others)


def find_column(expression: str, scope: Scope) -> Place | None:
    """Return the column that an expression is the name of; None for any other expression.

    Raises NeedsSpark for syntax that is not known, InvalidInput for a name that is not known.
    """
    written = parse(expression)
    return scope.find(written.parts) if isinstance(written, Name) and not scope.is_function(written.parts) else None


def _conjuncts(condition: str) -> tuple[Syntax, ...]:
    try:
        return conjuncts(parse(condition))
    except NeedsSpark:
        return ()


def _bound(part: Syntax, scope: Scope, side: str) -> Bound | None:
    try:
        return bind_filter(_Filter(scope, side).predicate(part), scope.side(side).schema)
    except (InvalidFilter, NeedsSpark, _NotAFilterError):
        return None


class _NotAFilterError(IcefieldError):
    """A conjunct is not a filter on the side."""


@dataclass(frozen=True)
class _Filter:
    """Turns a conjunct into a filter on one side."""

    scope: Scope
    side: str

    def predicate(self, part: Syntax) -> Predicate:
        match part:
            case syntax.Constant() as constant:
                return self._constant(constant)
            case Name():
                return ast.Comparison(self._column(part), Operator.EQ, value=True)
            case Call("and", parts):
                return ast.And(tuple(map(self.predicate, parts)))
            case Call("or", parts):
                return ast.Or(tuple(map(self.predicate, parts)))
            case Call("not", (inner,)):
                return ast.Not(self.predicate(inner))
            case Call(name, arguments):
                return self._test(name, arguments)
        raise _NotAFilterError("not a filter")

    def _test(self, name: str, arguments: tuple[Syntax, ...]) -> Predicate:
        match name, arguments:
            case "isnull", (value,):
                return ast.IsNull(self._column(value))
            case "isnan", (value,):
                return ast.IsNaN(self._column(value))
            case "in", (value, *items) if items:
                return ast.In(self._column(value), tuple(self._literal(value, item) for item in items))
            case "like", (value, pattern, *escape):
                return ast.Like(self._column(value), _text(pattern), *(_text(each) for each in escape))
            case "<=>", (left, right):
                left, right = (left, right) if isinstance(left, Name) else (right, left)
                return ast.NullSafeEqual(self._column(left), self._literal(left, right))
            case (("=" | "!=" | "<" | "<=" | ">" | ">="), (left, right)):
                operator = Operator(name)
                if isinstance(left, Name):
                    return ast.Comparison(self._column(left), operator, self._literal(left, right))
                return ast.Comparison(self._column(right), operator.flipped, self._literal(right, left))
        raise _NotAFilterError("not a filter")

    def _constant(self, constant: syntax.Constant) -> Predicate:
        if constant.value is None:
            return ast.AlwaysNull()
        if isinstance(constant.value, bool):
            return ast.AlwaysTrue() if constant.value else ast.AlwaysFalse()
        raise _NotAFilterError("not a filter")

    def _column(self, written: Syntax) -> ast.Column:
        return ast.Column(self._place(written).path)

    def _place(self, written: Syntax) -> Place:
        if not isinstance(written, Name):
            raise _NotAFilterError("not a column")
        place = self.scope.find(written.parts)
        if place.side != self.side:
            raise _NotAFilterError("a column of the other side")
        return place

    def _literal(self, column: Syntax, written: Syntax) -> Literal:
        """Return the value to compare a column with; a comparison that depends on a time zone is not a filter."""
        value = _literal(written)
        assert isinstance(written, syntax.Constant)
        kinds = {type(self._place(column).field.type), type(written.type)}
        zoned = kinds & {TimestamptzType, TimestamptzNsType}
        if value is not None and zoned and kinds - {TimestamptzType, TimestamptzNsType}:
            raise _NotAFilterError("a comparison in the time zone of the session")
        return value


def _literal(written: Syntax) -> Literal:
    if not isinstance(written, syntax.Constant):
        raise _NotAFilterError("not a literal")
    convert = _MOMENTS.get(type(written.type))
    if convert is None or written.value is None:
        return written.value
    return convert(int(written.value))


def _text(written: Syntax) -> str:
    value = _literal(written)
    if not isinstance(value, str):
        raise _NotAFilterError("not a string")
    return value
