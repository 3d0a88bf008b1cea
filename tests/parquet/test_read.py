"""What was written is read, by field id, with whatever schema the table has by now; and no more than must be."""

import random
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commit.faults import Around
from tests.effort import effort
from tests.expr.cases import expressions
from tests.parquet.row_cases import Row, batch_of, rows_from, rows_of, same
from tests.schema_cases import PRIMITIVES, primitive_schema, schemas

from icefield.errors import CorruptFile, MissingFile, Unsupported
from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import FALSE, TRUE, Bound, Reference
from icefield.expr.render.rows import matches
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.task import FileTask
from icefield.storage.memory import MemoryStore
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    children,
    with_children,
)
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

AT = "memory://lake/t/data/f.parquet"
EVERYTHING = primitive_schema(*PRIMITIVES)


def stored(groups: Iterable[Sequence[Row]], schema: Schema, *, store_schema: bool = False) -> tuple[MemoryStore, str]:
    """Write one file as others do, with NaN left out of its footer; every list of rows becomes a row group.

    store_schema: whether the file says of which Arrow types its columns were.
    """
    store = MemoryStore()
    # A null struct may lie over required fields, which Arrow's writer takes only where it does not know of them.
    written = arrow_schema(_all_optional(schema))
    with store.open_new(AT) as sink, pq.ParquetWriter(sink, written, store_schema=store_schema) as writer:
        for rows in groups:
            writer.write_table(pa.Table.from_batches([batch_of(rows, schema)]).cast(written))
    return store, AT


def _all_optional(schema: Schema) -> Schema:
    def optional(field: NestedField) -> NestedField:
        inner = tuple(optional(child) for child in children(field.type))
        return replace(field, type=with_children(field.type, inner) if inner else field.type, required=False)

    return Schema(tuple(optional(field) for field in schema.fields), schema.schema_id)


def foreign(table: pa.Table, **options: Any) -> MemoryStore:
    """A file of another writer."""
    store = MemoryStore()
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    store.put_new(AT, sink.getvalue().to_pybytes())
    return store


def read_batches(
    store: Any, location: str, schema: Schema, select: Sequence[str], where: Bound
) -> Iterator[pa.RecordBatch]:
    return TableFiles((schema,)).reader(store).read(FileTask(location, 0, 1, 0), schema, select, where)


def read_non_matching(store: Any, location: str, schema: Schema, where: Bound) -> Iterator[pa.RecordBatch]:
    return TableFiles((schema,)).reader(store).read_non_matching(FileTask(location, 0, 1, 0), schema, where)


def read(
    store: Any, location: str, schema: Schema, where: Bound = TRUE, select: Sequence[str] | None = None
) -> list[Row]:
    names = [f.name for f in schema.fields] if select is None else select
    batches = list(read_batches(store, location, schema, names, where))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(arrow_schema(schema.select(names)), check_metadata=True)
    return [row for batch in batches for row in rows_from(batch, schema.select(names))]


# Round trips.


@effort(40)
@given(st.data())
def test_what_is_written_is_read(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    groups = data.draw(st.lists(rows_of(schema).filter(bool), min_size=1, max_size=3))
    store, location = stored(groups, schema)
    rows = [row for rows in groups for row in rows]
    assert same(read(store, location, schema)) == same(rows)


@effort(25)
@given(rows_of(EVERYTHING, max_rows=8).filter(bool))
def test_every_value_of_every_type_is_read_as_it_was(rows: list[Row]) -> None:
    store, location = stored([rows], EVERYTHING)
    assert same(read(store, location, EVERYTHING)) == same(rows)


@effort(40)
@given(st.data())
def test_any_choice_of_columns_comes_in_the_order_asked_for(data: st.DataObject) -> None:
    schema = data.draw(schemas(max_columns=4, max_depth=1))
    rows = data.draw(rows_of(schema).filter(bool))
    store, location = stored([rows], schema)
    chosen = data.draw(st.lists(st.sampled_from([f.name for f in schema.fields]), unique=True))
    ids = [schema.find_field(name).field_id for name in chosen]
    assert same(read(store, location, schema, select=chosen)) == same([{i: row[i] for i in ids} for row in rows])


def test_rows_are_counted_when_no_column_is_asked_for() -> None:
    schema = parse_schema("a long, b string")
    rows = [{1: i, 2: "x"} for i in range(10)]
    store, location = stored([rows[:6], rows[6:]], schema)
    assert sum(b.num_rows for b in read_batches(store, location, schema, [], TRUE)) == 10
    assert sum(b.num_rows for b in read_batches(store, location, schema, [], bind("a < 7", schema))) == 7


def test_a_part_of_a_struct_can_be_asked_for() -> None:
    schema = parse_schema("s struct<x int, y string, z struct<p int, q int>>, l list<struct<a int, b int>>")
    row = {"s": {"x": 1, "y": "t", "z": {"p": 2, "q": 3}}, "l": [{"a": 4, "b": 5}]}
    store = foreign(pa.Table.from_pylist([row, {"s": None, "l": None}], schema=arrow_schema(schema)))
    batches = read_batches(store, AT, schema, ["s.z.q", "l.element.b", "s.x"], TRUE)
    assert [r for b in batches for r in b.to_pylist()] == [
        {"s": {"x": 1, "z": {"q": 3}}, "l": [{"b": 5}]},
        {"s": None, "l": None},
    ]


def test_a_column_of_the_filter_need_not_be_asked_for() -> None:
    schema = parse_schema("a long, s struct<x int, y int>")
    rows = [{1: i, 2: {3: i * 10, 4: -i}} for i in range(5)]
    store, location = stored([rows], schema)
    batches = list(read_batches(store, location, schema, ["s.y"], bind("s.x >= 30 AND a < 4", schema)))
    assert [r for b in batches for r in b.to_pylist()] == [{"s": {"y": -3}}]


# Files of an older schema.


def test_a_renamed_column_is_found_and_a_new_one_under_its_old_name_is_not() -> None:
    old = parse_schema("a int, b string")
    store, location = stored([[{1: 1, 2: "x"}]], old)
    new = Schema(
        (
            NestedField(3, "a", IntegerType()),
            NestedField(2, "a_text", old.fields[1].type),
            NestedField(1, "b", IntegerType()),
        )
    )
    assert read(store, location, new) == [{3: None, 2: "x", 1: 1}]
    assert read(store, location, new, bind("b = 1", new)) == [{3: None, 2: "x", 1: 1}]
    assert read(store, location, new, bind("a = 1", new)) == []
    assert read(store, location, new, bind("a IS NULL", new)) == [{3: None, 2: "x", 1: 1}]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (IntegerType(), LongType(), -(1 << 31)),
        (FloatType(), DoubleType(), 1.5),
        (DecimalType(5, 2), DecimalType(9, 2), None),
        (DecimalType(9, 2), DecimalType(38, 2), None),
        (DecimalType(18, 2), DecimalType(20, 2), None),
    ],
)
def test_a_narrower_column_is_widened_at_any_depth(old: PrimitiveType, new: PrimitiveType, value: Any) -> None:
    def nested(kind: PrimitiveType) -> Schema:
        struct = StructType((NestedField(5, "x", kind),))
        return Schema(
            (
                NestedField(1, "c", kind),
                NestedField(2, "l", ListType(3, struct)),
                NestedField(6, "m", MapType(7, kind, 8, kind)),
            )
        )

    value = pa.scalar(125, pa.int64()).cast(pa.decimal128(19, 0)).as_py().scaleb(-2) if value is None else value
    row = {1: value, 2: [{5: value}, None, {5: None}], 6: [(value, None)]}
    store, location = stored([[row, {1: None, 2: None, 6: None}]], nested(old))
    assert read(store, location, nested(new)) == [row, {1: None, 2: None, 6: None}]
    reference = Reference(1, new, ("c",))
    where = bind(f"c = {value}", nested(new)) if not isinstance(new, DecimalType) else bind("c = 1.25", nested(new))
    assert reference in {leaf.reference for leaf in [where] if hasattr(leaf, "reference")}
    assert len(read(store, location, nested(new), where)) == 1


def test_a_widened_float_is_compared_as_a_double() -> None:
    old, new = primitive_schema(FloatType()), primitive_schema(DoubleType())
    store, location = stored([[{1: 0.10000000149011612}]], old)  # what a float makes of 0.1
    assert len(read(store, location, new, bind("c1 > 0.1D", new))) == 1
    assert read(store, location, new, bind("c1 = 0.1D", new)) == []
    assert len(read(store, location, new, bind("c1 <= 0.1D", new))) == 0


@st.composite
def evolved(draw: st.DrawFn, schema: Schema) -> Schema:
    """A later version of a schema: columns dropped, added, renamed, widened and moved, at every depth."""
    fresh = iter(range(1000, 2000))

    def fields(old: Sequence[NestedField]) -> tuple[NestedField, ...]:
        kept = [field(f) for f in draw(st.permutations(old)) if draw(st.integers(0, 3))]
        added = (
            [NestedField(next(fresh), "", draw(st.sampled_from(PRIMITIVES)))] if draw(st.booleans()) or not kept else []
        )
        names = draw(st.permutations(["a", "b", "c", "d", "e", "f"]))
        return tuple(replace(f, name=name) for f, name in zip([*added, *kept], names, strict=False))

    def field(old: NestedField) -> NestedField:
        return replace(old, type=kind(old.type), required=False)

    def kind(old: Type) -> Type:
        match old:
            case StructType():
                return StructType(fields(old.fields))
            case ListType():
                return replace(old, element_type=kind(old.element_type), element_required=False)
            case MapType():
                return replace(old, value_type=kind(old.value_type), value_required=False)
            case IntegerType() if draw(st.booleans()):
                return LongType()
            case FloatType() if draw(st.booleans()):
                return DoubleType()
            case DecimalType() if old.precision < 30 and draw(st.booleans()):
                return replace(old, precision=old.precision + 8)
            case _:
                return old

    return Schema(fields(schema.fields), schema.schema_id + 1)


def seen_as(value: Any, old: Type, new: Type) -> Any:
    """A value of the old type as the new one shows it: fields by id, what is not there null."""
    if value is None:
        return None
    match old, new:
        case StructType(), StructType():
            types = {f.field_id: f.type for f in old.fields}
            return {
                f.field_id: seen_as(value.get(f.field_id), types.get(f.field_id, f.type), f.type) for f in new.fields
            }
        case ListType(), ListType():
            return [seen_as(item, old.element_type, new.element_type) for item in value]
        case MapType(), MapType():
            return [(k, seen_as(v, old.value_type, new.value_type)) for k, v in value]
        case _:
            return value


@effort(60)
@given(st.data())
def test_old_files_are_read_with_any_later_schema(data: st.DataObject) -> None:
    old = data.draw(schemas())
    new = data.draw(evolved(old))
    rows = data.draw(rows_of(old).filter(bool))
    store, location = stored([rows], old)
    assert same(read(store, location, new)) == same([seen_as(row, old.struct, new.struct) for row in rows])


# Filters.


@st.composite
def filtered(draw: st.DrawFn) -> tuple[Schema, list[list[Row]], Bound]:
    kinds = draw(st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=2))
    schema = primitive_schema(*kinds)
    groups = draw(st.lists(rows_of(schema, max_rows=4).filter(bool), min_size=1, max_size=3))
    columns = tuple(
        Reference(f.field_id, f.type, (f.name,)) for f in schema.fields if isinstance(f.type, PrimitiveType)
    )
    return schema, groups, draw(expressions(columns))


@effort(100)
@given(filtered(), st.booleans())
def test_a_filter_gives_exactly_the_rows_that_match_and_the_rest_all_others(
    drawn: tuple[Schema, list[list[Row]], Bound], store_schema: bool
) -> None:
    schema, groups, where = drawn
    store, location = stored(groups, schema, store_schema=store_schema)
    rows = [row for group in groups for row in group]
    assert same(read(store, location, schema, where)) == same([row for row in rows if matches(where, row)])
    rest = [row for batch in read_non_matching(store, location, schema, where) for row in rows_from(batch, schema)]
    assert same(rest) == same([row for row in rows if not matches(where, row)])


@effort(40)
@given(filtered())
def test_a_filter_on_columns_that_a_file_has_otherwise_or_not_at_all(
    drawn: tuple[Schema, list[list[Row]], Bound],
) -> None:
    """The file has the first column under another name and lacks the second."""
    schema, groups, where = drawn
    old = Schema((replace(schema.fields[0], name="old"),))
    store, location = stored([[{1: row[1]} for row in rows] for rows in groups], old)
    rows = [{f.field_id: row[1] if f.field_id == 1 else None for f in schema.fields} for rows in groups for row in rows]
    assert same(read(store, location, schema, where)) == same([row for row in rows if matches(where, row)])


def test_the_rest_are_the_rows_for_which_the_filter_is_false_or_null() -> None:
    schema = parse_schema("a long, b string")
    rows: list[Row] = [{1: 1, 2: "x"}, {1: None, 2: "y"}, {1: 3, 2: None}, {1: None, 2: None}]
    store, location = stored([rows], schema)

    def rest(where: str) -> list[Row]:
        return [
            row for b in read_non_matching(store, location, schema, bind(where, schema)) for row in rows_from(b, schema)
        ]

    assert rest("a = 1") == rows[1:]
    assert rest("a <> 1") == [rows[0], rows[1], rows[3]]
    assert rest("NOT a = 1") == [rows[0], rows[1], rows[3]]
    assert rest("a = 1 OR b = 'y'") == rows[2:]
    assert rest("a IS NULL") == [rows[0], rows[2]]
    assert rest("TRUE") == []
    assert rest("FALSE") == rows


def test_the_rest_has_every_column_whatever_they_are_called() -> None:
    inner = StructType((NestedField(3, "b", LongType()),))
    schema = Schema((NestedField(1, "a.b", LongType()), NestedField(2, "a", inner)))
    row = {1: 7, 2: {3: 8}}
    store, location = stored([[row]], schema)
    assert [r for b in read_non_matching(store, location, schema, FALSE) for r in rows_from(b, schema)] == [row]


# Reading no more than must be.


class RecordingInput:
    """A random-access file that notes which bytes are asked for."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.ranges, self.closed = data, 0, list[tuple[int, int]](), False

    def read(self, size: int = -1) -> bytes:
        end = len(self.data) if size < 0 else min(len(self.data), self.at + size)
        self.ranges.append((self.at, end))
        self.at, start = end, self.at
        return self.data[start:end]

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset + (0, self.at, len(self.data))[whence]
        return self.at

    def tell(self) -> int:
        return self.at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class RecordingStore(Around):
    def open_input(self, location: str) -> pa.NativeFile:
        self.input = RecordingInput(self.real.read(location))
        return pa.PythonFile(self.input, "r")

    def touched(self, start: int, stop: int) -> bool:
        """Whether any byte of a range was read, not counting reads of the tail for the footer."""
        size = len(self.input.data)
        return any(a < stop and start < b for a, b in self.input.ranges if b < size)


GROUPED = parse_schema("a long, t string, x double, s struct<n int>, big string")


def grouped_file() -> tuple[MemoryStore, str, list[tuple[int, int]]]:
    """Ten row groups whose columns do not overlap, and the byte range of each."""
    rng = random.Random(1)
    groups = [
        [{1: g * 100 + i, 2: f"{g}-{i}", 3: g * 1.5, 4: {6: g}, 5: rng.randbytes(40).hex()} for i in range(100)]
        for g in range(10)
    ]
    store, location = stored(groups, GROUPED)
    footer = pq.read_metadata(store.open_input(location))
    spans = []
    for g in range(footer.num_row_groups):
        columns = [footer.row_group(g).column(c) for c in range(footer.num_columns)]
        starts = [min(c.dictionary_page_offset or 1 << 62, c.data_page_offset) for c in columns]
        spans.append((min(starts), max(s + c.total_compressed_size for s, c in zip(starts, columns, strict=True))))
    return store, location, spans


@pytest.mark.parametrize(
    ("where", "groups"),
    [
        ("a = 342", {3}),
        ("a >= 850", {8, 9}),
        ("a < 100 OR a = 555", {0, 5}),
        ("t = '4-7'", {4}),
        ("t LIKE '4-%'", {4}),
        ("x < 3", {0, 1}),
        ("x > 12", set(range(10))),  # NaN is greater, and whether there is one the footer does not say
        ("x <> 3", set(range(10))),
        ("s.n = 6", {6}),
        ("a = 342 AND s.n = 6", set()),
        ("a IN (1, 999)", {0, 9}),
        ("a = 5000", set()),
        ("a IS NULL", set()),
        ("FALSE", set()),
        ("a = 342 AND big <> 'x'", {3}),
    ],
)
def test_row_groups_that_the_filter_rules_out_are_not_read(where: str, groups: set[int]) -> None:
    store, location, spans = grouped_file()
    recording = RecordingStore(store)
    bound = bind(where, GROUPED)
    rows = read(recording, location, GROUPED, bound)
    touched = {g for g, (start, stop) in enumerate(spans) if recording.touched(start, stop)}
    assert touched == groups
    everything = read(store, location, GROUPED)
    assert rows == [row for row in everything if matches(bound, {**row, 6: row[4][6]})]


def test_columns_that_nobody_asked_for_are_not_read() -> None:
    rng = random.Random(2)
    schema = parse_schema("a long, big string, b long")
    rows = [{1: i, 2: rng.randbytes(1000).hex(), 3: -i} for i in range(200)]
    store, location = stored([rows], schema)
    recording = RecordingStore(store)
    assert len(read(recording, location, schema, select=["a", "b"])) == 200
    chunk = pq.read_metadata(store.open_input(location)).row_group(0).column(1)
    middle = chunk.dictionary_page_offset + chunk.total_compressed_size // 2
    assert not recording.touched(middle, middle + 1)
    read(recording, location, schema)
    assert recording.touched(middle, middle + 1)


def test_rows_that_are_ruled_out_may_even_be_damaged() -> None:
    store, location, spans = grouped_file()
    data = bytearray(store.read(location))
    start, stop = spans[4]
    data[start + 10 : stop - 10] = bytes(stop - start - 20)
    store.delete(location)
    store.put_new(AT, bytes(data))
    assert len(read(store, AT, GROUPED, bind("a >= 500", GROUPED))) == 500
    with pytest.raises(CorruptFile, match=AT):
        read(store, AT, GROUPED)


# Files written by other engines.


def with_ids(*fields: pa.Field) -> pa.Schema:
    return pa.schema([f.with_metadata({"PARQUET:field_id": str(i)}) for i, f in enumerate(fields, 1)])


def test_lists_and_texts_of_any_width_are_read() -> None:
    """Arrow writers may store their own schema in the file, with large, viewed and dictionary types."""
    element = pa.field("element", pa.large_string(), metadata={"PARQUET:field_id": "9"})
    schema = with_ids(
        pa.field("l", pa.large_list(element)),
        pa.field("t", pa.large_string()),
        pa.field("d", pa.dictionary(pa.int32(), pa.string())),
        pa.field("b", pa.large_binary()),
        pa.field("z", pa.timestamp("us", "Europe/Berlin")),
        pa.field("v", pa.string_view()),
    )
    rows = [
        {"l": [str(i)] * (i % 3), "t": str(i), "d": str(i % 2), "b": b"x", "z": i, "v": "v" * (i % 20)}
        for i in range(500)
    ]
    rows[7] = dict.fromkeys(rows[7])
    store = foreign(pa.Table.from_pylist(rows, schema=schema), store_schema=True)
    kind = parse_schema("l list<string>, t string, d string, b binary, z timestamptz, v string")
    expected = [{i: row[n] for i, n in enumerate("ltdbzv", 1)} for row in rows]
    assert (
        read(store, AT, Schema((NestedField(1, "l", ListType(9, kind.fields[1].type)), *kind.fields[1:]))) == expected
    )


def test_a_fixed_size_list_is_read_as_a_list() -> None:
    element = pa.field("element", pa.int32(), metadata={"PARQUET:field_id": "9"})
    store = foreign(pa.table({"l": [[1, 2], None, [3, 4]]}, schema=with_ids(pa.field("l", pa.list_(element, 2)))))
    assert read(store, AT, Schema((NestedField(1, "l", ListType(9, LongType())),))) == [
        {1: [1, 2]},
        {1: None},
        {1: [3, 4]},
    ]


def test_a_uuid_is_read_from_plain_bytes() -> None:
    value = uuid.UUID(int=5)
    store = foreign(pa.table({"u": [value.bytes, None]}, schema=with_ids(pa.field("u", pa.binary(16)))))
    schema = parse_schema("u uuid")
    assert read(store, AT, schema) == [{1: value}, {1: None}]
    assert read(store, AT, schema, bind(f"u = '{value}'", schema)) == [{1: value}]


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "timestamp_ns"])
def test_timestamps_as_int96_are_read_whatever_their_year(kind: str) -> None:
    """Arrow's own choice, nanoseconds, does not reach the first and the last of these."""
    moments = [-62_135_596_800_000_000, -1, 0, 253_402_300_799_999_999]
    moments = moments[1:3] if kind == "timestamp_ns" else moments
    stored_as = pa.table(
        {"t": pa.array(moments, pa.timestamp("us"))}, schema=with_ids(pa.field("t", pa.timestamp("us")))
    )
    store = foreign(stored_as, use_deprecated_int96_timestamps=True)
    # A column of nanoseconds that the file does not have changes nothing for the others.
    schema = parse_schema(f"t {kind}") if kind == "timestamp_ns" else parse_schema(f"t {kind}, n timestamp_ns")
    scale = 1000 if kind == "timestamp_ns" else 1
    rows: list[Row] = [{1: moment * scale} | ({2: None} if scale == 1 else {}) for moment in moments]
    assert read(store, AT, schema) == rows
    assert read(store, AT, schema, bind("t >= '1970-01-01 00:00:00'", schema)) == [row for row in rows if row[1] >= 0]


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
def test_a_uuid_is_compared_in_a_file_that_has_it_as_arrows_own_type(operator: str) -> None:
    """Arrow fails to compare uuids with a file's statistics."""
    values = [uuid.UUID(int=i) for i in (1, 5, 9)]
    schema = parse_schema("u uuid, i int")
    rows: list[Row] = [{1: value, 2: number} for number, value in enumerate(values)]
    store, location = stored([[row] for row in rows], schema, store_schema=True)
    where = bind(f"u {operator} '{values[1]}' AND i >= 0", schema)
    assert read(store, location, schema, where) == [row for row in rows if matches(where, row)]


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema({"a": pa.int32()}),
        pa.schema([*with_ids(pa.field("a", pa.int32())), pa.field("b", pa.int32())]),
        with_ids(pa.field("s", pa.struct([("x", pa.int32())]))),
    ],
    ids=["none", "some", "nested"],
)
def test_a_file_without_field_ids_is_refused_and_not_read_as_null(schema: pa.Schema) -> None:
    rows = [{"a": 1, "b": 2, "s": {"x": 3}}]
    store = foreign(pa.Table.from_pylist(rows, schema=schema))
    table = parse_schema("a int, b int") if "a" in schema.names else parse_schema("s struct<x int>")
    with pytest.raises(Unsupported, match=f"{AT} has columns without field ids"):
        read(store, AT, table)


def test_an_empty_file_has_no_rows() -> None:
    schema = parse_schema("a long")
    store = foreign(pa.Table.from_batches([], arrow_schema(schema)))
    assert read(store, AT, schema) == []
    assert read(store, AT, schema, bind("a = 1", schema)) == []


# Damage.


def test_a_missing_file_is_missing() -> None:
    with pytest.raises(MissingFile, match=AT):
        read(MemoryStore(), AT, GROUPED)


def test_a_file_cut_anywhere_is_corrupt_and_named() -> None:
    store, location, _ = grouped_file()
    data = store.read(location)
    for end in [0, 1, 4, 8, 100, len(data) // 2, len(data) - 100, len(data) - 8, len(data) - 1]:
        cut = MemoryStore()
        cut.put_new(AT, data[:end])
        with pytest.raises(CorruptFile) as caught:
            read(cut, AT, GROUPED)
        assert caught.value.location == AT


@pytest.mark.parametrize("wanted", ["struct<x int>", "list<int>", "map<string, int>"])
@pytest.mark.parametrize("stored", ["string", "struct<x int>", "list<int>", "map<string, int>"])
def test_a_column_of_another_shape_is_corrupt(stored: str, wanted: str) -> None:
    held, asked = parse_schema(f"c {stored}"), parse_schema(f"c {wanted}")
    rows = pa.table([pa.nulls(3, arrow_schema(held).field(0).type)], schema=arrow_schema(held))
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    store = MemoryStore()
    store.put_new(AT, sink.getvalue().to_pybytes())
    if stored == wanted:
        assert len(read(store, AT, asked)) == 3
        return
    with pytest.raises(CorruptFile, match="its column 'c' is"):
        read(store, AT, asked)


def test_garbage_is_corrupt() -> None:
    for data in (b"garbage", b"PAR1" * 10, b"PAR1" + bytes(100) + b"PAR1", bytes(1000)):
        store = MemoryStore()
        store.put_new(AT, data)
        with pytest.raises(CorruptFile, match=AT):
            read(store, AT, GROUPED)
