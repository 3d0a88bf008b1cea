"""Statistics of a file equal what a plain pass over its rows finds."""

import io
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort
from tests.parquet.row_cases import Row, array_of, batch_of, rows_of
from tests.schema_cases import PRIMITIVES, primitive_schema, schemas

from icefield.errors import InvalidInput
from icefield.parquet.metrics import (
    FileMetrics,
    MetricsMode,
    WriterMetrics,
    footer_metrics,
    metrics_modes,
    parse_metrics_mode,
)
from icefield.parquet.nan_columns import count_nans
from icefield.parquet.write.conform import conform_batch
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    Value,
)
from icefield.types.schema import Leaf, Schema
from icefield.types.text import parse_schema
from icefield.types.values.binary import decode_value, encode_value, truncate_lower, truncate_upper

FULL = "full"


def metrics_of(groups: Sequence[Sequence[Row]], schema: Schema, **properties: str) -> FileMetrics:
    """Write row groups as the table's writer does, and collect their statistics."""
    return footer_and_metrics(groups, schema, **properties)[1]


def footer_and_metrics(
    groups: Sequence[Sequence[Row]], schema: Schema, default: str = "truncate(16)", **columns: str
) -> tuple[pq.FileMetaData, FileMetrics]:
    sink = io.BytesIO()
    nans: dict[int, int] = {}
    with pq.ParquetWriter(sink, arrow_schema(schema), store_schema=False, store_decimal_as_integer=True) as writer:
        for rows in groups:
            batch = conform_batch(batch_of(rows, schema), schema)
            for field_id, count in count_nans(batch, schema).items():
                nans[field_id] = nans.get(field_id, 0) + count
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=max(1, len(rows)))
    footer = pq.read_metadata(sink)
    properties = {f"write.metadata.metrics.column.{name}": mode for name, mode in columns.items()}
    modes = metrics_modes(schema, {"write.metadata.metrics.default": default, **properties})
    return footer, footer_metrics(footer, schema.leaves, modes, WriterMetrics(nans))


def values_at(leaf: Leaf, rows: Sequence[Row]) -> list[Any]:
    found: list[Any] = []
    for row in rows:
        value: Any = row
        for field in (*leaf.parents, leaf.field):
            value = None if value is None else value[field.field_id]
        found.append(value)
    return found


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def bounds_of(values: Sequence[Any], kind: PrimitiveType, width: int | None) -> tuple[Any, Any]:
    plain = [v for v in values if v is not None and not is_nan(v)]
    if not plain:
        return None, None
    lower, upper = min(plain), max(plain)
    if width is not None and isinstance(kind, StringType | BinaryType):
        return truncate_lower(lower, width), truncate_upper(upper, width)
    return lower, upper


def decoded(bounds: dict[int, bytes], leaf: Leaf) -> Value | None:
    data = bounds.get(leaf.field.field_id)
    return None if data is None else decode_value(data, leaf.type)


def assert_naive(metrics: FileMetrics, groups: Sequence[Sequence[Row]], schema: Schema, width: int | None) -> None:
    """Compare with a plain pass; a column inside a list or map has a size and nothing else."""
    rows = [row for group in groups for row in group]
    plain = [leaf for leaf in schema.leaves if not leaf.repeated]
    ids = {leaf.field.field_id for leaf in plain} if groups else set()
    assert metrics.column_sizes.keys() == ({leaf.field.field_id for leaf in schema.leaves} if groups else set())
    assert metrics.value_counts == dict.fromkeys(ids, len(rows))
    for leaf in plain:
        values = values_at(leaf, rows)
        if groups:
            assert metrics.null_value_counts[leaf.field.field_id] == sum(v is None for v in values)
        if isinstance(leaf.type, FloatType | DoubleType) and groups:
            assert metrics.nan_value_counts[leaf.field.field_id] == sum(map(is_nan, values))
        expected = bounds_of(values, leaf.type, width)
        assert (decoded(metrics.lower_bounds, leaf), decoded(metrics.upper_bounds, leaf)) == expected
    assert metrics.nan_value_counts.keys() <= ids
    assert metrics.lower_bounds.keys() | metrics.upper_bounds.keys() <= ids


@effort(40)
@given(st.data())
def test_statistics_of_any_rows_in_any_row_groups_are_those_of_a_plain_pass(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    groups = data.draw(st.lists(rows_of(schema).filter(bool), max_size=3))
    mode, width = data.draw(st.sampled_from([("full", None), ("truncate(16)", 16), ("truncate(2)", 2)]))
    assert_naive(metrics_of(groups, schema, default=mode), groups, schema, width)


@effort(30)
@given(st.data(), st.sampled_from([1, 2, 3, None]))
def test_statistics_of_every_type(data: st.DataObject, width: int | None) -> None:
    schema = primitive_schema(*PRIMITIVES)
    groups = data.draw(st.lists(rows_of(schema).filter(bool), min_size=1, max_size=2))
    mode = FULL if width is None else f"truncate({width})"
    assert_naive(metrics_of(groups, schema, default=mode), groups, schema, width)


# Edges.


def column(kind: PrimitiveType, *groups: Sequence[Any], mode: str = "truncate(16)") -> FileMetrics:
    schema = primitive_schema(kind)
    return metrics_of([[{1: value} for value in group] for group in groups], schema, default=mode)


def test_zero_has_both_signs_in_its_bounds() -> None:
    for values in ([0.0], [-0.0], [-0.0, 0.0]):
        metrics = column(DoubleType(), values)
        assert metrics.lower_bounds[1] in (encode_value(-0.0, DoubleType()), encode_value(values[0], DoubleType()))
        assert decode_value(metrics.lower_bounds[1], DoubleType()) == 0
    both = column(FloatType(), [0.0, -0.0])
    assert both.lower_bounds[1] == encode_value(-0.0, FloatType())
    assert both.upper_bounds[1] == encode_value(0.0, FloatType())


def test_nothing_but_nan_and_null_has_counts_and_no_bounds() -> None:
    for kind in (FloatType(), DoubleType()):
        metrics = column(kind, [math.nan, None, math.nan])
        assert (metrics.value_counts, metrics.null_value_counts, metrics.nan_value_counts) == ({1: 3}, {1: 1}, {1: 2})
        assert not metrics.lower_bounds
        assert not metrics.upper_bounds


def test_a_row_group_of_nan_or_null_does_not_hide_the_bounds_of_the_others() -> None:
    metrics = column(DoubleType(), [math.nan], [1.5, None], [None], [-2.0, math.nan])
    assert decode_value(metrics.lower_bounds[1], DoubleType()) == -2.0
    assert decode_value(metrics.upper_bounds[1], DoubleType()) == 1.5
    assert metrics.nan_value_counts == {1: 2}
    strings = column(StringType(), [None], ["b", None], ["a"])
    assert (strings.lower_bounds, strings.upper_bounds) == ({1: b"a"}, {1: b"b"})


@pytest.mark.parametrize(
    ("longest", "expected"),
    [
        ("a" * 20, b"a" * 15 + b"b"),
        ("a" * 15 + "\x7f" * 5, b"a" * 15 + "\x80".encode()),
        ("a" * 15 + "\ud7ff" * 5, b"a" * 15 + "\ue000".encode()),
        ("a" * 15 + "\uffff" * 5, b"a" * 15 + "\U00010000".encode()),
        ("a" * 14 + "b" + "\U0010ffff" * 5, b"a" * 14 + b"c"),
        ("\U0010ffff" * 16, "\U0010ffff".encode() * 16),
        ("\U0010ffff" * 17, None),
    ],
)
def test_a_text_is_cut_by_characters_and_its_upper_bound_raised(longest: str, expected: bytes | None) -> None:
    metrics = column(StringType(), ["", longest])
    assert metrics.upper_bounds.get(1) == expected
    assert metrics.lower_bounds[1] == b""
    assert expected is None or longest.encode() <= expected


@pytest.mark.parametrize(
    ("longest", "expected"),
    [
        (b"a" * 20, b"a" * 15 + b"b"),
        (b"a" + b"\xff" * 20, b"b"),
        (b"\xff" * 16, b"\xff" * 16),
        (b"\xff" * 17, None),
    ],
)
def test_bytes_are_cut_and_their_upper_bound_raised(longest: bytes, expected: bytes | None) -> None:
    metrics = column(BinaryType(), [b"\0" * 20, longest])
    assert metrics.upper_bounds.get(1) == expected
    assert metrics.lower_bounds[1] == b"\0" * 16


@pytest.mark.parametrize("kind", [StringType(), BinaryType()])
@pytest.mark.parametrize("groups", [("az",), ("a", "z"), ("z", "a"), ("b", "az", "c")])
def test_a_value_too_long_for_the_footer_makes_no_bound_that_leaves_it_out(kind: PrimitiveType, groups: Any) -> None:
    """The footer holds no minimum or maximum of more than 4096 bytes, and then none of the two."""
    values = {"a": "a", "b": "b", "c": "c", "z": "z" * 5000}
    made = [[v.encode() if isinstance(kind, BinaryType) else v for v in map(values.__getitem__, g)] for g in groups]
    for mode in ("truncate(16)", "full"):
        metrics = column(kind, *made, mode=mode)
        lower, upper = metrics.lower_bounds.get(1), metrics.upper_bounds.get(1)
        assert lower is None or lower <= b"a"
        assert upper is None or upper >= b"z" * 5000
        assert metrics.value_counts == {1: sum(map(len, groups))}


def test_text_that_is_not_utf_8_has_no_bounds_and_breaks_nothing() -> None:
    schema = primitive_schema(StringType())
    offsets = pa.array([0, 1, 3], pa.int32()).buffers()[1]
    strings = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xff\xfe")])
    sink = io.BytesIO()
    pq.write_table(pa.table([strings], arrow_schema(schema)), sink)
    metrics = footer_metrics(pq.read_metadata(sink), schema.leaves, metrics_modes(schema, {}), WriterMetrics())
    assert (metrics.lower_bounds, metrics.upper_bounds, metrics.value_counts) == ({}, {}, {1: 2})


def test_moments_outside_of_every_calendar_have_bounds() -> None:
    year_0, year_20000 = -719_528, 6_585_422
    dates = column(DateType(), [year_0, year_20000])
    assert dates.lower_bounds[1] == encode_value(year_0, DateType())
    assert dates.upper_bounds[1] == encode_value(year_20000, DateType())
    ends = [-(1 << 63), (1 << 63) - 1]
    times = column(TimestampType(), ends)
    assert [times.lower_bounds[1], times.upper_bounds[1]] == [encode_value(e, TimestampType()) for e in ends]


@pytest.mark.parametrize("kind", [DecimalType(38, 0), DecimalType(38, 38), DecimalType(18, 2), DecimalType(9, 2)])
def test_decimals_keep_every_digit(kind: DecimalType) -> None:
    digits = "9" * kind.precision
    top = parse_decimal(digits, kind.scale)
    metrics = column(kind, [top, parse_decimal("-" + digits, kind.scale)])
    assert decode_value(metrics.upper_bounds[1], kind) == top
    assert decode_value(metrics.lower_bounds[1], kind) == parse_decimal("-" + digits, kind.scale)


def parse_decimal(digits: str, scale: int) -> Any:
    return decode_value(encode_unscaled_text(digits), DecimalType(38, scale))


def encode_unscaled_text(digits: str) -> bytes:
    return int(digits).to_bytes(17, "big", signed=True)


def test_a_column_with_a_dot_in_its_name_is_not_mistaken_for_a_field_of_a_struct() -> None:
    inner = StructType((NestedField(3, "b", DoubleType()),))
    schema = Schema((NestedField(1, "a.b", StringType()), NestedField(2, "a", inner)))
    assert_naive(metrics_of([[{1: "x", 2: {3: 1.5}}]], schema), [[{1: "x", 2: {3: 1.5}}]], schema, 16)


# Modes.

MODES_SCHEMA = parse_schema("a string, b double, s struct<x string>, l list<string>")
MODES_ROWS: list[list[Row]] = [
    [{1: "a" * 40, 2: math.nan, 3: {5: "b" * 40}, 4: ["c"]}, {1: None, 2: 1.0, 3: None, 4: []}]
]


@pytest.mark.parametrize(
    ("mode", "counts", "bound"),
    [("none", False, None), ("counts", True, None), ("truncate(3)", True, b"aaa"), ("full", True, b"a" * 40)],
)
def test_a_mode_says_what_is_kept_of_a_column(mode: str, counts: bool, bound: bytes | None) -> None:
    metrics = metrics_of(MODES_ROWS, MODES_SCHEMA, default="counts", a=mode, b=mode)
    assert metrics.lower_bounds.get(1) == bound
    for kept in (metrics.value_counts, metrics.null_value_counts):
        assert (1 in kept) == (2 in kept) == counts
    assert (2 in metrics.nan_value_counts) == counts
    assert {1, 2} <= metrics.column_sizes.keys()
    assert 5 in metrics.value_counts
    assert 5 not in metrics.lower_bounds


def test_nested_columns_have_modes_of_their_own() -> None:
    metrics = metrics_of(MODES_ROWS, MODES_SCHEMA, default="none", **{"s.x": "full"})
    assert metrics.lower_bounds == {5: b"b" * 40}
    assert metrics.null_value_counts == {5: 1}


def test_modes_are_read_from_properties() -> None:
    modes = metrics_modes(MODES_SCHEMA, {"write.metadata.metrics.column.l.element": "none"})
    truncated = MetricsMode(counts=True, bounds=True, width=16)
    nothing = MetricsMode(counts=False, bounds=False)
    assert modes == {1: truncated, 2: truncated, 5: truncated, MODES_SCHEMA.find_field("l.element").field_id: nothing}


@pytest.mark.parametrize("text", ["", "some", "truncate", "truncate()", "truncate(0)", "truncate(-3)", "truncate(1.5)"])
def test_an_unknown_mode_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="metrics mode"):
        parse_metrics_mode(text)


def test_modes_are_read_in_any_case() -> None:
    assert parse_metrics_mode(" TRUNCATE(4) ") == MetricsMode(counts=True, bounds=True, width=4)
    assert parse_metrics_mode("Full") == MetricsMode(counts=True, bounds=True)


# Files.


def test_split_offsets_are_where_the_row_groups_begin() -> None:
    schema = parse_schema("a long, b string")
    groups = [[{1: i * 10 + j, 2: "x" * j} for j in range(10)] for i in range(4)]
    footer, metrics = footer_and_metrics(groups, schema)
    assert len(metrics.split_offsets) == footer.num_row_groups == 4
    assert metrics.split_offsets[0] == 4  # after the magic
    assert metrics.split_offsets == sorted(set(metrics.split_offsets))
    starts = [footer.row_group(i).column(0) for i in range(4)]
    assert metrics.split_offsets == [min(c.dictionary_page_offset or 1 << 62, c.data_page_offset) for c in starts]


def test_sizes_add_up_to_the_row_groups() -> None:
    schema = parse_schema("a long, l list<string>, m map<string, int>, s struct<x int>")
    rows = [{1: 1, 2: ["x"], 3: [("k", 2)], 4: {8: 1}}]
    footer, metrics = footer_and_metrics([rows, rows], schema)
    total = sum(
        footer.row_group(i).column(c).total_compressed_size for i in range(2) for c in range(footer.num_columns)
    )
    assert sum(metrics.column_sizes.values()) == total
    assert metrics.column_sizes.keys() == {leaf.field.field_id for leaf in schema.leaves}


@effort(30)
@given(schemas(max_depth=3, names=st.sampled_from(["a", "b", "list", "element", "key_value", "key", "x.y"])))
def test_columns_of_a_file_stand_in_the_order_of_the_schema(schema: Schema) -> None:
    sink = io.BytesIO()
    pq.ParquetWriter(sink, arrow_schema(schema)).close()
    written = pq.ParquetFile(sink).schema
    paths = [
        written.column(i).path.replace(".list.element", ".element").replace(".key_value.", ".")
        for i in range(len(written))
    ]
    assert len(paths) == len(schema.leaves)
    assert [p.rsplit(".", 1)[-1] for p in paths] == [leaf.path[-1].rsplit(".", 1)[-1] for leaf in schema.leaves]


def test_nans_under_a_null_struct_and_in_lists_do_not_count() -> None:
    schema = parse_schema("s struct<x double>, l list<double>, d double, t struct<u struct<v float>>")
    struct = schema.fields[0].type
    array = array_of([{5: math.nan}, {5: math.nan}, None], struct)
    hidden = pa.StructArray.from_arrays(array.flatten(), fields=list(array.type), mask=pa.array([False, True, False]))
    columns = [
        hidden,
        pa.array([[math.nan]] * 3),
        pa.array([1.0, None, math.nan]),
        pa.array([{"u": {"v": math.nan}}, None, {"u": None}], pa.struct([("u", pa.struct([("v", pa.float32())]))])),
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=["s", "l", "d", "t"])
    leaf = schema.find_field("t.u.v").field_id
    assert count_nans(batch, schema) == {5: 1, 3: 1, leaf: 1}
    assert count_nans(batch.slice(2), schema) == {5: 0, 3: 1, leaf: 0}
