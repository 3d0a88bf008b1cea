"""What filters bind to, case by case, and what is refused."""

import datetime
import uuid
from decimal import Decimal

import pytest

from icefield.errors import InvalidFilter
from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import FALSE, TRUE, Compare, Reference
from icefield.expr.parse import ast
from icefield.expr.parse.ast import Operator, Predicate
from icefield.expr.parse.builder import col
from icefield.expr.render.describe import describe
from icefield.types.datatypes import IntegerType
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

pytestmark = pytest.mark.every_case

SCHEMA = parse_schema(
    "i int, l long, f float, d double, n decimal(9, 2), w decimal(38, 10), b boolean, s string, day date, at time, "
    "ts timestamp, tz timestamptz, u uuid, x binary, y fixed[2], p struct<q: int, r: struct<t: string>>, "
    "tags list<string>, m map<string, int>, ns timestamp_ns, zns timestamptz_ns, none unknown, vary variant, "
    "geom geometry, geog geography, vs list<variant>, o struct<v: variant>"
)

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
ns = '2020-01-01 10:00:00.123456789'; ns = TIMESTAMP '2020-01-01 10:00:00.123456789'
ns > TIMESTAMP '2020-01-01 10:00:00.123456789'; ns > TIMESTAMP '2020-01-01 10:00:00.123456789'
ns < DATE '2020-01-01';     ns < TIMESTAMP '2020-01-01 00:00:00'
ns < '2262-04-12';          ns IS NOT NULL
ns > '2262-04-12';          FALSE
zns = '2020-01-01 01:00:00.000000001+01:00'; zns = TIMESTAMP '2020-01-01 00:00:00.000000001+00:00'
zns IN ('2020-01-01', '2020-01-01 00:00:00Z'); zns = TIMESTAMP '2020-01-01 00:00:00+00:00'
ts = '2020-01-01 10:00:00.123456789'; FALSE
ts < '2020-01-01 10:00:00.123456789'; ts <= TIMESTAMP '2020-01-01 10:00:00.123456'
ts >= '2020-01-01 10:00:00.123456789'; ts >= TIMESTAMP '2020-01-01 10:00:00.123457'
day < TIMESTAMP '2020-01-01 00:00:00.000000001'; day <= DATE '2020-01-01'
none IS NULL;               TRUE
vary IS NOT NULL;           vary IS NOT NULL
vary <=> NULL;              vary IS NULL
NOT (o.v IS NULL);          o.v IS NOT NULL
geom IS NULL OR geog IS NOT NULL; geom IS NULL OR geog IS NOT NULL
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
i = 'abc';      not an integer
i = '3.5';      not an integer
i = TRUE;       expected a number
i = DATE '2020-01-01'; expected a number
d = 'x';        not a number
d = '1_000';    not a number
s = 3;          expected a quoted string
s = DATE '2020-01-01'; expected a quoted string
b = 1;          expected TRUE or FALSE
day = 5;        a date such as
day = '2020-02-30'; no day
day = '2020-01-01 10:00:00'; not a valid date
ts = '2020-01-01 00:00:00+01:00'; has no time zone
ts = 5;         a timestamp such as
at = '25:00:00'; no time
u = 'abc';      badly formed
x = 5;          bytes such as
isnan(s);       isnan needs a column of numbers
i LIKE 'a%';    LIKE needs a string column
startswith(i, 'a'); startswith needs a string
s LIKE 'a\\\\b'; escape character precedes
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


@pytest.mark.parametrize("column", ["none", "vary", "geom", "geog", "o.v"])
@pytest.mark.parametrize(
    "test", ["{} = 1", "NOT {} = 'x'", "{} IN (1, 2)", "{} IN ()", "{} = NULL", "{} <=> 3", "isnan({})", "{} LIKE 'a%'"]
)
def test_of_types_without_an_order_only_nulls_can_be_asked_for(column: str, test: str) -> None:
    predicate = col(column).isin([]) if test == "{} IN ()" else test.format(column)
    with pytest.raises(InvalidFilter, match=rf"'{column}' of type \w.* except with IS NULL and IS NOT NULL"):
        bind(predicate, SCHEMA)


def test_chains_of_thousands_are_flat() -> None:
    predicate = col("i") == 0
    for number in range(1, 3000):
        predicate = predicate | (col("i") == number)
    assert bind(predicate, SCHEMA) != FALSE
