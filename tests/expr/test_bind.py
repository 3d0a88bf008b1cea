"""Binding keeps SQL's meaning: three-valued logic, Spark's comparisons, and what cannot be compared is refused."""

import datetime
import math
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.expr.cases import effort, float32, values_of

from icefield.errors import InvalidFilter
from icefield.expr import ast, literals
from icefield.expr import bind as bind_module
from icefield.expr.ast import Column, Literal, Operator, Predicate
from icefield.expr.bind import bind
from icefield.expr.bound import FALSE, TRUE, Bound, Compare, Reference
from icefield.expr.builder import col
from icefield.expr.describe import describe
from icefield.expr.rows import matches
from icefield.types.datatypes import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    UnknownType,
)
from icefield.types.schema import Schema
from icefield.types.single_value import Value
from icefield.types.text import parse_schema

SCHEMA = parse_schema(
    "i int, l long, f float, d double, n decimal(9, 2), w decimal(38, 10), b boolean, s string, day date, at time, "
    "ts timestamp, tz timestamptz, u uuid, x binary, y fixed[2], p struct<q: int, r: struct<t: string>>, "
    "tags list<string>, m map<string, int>"
)

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


FOLDED = """
i < 3000000000;             i IS NOT NULL
i > 3000000000;             FALSE
i = 3000000000;             FALSE
i != 3000000000;            i IS NOT NULL
i < 3.5;                    i <= 3
i > 3.5;                    i >= 4
i = 3.5;                    FALSE
i != 3.5;                   i IS NOT NULL
i <= 2147483647;            i IS NOT NULL
i < -2147483648;            FALSE
i = 3.0;                    i = 3
i < -3.5;                   i <= -4
i = '7';                    i = 7
i IN (1, 2.5, 3);           i IN (1, 3)
i NOT IN (1, 2.5);          i != 1
i IN (2.5);                 FALSE
i NOT IN (2.5);             i IS NOT NULL
NOT (i < 3);                i >= 3
NOT (i = 1 AND l = 2);      i != 1 OR l != 2
NOT (i = 1 OR l = 2);       i != 1 AND l != 2
NOT NOT i = 1;              i = 1
i = NULL;                   FALSE
NOT i = NULL;               FALSE
i IN (1, NULL);             i = 1
i NOT IN (1, NULL);         FALSE
NOT (i = NULL OR l = 1);    FALSE
i <=> NULL;                 i IS NULL
NOT i <=> 3;                i != 3 OR i IS NULL
i BETWEEN 1 AND 5;          i >= 1 AND i <= 5
i NOT BETWEEN 1 AND 5;      i < 1 OR i > 5
i BETWEEN NULL AND 5;       FALSE
NOT i BETWEEN NULL AND 5;   i > 5
l = 9007199254740993D;      l >= 9007199254740992 AND l <= 9007199254740993
n < 1.005;                  n <= 1.00
n = 1.5;                    n = 1.50
n = 1.505;                  FALSE
n < 10000000;               n IS NOT NULL
f = 0.1;                    FALSE
f < 0.5;                    f < 0.5
f = 0.1F;                   f = 0.10000000149011612
f > 1e300;                  f >= inf
d = 0.1;                    d = 0.1
d = -0.0D;                  d = 0.0
d = 'NaN';                  isnan(d)
d < double('NaN');          d IS NOT NULL AND NOT isnan(d)
d > double('NaN');          FALSE
d IN (1, double('NaN'));    d = 1.0 OR isnan(d)
d NOT IN (1, double('NaN')); d != 1.0 AND NOT isnan(d)
isnan(i);                   FALSE
NOT isnan(n);               TRUE
b;                          b = TRUE
NOT b;                      b = FALSE
b != TRUE;                  b = FALSE
b < TRUE;                   b = FALSE
b <= TRUE;                  b IS NOT NULL
b > TRUE;                   FALSE
b IS TRUE;                  b = TRUE
b IS NOT TRUE;              b = FALSE OR b IS NULL
b = 'yes';                  b = TRUE
s LIKE 'ab%';               startswith(s, 'ab')
s LIKE 'ab';                s = 'ab'
s LIKE '%';                 s IS NOT NULL
s NOT LIKE '%';             FALSE
s LIKE 'a%b';               s LIKE 'a%b'
s LIKE 'a\\_b%';            startswith(s, 'a_b')
s LIKE NULL;                FALSE
startswith(s, '');          s IS NOT NULL
day = '2020-02-29';         day = DATE '2020-02-29'
day < TIMESTAMP '2020-01-01 10:00:00'; day <= DATE '2020-01-01'
day = TIMESTAMP '2020-01-01 00:00:00'; day = DATE '2020-01-01'
day < '+99999999-01-01';    error
ts >= DATE '2020-01-01';    ts >= TIMESTAMP '2020-01-01 00:00:00'
ts = '2020-01-01 10:00:00.5'; ts = TIMESTAMP '2020-01-01 10:00:00.5'
tz = '2020-01-01';          tz = TIMESTAMP '2020-01-01 00:00:00+00:00'
tz = '2020-01-01 01:00:00+01:00'; tz = TIMESTAMP '2020-01-01 00:00:00+00:00'
tz < '+300000-01-01';       tz IS NOT NULL
at < '10:30:00';            at < TIME '10:30:00'
u = '00000000-0000-0000-0000-000000000005'; u = '00000000-0000-0000-0000-000000000005'
x = X'ff';                  x = X'ff'
x = 'a';                    x = X'61'
y < X'01';                  y < X'01'
p.q = 1;                    p.q = 1
P.R.T = 'x';                p.r.t = 'x'
TRUE;                       TRUE
NULL;                       FALSE
NOT NULL;                   FALSE
1 = 1;                      TRUE
1 = 2 OR i = 1;             i = 1
"""


@pytest.mark.parametrize("case", [line for line in FOLDED.splitlines() if line.strip()])
def test_filters_fold_to_their_simplest_form(case: str) -> None:
    text, _, expected = (part.strip() for part in case.partition(";"))
    if expected == "error":
        with pytest.raises(InvalidFilter):
            bind(text, SCHEMA)
    else:
        assert describe(bind(text, SCHEMA)) == expected


REFUSED = """
i = 'abc';      no whole number
i = '3.5';      no whole number
i = TRUE;       a number is needed
i = DATE '2020-01-01'; a number is needed
d = 'x';        no number
d = '1_000';    no number
s = 3;          a text in quotes is needed
s = DATE '2020-01-01'; a text in quotes is needed
b = 1;          TRUE or FALSE is needed
day = 5;        a date such as
day = '2020-02-30'; no day
day = '2020-01-01 10:00:00'; no date such as
ts = '2020-01-01 00:00:00+01:00'; has no time zone
ts = 5;         a timestamp such as
at = '25:00:00'; no time
u = 'abc';      badly formed
x = 5;          bytes such as
isnan(s);       isnan needs a column of numbers
i LIKE 'a%';    LIKE needs a column of texts
startswith(i, 'a'); only texts
s LIKE 'a\\\\b'; escape character stands before
p = 1;          Name a field inside it, such as p.q
tags = 'x';     it is a list
tags.element = 'x'; inside a list or map
m.value = 1;    inside a list or map
idd = 1;        no column 'idd'
p.qq = 1;       Did you mean 'p.q'?
"""


@pytest.mark.parametrize("case", [line for line in REFUSED.splitlines() if line.strip()])
def test_what_cannot_be_compared_is_refused_with_a_reason(case: str) -> None:
    text, _, reason = (part.strip() for part in case.partition(";"))
    with pytest.raises(InvalidFilter) as caught:
        bind(text, SCHEMA)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("day") == datetime.date(2020, 1, 1), "day = DATE '2020-01-01'"),
        (col("ts") < datetime.datetime(2020, 1, 1, 10), "ts < TIMESTAMP '2020-01-01 10:00:00'"),
        (col("tz") < datetime.datetime(2020, 1, 1, 10), "tz < TIMESTAMP '2020-01-01 10:00:00+00:00'"),
        (
            col("tz") < datetime.datetime(2020, 1, 1, 10, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
            "tz < TIMESTAMP '2020-01-01 08:00:00+00:00'",
        ),
        (col("at") >= datetime.time(1, 2, 3, 4), "at >= TIME '01:02:03.000004'"),
        (col("u") == uuid.UUID(int=5), "u = '00000000-0000-0000-0000-000000000005'"),
        (col("x") == b"\xff", "x = X'ff'"),
        (col("n") < Decimal("1.005"), "n <= 1.00"),
    ],
)  # fmt: skip
def test_python_values(predicate: Predicate, expected: str) -> None:
    assert describe(bind(predicate, SCHEMA)) == expected


@pytest.mark.parametrize(
    "predicate",
    [
        col("ts") == datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        col("s") == "\ud800",
        col("s").starts_with("\udfff"),
        col("s").starts_with(5),  # type: ignore[arg-type]
        col("i") == [1],
        col("i") == Decimal("1e5000"),
        col("d") == 10**400,
        col("at") == datetime.time(1, tzinfo=datetime.UTC),
    ],
)
def test_unfit_python_values_are_refused(predicate: Predicate) -> None:
    with pytest.raises(InvalidFilter):
        bind(predicate, SCHEMA)


def test_no_filter_matches_everything_and_other_things_are_no_filter() -> None:
    assert bind(None, SCHEMA) == TRUE
    with pytest.raises(InvalidFilter, match="not a int"):
        bind(5, SCHEMA)  # type: ignore[arg-type]


def test_nothing_is_in_an_empty_list() -> None:
    assert bind(col("i").isin([]), SCHEMA) == FALSE
    assert bind(~col("i").isin([]), SCHEMA) == TRUE


def test_a_dot_in_a_columns_name_is_told_from_a_path() -> None:
    schema = parse_schema("`a.b` int, a struct<c: int>")
    assert bind("`a.b` = 1", schema) == Compare(Reference(1, IntegerType(), ("a.b",)), Operator.EQ, 1)
    assert bind(col("a.b") == 1, schema) == bind("`a.b` = 1", schema)
    assert bind("a.c = 1", schema) == Compare(Reference(3, IntegerType(), ("a", "c")), Operator.EQ, 1)


def test_nesting_without_end_is_refused_not_crashed_on() -> None:
    predicate = col("i") == 1
    for _ in range(50_000):
        predicate = ast.Not(predicate)
    with pytest.raises(InvalidFilter, match="too deeply"):
        bind(predicate, Schema(SCHEMA.fields))


def test_a_column_of_unknown_type_is_always_null() -> None:
    schema = Schema((NestedField(1, "a", UnknownType()),))
    for text in ("a = 1", "NOT a = 'x'", "a IN (1, 2)", "a < DATE '2020-01-01'"):
        assert bind(text, schema) == FALSE
    assert describe(bind("a IS NULL", schema)) == "a IS NULL"


def test_chains_of_thousands_are_flat() -> None:
    predicate = col("i") == 0
    for number in range(1, 3000):
        predicate = predicate | (col("i") == number)
    assert bind(predicate, SCHEMA) != FALSE
