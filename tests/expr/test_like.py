"""LIKE patterns."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort
from tests.expr.cases import CHARACTERS

from icefield.expr.parse.like import LikePattern, Wildcard, parse_like


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("abc", ["abc"], ["ab", "abcd", "ABC", ""]),
        ("a%", ["a", "ab", "a\nb"], ["", "ba"]),
        ("%a", ["a", "ba", "\na"], ["ab", "a\n"]),
        ("a_c", ["abc", "a\nc", "a😀c"], ["ac", "abbc"]),
        ("%", ["", "x", "\n"], []),
        ("", [""], ["x"]),
        ("a\\%b", ["a%b"], ["axb"]),
        ("a\\_b", ["a_b"], ["axb"]),
        ("a\\\\b", ["a\\b"], ["ab"]),
        ("a.b*", ["a.b*"], ["axbb"]),
        ("%a%b%", ["ab", "xaxbx"], ["ba"]),
    ],
)
def test_matching(pattern: str, matching: list[str], other: list[str]) -> None:
    parsed = parse_like(pattern)
    assert [text for text in matching + other if parsed.matches(text)] == matching


@pytest.mark.parametrize(
    ("pattern", "prefix", "is_literal", "is_prefix"),
    [
        ("abc", "abc", True, False),
        ("abc%", "abc", False, True),
        ("abc%%", "abc", False, True),
        ("abc_%", "abc", False, False),
        ("%", "", False, True),
        ("", "", True, False),
        ("%a", "", False, False),
        ("a\\%b%", "a%b", False, True),
    ],
)
def test_what_a_pattern_is(pattern: str, prefix: str, is_literal: bool, is_prefix: bool) -> None:
    parsed = parse_like(pattern)
    assert (parsed.prefix, parsed.is_literal, parsed.is_prefix) == (prefix, is_literal, is_prefix)


@pytest.mark.parametrize(("pattern", "escape"), [("a\\", "\\"), ("a\\b", "\\"), ("a!b", "!"), ("a", ""), ("a", "ab")])
def test_patterns_that_spark_refuses(pattern: str, escape: str) -> None:
    with pytest.raises(ValueError, match="escape"):
        parse_like(pattern, escape)


TOKENS = st.lists(st.sampled_from(list(Wildcard)) | st.text(CHARACTERS + "!\\", min_size=1, max_size=3), max_size=5)


@given(TOKENS, st.text(CHARACTERS + "!\\", max_size=6), st.sampled_from("!\\#"))
@effort()
def test_a_pattern_survives_as_sql_and_matches_only_with_its_prefix(
    tokens: list[str | Wildcard], text: str, escape: str
) -> None:
    pattern = parse_like(LikePattern(tuple(tokens)).sql(escape), escape)
    assert parse_like(pattern.sql("#"), "#") == pattern
    if pattern.matches(text):
        assert text.startswith(pattern.prefix)
    wild = {Wildcard.ANY_TEXT: ".*", Wildcard.ANY_CHARACTER: "."}
    parts = [re.escape(token) if isinstance(token, str) else wild[token] for token in tokens]
    assert pattern.matches(text) is bool(re.fullmatch("".join(parts), text, re.DOTALL))
