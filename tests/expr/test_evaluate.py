"""Pruning by statistics never loses a matching row, and never claims a row that does not match."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort
from tests.expr.cases import (
    ALL_TYPES,
    Row,
    all_leaves,
    expressions,
    is_nan,
    is_ordinary,
    pool_of,
    references,
    rows_of,
    sort_key,
    typed_columns,
)
from tests.expr.statistics_cases import Writer, column_statistics

from icefield.expr.bind.bound import Bound, Compare, Reference, complement
from icefield.expr.parse.ast import Operator
from icefield.expr.prune import evaluate
from icefield.expr.prune.evaluate import might_match, must_match
from icefield.expr.prune.ordered import Bools
from icefield.expr.prune.statistics import (
    Counts,
    FieldStatistics,
    from_counts_and_bounds,
    from_partition_values,
    from_summaries,
)
from icefield.expr.render.rows import matches
from icefield.types.arrow import arrow_array
from icefield.types.datatypes import (
    BinaryType,
    DoubleType,
    IntegerType,
    PrimitiveType,
    StringType,
    Value,
)
from icefield.types.values.binary import encode_value

Files = Sequence[Sequence[Row]]


def check_pruning(expression: Bound, files: Files, statistics: dict[int, FieldStatistics]) -> None:
    """The property: what might_match drops holds no matching row, what must_match claims no other."""
    might = might_match(expression, statistics.get, len(files))
    must = must_match(expression, statistics.get, len(files))
    for place, rows in enumerate(files):
        answers = [matches(expression, row) for row in rows]
        assert might[place] or not any(answers), f"lost a row of {rows}"
        assert not must[place] or all(answers), f"claimed a row of {rows}"


@st.composite
def pruning_cases(draw: st.DrawFn) -> tuple[Bound, Files, dict[int, FieldStatistics]]:
    columns = draw(typed_columns)
    files = draw(st.lists(st.lists(rows_of(columns), max_size=4), min_size=1, max_size=4))
    writer = draw(st.builds(Writer, text_length=st.integers(1, 4)))
    statistics = {c.field_id: column_statistics(files, c, writer) for c in columns}
    if draw(st.integers(0, 9)) == 0:
        statistics.popitem()
    return draw(expressions(columns)), files, statistics


@given(pruning_cases())
@effort(150)
def test_pruning_by_column_statistics_loses_and_claims_no_row(
    case: tuple[Bound, Files, dict[int, FieldStatistics]],
) -> None:
    check_pruning(*case)


LENGTHS = [(kind, 16) for kind in ALL_TYPES] + [(kind, n) for kind in (StringType(), BinaryType()) for n in (1, 2)]


@pytest.mark.parametrize(("kind", "text_length"), LENGTHS, ids=str)
def test_pruning_by_every_leaf_on_every_pair_of_nasty_values(kind: PrimitiveType, text_length: int) -> None:
    (column,) = references([kind])
    pool: list[Value | None] = [*pool_of(kind), None]
    pairs = list(itertools.combinations_with_replacement(range(len(pool)), 2))
    files = [[{1: pool[a]}, {1: pool[b]}] for a, b in pairs]
    known = {1: column_statistics(files, column, Writer(text_length))}
    for leaf in all_leaves(column):
        answers = [matches(leaf, {1: value}) for value in pool]
        any_match = np.array([answers[a] or answers[b] for a, b in pairs])
        all_match = np.array([answers[a] and answers[b] for a, b in pairs])
        assert not np.any(any_match & ~might_match(leaf, known.get, len(files))), leaf
        assert not np.any(must_match(leaf, known.get, len(files)) & ~all_match), leaf


@given(st.data(), typed_columns)
@effort(150)
def test_pruning_by_partition_values_decides_exactly(data: st.DataObject, columns: tuple[Reference, ...]) -> None:
    rows = data.draw(st.lists(rows_of(columns), min_size=1, max_size=6))
    expression = data.draw(expressions(columns))
    values = {
        c.field_id: from_partition_values(arrow_array([r[c.field_id] for r in rows], c.type), c.type) for c in columns
    }
    expected = [matches(expression, row) for row in rows]
    assert might_match(expression, values.get, len(rows)).tolist() == expected or _has_like(expression)
    check_pruning(expression, [[row] for row in rows], values)


def _has_like(expression: Bound) -> bool:
    return "Like(" in repr(expression)


@given(st.data(), st.sampled_from(ALL_TYPES))
@effort(150)
def test_pruning_by_manifest_summaries_loses_and_claims_no_row(data: st.DataObject, kind: PrimitiveType) -> None:
    columns = references([kind])
    manifests = data.draw(st.lists(st.lists(rows_of(columns), min_size=1, max_size=4), min_size=1, max_size=4))
    statistics = {1: _summaries([[row[1] for row in rows] for rows in manifests], kind)}
    check_pruning(data.draw(expressions(columns)), manifests, statistics)


def _summaries(manifests: list[list[Value | None]], kind: PrimitiveType) -> FieldStatistics:
    ordinary = [sorted((v for v in m if v is not None and is_ordinary(v)), key=sort_key) for m in manifests]
    return from_summaries(
        pa.array([None in m for m in manifests]),
        pa.array([any(map(is_nan, m)) for m in manifests]),
        pa.array([encode_value(o[0], kind) if o else None for o in ordinary], pa.binary()),
        pa.array([encode_value(o[-1], kind) if o else None for o in ordinary], pa.binary()),
        kind,
    )


@given(typed_columns.flatmap(lambda columns: st.tuples(expressions(columns), rows_of(columns))))
@effort(100)
def test_the_complement_matches_exactly_the_other_rows(case: tuple[Bound, Row]) -> None:
    expression, row = case
    assert matches(complement(expression), row) is not matches(expression, row)


# Each rule, broken on purpose, must be seen by the property.

FLOAT_COLUMN, TEXT_COLUMN = Reference(1, DoubleType(), ("f",)), Reference(1, StringType(), ("s",))


def _statistics(rows: list[Row], column: Reference, text_length: int = 16) -> dict[int, FieldStatistics]:
    return {1: column_statistics([rows], column, Writer(text_length))}


def test_the_property_sees_an_evaluator_that_ignores_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [{1: 1.0}, {1: math.nan}]
    expression = Compare(FLOAT_COLUMN, Operator.GT, 5.0)
    check_pruning(expression, [rows], _statistics(rows, FLOAT_COLUMN))

    def without_nan(operator: Operator, value: Value, known: FieldStatistics) -> Bools:
        return known.may_be_value & ~known.upper.compare(Operator.LE, value)

    monkeypatch.setattr(evaluate, "_compare_might", without_nan)
    with pytest.raises(AssertionError, match="lost a row"):
        check_pruning(expression, [rows], _statistics(rows, FLOAT_COLUMN))


def test_the_property_sees_bounds_used_without_their_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    column = Reference(1, IntegerType(), ("i",))
    rows: list[Row] = [{1: 3}]
    expression = Compare(column, Operator.LE, 3)
    check_pruning(expression, [rows], _statistics(rows, column))

    def off_by_one(operator: Operator, value: Value, known: FieldStatistics) -> Bools:
        return known.may_be_value & ~known.lower.compare(Operator.GE, value)

    monkeypatch.setattr(evaluate, "_compare_might", off_by_one)
    with pytest.raises(AssertionError, match="lost a row"):
        check_pruning(expression, [rows], _statistics(rows, column))


def test_the_property_sees_truncated_bounds_taken_for_values() -> None:
    rows: list[Row] = [{1: "abc"}]
    lower = upper = pa.array([b"ab"])
    counts = Counts(*(pa.array([n], pa.int64()) for n in (1, 0, 0, 1)))
    broken = {1: from_counts_and_bounds(lower, upper, counts, StringType())}
    with pytest.raises(AssertionError, match="lost a row"):
        check_pruning(Compare(TEXT_COLUMN, Operator.EQ, "abc"), [rows], broken)


def test_the_property_sees_nulls_forgotten() -> None:
    rows: list[Row] = [{1: None}, {1: 1.0}]
    known = _statistics(rows, FLOAT_COLUMN)[1]
    broken = {1: replace(known, may_be_null=~known.may_be_null)}
    with pytest.raises(AssertionError, match="claimed a row"):
        check_pruning(Compare(FLOAT_COLUMN, Operator.EQ, 1.0), [rows], broken)
