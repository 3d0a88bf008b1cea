"""What a condition says about one table: a filter for planning, which holds wherever the condition is true.

    year(day) = 2026 AND id + 1 = 5 AND (name LIKE 'a%' OR flag)
      ->  day >= DATE '2026-01-01' AND day < DATE '2027-01-01' AND (name LIKE 'a%' OR flag = TRUE)

A part that is not understood is left out of a conjunction, and makes a disjunction say nothing. A filter that is weaker
than the condition is safe, because Spark applies the condition itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icefield.errors import InvalidFilter
from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import (
    FALSE,
    TRUE,
    AllOf,
    AnyOf,
    Bound,
    Compare,
    IsNull,
    NotNaN,
    NotNull,
    Reference,
    all_of,
    any_of,
    one_of,
)
from icefield.expr.bind.bound import Constant as TrueOrFalse
from icefield.expr.bind.bound import conjuncts as bound_conjuncts
from icefield.expr.bind.literals import compare
from icefield.expr.parse import ast
from icefield.expr.parse.ast import Date, Operator
from icefield.sql.filters.expression import NULL, Call, Column, Constant, Expression, conjuncts
from icefield.sql.filters.terms import NotUnderstood, compare_term, term_of
from icefield.sql.filters.zone import Zone
from icefield.types.calendar import days_from_date
from icefield.types.datatypes import BooleanType, StringType, UnknownType, UUIDType
from icefield.types.schema import Schema

_OPERATORS = frozenset(operator.value for operator in Operator)
_MONTHS = range(1, 13)


def filter_of(condition: Expression, schema: Schema, zone: Zone) -> Bound:
    """Return a filter that holds for each row for which the condition is true; TRUE if nothing is known."""
    found = _Filters(schema, zone).find(condition, negated=False)
    return TRUE if found is None else found


def without_nulls(where: Bound) -> Bound:
    """Return the conjuncts of a filter that are false for a row of nulls."""
    return all_of(*(part for part in bound_conjuncts(where) if not _holds_for_nulls(part)))


def _holds_for_nulls(where: Bound) -> bool:
    match where:
        case AllOf(parts):
            return all(map(_holds_for_nulls, parts))
        case AnyOf(parts):
            return any(map(_holds_for_nulls, parts))
        case TrueOrFalse(value):
            return value
    return isinstance(where, IsNull | NotNaN)


@dataclass(frozen=True)
class _Filters:
    """Finds filters on the columns of a schema."""

    schema: Schema
    zone: Zone

    def find(self, condition: Expression, *, negated: bool) -> Bound | None:
        """Return what holds where a condition is true, or false if it is negated; None if nothing is known."""
        match condition:
            case Call("and" | "or" as name, parts):
                found = [self.find(part, negated=negated) for part in parts]
                known = [part for part in found if part is not None]
                if (name == "and") != negated:
                    known += [] if negated else self._months(parts)
                    return all_of(*known) if known else None
                return any_of(*known) if len(known) == len(found) else None
            case Call("not", (inner,)):
                return self.find(inner, negated=not negated)
        try:
            return self._test(condition, negated=negated)
        except (NotUnderstood, InvalidFilter, ValueError):
            return None

    def _test(self, condition: Expression, *, negated: bool) -> Bound:
        match condition:
            case Constant(None):
                return FALSE
            case Constant(bool() as value):
                return TRUE if value != negated else FALSE
            case Column(reference) if isinstance(reference.type, BooleanType):
                return compare(reference, Operator.EQ, not negated)
            case Call("isnull" | "isnotnull" as name, (Column(reference),)):
                if isinstance(reference.type, UnknownType):
                    raise NotUnderstood
                return IsNull(reference) if (name == "isnull") != negated else NotNull(reference)
            case Call("in", (value, *items)) if items:
                return self._in(value, items, negated=negated)
            case Call("<=>", (left, right)) if not negated:
                if NULL in (left, right):
                    return self._test(Call("isnull", (right if left == NULL else left,)), negated=False)
                return self._compared(Operator.EQ, left, right)
            case Call("startswith" | "like", (Column(reference), Constant(str()), *_)):
                return self._text(condition, reference, negated=negated)
            case Call(name, (left, right)) if name in _OPERATORS:
                operator = Operator(name)
                return self._compared(operator.negated if negated else operator, left, right)
        raise NotUnderstood

    def _in(self, value: Expression, items: Sequence[Expression], *, negated: bool) -> Bound:
        if NULL in items and negated:
            return FALSE
        known = [item for item in items if item != NULL]
        if negated and not isinstance(term_of(value).reference.type, StringType) and any(map(_is_string, known)):
            raise NotUnderstood  # Spark may compare the strings of all values, which differ if the values are equal
        tests = [self._compared(Operator.NE if negated else Operator.EQ, value, item) for item in known]
        return all_of(*tests) if negated else _any_value(tests)

    def _text(self, condition: Call, reference: Reference, *, negated: bool) -> Bound:
        if not isinstance(reference.type, StringType):
            raise NotUnderstood
        strings = [part.value for part in condition.arguments[1:] if isinstance(part, Constant)]
        text, *escape = [text for text in strings if isinstance(text, str)]
        if len(escape) + 2 != len(condition.arguments):
            raise NotUnderstood
        column = ast.Column(reference.path)
        is_like = condition.name == "like"
        test: ast.Predicate = ast.Like(column, text, *escape) if is_like else ast.StartsWith(column, text)
        return bind(ast.Not(test) if negated else test, self.schema)

    def _compared(self, operator: Operator, left: Expression, right: Expression) -> Bound:
        if isinstance(left, Constant):
            left, right, operator = right, left, operator.flipped
        if not isinstance(right, Constant):
            raise NotUnderstood
        term = term_of(left)
        # In Spark these are strings, in another order.
        if isinstance(term.reference.type, UUIDType) and operator is not Operator.EQ:
            raise NotUnderstood
        return compare_term(term, operator, right, self.zone)

    def _months(self, parts: Sequence[Expression]) -> list[Bound]:
        """Return the ranges that follow from a year and a month: `year(day) = 2026 AND month(day) = 3`."""
        flat = [each for part in parts for each in conjuncts(part)]
        months = dict(_parts_of_dates(flat, "month"))
        found = []
        for of, year in _parts_of_dates(flat, "year"):
            if months.get(of) in _MONTHS:
                first = Constant(Date(days_from_date(year, months[of], 1)))
                truncated = Call("trunc", (of, Constant("month")))
                found.append(self.find(Call("=", (truncated, first)), negated=False))
        return [each for each in found if each is not None]


def _parts_of_dates(conditions: Sequence[Expression], name: str) -> Iterator[tuple[Expression, int]]:
    """Find comparisons such as `year(day) = 2026`: what the part is taken of, and its value."""
    for condition in conditions:
        match condition:
            case Call("=", (Call(function, (of,)), Constant(int() as value, False))) if function == name:
                yield of, value
            case Call("=", (Constant(int() as value, False), Call(function, (of,)))) if function == name:
                yield of, value


def _is_string(item: Expression) -> bool:
    return isinstance(item, Constant) and isinstance(item.value, str)


def _any_value(tests: Sequence[Bound]) -> Bound:
    """Combine comparisons with values; those of one column for equality become one set."""
    equal = [test for test in tests if isinstance(test, Compare) and test.operator is Operator.EQ]
    others = [test for test in tests if not (isinstance(test, Compare) and test.operator is Operator.EQ)]
    return any_of(*([one_of(equal[0].reference, [test.value for test in equal])] if equal else []), *others)
