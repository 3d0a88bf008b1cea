"""The files of SQL cases, and how results are compared: see case_file.py."""

from collections import Counter

import pytest

from icefield import errors
from tests.sql.case_file import ExpectedError, Step, all_cases, difference, fixtures, read_cases


def test_cases_have_names_of_their_own_and_fixtures_that_exist() -> None:
    assert [name for name, count in Counter(case.name for case in all_cases()).items() if count > 1] == []
    for case in all_cases():
        assert case.steps, case.name
        assert set(case.fixtures) <= fixtures().keys(), case.name


def test_expected_errors_are_classes_of_this_package() -> None:
    kinds = {step.error.kind for case in all_cases() for step in case.steps if step.error}
    assert {kind for kind in kinds - {"Spark"} if not issubclass(getattr(errors, kind), errors.IcefieldError)} == set()


def test_the_parts_of_a_case_are_read() -> None:
    text = """
# a comment
@ a-01 | a title
$ stock
let v = SELECT 1
params {"x": 1}
> SELECT :x,
|   ${v}
= [1, "${v}"]
~ a note
> SELECT nothing
! InvalidInput: no column: nothing  @ line 1 pos 7
"""
    (case,) = read_cases(text, "file")
    kept, query, failing = case.steps
    assert (case.name, case.title, case.section, case.fixtures) == ("a-01", "a title", "file", ["stock"])
    assert (kept.keeps, kept.text) == ("v", "SELECT 1")
    assert (query.text, query.arguments, query.rows) == ("SELECT :x,\n  ${v}", {"x": 1}, [[1, "${v}"]])
    assert (failing.arguments, failing.error) == (
        None,
        ExpectedError("InvalidInput", "no column: nothing", (1, 7)),
    )


@pytest.mark.parametrize(
    ("expected", "rows", "is_same"),
    [
        ([[1, None]], [[1, None]], True),
        ([[1], [2]], [[2], [1]], True),
        ([[1]], [[1], [1]], False),
        ([[1], [1]], [[1]], False),
        ([[1]], [[True]], False),
        ([[1]], [[1.0]], False),
        ([["1"]], [[1]], False),
        ([["${v}"]], [[7]], True),
        ([["${v}"]], [[8]], False),
        ([["at <id>."]], [["at 12."]], True),
        ([["at <id>."]], [["at x."]], False),
        ([[{"a": [1]}]], [[{"a": [1]}]], True),
        ([[{"a": [1]}]], [[{"a": [2]}]], False),
    ],
)
def test_rows_are_compared_with_their_types(
    expected: list[list[object]], rows: list[list[object]], is_same: bool
) -> None:
    step = Step("SELECT 1", rows=expected, is_checked=True)
    assert (difference(step, rows, {"v": 7}) is None) is is_same


@pytest.mark.parametrize("text", ["SELECT a FROM t ORDER BY a", "DESCRIBE t"])
def test_the_order_of_rows_counts_where_the_statement_has_one(text: str) -> None:
    step = Step(text, rows=[[1], [2]], is_checked=True)
    assert difference(step, [[1], [2]], {}) is None
    assert difference(step, [[2], [1]], {}) is not None


@pytest.mark.parametrize(
    "text", ["SELECT row_number() OVER (ORDER BY a) FROM t", "SELECT a FROM (SELECT a ORDER BY a)"]
)
def test_an_order_inside_parentheses_is_not_that_of_the_rows(text: str) -> None:
    assert difference(Step(text, rows=[[1], [2]], is_checked=True), [[2], [1]], {}) is None


def test_further_rows_are_allowed_only_where_the_case_says_so() -> None:
    assert difference(Step("SELECT 1", rows=[[1]], is_checked=True), [[1], [2]], {}) is not None
    assert difference(Step("SELECT 1", rows=[[1]], has_more_rows=True, is_checked=True), [[1], [2]], {}) is None
