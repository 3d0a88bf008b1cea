"""Reading the tokens of a statement."""

from decimal import Decimal

import pytest

from icefield.errors import InvalidInput
from icefield.sql.syntax.cursor import Cursor, Parameters
from icefield.sql.syntax.place import Place, as_written
from icefield.sql.syntax.strings import literal_of


def test_words_are_matched_in_any_case_and_none_is_reserved() -> None:
    cursor = Cursor("Drop TABLE If exists shop.`table`.drop PURGE")
    assert cursor.accept("drop", "table")
    assert not cursor.accept("if", "not", "exists")
    cursor.expect("if", "exists")
    assert cursor.name().parts == ("shop", "table", "drop")
    assert cursor.expect_any("purge", "cascade") == "purge"
    cursor.expect_end()


def test_an_error_points_at_the_token_that_is_wrong() -> None:
    cursor = Cursor("DROP\n  TABLE 'x'")
    cursor.expect("drop", "table")
    with pytest.raises(InvalidInput, match="expected a name, but found \"'x'\"") as caught:
        cursor.name()
    assert caught.value.position == (2, 8)
    assert caught.value.excerpt == "  line 2:   TABLE 'x'\n                  ^^^"


@pytest.mark.parametrize(
    ("length", "start"), [(80, 70), (120, 119), (120, 120), (121, 0), (400, 61), (400, 300), (400, 400)]
)
def test_an_excerpt_cuts_long_lines_only(length: int, start: int) -> None:
    line = "".join(chr(ord("!") + at % 90) for at in range(length))
    first, carets = Place(line, start, start + 1).excerpt.splitlines()
    shown = first.removeprefix("  line 1: ")
    assert len(shown) == min(length, 120)
    assert first[carets.index("^") :][:1] == line[start : start + 1]
    assert (shown == line) is (length <= 120)


def test_an_excerpt_is_one_line_whose_carets_are_below_the_part() -> None:
    line = "a\tb\x0cc\x85d\u2028e\x1b[31mf"
    first, carets = Place(f"x\n{line}\r\ny", 2 + line.index("f"), 3 + line.index("f")).excerpt.split("\n")
    assert first == "  line 2: a b c d e [31mf"
    assert first[carets.index("^")] == "f"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\x0c\n", "\u2028\n", "\x85\n\n"])
def test_a_line_is_what_ends_with_a_line_feed(end: str) -> None:
    text = f"SELECT{end}  nothing FROM t"
    with pytest.raises(InvalidInput) as caught, as_written(text):
        raise Place(text, text.index("nothing"), text.index(" FROM")).error("unknown", kind=InvalidInput)
    line, column = caught.value.position or (0, 0)
    assert text.split("\n")[line - 1][column:].startswith("nothing")
    assert str(caught.value.excerpt) == f"  line {line}:   nothing FROM t\n{' ' * 12}{'^' * 7}"


def test_an_error_at_the_end_points_behind_the_last_token() -> None:
    cursor = Cursor("DROP  -- what?")
    cursor.expect("drop")
    with pytest.raises(InvalidInput, match="expected TABLE, but found the end of the statement") as caught:
        cursor.expect("table")
    assert caught.value.position == (1, 4)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a = 1 WHERE b", "a = 1"),
        ("(SELECT x WHERE y) > 1 WHERE b", "(SELECT x WHERE y) > 1"),
        ("CASE WHEN a THEN where END WHERE b", "CASE WHEN a THEN where END"),
        ("'WHERE' WHERE b", "'WHERE'"),
        ("a -- WHERE\n + 1 WHERE b", "a -- WHERE\n + 1"),
    ],
)
def test_an_expression_ends_at_a_word_outside_parentheses(text: str, found: str) -> None:
    cursor = Cursor(text)
    assert cursor.until("where").text == found
    assert cursor.is_at("where", "b")


def test_a_text_in_parentheses() -> None:
    cursor = Cursor("(a, (b), ')') rest")
    assert cursor.parenthesized().text == "a, (b), ')'"
    assert cursor.is_at("rest")
    assert Cursor("()").parenthesized().text == ""
    with pytest.raises(InvalidInput, match="not closed"):
        Cursor("(a").parenthesized()


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("12L", 12), ("1.50", Decimal("1.50")), ("1e3", 1000.0), ("2.5D", 2.5), ("7BD", Decimal(7))],
)
def test_numbers_have_the_types_that_spark_gives_them(text: str, value: object) -> None:
    read = Cursor(text).number()
    assert (read, type(read)) == (value, type(value))


def test_parameters_are_found_by_name_and_by_position() -> None:
    named = Cursor(":a", parameters=Parameters(named={"a": 1}))
    assert named.is_at_parameter
    assert named.parameter() == 1
    second = Cursor("f('?', ?, ?)", start=10, parameters=Parameters(positional=[1, 2]))
    assert second.parameter() == 2
    with pytest.raises(InvalidInput, match="no value for the parameter :b \\(given: a\\)"):
        Cursor(":b", parameters=Parameters(named={"a": 1})).parameter()
    with pytest.raises(InvalidInput, match="no value for the 1. parameter"):
        Cursor("?").parameter()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        (r"'\''''", "''"),
        (r"'a\\''b'", "a\\'b"),
        (r"""'a""b'""", 'a""b'),
        (r'"a""b"', 'a"b'),
        (r"r'a\n'", r"a\n"),
        (r"'a\tb\u00e9\351\%'", "a\tbéé\\%"),
        ("$$it's$$", "it's"),
        ("$x$ $$ $x$", " $$ "),
    ],
)
def test_string_literals_are_read_as_spark_reads_them(written: str, value: str) -> None:
    assert Cursor(written).string() == value


@pytest.mark.parametrize("value", ["it's", "a\\b", "${x}", "line\nbreak", "é", ""])
def test_a_string_that_is_written_as_a_literal_is_read_back(value: str) -> None:
    assert Cursor(literal_of(value)).string() == value


def test_a_name_may_be_in_a_text_or_a_parameter() -> None:
    cursor = Cursor("IDENTIFIER('shop.' || :t) x", parameters=Parameters(named={"t": "`my table`"}))
    name = cursor.name()
    assert (name.parts, name.place.text, cursor.peek()) == (("shop", "my table"), "IDENTIFIER('shop.' || :t)", "x")
    with pytest.raises(InvalidInput, match="'a b' is not a name"):
        Cursor("IDENTIFIER('a b')").name()
    with pytest.raises(InvalidInput, match="is not a text"):
        Cursor("IDENTIFIER(?)", parameters=Parameters(positional=[1])).name()
    assert Cursor("identifier.t").name().parts == ("identifier", "t")
