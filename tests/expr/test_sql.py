"""The text of filters: what is read, what is refused, and that nothing is half understood."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.errors import InvalidFilter
from icefield.expr.parse import ast
from icefield.expr.parse.ast import (
    Column,
    Comparison,
    Date,
    In,
    Like,
    Literal,
    Not,
    NullSafeEqual,
    Operator,
    Predicate,
    Timestamp,
)
from icefield.expr.parse.sql import parse_filter

pytestmark = pytest.mark.every_case

A = Column(("a",))


def equal(value: Literal) -> Predicate:
    return Comparison(A, Operator.EQ, value)


@pytest.mark.parametrize(
    ("text", "operator"),
    [("a = 3", "="), ("a == 3", "="), ("a != 3", "!="), ("a <> 3", "!="), ("a < 3", "<"), ("a <= 3", "<=")],
)
def test_comparisons(text: str, operator: str) -> None:
    assert parse_filter(text) == Comparison(A, Operator(operator), 3)


@pytest.mark.parametrize(
    ("text", "operator"),
    [("3 < a", ">"), ("3 <= a", ">="), ("3 > a", "<"), ("3 >= a", "<="), ("3 = a", "="), ("3 != a", "!=")],
)
def test_comparisons_the_other_way_round(text: str, operator: str) -> None:
    assert parse_filter(text) == Comparison(A, Operator(operator), 3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a = -3", -3),
        ("a = - -3", 3),
        ("a = (3)", 3),
        ("a = -9223372036854775808L", -(2**63)),
        ("a = 123456789012345678901234567890", 123456789012345678901234567890),
        ("a = 1e3", 1000.0),
        ("a = 3D", 3.0),
        ("a = 'x'", "x"),
        ('a = "x"', "x"),
        ("a = 'it''s'", "it's"),
        ("a = ''", ""),
        ("a = ''''", "'"),
        ("a = 'it\\'s'", "it's"),
        ("a = 'a\\\\b'", "a\\b"),
        ("a = 'a\\\\n'", "a\\n"),
        ("a = 'a\\nb\\tc'", "a\nb\tc"),
        ("a = 'x' 'y'", "xy"),
        ("a = r'\\d'", "\\d"),
        ("a = X'00fF'", b"\x00\xff"),
        ("a = X'f'", b"\x0f"),
        ("a = TRUE", True),
        ("a = NULL", None),
        ("a = DATE '2020-01-01'", Date(18262)),
        ("a = TIMESTAMP '2020-01-01 00:00:00'", Timestamp(18262 * 86_400_000_000, zoned=False)),
        ("a = TIMESTAMP_NTZ '2020-01-01'", Timestamp(18262 * 86_400_000_000, zoned=False)),
        ("a = TIMESTAMP_LTZ '2020-01-01 00:00:00Z'", Timestamp(18262 * 86_400_000_000, zoned=True)),
        ("a = CAST('3' AS INT)", 3),
        ("a = CAST(3.9 AS BIGINT)", 3),
        ("a = CAST(NULL AS INT)", None),
        ("a = CAST('NaN' AS DOUBLE) OR TRUE", None),
        ("a = CAST(0.1 AS FLOAT)", 0.10000000149011612),
        ("a = CAST('2020-01-01' AS DATE)", Date(18262)),
        ("a = CAST(X'e29883' AS STRING)", "☃"),
        ("a = CAST('true' AS BOOLEAN)", True),
        ("a = CAST('a' AS BINARY)", b"a"),
        ("a = 3 -- a comment", 3),
        ("a /* one */ = 3", 3),
    ],
)
def test_values(text: str, value: Literal) -> None:
    parsed = parse_filter(text)
    assert parsed == equal(value) or (" OR " in text and isinstance(parsed, ast.Or))


@pytest.mark.parametrize(("text", "shown"), [("3.50", "3.50"), ("-0.5", "-0.5"), ("1.5BD", "1.5"), (".5", "0.5")])
def test_decimals_keep_their_digits(text: str, shown: str) -> None:
    parsed = parse_filter(f"a = {text}")
    assert isinstance(parsed, Comparison)
    assert str(parsed.value) == shown


def test_long_decimals_are_not_rounded() -> None:
    text = "1.2345678901234567890123456789012345678"
    for spelling, sign in ((text, ""), (f"-{text}", "-"), (f"CAST('{text}' AS DECIMAL(38, 37))", "")):
        parsed = parse_filter(f"a = {spelling}")
        assert isinstance(parsed, Comparison)
        assert str(parsed.value) == sign + text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a IN (1, 'x', NULL)", In(A, (1, "x", None))),
        ("a NOT IN (1)", Not(In(A, (1,)))),
        ("a LIKE 'x%'", Like(A, "x%")),
        ("a NOT LIKE 'x%'", Not(Like(A, "x%"))),
        ("a LIKE 'x!%' ESCAPE '!'", Like(A, "x!%", "!")),
        ("a NOT LIKE 'x!%' ESCAPE '!'", Not(Like(A, "x!%", "!"))),
        ("a LIKE 'x\\%'", Like(A, "x\\%")),
        ("a IS NULL", ast.IsNull(A)),
        ("a IS NOT NULL", Not(ast.IsNull(A))),
        ("isnull(a)", ast.IsNull(A)),
        ("isnotnull(a)", Not(ast.IsNull(A))),
        ("isnan(a)", ast.IsNaN(A)),
        ("a IS NaN", ast.IsNaN(A)),
        ("a IS NOT nan", Not(ast.IsNaN(A))),
        ("startswith(a, 'x')", ast.StartsWith(A, "x")),
        ("a <=> NULL", NullSafeEqual(A, None)),
        ("3 <=> a", NullSafeEqual(A, 3)),
        ("a IS DISTINCT FROM 3", Not(NullSafeEqual(A, 3))),
        ("a IS TRUE", NullSafeEqual(A, value=True)),
        ("a", equal(value=True)),
        ("NOT a", Not(equal(value=True))),
        ("! a", Not(equal(value=True))),
        ("a = 1 OR a = 2 AND NOT a = 3", ast.Or((equal(1), ast.And((equal(2), Not(equal(3))))))),
        ("(a = 1 OR a = 2) AND a = 3", ast.And((ast.Or((equal(1), equal(2))), equal(3)))),
        ("a = 1 AND a = 2 AND a = 3", ast.And((equal(1), equal(2), equal(3)))),
        ("TRUE", ast.AlwaysTrue()),
        ("NULL", ast.AlwaysNull()),
        ("1 = 1", ast.AlwaysTrue()),
        ("'a' > 'b'", ast.AlwaysFalse()),
        ("1 = NULL", ast.AlwaysNull()),
    ],
)
def test_conditions(text: str, expected: Predicate) -> None:
    assert parse_filter(text) == expected


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a.b.c = 1", ("a", "b", "c")),
        ("a.b.c.d.e.f = 1", ("a", "b", "c", "d", "e", "f")),
        ("`a b`.`c.d` = 1", ("a b", "c.d")),
        ("`a``b` = 1", ("a`b",)),
        ("date = 1", ("date",)),
        ("timestamp = 1", ("timestamp",)),
        ("Größe = 1", ("Größe",)),
    ],
)
def test_names(text: str, path: tuple[str, ...]) -> None:
    assert parse_filter(text) == Comparison(Column(path), Operator.EQ, 1)


REFUSED = [
    ("", "empty"),
    ("  ", "empty"),
    ("a >", "near '>' at character 3"),
    ("(a = 1", "cannot parse"),
    ("a = 1 b", "near 'b' at character 7"),
    ("a = 'x", "not closed"),
    ("a = 1; DROP TABLE x", "cannot parse"),
    ("a = 1; b = 2", "cannot"),
    ("SELECT 1", "cannot parse"),
    ("a = b", "`a = b`"),
    ("a + 1 = 2", "`a + 1 = 2`"),
    ("abs(a) = 1", "ABS(a)"),
    ("CAST(a AS INT) = 1", "CAST(a AS INT)"),
    ("a = current_date()", "CURRENT_DATE"),
    ("a = DATE '2020-01-01' + INTERVAL 1 DAY", "INTERVAL"),
    ("a IN (SELECT b FROM t)", "SELECT"),
    ("a IN (b)", "`a IN (b)`"),
    ("a IN ()", "a IN ()"),
    ("EXISTS (SELECT 1)", "EXISTS"),
    ("a ILIKE 'x'", "ILIKE"),
    ("a RLIKE 'x'", "RLIKE"),
    ("a LIKE ANY ('x', 'y')", "ANY"),
    ("a LIKE b", "a LIKE b"),
    ("a IS `nan`", "a IS"),
    ("a IS x.nan", "a IS"),
    ("CASE WHEN a THEN b END", "CASE"),
    ("a[0] = 1", "a[0]"),
    ("a = ?", "?"),
    ("a = array(1)", "ARRAY"),
    ("(a, b) = (1, 2)", "(a, b)"),
    ("*", "*"),
    ("a.* = 1", "a.*"),
    ("a = CAST('x' AS INT)", "does not fit the type"),
    ("a = CAST(300 AS TINYINT)", "does not fit the type"),
    ("a = CAST(1000 AS DECIMAL(3, 0))", "does not fit the type"),
    ("a = CAST(X'ff' AS STRING)", "does not fit the type"),
    ("a = DATE '2020-02-30'", "does not fit the type"),
    ("a = TIMESTAMP_NTZ '2020-01-01 00:00:00Z'", "does not fit the type"),
    ("a = 'x\\101'", "escape \\1"),
    ("a = 'x\\u0041'", "escape \\u"),
    ("a = \"it''s\"", "cannot parse the string"),
    ("a BETWEEN SYMMETRIC 1 AND 2", "cannot"),
]


@pytest.mark.parametrize(("text", "named"), REFUSED)
def test_what_is_not_supported_is_named(text: str, named: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        parse_filter(text)
    assert named in str(caught.value)
    assert "sqlglot" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_nesting_without_end_is_refused_not_crashed_on() -> None:
    with pytest.raises(InvalidFilter):
        parse_filter("(" * 5000 + "a = 1" + ")" * 5000)
    with pytest.raises(InvalidFilter):
        parse_filter("NOT " * 5000 + "a = 1")


def test_chains_of_thousands_are_read() -> None:
    parsed = parse_filter(" OR ".join(f"a = {i}" for i in range(2000)))
    assert isinstance(parsed, ast.Or)
    assert len(parsed.parts) == 2000


@given(st.text(st.sampled_from("ab'\"\\`%_()=<>!0.,- \nANDORTXin"), max_size=20))
@effort()
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidFilter):
        parse_filter(text)
