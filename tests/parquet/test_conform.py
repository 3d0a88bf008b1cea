"""Incoming rows are made to fit without losing anything, or refused with every fault named."""

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort
from tests.parquet.row_cases import array_of, batch_of, rows_from, rows_of, same, values_from
from tests.schema_cases import schemas

from icefield.errors import SchemaMismatch
from icefield.parquet.write.conform import check_arrow_schema, check_schema, conform_array, conform_batch, news_of
from icefield.types.arrow import arrow_schema, arrow_type
from icefield.types.datatypes import NestedField
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

UUIDS = [uuid.UUID(int=1), None, uuid.UUID(int=(1 << 128) - 1)]
STRINGS = [None if u is None else str(u) for u in UUIDS]
BLOBS = [None if u is None else u.bytes for u in UUIDS]
UTC = datetime.UTC


def field(kind: str, *, required: bool = False) -> NestedField:
    """One field of a type given as text."""
    (made,) = parse_schema(f"c {kind} {'not null' if required else ''}").fields
    return made


def conformed(array: pa.Array, kind: str) -> pa.Array:
    """Run one column through both steps, as a table of its own."""
    schema = parse_schema(f"c {kind}")
    batch = pa.record_batch({"c": array})
    check_arrow_schema(batch.schema, schema)
    made = conform_batch(batch, schema)
    made.validate(full=True)
    assert made.schema.equals(arrow_schema(schema), check_metadata=True)
    return made.column(0)


# Names and order.


def test_columns_go_by_name_and_missing_optional_ones_are_null() -> None:
    schema = parse_schema("a int, b string, c list<int>, d struct<x int>, e uuid, f map<int, int>, g decimal(9, 2)")
    batch = pa.record_batch({"b": ["x", "y"], "a": pa.array([1, 2], pa.int32())})
    check_arrow_schema(batch.schema, schema)
    made = conform_batch(batch, schema)
    made.validate(full=True)
    assert made.schema == arrow_schema(schema)
    assert made.to_pylist()[1] == {"a": 2, "b": "y", "c": None, "d": None, "e": None, "f": None, "g": None}


def test_a_schema_that_fitted_is_checked_again_for_another_table() -> None:
    incoming = pa.schema({"a": pa.list_(pa.int64())})
    for _ in range(2):
        check_arrow_schema(incoming, parse_schema("a list<long>, b int"))
        with pytest.raises(SchemaMismatch, match="the rows do not match the table schema"):
            check_arrow_schema(incoming, parse_schema("a list<int>, b int"))
        with pytest.raises(SchemaMismatch, match="the rows do not match the table schema"):
            check_arrow_schema(pa.schema({"a": pa.list_(pa.string())}), parse_schema("a list<long>, b int"))


def test_names_of_nested_fields_count_too_at_any_depth() -> None:
    schema = parse_schema("a list<struct<x int, y map<string, struct<p int, q int>>>>")
    inner = pa.struct([("y", pa.map_(pa.string(), pa.struct([("q", pa.int32())]))), ("x", pa.int32())])
    array = pa.array([[{"y": [("k", {"q": 5})], "x": 1}, None], None, []], pa.list_(inner))
    assert conformed(array, "list<struct<x int, y map<string, struct<p int, q int>>>>").to_pylist() == [
        [{"x": 1, "y": [("k", {"p": None, "q": 5})]}, None],
        None,
        [],
    ]
    assert schema.fields[0].name == "a"


def test_every_fault_is_named_at_once_with_its_path() -> None:
    schema = parse_schema("id long not null, a int, s struct<x int not null, y string>, l list<struct<z int>>")
    nested = pa.struct([("y", pa.int32()), ("w", pa.int32())])
    incoming = pa.schema(
        {"a": pa.string(), "s": nested, "l": pa.list_(pa.struct([("z", pa.string())])), "b": pa.int8()}
    )
    with pytest.raises(SchemaMismatch) as caught:
        check_arrow_schema(incoming, schema)
    for fault in (
        "required column 'id' is missing",
        "column 'a' is string, but the table has int",
        "required column 's.x' is missing",
        "column 's.y' is int, but the table has string",
        "column 's.w' is not in the table",
        "column 'l.element.z' is string, but the table has int",
        "column 'b' is not in the table",
        "The table's columns: id long, a int",
    ):
        assert fault in str(caught.value)


def test_case_counts_in_names() -> None:
    with pytest.raises(SchemaMismatch, match="'A' is not in the table, which has 'a'"):
        check_arrow_schema(pa.schema({"A": pa.int32()}), parse_schema("a int"))
    with pytest.raises(SchemaMismatch, match=r"'s\.B' is not in the table, which has 's\.b'"):
        check_schema(parse_schema("s struct<B: int>"), parse_schema("s struct<b: int>"))


@pytest.mark.parametrize("kind", ["ID long", "id long, s struct<A: int>", "id long, l list<struct<A: int>>"])
def test_no_column_is_merged_beside_one_that_differs_by_case_alone(kind: str) -> None:
    table = parse_schema("id long, s struct<a: int>, l list<struct<a: int>>")
    with pytest.raises(SchemaMismatch, match="Spark cannot distinguish them"):
        news_of(parse_schema(kind), table)


# Widening: what fits, and how it comes out.

DAY = datetime.date(2020, 2, 29)
MOMENT = datetime.datetime(2020, 2, 29, 12, 30, 1)
WIDENED: list[tuple[pa.Array, str, list[Any]]] = [
    (pa.array([1, None, -128], pa.int8()), "int", [1, None, -128]),
    (pa.array([1, None], pa.int16()), "int", [1, None]),
    (pa.array([255], pa.uint8()), "int", [255]),
    (pa.array([65535], pa.uint16()), "long", [65535]),
    (pa.array([2**32 - 1], pa.uint32()), "long", [2**32 - 1]),
    (pa.array([-(2**31)], pa.int32()), "long", [-(2**31)]),
    (pa.array([1.5], pa.float16()), "float", [1.5]),
    (pa.array([1.5, None], pa.float32()), "double", [1.5, None]),
    (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), "decimal(9, 2)", [Decimal("1.25")]),
    (pa.array([Decimal("1.25")], pa.decimal32(5, 2)), "decimal(5, 2)", [Decimal("1.25")]),
    (pa.array([Decimal("1.25")], pa.decimal64(5, 2)), "decimal(38, 2)", [Decimal("1.25")]),
    (pa.array([Decimal("1.25")], pa.decimal256(5, 2)), "decimal(9, 2)", [Decimal("1.25")]),
    (pa.array(["x", None], pa.large_string()), "string", ["x", None]),
    (pa.array(["x", "y" * 100, None], pa.string_view()), "string", ["x", "y" * 100, None]),
    (pa.array([b"x", None], pa.large_binary()), "binary", [b"x", None]),
    (pa.array([b"x" * 50, None], pa.binary_view()), "binary", [b"x" * 50, None]),
    (pa.array([DAY], pa.date64()), "date", [DAY]),
    (pa.array([MOMENT], pa.timestamp("s")), "timestamp", [MOMENT]),
    (pa.array([MOMENT], pa.timestamp("ms")), "timestamp", [MOMENT]),
    (pa.array([MOMENT], pa.timestamp("ns")), "timestamp", [MOMENT]),
    (pa.array([MOMENT.replace(tzinfo=UTC)], pa.timestamp("ns", "UTC")), "timestamptz", [MOMENT.replace(tzinfo=UTC)]),
    (
        pa.array([MOMENT.replace(tzinfo=UTC)], pa.timestamp("s", "Europe/Berlin")),
        "timestamptz",
        [MOMENT.replace(tzinfo=UTC)],
    ),
    (pa.array([MOMENT.replace(tzinfo=UTC)], pa.timestamp("us", "+05:30")), "timestamptz", [MOMENT.replace(tzinfo=UTC)]),
    (pa.array([3600], pa.time32("s")), "time", [datetime.time(1)]),
    (pa.array([3600 * 10**9], pa.time64("ns")), "time", [datetime.time(1)]),
    (pa.array(STRINGS), "uuid", UUIDS),
    (pa.array(STRINGS, pa.large_string()), "uuid", UUIDS),
    (pa.array(STRINGS, pa.string_view()), "uuid", UUIDS),
    (pa.array(BLOBS, pa.binary(16)), "uuid", UUIDS),
    (pa.array(BLOBS, pa.uuid()), "uuid", UUIDS),
    (pa.array(STRINGS).dictionary_encode(), "uuid", UUIDS),
    (pa.array(BLOBS, pa.binary(16)), "fixed[16]", BLOBS),
    (pa.array(["x", "y", None, "x"]).dictionary_encode(), "string", ["x", "y", None, "x"]),
    (pa.array([3, 3, None], pa.int8()).dictionary_encode(), "long", [3, 3, None]),
    (pa.array([None, None], pa.null()), "string", [None, None]),
    (pa.array([None], pa.null()), "list<int>", [None]),
    (pa.array([None], pa.null()), "uuid", [None]),
    (pa.array([[1], None, []], pa.large_list(pa.int8())), "list<long>", [[1], None, []]),
    (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2)), "list<int>", [[1, 2], None, [3, 4]]),
    (
        pa.array([["x"], ["x", None]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        "list<string>",
        [["x"], ["x", None]],
    ),
    (pa.array([[STRINGS[0]]], pa.list_(pa.string())), "list<uuid>", [[UUIDS[0]]]),
    (pa.array([[("k", 1)], None], pa.map_(pa.large_string(), pa.int8())), "map<string, long>", [[("k", 1)], None]),
    (pa.array([[None]], pa.list_(pa.null())), "list<struct<x int>>", [[None]]),
]


@pytest.mark.parametrize(("array", "kind", "expected"), WIDENED, ids=[f"{a.type} to {k}" for a, k, _ in WIDENED])
def test_what_fits_comes_out_as_the_same_values(array: pa.Array, kind: str, expected: list[Any]) -> None:
    assert conformed(array, kind).to_pylist() == expected


@pytest.mark.parametrize(("array", "kind", "expected"), WIDENED, ids=[f"{a.type} to {k}" for a, k, _ in WIDENED])
def test_a_slice_comes_out_as_a_slice(array: pa.Array, kind: str, expected: list[Any]) -> None:
    padded = pa.concat_arrays([array, array, array]).slice(1, 2 * len(array) - 1)
    assert conformed(padded, kind).to_pylist() == (expected * 3)[1 : 2 * len(array)]


# What does not fit.

REFUSED: list[tuple[pa.DataType, str]] = [
    (pa.int64(), "int"),
    (pa.uint32(), "int"),
    (pa.uint64(), "long"),
    (pa.int32(), "float"),
    (pa.int64(), "double"),
    (pa.float64(), "float"),
    (pa.float32(), "int"),
    (pa.bool_(), "int"),
    (pa.int32(), "boolean"),
    (pa.int32(), "string"),
    (pa.string(), "int"),
    (pa.string(), "binary"),
    (pa.binary(), "string"),
    (pa.string(), "date"),
    (pa.string(), "timestamp"),
    (pa.date32(), "timestamp"),
    (pa.timestamp("us"), "date"),
    (pa.timestamp("us"), "timestamptz"),
    (pa.timestamp("us", "UTC"), "timestamp"),
    (pa.timestamp("us"), "long"),
    (pa.int64(), "timestamp"),
    (pa.time64("us"), "long"),
    (pa.decimal128(9, 2), "decimal(8, 2)"),
    (pa.decimal128(9, 2), "decimal(9, 3)"),
    (pa.decimal128(9, 3), "decimal(9, 2)"),
    (pa.decimal128(9, 0), "long"),
    (pa.int32(), "decimal(9, 0)"),
    (pa.float64(), "decimal(9, 2)"),
    (pa.binary(8), "uuid"),
    (pa.binary(), "uuid"),
    (pa.uuid(), "string"),
    (pa.uuid(), "fixed[16]"),
    (pa.binary(8), "fixed[9]"),
    (pa.binary(), "fixed[8]"),
    (pa.binary(8), "binary"),
    (pa.int32(), "list<int>"),
    (pa.list_(pa.int32()), "int"),
    (pa.list_(pa.string()), "list<int>"),
    (pa.list_(pa.struct([("key", pa.string()), ("value", pa.int32())])), "map<string, int>"),
    (pa.map_(pa.string(), pa.int32()), "list<int>"),
    (pa.map_(pa.string(), pa.int32()), "map<int, int>"),
    (pa.map_(pa.string(), pa.string()), "map<string, int>"),
    (pa.struct([("x", pa.int32())]), "map<string, int>"),
    (pa.duration("us"), "long"),
    (pa.month_day_nano_interval(), "string"),
    (pa.dense_union([pa.field("a", pa.int32())]), "int"),
    (pa.run_end_encoded(pa.int32(), pa.string()), "int"),
]


@pytest.mark.parametrize(("incoming", "kind"), REFUSED, ids=[f"{i} to {k}" for i, k in REFUSED])
def test_what_could_lose_something_is_refused_before_any_row(incoming: pa.DataType, kind: str) -> None:
    with pytest.raises(SchemaMismatch, match="'c"):
        check_arrow_schema(pa.schema({"c": incoming}), parse_schema(f"c {kind}"))


LOSING: list[tuple[pa.Array, str]] = [
    (pa.array([1_000, 1_001], pa.timestamp("ns")), "timestamp"),
    (pa.array([1], pa.timestamp("ns", "UTC")), "timestamptz"),
    (pa.array([1 << 60], pa.timestamp("s")), "timestamp"),
    (pa.array([1], pa.time64("ns")), "time"),
    (pa.array([86_400_001], pa.date64()), "date"),
    (pa.array(["not a uuid"]), "uuid"),
    (pa.array(["0" * 31]), "uuid"),
    (pa.array([[1]], pa.list_(pa.timestamp("ns"))), "list<timestamp>"),
    (pa.array([{"x": "zz"}], pa.struct([("x", pa.string())])), "struct<x uuid>"),
    (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.timestamp("ns"))), "map<string, timestamp>"),
]


@pytest.mark.parametrize(("array", "kind"), LOSING, ids=[f"{a.type} to {k}" for a, k in LOSING])
def test_a_value_that_would_lose_something_is_refused_with_its_column(array: pa.Array, kind: str) -> None:
    with pytest.raises(SchemaMismatch, match=r"column 'c[a-z.]*' holds"):
        conformed(array, kind)


@pytest.mark.parametrize(("array", "kind"), LOSING, ids=[f"{a.type} to {k}" for a, k in LOSING])
def test_a_bad_value_outside_of_a_slice_does_not_count(array: pa.Array, kind: str) -> None:
    """Batches of one table share their insides: what is in another batch must not be looked at."""
    around = pa.concat_arrays([array, pa.nulls(2, array.type), array]).slice(len(array), 2)
    assert conformed(around, kind).null_count == 2
    if not pa.types.is_nested(array.type):
        lists = pa.ListArray.from_arrays(pa.array([0, len(array), len(array), len(array)], pa.int32()), array)
        assert conformed(lists.slice(1), f"list<{kind}>").to_pylist() == [[], []]


# Nulls.


@pytest.mark.parametrize(
    ("array", "kind", "path"),
    [
        (pa.array([1, None], pa.int32()), "int not null", "c"),
        (pa.array([None], pa.null()), "int not null", "c"),
        (pa.array([{"x": None}], pa.struct([("x", pa.int32())])), "struct<x int not null>", "c.x"),
        (pa.array([{"x": {"y": None}}, None], pa.struct([("x", pa.struct([("y", pa.int32())]))])),
         "struct<x struct<y int not null>>", "c.x.y"),
        (pa.array([{"x": None}, None], pa.struct([("x", pa.struct([("y", pa.int32())]))])),
         "struct<x struct<y int not null> not null>", "c.x"),
        (pa.array([[1, None]], pa.list_(pa.int32())), "list<int not null>", "c.element"),
        (pa.array([[{"x": None}]], pa.list_(pa.struct([("x", pa.int32())]))), "list<struct<x int not null>>",
         "c.element.x"),
        (pa.array([[("k", None)]], pa.map_(pa.string(), pa.int32())), "map<string, int not null>", "c.value"),
        (pa.array([[("k", {"x": None})]], pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
         "map<string, struct<x int not null>>", "c.value.x"),
        (pa.array([[("k", [{"x": None}])]], pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.int32())])))),
         "map<string, list<struct<x int not null>>>", "c.value.element.x"),
    ],
)  # fmt: skip
def test_a_null_where_a_value_is_required_is_refused_with_its_path(array: pa.Array, kind: str, path: str) -> None:
    with pytest.raises(SchemaMismatch, match=f"required column '{path}' holds 1 null$"):
        conformed(array, kind)


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())])), "struct<x int not null>"),
        (pa.array([{"x": "a"}, None], pa.struct([("x", pa.string())])), "struct<x string not null>"),
        (pa.array([{"x": True}, None], pa.struct([("x", pa.bool_())])), "struct<x boolean not null>"),
        (pa.array([{"x": BLOBS[0]}, None], pa.struct([("x", pa.binary(16))])), "struct<x fixed[16] not null>"),
        (pa.array([{"x": [1]}, None], pa.struct([("x", pa.list_(pa.int32()))])), "struct<x list<int> not null>"),
        (pa.array([{"x": {"y": 1}}, None, {"x": {"y": 2}}], pa.struct([("x", pa.struct([("y", pa.int32())]))])),
         "struct<x struct<y int not null> not null>"),
        (pa.array([{"x": {"y": 1}}, {"x": None}, None], pa.struct([("x", pa.struct([("y", pa.int32())]))])),
         "struct<x struct<y int not null>>"),
        (pa.array([{"x": [("k", 1)]}, None], pa.struct([("x", pa.map_(pa.string(), pa.int32()))])),
         "struct<x map<string, int not null> not null>"),
        (pa.array([[None, {"x": 1}], None], pa.list_(pa.struct([("x", pa.int32())]))), "list<struct<x int not null>>"),
        (pa.array([[("k", None)], None], pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
         "map<string, struct<x int not null>>"),
    ],
)  # fmt: skip
def test_a_required_field_of_a_null_parent_is_no_null(array: pa.Array, kind: str) -> None:
    for whole in (array, pa.concat_arrays([array, array]).slice(1)):
        assert conformed(whole, kind).to_pylist() == whole.to_pylist()


def test_a_null_hidden_in_a_slice_or_under_a_null_list_does_not_count() -> None:
    items = pa.array([None, 1, 2, None], pa.int32())
    whole = pa.ListArray.from_arrays(pa.array([0, 1, 3, 4], pa.int32()), items)
    assert conformed(whole.slice(1, 1), "list<int not null>").to_pylist() == [[1, 2]]
    masked = pa.ListArray.from_arrays(pa.array([0, 1, 3, 4], pa.int32()), items, mask=pa.array([True, False, True]))
    assert conformed(masked, "list<int not null>").to_pylist() == [None, [1, 2], None]
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 3], pa.int32()), ["a", "b", "c"], pa.array([None, 1, 2], pa.int32()))
    assert conformed(maps.slice(1), "map<string, int not null>").to_pylist() == [[("b", 1), ("c", 2)]]


@pytest.mark.parametrize("kind", ["list<uuid>", "list<struct<x uuid>>", "list<list<uuid>>", "map<uuid, uuid>"])
def test_a_column_of_nothing_but_null_may_have_uuids_inside(kind: str) -> None:
    for rows in (1, 3):
        schema = parse_schema(f"c {kind}")
        made = conform_batch(batch_of([{1: None}] * rows, schema), schema)
        assert made.column(0).to_pylist() == [None] * rows


def test_the_number_of_nulls_is_counted_without_those_of_null_parents() -> None:
    array = pa.array([{"x": None}, None, {"x": None}, {"x": 1}], pa.struct([("x", pa.int32())]))
    with pytest.raises(SchemaMismatch, match="'c.x' holds 2 nulls"):
        conformed(array, "struct<x int not null>")


# Any rows.


@effort(40)
@given(st.data())
def test_rows_that_fit_already_come_out_as_they_were(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rows = data.draw(rows_of(schema))
    batch = batch_of(rows, schema)
    start = data.draw(st.integers(0, len(rows)))
    for given_batch, expected in ((batch, rows), (batch.slice(start), rows[start:])):
        made = conform_batch(given_batch, schema)
        made.validate(full=True)
        assert made.schema.equals(arrow_schema(schema), check_metadata=True)
        assert same(rows_from(made, schema)) == same(expected)


@effort(25)
@given(st.data())
def test_the_order_of_columns_at_any_depth_does_not_matter(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rows = data.draw(rows_of(schema))
    batch = batch_of(rows, schema)
    order = data.draw(st.permutations(batch.schema.names))
    shuffled = batch.select(order)
    check_arrow_schema(shuffled.schema, schema)
    assert same(rows_from(conform_batch(shuffled, schema), schema)) == same(rows)


def test_batches_of_a_chunked_table_are_each_made_to_fit() -> None:
    schema = parse_schema("id long, tags list<string>")
    chunks = pa.chunked_array([pa.array([1, 2], pa.int32()), pa.array([3], pa.int32()), pa.array([], pa.int32())])
    tags = pa.chunked_array([pa.array([["a"]]), pa.array([None, ["b", "c"]], pa.list_(pa.string()))])
    table = pa.table({"tags": tags, "id": chunks})
    made = [conform_batch(batch, schema) for batch in table.to_batches()]
    assert pa.Table.from_batches(made, arrow_schema(schema)).to_pylist() == [
        {"id": 1, "tags": ["a"]},
        {"id": 2, "tags": None},
        {"id": 3, "tags": ["b", "c"]},
    ]


def test_no_rows_fit_too() -> None:
    schema = parse_schema("a list<struct<x uuid not null>> not null, m map<string, int>, s struct<y list<int>>")
    assert conform_batch(batch_of([], schema), schema).num_rows == 0


def test_a_column_alone_is_checked_as_in_a_batch() -> None:
    assert conform_array(pa.array([1, None], pa.int8()), field("long")).type == pa.int64()
    with pytest.raises(SchemaMismatch, match="'c' holds 1 null"):
        conform_array(pa.array([1, None], pa.int8()), field("long", required=True))


@effort(60)
@given(st.lists(st.none() | st.lists(st.none() | st.integers(-5, 5), max_size=3), max_size=5), st.integers(0, 5))
def test_lists_may_be_large_and_sliced_and_inside_lists(values: list[Any], start: int) -> None:
    (column,) = parse_schema("c list<list<long>>").fields
    whole = pa.array([values, None, values], pa.large_list(pa.large_list(pa.int8())))
    sliced = whole.slice(min(start, 3))
    made = conform_array(sliced, column)
    made.validate(full=True)
    assert made.type == arrow_type(column.type)
    assert made.to_pylist() == sliced.to_pylist()


def test_the_helpers_of_these_tests_are_inverse() -> None:
    schema = Schema(parse_schema("s struct<m map<int, list<uuid>>>").fields)
    values = [{i: [(1, [UUIDS[0], None])] for i in [schema.find_field("s.m").field_id]}, None]
    assert values_from(array_of(values, schema.fields[0].type), schema.fields[0].type) == values
