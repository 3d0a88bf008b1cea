"""Residuals: what is left of a filter means, on a file's rows, what the filter means."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort
from tests.expr.cases import Row, expressions, references, rows_of, typed_columns
from tests.expr.statistics_cases import Writer, column_statistics

from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import FALSE, TRUE, Bound, Reference, conjuncts
from icefield.expr.prune import residual as residuals
from icefield.expr.prune.evaluate import might_match
from icefield.expr.prune.residual import MOST_UNITS, FileStatistics, Residuals, common_code, find_residuals, residual
from icefield.expr.render.describe import describe
from icefield.expr.render.rows import matches
from icefield.types.datatypes import LongType, NestedField
from icefield.types.schema import Schema

Files = Sequence[Sequence[Row]]
LONGS = references([LongType(), LongType()])


def residuals_of(where: Bound, columns: Sequence[Reference], files: Files, writer: Writer) -> tuple[Files, Residuals]:
    """Prove what the statistics of files that may match tell; files that cannot match are left out."""
    known = {c.field_id: column_statistics(files, c, writer) for c in columns}
    kept = [file for file, keep in zip(files, might_match(where, known.get, len(files)), strict=True) if keep]
    left = {c.field_id: column_statistics(kept, c, writer) for c in columns}
    return kept, find_residuals(where, FileStatistics((), lambda _: None, left.get, len(kept)))


def check_residuals(where: Bound, columns: Sequence[Reference], files: Files, writer: Writer) -> None:
    kept, found = residuals_of(where, columns, files, writer)
    common = residual(where, common_code(found.codes))
    for rows, code, always, never in zip(kept, found.codes, found.always, found.never, strict=True):
        left = residual(where, int(code))
        answers = [matches(where, row) for row in rows]
        assert [matches(left, row) for row in rows] == answers
        assert [matches(common, row) for row in rows] == answers
        assert all(answers) or not always
        assert not any(answers) or not never


@given(st.data(), typed_columns)
@effort(150)
def test_a_residual_matches_the_rows_of_its_file_that_the_filter_matches(
    data: st.DataObject, columns: tuple[Reference, ...]
) -> None:
    files = data.draw(st.lists(st.lists(rows_of(columns), max_size=4), min_size=1, max_size=4))
    writer = data.draw(st.builds(Writer, text_length=st.integers(1, 4)))
    check_residuals(data.draw(expressions(columns)), columns, files, writer)


def test_the_property_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residuals, "must_match", might_match)
    with pytest.raises(AssertionError):
        check_residuals(bound("c1 > 1"), LONGS, [[{1: 1, 2: 1}, {1: 2, 2: 2}]], Writer())


def bound(text: str) -> Bound:
    return bind(text, Schema(tuple(NestedField(c.field_id, c.path[0], c.type) for c in LONGS)))


def left_of(text: str, *rows: tuple[int | None, int | None]) -> str:
    """Return what is left of a filter for one file with these rows."""
    where = bound(text)
    file: list[Row] = [{1: first, 2: second} for first, second in rows]
    _, found = residuals_of(where, LONGS, [file], Writer())
    return describe(residual(where, int(found.codes[0])))


@pytest.mark.parametrize(
    ("text", "rows", "left"),
    [
        ("c1 > 1 AND c2 > 1", [(5, 1), (6, 2)], "c2 > 1"),
        ("c1 > 1 AND c2 > 1", [(5, 2), (6, 2)], "TRUE"),
        ("c1 > 5 AND c2 > 1", [(5, 1), (6, 2)], "c1 > 5 AND c2 > 1"),
        ("(c1 = 1 AND c2 > 3) OR (c1 = 2 AND c2 > 4)", [(1, 3), (1, 5)], "c2 > 3"),
        ("c1 = 9 OR c2 > 3", [(1, 3), (1, 5)], "c2 > 3"),
        ("c1 < 9 OR c1 IS NULL", [(1, 3), (None, 5)], "TRUE"),
        ("c1 IS NOT NULL AND c2 > 3", [(1, 3), (1, 5)], "c2 > 3"),
    ],
)
def test_what_metadata_answers_is_left_out(text: str, rows: list[tuple[int | None, int | None]], left: str) -> None:
    assert left_of(text, *rows) == left


def test_alternatives_that_different_statistics_rule_out_leave_nothing() -> None:
    where = bound("(c1 = 1 AND c2 = 1) OR (c1 = 2 AND c2 = 2)")
    file: list[Row] = [{1: 1, 2: 2}]
    known = {c.field_id: column_statistics([file], c, Writer()) for c in LONGS}
    found = find_residuals(where, FileStatistics((), lambda _: None, known.get, 1))
    assert found.never.tolist() == [True]
    assert residual(where, int(found.codes[0])) == FALSE


def test_of_a_filter_with_too_many_parts_the_rest_is_kept() -> None:
    where = bound(" AND ".join(f"c1 > {n}" for n in range(MOST_UNITS + 2)))
    known = {1: column_statistics([[{1: 1_000, 2: 0}]], LONGS[0], Writer())}
    found = find_residuals(where, FileStatistics((), lambda _: None, known.get, 1))
    assert found.always.tolist() == [True]
    assert conjuncts(residual(where, int(found.codes[0]))) == conjuncts(where)[MOST_UNITS:]


def test_a_code_of_zero_is_the_filter_itself() -> None:
    where = bound("c1 > 1")
    assert residual(where, 0) is where
    assert residual(TRUE, 3) == TRUE
    assert common_code(np.array([0b0101, 0b0001], np.int64)) == 0b0001
    assert common_code(np.zeros(0, np.int64)) == 0
