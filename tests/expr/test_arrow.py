"""Arrow filters keep exactly the rows that match."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort
from tests.expr.cases import (
    ALL_TYPES,
    Row,
    all_leaves,
    expressions,
    pool_of,
    references,
    rows_of,
    typed_columns,
)

from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import Bound, Compare, Reference, all_of, any_of, one_of
from icefield.expr.parse.ast import Operator
from icefield.expr.render import arrow
from icefield.expr.render.arrow import arrow_filter, row_group_filter
from icefield.expr.render.rows import matches, values_by_id
from icefield.types.arrow import arrow_array, arrow_schema, arrow_type
from icefield.types.datatypes import DoubleType, IntegerType, PrimitiveType, VariantType
from icefield.types.text import parse_schema


def table_of(columns: Sequence[Reference], rows: Sequence[Row]) -> pa.Table:
    return pa.table({c.path[0]: arrow_array([row[c.field_id] for row in rows], c.type) for c in columns})


def check_filter(expression: Bound, columns: Sequence[Reference], rows: Sequence[Row]) -> None:
    """The property: the filter keeps the rows that match, and no other."""
    table = table_of(columns, rows).append_column("at", pa.array(range(len(rows)), pa.int64()))
    kept = table.filter(arrow_filter(expression))["at"].to_pylist()
    assert kept == [place for place, row in enumerate(rows) if matches(expression, row)]


@given(st.data(), typed_columns)
@effort(100)
def test_arrow_keeps_exactly_the_matching_rows(data: st.DataObject, columns: tuple[Reference, ...]) -> None:
    rows = data.draw(st.lists(rows_of(columns), min_size=1, max_size=8))
    check_filter(data.draw(expressions(columns)), columns, rows)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_arrow_agrees_on_every_leaf_and_every_nasty_value(kind: PrimitiveType) -> None:
    columns = (column,) = references([kind])
    rows: list[Row] = [{1: value} for value in (*pool_of(kind), None)]
    for leaf in all_leaves(column):
        check_filter(leaf, columns, rows)


COLUMN = Reference(1, DoubleType(), ("c1",))


def test_the_property_sees_arrows_own_order_of_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [{1: math.nan}, {1: 7.0}]
    check_filter(Compare(COLUMN, Operator.GT, 5.0), [COLUMN], rows)
    monkeypatch.setattr(arrow, "_compare", lambda column, operator, value, kind: column > value)
    with pytest.raises(AssertionError):
        check_filter(Compare(COLUMN, Operator.GT, 5.0), [COLUMN], rows)


def test_the_property_sees_zeros_told_apart_by_their_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [{1: -0.0}, {1: 0.0}]
    check_filter(one_of(COLUMN, [0.0, 1.0]), [COLUMN], rows)
    monkeypatch.setattr(arrow, "_with_both_zeros", lambda values: values)
    with pytest.raises(AssertionError):
        check_filter(one_of(COLUMN, [0.0, 1.0]), [COLUMN], rows)


def test_fields_inside_structs_are_found_by_their_path() -> None:
    schema = parse_schema("a struct<b: int, c: struct<d: string>>")
    rows: list[dict[str, Any]] = [{"a": {"b": 1, "c": {"d": "x"}}}, {"a": {"b": None, "c": None}}, {"a": None}]
    table = pa.table({"a": pa.array([row["a"] for row in rows], pa.struct([
        ("b", pa.int32()), ("c", pa.struct([("d", pa.string())])),
    ]))})  # fmt: skip
    for text in ("a.b = 1", "a.b IS NULL", "a.c.d LIKE 'x%'", "a.c.d IS NULL", "NOT a.b = 2"):
        expression = bind(text, schema)
        expected = [matches(expression, values_by_id(schema, row)) for row in rows]
        assert table.filter(arrow_filter(expression)).num_rows == sum(expected), text


def test_columns_may_have_other_names_in_the_data() -> None:
    expression = bind("a = 1", parse_schema("a int"))
    table = pa.table({"old": [1, 2]})
    assert table.filter(arrow_filter(expression, lambda _: ["old"])).num_rows == 1


def test_thousands_of_parts_are_no_problem() -> None:
    a, b = (Reference(i, IntegerType(), (name,)) for i, name in enumerate("ab", 1))
    parts = (all_of(Compare(a, Operator.EQ, i), Compare(b, Operator.EQ, i)) for i in range(1000))
    table = pa.table({"a": pa.array([999, 1], pa.int32()), "b": pa.array([999, 2], pa.int32())})
    assert table.filter(arrow_filter(any_of(*parts))).num_rows == 1


@pytest.fixture
def row_groups(tmp_path: Path) -> ds.Dataset:
    """Three row groups: small, large, and small with a NaN that its statistics do not show."""
    floats = [1.0, 2.0, 8.0, 9.0, 1.0, math.nan]
    table = pa.table({"f": floats, "s": ["aa", "ab", "ba", "bb", "ca", "cb"], "at": range(6)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    return ds.dataset(tmp_path / "x.parquet")


GROUP_SCHEMA = parse_schema("f double, s string")


@pytest.mark.parametrize(
    ("text", "rows", "groups"),
    [
        ("f < 1.5", [0, 4], 2),
        ("f > 8.5", [3, 5], 3),
        ("f != 1", [1, 2, 3, 5], 3),
        ("isnan(f)", [5], 3),
        ("NOT isnan(f)", [0, 1, 2, 3, 4], 3),
        ("f NOT IN (1, 2)", [2, 3, 5], 3),
        ("f = 9", [3], 1),
        ("s LIKE 'b%'", [2, 3], 1),
        ("s LIKE 'b_b%' OR s LIKE 'b_'", [2, 3], 1),
        ("s NOT LIKE 'b%'", [0, 1, 4, 5], 2),
        ("f <= 9", [0, 1, 2, 3, 4], 3),
        ("f > 8.5 AND s < 'bb'", [], 2),
    ],
)
def test_row_groups_are_skipped_but_not_those_with_nan(
    row_groups: ds.Dataset, text: str, rows: list[int], groups: int
) -> None:
    expression = bind(text, GROUP_SCHEMA)
    weaker = row_group_filter(expression)
    assert row_groups.to_table(filter=weaker).filter(arrow_filter(expression))["at"].to_pylist() == rows
    (fragment,) = row_groups.get_fragments()
    assert len(fragment.split_by_row_group(weaker)) == groups


def test_arrow_itself_loses_nan_by_its_statistics(row_groups: ds.Dataset) -> None:
    # The day this fails, row_group_filter can go.
    assert row_groups.to_table(filter=pc.is_nan(pc.field("f"))).num_rows == 0


def test_nulls_of_types_without_an_order_are_found() -> None:
    schema = parse_schema("v variant, g geometry, u unknown")
    variants = pa.array([{"metadata": b"m", "value": None}, None], arrow_type(VariantType()))
    table = pa.table([variants, pa.array([b"", None], pa.binary()), pa.nulls(2)], schema=arrow_schema(schema))
    for text, expected in (("v IS NULL", 1), ("g IS NOT NULL", 1), ("u IS NULL", 2), ("u IS NOT NULL", 0)):
        assert table.filter(arrow_filter(bind(text, schema))).num_rows == expected
