"""Filters through partition transforms: no matching row's partition is dropped, no other row's is claimed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort, sample
from tests.expr.cases import ALL_TYPES, all_leaves, expressions, pool_of, references, values_of

from icefield.errors import InvalidInput
from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import FALSE, TRUE, Bound, Compare, Reference
from icefield.expr.parse.ast import Operator
from icefield.expr.prune import project_numbers
from icefield.expr.prune import project_strings as project_text
from icefield.expr.prune.evaluate import might_match, must_match
from icefield.expr.prune.project import PartitionTerm, project_inclusive, project_strict
from icefield.expr.prune.statistics import FieldStatistics, from_partition_values
from icefield.expr.render.describe import describe
from icefield.expr.render.rows import matches
from icefield.types.arrow import arrow_array, python_values
from icefield.types.datatypes import (
    DateType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    Value,
)
from icefield.types.schema import Schema
from icefield.types.text import parse_schema
from icefield.types.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Unknown, Void, Year

pytestmark = pytest.mark.every_case

TRANSFORMS: list[Transform] = [
    Identity(), Void(), Unknown("zorder[2]"), Bucket(1), Bucket(3), Bucket(16),
    Truncate(1), Truncate(2), Truncate(3), Truncate(10), Year(), Month(), Day(), Hour(),
]  # fmt: skip
PAIRS = [(t, kind) for t in TRANSFORMS for kind in ALL_TYPES if t.fits(kind)]


@dataclass(frozen=True)
class Partitioned:
    """Rows of one column, and the partition value of each."""

    term: PartitionTerm
    values: Sequence[Value | None]
    partitions: Sequence[Value | None]
    known: FieldStatistics


def partitioned(values: Sequence[Value | None], term: PartitionTerm) -> Partitioned:
    array, kind = arrow_array(values, term.source_type), term.reference.type
    unknown = isinstance(term.transform, Unknown)
    result = pa.array(["?"] * len(values)) if unknown else term.transform.apply(array, term.source_type)
    return Partitioned(term, values, python_values(result, kind), from_partition_values(result, kind))


def check_projection(expression: Bound, rows: Partitioned) -> None:
    """The property: each row's partition value stands for a file with that row."""
    inclusive, strict = project_inclusive(expression, [rows.term]), project_strict(expression, [rows.term])
    known = {rows.term.field_id: rows.known}
    might = might_match(inclusive, known.get, len(rows.values))
    must = must_match(strict, known.get, len(rows.values))
    for place, (value, partition) in enumerate(zip(rows.values, rows.partitions, strict=True)):
        row, answer = {rows.term.field_id: partition}, matches(expression, {1: value})
        kept = matches(inclusive, row) and might[place]
        claimed = matches(strict, row) or must[place]
        assert kept or not answer, f"lost {value!r} in {partition!r}"
        assert answer or not claimed, f"claimed {value!r} in {partition!r}"


def _writable(value: Value | None, transform: Transform, kind: PrimitiveType) -> bool:
    if value is None or isinstance(transform, Unknown):
        return True
    try:
        transform.apply_value(value, kind)
    except InvalidInput:
        return False
    return True


@given(st.data(), st.sampled_from(PAIRS))
@effort(120)
def test_projection_loses_and_claims_no_row(data: st.DataObject, pair: tuple[Transform, PrimitiveType]) -> None:
    transform, kind = pair
    drawn = data.draw(st.lists(st.none() | values_of(kind), min_size=1, max_size=8))
    values = [v for v in drawn if _writable(v, transform, kind)]
    rows = partitioned(values, PartitionTerm(1000, 1, transform, kind))
    check_projection(data.draw(expressions(references([kind]))), rows)


@pytest.mark.parametrize(("transform", "kind"), sample(PAIRS, 3, lambda pair: str(pair[0])), ids=str)
def test_projection_of_every_leaf_on_every_nasty_value(transform: Transform, kind: PrimitiveType) -> None:
    (column,) = references([kind])
    values = [v for v in (*pool_of(kind), None) if _writable(v, transform, kind)]
    rows = partitioned(values, PartitionTerm(1000, 1, transform, kind))
    for leaf in all_leaves(column):
        check_projection(leaf, rows)


INT_TERM = PartitionTerm(1000, 1, Truncate(10), IntegerType(), "i_trunc")
INT_COLUMN = Reference(1, IntegerType(), ("i",))


def test_the_property_sees_less_than_without_its_boundary_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    expression = Compare(INT_COLUMN, Operator.LT, 11)
    check_projection(expression, partitioned([10], INT_TERM))

    def broken(operator: Operator, number: int, reference: Reference, steps: Any) -> Bound:
        return Compare(reference, Operator.LT, steps.step(number))

    monkeypatch.setattr(project_numbers, "_project_comparison", broken)
    with pytest.raises(AssertionError, match="lost 10 in 10"):
        check_projection(expression, partitioned([10], INT_TERM))


def test_the_property_sees_a_strict_projection_taken_from_the_inclusive_one(monkeypatch: pytest.MonkeyPatch) -> None:
    expression = Compare(INT_COLUMN, Operator.GE, 11)
    check_projection(expression, partitioned([10], INT_TERM))

    def broken(operator: Operator, number: int, reference: Reference, steps: Any) -> Bound:
        return FALSE

    monkeypatch.setattr(project_numbers, "_project_comparison", broken)
    with pytest.raises(AssertionError, match="claimed 10 in 10"):
        check_projection(expression, partitioned([10], INT_TERM))


def test_the_property_sees_the_wrapped_lowest_partition_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    lowest = -(1 << 31)
    expression = Compare(INT_COLUMN, Operator.LT, 0)
    check_projection(expression, partitioned([lowest], INT_TERM))
    plain = project_numbers._truncation

    def broken(width: int, domain: Any, source: PrimitiveType) -> Any:
        steps = plain(width, domain, source)
        return project_numbers.Steps(steps.source, steps.result, steps.step, None, False)

    monkeypatch.setattr(project_numbers, "_truncation", broken)
    with pytest.raises(AssertionError, match="lost"):
        check_projection(expression, partitioned([lowest], INT_TERM))


def test_the_property_sees_a_long_prefix_taken_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    expression = bind("s LIKE 'abcd%'", parse_schema("s string"))
    term = PartitionTerm(1000, 1, Truncate(3), StringType())
    check_projection(expression, partitioned(["abcde"], term))

    def broken(prefix: str, reference: Reference, width: int) -> Bound:
        return Compare(reference, Operator.EQ, prefix)

    monkeypatch.setattr(project_text, "_project_prefix", broken)
    with pytest.raises(AssertionError, match="lost 'abcde' in 'abc'"):
        check_projection(expression, partitioned(["abcde"], term))


SCHEMA = parse_schema("i int, s string, ts timestamp, d date, f double, n decimal(9, 2), l long")


def _term(column: str, transform: Transform, field_id: int = 1000, schema: Schema = SCHEMA) -> PartitionTerm:
    field = schema.find_field(column)
    assert isinstance(field.type, PrimitiveType)
    return PartitionTerm(field_id, field.field_id, transform, field.type, "p")


CASES = [
    # column, transform, filter, inclusive, strict
    ("i", Identity(), "i < 5", "p < 5", "p < 5"),
    ("i", Bucket(16), "i = 34", "p = 3", "FALSE"),
    ("i", Bucket(16), "i IN (34, 35)", "p IN (3, 5)", "FALSE"),
    ("i", Bucket(16), "i != 34", "p IS NOT NULL", "p != 3"),
    ("i", Bucket(16), "i > 34", "p IS NOT NULL", "FALSE"),
    ("i", Bucket(16), "i IS NULL", "p IS NULL", "p IS NULL"),
    ("i", Void(), "i = 5", "TRUE", "FALSE"),
    ("i", Void(), "i IS NULL", "TRUE", "FALSE"),
    ("i", Unknown("later[3]"), "i = 5", "TRUE", "FALSE"),
    ("l", Truncate(16), "l < 32", "p <= 16", "p < 32"),
    ("l", Truncate(16), "l <= 32", "p <= 32", "p < 32"),
    ("l", Truncate(16), "l > 31", "p >= 32", "p > 16"),
    ("l", Truncate(16), "l >= 31", "p >= 16", "p > 16"),
    ("l", Truncate(16), "l = -1", "p = -16", "FALSE"),
    ("n", Truncate(50), "n < 1.00", "p <= 0.50", "p < 1.00"),
    ("s", Truncate(3), "s LIKE 'ab%'", "startswith(p, 'ab')", "startswith(p, 'ab')"),
    ("s", Truncate(3), "s LIKE 'abc%'", "p = 'abc'", "p = 'abc'"),
    ("s", Truncate(3), "s LIKE 'abcd%'", "p = 'abc'", "FALSE"),
    ("s", Truncate(3), "s LIKE 'ab_d%'", "startswith(p, 'ab')", "FALSE"),
    ("s", Truncate(3), "s NOT LIKE 'abcd%'", "p IS NOT NULL", "p != 'abc'"),
    ("s", Truncate(3), "s < 'abcd'", "p <= 'abc'", "p < 'abc'"),
    ("s", Truncate(3), "s < 'abc'", "p < 'abc'", "p < 'abc'"),
    ("s", Truncate(3), "s = 'ab'", "p = 'ab'", "p = 'ab'"),
    ("s", Truncate(3), "s = 'abcd'", "p = 'abc'", "FALSE"),
    ("s", Truncate(3), "s > 'ab'", "p > 'ab'", "p > 'ab'"),
    ("ts", Day(), "ts < '2020-01-02'", "p <= DATE '2020-01-01'", "p < DATE '2020-01-02'"),
    ("ts", Day(), "ts >= '2020-01-02 00:00:00.000001'", "p >= DATE '2020-01-02'", "p > DATE '2020-01-02'"),
    ("ts", Month(), "ts = '2020-02-03'", "p = 601", "FALSE"),
    ("ts", Year(), "ts > '2019-12-31 23:59:59.999999'", "p >= 50", "p > 49"),
    ("ts", Hour(), "ts < '1970-01-01 02:00:00'", "p <= 1", "p < 2"),
    # Old writers put times before 1970 one partition too high.
    ("ts", Day(), "ts < '1969-12-31'", "p <= DATE '1969-12-31'", "p < DATE '1969-12-31'"),
    ("ts", Day(), "ts = '1969-12-31'", "p IN (DATE '1969-12-31', DATE '1970-01-01')", "FALSE"),
    ("d", Day(), "d = '1969-12-31'", "p = DATE '1969-12-31'", "p = DATE '1969-12-31'"),
    ("d", Month(), "d < '1969-11-01'", "p <= -2", "p < -2"),
    ("f", Identity(), "isnan(f)", "isnan(p)", "isnan(p)"),
    ("f", Identity(), "f > 5", "p > 5.0", "p > 5.0"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "transform", "text", "inclusive", "strict"), CASES)
def test_projections(column: str, transform: Transform, text: str, inclusive: str, strict: str) -> None:
    expression, terms = bind(text, SCHEMA), [_term(column, transform)]
    assert describe(project_inclusive(expression, terms)) == inclusive
    assert describe(project_strict(expression, terms)) == strict


def test_columns_outside_the_spec_are_not_projected() -> None:
    expression = bind("i = 5 AND s = 'x'", SCHEMA)
    assert describe(project_inclusive(expression, [_term("s", Identity())])) == "p = 'x'"
    assert project_strict(expression, [_term("s", Identity())]) == FALSE
    assert project_inclusive(bind("i = 5 OR s = 'x'", SCHEMA), [_term("s", Identity())]) == TRUE


def test_two_fields_of_one_column_both_prune() -> None:
    terms = [_term("i", Bucket(16), 1000), _term("i", Truncate(16), 1001)]
    expression = bind("i = 34", SCHEMA)
    assert describe(project_inclusive(expression, terms)) == "p = 3 AND p = 32"
    strict = project_strict(bind("i != 34", SCHEMA), terms)
    assert matches(strict, {1000: 3, 1001: 48})
    assert not matches(strict, {1000: 3, 1001: 32})


def test_a_transform_that_does_not_fit_its_column_is_ignored() -> None:
    assert project_inclusive(bind("f = 5", SCHEMA), [_term("f", Bucket(4))]) == TRUE


@pytest.mark.parametrize("kind", [IntegerType(), LongType()])
def test_the_lowest_integers_are_found_where_the_reference_puts_them(kind: PrimitiveType) -> None:
    lowest = -(1 << 31) if kind == IntegerType() else -(1 << 63)
    term = PartitionTerm(1000, 1, Truncate(10), kind)
    column = Reference(1, kind, ("c",))
    rows = partitioned([lowest, lowest + 7, lowest + 8, lowest + 9, -1, 0], term)
    for operator in Operator:
        for bound in (lowest, lowest + 1, lowest + 8, lowest + 9, 0):
            check_projection(Compare(column, operator, bound), rows)


@pytest.mark.parametrize(
    ("transform", "kind"),
    [(t, TimestampType()) for t in (Year(), Month(), Day(), Hour())] + [(t, DateType()) for t in (Year(), Month())],
)
def test_partitions_one_too_high_before_1970_lose_no_row(transform: Transform, kind: PrimitiveType) -> None:
    unit = 1 if kind == DateType() else 43_200_000_000
    term, column = PartitionTerm(1000, 1, transform, kind), Reference(1, kind, ("c",))
    for value in range(-800 * unit, 0, 13 * unit):
        right = transform.apply_value(value, kind)
        assert isinstance(right, int)
        for operator in Operator:
            for offset in (-unit, 0, unit):
                expression = Compare(column, operator, value + offset)
                row: dict[int, Value | None] = {1000: right + 1}
                if matches(expression, {1: value}):
                    assert matches(project_inclusive(expression, [term]), row)
                else:
                    assert not matches(project_strict(expression, [term]), row)
