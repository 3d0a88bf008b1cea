"""Binding keeps SQL's meaning: three-valued logic, Spark's comparisons, and what cannot be compared is refused."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort
from tests.expr.cases import float32, values_of

from icefield.expr.bind import bind as bind_module
from icefield.expr.bind import literals
from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import Bound, Compare, Reference
from icefield.expr.parse import ast
from icefield.expr.parse.ast import Column, Literal, Operator, Predicate
from icefield.expr.parse.builder import col
from icefield.expr.render.rows import matches
from icefield.types.datatypes import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    Value,
)
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

SCHEMA = parse_schema("i int, l long, f float, d double, n decimal(9, 2), w decimal(38, 10)")

# What a filter means, written out plainly: no folding, three truth values.


def truth(predicate: Predicate, row: dict[str, Any]) -> bool | None:
    match predicate:
        case ast.AlwaysTrue() | ast.AlwaysFalse() | ast.AlwaysNull():
            return {ast.AlwaysTrue: True, ast.AlwaysFalse: False, ast.AlwaysNull: None}[type(predicate)]
        case ast.Not(part):
            inner = truth(part, row)
            return None if inner is None else not inner
        case ast.And(parts):
            answers = [truth(p, row) for p in parts]
            return False if False in answers else None if None in answers else True
        case ast.Or(parts):
            answers = [truth(p, row) for p in parts]
            return True if True in answers else None if None in answers else False
        case ast.IsNull(column):
            return row[str(column)] is None
        case ast.IsNaN(column):
            return isinstance(row[str(column)], float) and math.isnan(row[str(column)])
        case ast.Comparison(column, operator, value):
            return compared(row[str(column)], operator, value)
        case ast.NullSafeEqual(column, value):
            if row[str(column)] is None or value is None:
                return row[str(column)] is value
            return compared(row[str(column)], Operator.EQ, value)
        case ast.In(column, values):
            doubles = any(isinstance(v, float) for v in values)
            plain = [float(v) if doubles and v is not None else v for v in values]  # type: ignore[arg-type]
            return truth(ast.Or(tuple(ast.Comparison(column, Operator.EQ, v) for v in plain)), row)
        case _:
            raise AssertionError(predicate)


def compared(left: Any, operator: Operator, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    a, b = (float(left), float(right)) if float in (type(left), type(right)) else (Fraction(left), Fraction(right))
    low, high = ((math.isnan(x), 0 if math.isnan(x) else x) for x in (a, b))
    return {
        Operator.EQ: low == high, Operator.NE: low != high, Operator.LT: low < high,
        Operator.LE: low <= high, Operator.GT: low > high, Operator.GE: low >= high,
    }[operator]  # fmt: skip


NUMBERS: dict[str, PrimitiveType] = {
    "i": IntegerType(), "l": LongType(), "f": FloatType(), "d": DoubleType(),
    "n": DecimalType(9, 2), "w": DecimalType(38, 10),
}  # fmt: skip
NUMBER_LITERALS: list[Literal] = [
    None, 0, 1, -1, 10, 2**31 - 1, 2**31, -(2**31), 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1,
    16_777_217, Decimal("0.5"), Decimal("-0.5"),
    Decimal("0.1"), Decimal("10.005"), Decimal("-9999999.995"), Decimal("1E-11"),
    Decimal("99999999999999999999999999999999999999"), 0.1, float32(0.1), 0.5, -0.0, 2.0**53, 2.0**63, 1e300, -1e300,
    1e-300, math.inf, -math.inf, math.nan, 3.4028235677973366e38,
]  # fmt: skip


def number_predicates() -> st.SearchStrategy[Predicate]:
    column = st.sampled_from(sorted(NUMBERS)).map(lambda name: Column((name,)))
    literal = st.sampled_from(NUMBER_LITERALS)
    leaf: st.SearchStrategy[Predicate] = st.one_of(
        st.builds(ast.Comparison, column, st.sampled_from(list(Operator)), literal),
        st.builds(ast.NullSafeEqual, column, literal),
        st.builds(ast.In, column, st.lists(literal, min_size=1, max_size=4).map(tuple)),
        st.builds(ast.IsNull, column),
        st.builds(ast.IsNaN, column),
        st.sampled_from([ast.AlwaysTrue(), ast.AlwaysFalse(), ast.AlwaysNull()]),
    )
    pair = st.lists(leaf | leaf.map(ast.Not), min_size=1, max_size=3).map(tuple)
    joined = st.one_of(pair.map(ast.And), pair.map(ast.Or))
    return joined | joined.map(ast.Not)


ROWS = st.fixed_dictionaries({name: st.none() | values_of(kind) for name, kind in NUMBERS.items()})
NUMBER_IDS = {SCHEMA.find_field(name).field_id: name for name in NUMBERS}


def check_binding(predicate: Predicate, row: dict[str, Any]) -> None:
    """The property: the bound filter matches where the plain meaning is true."""
    by_id: dict[int, Value | None] = {field_id: row[name] for field_id, name in NUMBER_IDS.items() if name in row}
    assert matches(bind(predicate, SCHEMA), by_id) is (truth(predicate, row) is True)


@given(number_predicates(), st.lists(ROWS, min_size=1, max_size=6))
@effort(250)
def test_binding_keeps_the_meaning_of_numbers_nulls_and_nan(predicate: Predicate, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        check_binding(predicate, row)


@pytest.mark.parametrize("name", sorted(NUMBERS))
@pytest.mark.parametrize("literal", NUMBER_LITERALS, ids=repr)
def test_each_literal_near_its_own_place(name: str, literal: Literal) -> None:
    for operator in Operator:
        for value in _neighbours(literal, NUMBERS[name]):
            check_binding(ast.Comparison(Column((name,)), operator, literal), {name: value})


def _neighbours(literal: Any, kind: PrimitiveType) -> list[Any]:
    """Values of the type just below, at and above the literal."""
    if literal is None:
        return [None]
    if isinstance(kind, FloatType | DoubleType):
        near = [float(literal), math.nextafter(float(literal), -math.inf), math.nextafter(float(literal), math.inf)]
        if isinstance(kind, DoubleType):
            return near
        return [float32(v) for v in near if abs(v) < 3.4e38 or math.isinf(v)]
    if not math.isfinite(literal):
        return [0]
    scale = kind.scale if isinstance(kind, DecimalType) else 0
    top = 10**kind.precision - 1 if isinstance(kind, DecimalType) else (2**31 if kind == IntegerType() else 2**63) - 1
    number = int(Fraction(literal) * 10**scale)
    near_numbers = [*range(number - 1026, number + 1027, 57), number]
    return [Decimal(f"{n}E-{scale}") if scale else n for n in near_numbers if abs(n) <= top]


def test_the_property_sees_float_rounding_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    predicate, row = col("f") == 0.1, {"f": float32(0.1)}
    check_binding(predicate, row)

    def rounded(reference: Reference, operator: Operator, value: Literal) -> Compare:
        return Compare(reference, operator, float32(float(value)))  # type: ignore[arg-type]

    monkeypatch.setitem(literals._COMPARE, FloatType, rounded)
    with pytest.raises(AssertionError):
        check_binding(predicate, row)


def test_the_property_sees_null_logic_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    predicate = ast.Not(ast.In(Column(("i",)), (1, None)))
    check_binding(predicate, {"i": 5})
    plain = bind_module._BIND[ast.In]

    def without_nulls(predicate: ast.In, schema: Schema, *, negated: bool) -> Bound:
        kept = tuple(v for v in predicate.values if v is not None)
        return plain(ast.In(predicate.column, kept), schema, negated=negated)

    monkeypatch.setitem(bind_module._BIND, ast.In, without_nulls)
    with pytest.raises(AssertionError):
        check_binding(predicate, {"i": 5})
