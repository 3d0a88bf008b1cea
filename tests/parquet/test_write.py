"""Every row lands once, in a file of its partition; files are rolled, bounded, named apart, and gone after an abort."""

import json
import math
import pickle
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commit.faults import Around
from tests.effort import effort
from tests.expr.cases import values_of
from tests.parquet.row_cases import Row, array_of, batch_of, rows_from, same, values_from
from tests.schema_cases import PRIMITIVES, primitive_schema

from icefield.codec.json.schema import decode_schema
from icefield.codec.manifest.schema import data_file_arrow_schema
from icefield.config.connect import connect
from icefield.errors import FileAlreadyExists, InvalidInput, SchemaMismatch, StorageError, Unsupported
from icefield.lake import Lake
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionField, PartitionSpec, parse_partition_by
from icefield.model.sort_order import parse_order_by
from icefield.parquet.read.stored_columns import file_name, fingerprint_of, stored_columns
from icefield.parquet.write import write as write_module
from icefield.parquet.write.file_layout import FileLayout
from icefield.parquet.write.plan import WritePlan, plan_write
from icefield.parquet.write.write import DataWriter
from icefield.storage.local import LocalStore
from icefield.storage.location import is_inside, location_of_path
from icefield.storage.memory import MemoryStore
from icefield.storage.store import Store
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import DoubleType, FloatType, LongType, NestedField, PrimitiveType, StringType, StructType
from icefield.types.schema import Schema
from icefield.types.text import parse_schema
from icefield.types.transforms import Unknown

LOCATION = "memory://lake/t"


def plan_for(schema: Schema, spec: PartitionSpec | Sequence[str] = (), **properties: str) -> WritePlan:
    made = spec if isinstance(spec, PartitionSpec) else parse_partition_by(spec, schema)
    table = TableMetadata(
        uuid.UUID(int=1),
        LOCATION,
        0,
        schema.highest_field_id,
        (schema,),
        schema.schema_id,
        specs=(made,),
        default_spec_id=made.spec_id,
        properties=properties,
    )
    return plan_write(table, "w1")


def name_in(plan: WritePlan, task: str = "0") -> str:
    """Return the name of a task's first file."""
    return file_name(f"{task}-w1-00001", fingerprint_of(stored_columns(plan.schema)))


def written(plan: WritePlan, batches: Iterable[pa.RecordBatch], store: Store | None = None) -> tuple[pa.Table, Any]:
    store = store or MemoryStore()
    writer = DataWriter(plan, store, "00000-0")
    for batch in batches:
        writer.write(batch)
    return writer.close(), store


def write_all(writer: DataWriter, batch: pa.RecordBatch) -> None:
    writer.write(batch)
    writer.close()


def file_at(store: Store, location: str) -> pq.ParquetFile:
    return pq.ParquetFile(store.open_input(location))


def numbers(count: int, start: int = 0) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(start, start + count), pa.int64())})


class WatchedStore(Around):
    """Counts the sinks that are open at once, and may fail when one is closed or written to."""

    def __init__(self, real: Store, fail_after: int | None = None) -> None:
        super().__init__(real)
        self.open = self.most = self.closed = 0
        self.fail_after = fail_after

    def open_new(self, location: str) -> Any:
        sink = WatchedSink(self.real.open_new(location), self)
        self.open += 1
        self.most = max(self.most, self.open)
        return sink


class WatchedSink(Around):
    def __init__(self, real: Any, store: WatchedStore) -> None:
        super().__init__(real)
        self.store = store

    def write(self, data: bytes) -> int:
        if self.store.fail_after is not None and self.store.closed >= self.store.fail_after:
            raise StorageError("the disk is full")
        return int(self.real.write(data))

    def close(self) -> None:
        self.store.open -= 1
        self.store.closed += 1
        self.real.close()


# Partitions.

SOURCES = primitive_schema(*PRIMITIVES)
SCHEMA = Schema(
    (
        NestedField(100, "at", LongType(), required=True),
        *SOURCES.fields,
        NestedField(101, "nested", StructType((NestedField(102, "x", StringType()),))),
    )
)
NESTED_X = SCHEMA.find_field("nested.x")
TERMS = [
    term
    for field in SOURCES.fields
    for term in (
        field.name,
        f"void({field.name})",
        f"bucket(3, {field.name})",
        f"truncate(2, {field.name})",
        f"year({field.name})",
        f"month({field.name})",
        f"day({field.name})",
    )
] + ["nested.x", "bucket(2, nested.x)", "truncate(1, nested.x)"]


def fits(term: str) -> bool:
    try:
        parse_partition_by([term], SCHEMA)
    except InvalidInput:
        return False
    return True


FITTING = [term for term in TERMS if fits(term)]


@st.composite
def partitioned_rows(draw: st.DrawFn) -> tuple[PartitionSpec, list[list[Row]]]:
    """A spec of one or two terms, and batches of rows whose source values collide; other columns are null."""
    terms = draw(st.lists(st.sampled_from(FITTING), min_size=1, max_size=2, unique_by=lambda t: t.split("(")[-1]))
    spec = parse_partition_by(terms, SCHEMA)
    sources = {f.source_id for f in spec.fields}
    pools = {i: draw(st.lists(_source_value(i), min_size=1, max_size=3)) for i in sources}
    sizes = draw(st.lists(st.integers(0, 6), min_size=1, max_size=3))
    batches, at = [], 0
    for size in sizes:
        rows = []
        for _ in range(size):
            row: Row = {f.field_id: None for f in SCHEMA.fields}
            row[100], at = at, at + 1
            for source, pool in pools.items():
                value = draw(st.sampled_from(pool))
                if source == NESTED_X.field_id:
                    row[101] = draw(st.sampled_from([None, {source: value}]))
                else:
                    row[source] = value
            rows.append(row)
        batches.append(rows)
    return spec, batches


def _source_value(field_id: int) -> st.SearchStrategy[Any]:
    kind = SCHEMA.by_id[field_id].type
    assert isinstance(kind, PrimitiveType)
    return st.none() | values_of(kind)


def partition_of(row: Row, spec: PartitionSpec) -> list[Any]:
    """Transform the source values of one row, one by one."""
    found: list[Any] = []
    for field in spec.fields:
        value = row[101] and row[101][field.source_id] if field.source_id == NESTED_X.field_id else row[field.source_id]
        kind = SCHEMA.by_id[field.source_id].type
        assert isinstance(kind, PrimitiveType)
        found.append(None if value is None else field.transform.apply_value(value, kind))
    return found


@effort(80)
@given(partitioned_rows())
def test_every_row_lands_once_and_in_a_file_of_its_partition(drawn: tuple[PartitionSpec, list[list[Row]]]) -> None:
    spec, batches = drawn
    try:
        expected = {row[100]: partition_of(row, spec) for rows in batches for row in rows}
    except InvalidInput:  # a value that has no such partition
        return
    plan = plan_for(SCHEMA, spec)
    files, store = written(plan, (batch_of(rows, SCHEMA) for rows in batches))
    seen: list[int] = []
    columns = spec.columns(SCHEMA)
    values = [_partition_column(files, c) for c in columns]
    for at, location in enumerate(files["file_path"].to_pylist()):
        data = file_at(store, location).read()
        numbered = data.column("at").to_pylist()
        assert len(numbered) == files["record_count"][at].as_py()
        assert numbered == sorted(numbered)
        for number in numbered:
            assert same([v[at] for v in values]) == same(expected[number])
        seen += numbered
    assert sorted(seen) == list(expected)
    keys = {json.dumps(same(key), default=str) for key in expected.values()}
    assert files.num_rows == len(keys)


def _partition_column(files: pa.Table, column: NestedField) -> list[Any]:
    assert isinstance(column.type, PrimitiveType)
    stored = files[f"partition.{column.field_id}"].combine_chunks()
    if str(column.type) == "uuid":
        stored = pa.ExtensionArray.from_storage(pa.uuid(), stored)
    return values_from(stored, column.type)


def test_nan_is_one_partition_however_many_batches_bring_it() -> None:
    schema = primitive_schema(DoubleType())
    batch = batch_of([{1: math.nan}, {1: 1.0}, {1: -math.nan}, {1: None}], schema)
    files, _ = written(plan_for(schema, ["c1"]), [batch, batch, batch])
    assert sorted(files["record_count"].to_pylist()) == [3, 3, 6]


@pytest.mark.parametrize("kind", [FloatType(), DoubleType()])
def test_zero_has_a_partition_for_each_of_its_signs(kind: PrimitiveType) -> None:
    schema = primitive_schema(kind)
    batch = batch_of([{1: 0.0}, {1: -0.0}, {1: 0.0}], schema)
    files, store = written(plan_for(schema, ["c1"]), [batch, batch.slice(1)])
    for location, value in zip(files["file_path"].to_pylist(), files["partition.1000"], strict=True):
        assert {repr(v) for v in file_at(store, location).read()["c1"].to_pylist()} == {repr(value.as_py())}
    assert sorted(files["record_count"].to_pylist()) == [2, 3]


def test_rows_of_an_unknown_transform_cannot_be_written() -> None:
    spec = PartitionSpec((PartitionField(1, 1000, "z", Unknown("zorder")),))
    with pytest.raises(Unsupported, match="zorder"):
        written(plan_for(primitive_schema(LongType()), spec), [pa.record_batch({"c1": [1]})])


def test_rows_keep_their_order_within_a_file() -> None:
    plan = plan_for(parse_schema("id long, k int"), ["k"])
    keys = [i * 7 % 3 for i in range(300)]
    batch = pa.record_batch({"id": range(300), "k": pa.array(keys, pa.int32())})
    files, store = written(plan, [batch.slice(0, 100), batch.slice(100, 1), batch.slice(101)])
    assert files.num_rows == 3
    for location in files["file_path"].to_pylist():
        ids = file_at(store, location).read().column("id").to_pylist()
        assert ids == sorted(ids)
        assert len({keys[i] for i in ids}) == 1


@pytest.mark.parametrize("batch_rows", [1, 3, 100])
def test_only_files_whose_rows_are_in_order_say_so(batch_rows: int) -> None:
    schema = parse_schema("id long, k string")
    plan = replace(plan_for(schema, ["k"]), order=parse_order_by(["id desc"], schema))
    batch = pa.record_batch({"id": [9, 5, 8, 6, 5, 7], "k": ["a", "a", "a", "b", "b", None]})
    pieces = [batch.slice(start, batch_rows) for start in range(0, len(batch), batch_rows)]
    files, store = written(plan, pieces)
    paths, said = files["file_path"].to_pylist(), files["sort_order_id"].to_pylist()
    claimed = {tuple(file_at(store, p).read().column("id").to_pylist()): s for p, s in zip(paths, said, strict=True)}
    assert claimed == {(9, 5, 8): None, (6, 5): 1, (7,): 1}


# Sizes.


def test_files_are_rolled_at_the_target_size() -> None:
    plan = plan_for(
        parse_schema("id long"),
        **{"write.target-file-size-bytes": "20000", "write.parquet.compression-codec": "uncompressed"},
    )
    files, store = written(plan, (numbers(1000, i * 1000) for i in range(20)))
    sizes = files["file_size_in_bytes"].to_pylist()
    assert len(sizes) >= 4
    assert all(5_000 < size < 60_000 for size in sizes[:-1])
    ids = [i for location in files["file_path"].to_pylist() for i in file_at(store, location).read()["id"].to_pylist()]
    assert ids == list(range(20_000))


def test_one_huge_batch_is_rolled_too() -> None:
    plan = plan_for(
        parse_schema("id long"),
        **{"write.target-file-size-bytes": "20000", "write.parquet.compression-codec": "uncompressed"},
    )
    files, store = written(plan, [numbers(40_000)])
    sizes = files["file_size_in_bytes"].to_pylist()
    assert len(sizes) >= 8
    assert max(sizes) < 80_000
    ids = [i for location in files["file_path"].to_pylist() for i in file_at(store, location).read()["id"].to_pylist()]
    assert ids == list(range(40_000))


@pytest.mark.parametrize("rows_per_batch", [500, 50_000])
def test_row_groups_are_closed_at_their_size(rows_per_batch: int) -> None:
    plan = plan_for(parse_schema("id long"), **{"write.parquet.row-group-size-bytes": "80000"})
    batches = [numbers(rows_per_batch, start) for start in range(0, 50_000, rows_per_batch)]
    files, store = written(plan, batches)
    (location,) = files["file_path"].to_pylist()
    footer = file_at(store, location).metadata
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    assert len(groups) >= 4
    assert all(5_000 <= g.num_rows <= 20_000 for g in groups[:-1])
    assert sum(g.num_rows for g in groups) == files["record_count"][0].as_py() == 50_000
    assert files["split_offsets"][0].as_py() == [
        min(c.dictionary_page_offset or 1 << 62, c.data_page_offset) for c in (g.column(0) for g in groups)
    ]
    assert files["file_size_in_bytes"][0].as_py() == store.size(location)


def test_a_row_larger_than_the_target_still_gets_a_file() -> None:
    plan = plan_for(
        parse_schema("t string"), **{"write.target-file-size-bytes": "1", "write.parquet.row-group-size-bytes": "1"}
    )
    files, _ = written(plan, [pa.record_batch({"t": ["x" * 1000, "y" * 1000, "z"]})])
    assert sum(files["record_count"].to_pylist()) == 3
    assert files.num_rows == 3


def test_no_more_files_are_open_than_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_module, "MAX_OPEN_FILES", 3)
    store = WatchedStore(MemoryStore())
    plan = plan_for(parse_schema("id long"), ["id"], **{"write.parquet.row-group-size-bytes": "1"})
    files, _ = written(plan, [numbers(10), numbers(10), numbers(10)], store)
    assert store.most == 4  # one is closed when one more is begun
    assert store.open == 0
    found = sorted(i for p in files["file_path"].to_pylist() for i in file_at(store, p).read()["id"].to_pylist())
    assert found == sorted(list(range(10)) * 3)
    assert len(set(files["file_path"].to_pylist())) == files.num_rows


def test_many_partitions_do_not_add_up_to_more_memory_than_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    cap = 100_000
    monkeypatch.setattr(write_module, "MAX_BUFFERED_BYTES", cap)
    plan = plan_for(parse_schema("id long, k int"), ["k"])
    store = MemoryStore()
    writer = DataWriter(plan, store, "0")
    for start in range(0, 40_000, 4000):
        batch = numbers(4000, start)
        writer.write(batch.append_column("k", pa.array([i % 5 for i in range(4000)], pa.int32())))
        assert sum(f.buffered_bytes for f in writer._open.values()) <= cap
    files = writer.close()
    assert files["record_count"].to_pylist() == [8000] * 5
    groups = [file_at(store, p).metadata.num_row_groups for p in files["file_path"].to_pylist()]
    assert sum(groups) > 5


def test_a_few_rows_of_a_small_partition_do_not_hold_every_batch_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch has one row of another partition; what is held for those rows must not be the batches."""
    cap = 1_000_000
    monkeypatch.setattr(write_module, "MAX_BUFFERED_BYTES", cap)
    plan = plan_for(parse_schema("id long, k int"), ["k"], **{"write.parquet.row-group-size-bytes": str(cap // 2)})
    writer = DataWriter(plan, WatchedStore(MemoryStore()), "0")
    keys = pa.array([1, *([0] * 19_999)], pa.int32())
    before = pa.total_allocated_bytes()
    for start in range(0, 2_000_000, 20_000):
        writer.write(numbers(20_000, start).append_column("k", keys))
        assert pa.total_allocated_bytes() - before < 6 * cap
    assert sorted(writer.close()["record_count"].to_pylist()) == [100, 1_999_900]


def test_rows_of_many_partitions_are_not_scattered_over_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_module, "MAX_OPEN_FILES", 3)
    plan = plan_for(parse_schema("id long, k int"), ["k"])
    batches = [numbers(100, i * 100).append_column("k", pa.array(range(100), pa.int32())) for i in range(5)]
    files, store = written(plan, batches)
    assert files["record_count"].to_pylist() == [5] * 100
    for location in files["file_path"].to_pylist():
        ids = file_at(store, location).read()["id"].to_pylist()
        assert ids == sorted(ids)
        assert len({i % 100 for i in ids}) == 1


# Failing.


def test_an_abort_removes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_module, "MAX_OPEN_FILES", 2)
    store = MemoryStore()
    plan = plan_for(parse_schema("id long"), ["id"], **{"write.parquet.row-group-size-bytes": "1"})
    writer = DataWriter(plan, store, "0")
    writer.write(numbers(5))
    assert list(store.list(LOCATION))
    writer.abort()
    assert not list(store.list(LOCATION))
    store.put_new(f"{LOCATION}/data/id=0/{name_in(plan)}", b"")  # no key stays claimed
    writer.abort()


def test_an_abort_after_the_close_removes_everything_too() -> None:
    store = MemoryStore()
    writer = DataWriter(plan_for(parse_schema("id long")), store, "0")
    writer.write(numbers(5))
    assert writer.close().num_rows == 1
    writer.abort()
    assert not list(store.list(LOCATION))


def test_an_abort_of_nothing_does_nothing() -> None:
    DataWriter(plan_for(parse_schema("id long")), MemoryStore(), "0").abort()


@pytest.mark.parametrize("fail_after", [0, 1, 2])
def test_nothing_is_left_when_the_store_fails(fail_after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_module, "MAX_OPEN_FILES", 2)
    real = MemoryStore()
    plan = plan_for(parse_schema("id long"), ["id"], **{"write.parquet.row-group-size-bytes": "1"})
    writer = DataWriter(plan, WatchedStore(real, fail_after), "0")
    with pytest.raises(StorageError, match="disk is full"):
        write_all(writer, numbers(6))
    writer.abort()
    assert not list(real.list(LOCATION))


def test_nothing_is_left_when_the_statistics_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no statistics")

    monkeypatch.setattr(write_module, "footer_metrics", fail)
    store = MemoryStore()
    writer = DataWriter(plan_for(parse_schema("id long")), store, "0")
    writer.write(numbers(6))
    with pytest.raises(ValueError, match="no statistics"):
        writer.close()
    writer.abort()
    assert not list(store.list(LOCATION))


def test_nothing_is_left_when_a_file_cannot_be_begun() -> None:
    store = MemoryStore()
    plan = plan_for(parse_schema("id long"))
    writer = DataWriter(replace(plan, parquet=replace(plan.parquet, codec="nonsense")), store, "0")
    writer.write(numbers(1))
    with pytest.raises(Exception, match="nonsense"):
        writer.close()
    writer.abort()
    assert not list(store.list(LOCATION))
    store.put_new(f"{LOCATION}/data/{name_in(plan)}", b"")


def test_rows_that_do_not_fit_leave_what_was_written_to_the_abort() -> None:
    store = MemoryStore()
    writer = DataWriter(plan_for(parse_schema("id long not null")), store, "0")
    writer.write(numbers(3))
    with pytest.raises(SchemaMismatch, match="'id' holds 1 null"):
        writer.write(pa.record_batch({"id": pa.array([1, None])}))
    writer.abort()
    assert not list(store.list(LOCATION))


def test_a_file_of_somebody_else_is_neither_overwritten_nor_removed() -> None:
    store = MemoryStore()
    plan = plan_for(parse_schema("id long"))
    theirs = f"{LOCATION}/data/{name_in(plan)}"
    store.put_new(theirs, b"theirs")
    writer = DataWriter(plan, store, "0")
    writer.write(numbers(1))
    with pytest.raises(FileAlreadyExists):
        writer.close()
    writer.abort()
    assert store.read(theirs) == b"theirs"


# Names.


def test_names_carry_the_task_and_the_write_and_never_collide() -> None:
    store = MemoryStore()
    schema = parse_schema("id long")
    plans = [plan_for(schema, ["id"]), replace(plan_for(schema, ["id"]), write_id="w2")]
    paths: list[str] = []
    for plan in plans:
        for task in ("00000-0", "00000-1", "00001-0"):
            writer = DataWriter(plan, store, task)
            writer.write(numbers(3))
            made = writer.close()["file_path"].to_pylist()
            assert all(f"/{task}-{plan.write_id}-" in p for p in made)
            paths += made
    assert len(set(paths)) == len(paths) == 18
    assert sorted(f.location for f in store.list(LOCATION)) == sorted(paths)


HOSTILE = [
    "../../etc",
    "..",
    ".",
    "/",
    "a/b",
    "a\\b",
    "",
    "null",
    "=",
    "%2F",
    "a\0b",
    "\n",
    "ü" * 50,
    "x" * 5000,
    "🧊",
    "?#&+ ",
]


def test_any_partition_value_gives_a_path_inside_the_data_location(tmp_path: Any) -> None:
    schema = parse_schema("t string")
    root = location_of_path(str(tmp_path / "t"))
    plan = replace(plan_for(schema, ["t"]), layout=FileLayout(f"{root}/data"))
    store = LocalStore(roots=[root], durable=False)
    files, _ = written(plan, [pa.record_batch({"t": pa.array([*HOSTILE, None])})], store)
    paths = files["file_path"].to_pylist()
    assert len(set(paths)) == len(HOSTILE) + 1
    for path, value in zip(paths, files["partition.1000"].to_pylist(), strict=True):
        assert is_inside(path, plan.layout.folder)
        assert len(path.removeprefix(plan.layout.folder).split("/")) == 3
        assert file_at(store, path).read()["t"].to_pylist() == [value]
    assert sorted(f.location for f in store.list(root)) == sorted(paths)


def test_a_hostile_name_of_a_partition_field_stays_inside_too() -> None:
    schema = Schema((NestedField(1, "../..", StringType()),))
    files, _ = written(plan_for(schema, ["`../..`"]), [pa.record_batch({"../..": ["x"]})])
    (path,) = files["file_path"].to_pylist()
    assert is_inside(path, f"{LOCATION}/data")
    assert "/../" not in path


@pytest.mark.parametrize(
    ("term", "value", "directory"),
    [
        ("c", 1_582_934_400_000_000, "c=2020-02-29T00%3A00%3A00.000000"),
        ("day(c)", 1_582_934_400_000_000, "c_day=2020-02-29"),
        ("hour(c)", 1_582_934_400_000_000, "c_hour=2020-02-29-00"),
        ("month(c)", -1, "c_month=1969-12"),
        ("day(c)", None, "c_day=null"),
    ],
)
def test_directories_are_for_people(term: str, value: int | None, directory: str) -> None:
    schema = parse_schema("c timestamp")
    plan = plan_for(schema, [term])
    files, _ = written(plan, [batch_of([{1: value}], schema)])
    assert files["file_path"][0].as_py() == f"{LOCATION}/data/{directory}/{name_in(plan, '00000-0')}"


# What is written.


def test_no_rows_give_an_empty_table_with_the_right_columns() -> None:
    for spec in ([], ["day(ts)", "bucket(4, id)"]):
        schema = parse_schema("id long, ts timestamp, u uuid")
        plan = plan_for(schema, spec)
        for batches in ([], [batch_of([], schema)]):
            files, store = written(plan, batches)
            assert files.num_rows == 0
            assert files.table.schema == data_file_arrow_schema(plan.spec.columns(schema))
            assert not list(store.list(LOCATION))


def test_a_closed_writer_says_the_same_again() -> None:
    writer = DataWriter(plan_for(parse_schema("id long")), MemoryStore(), "0")
    writer.write(numbers(3))
    assert writer.close() == writer.close()


def test_files_are_as_the_format_wants_them() -> None:
    schema = parse_schema(
        "id long not null, t time, ts timestamp, tz timestamptz, u uuid, d1 decimal(9, 2), d2 decimal(18, 2), "
        "d3 decimal(20, 2), l list<int>, m map<string, struct<x int not null>>, f fixed[3]"
    )
    rows = [{f.field_id: (1 if f.required else None) for f in schema.fields}]
    files, store = written(plan_for(schema), [batch_of(rows, schema)])
    file = file_at(store, files["file_path"][0].as_py())
    text = str(file.schema)
    for line in (
        "required int64 field_id=1 id;",
        "int64 field_id=2 t (Time(isAdjustedToUTC=false, timeUnit=microseconds))",
        "int64 field_id=3 ts (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds",
        "int64 field_id=4 tz (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds",
        "fixed_len_byte_array(16) field_id=5 u (UUID)",
        "int32 field_id=6 d1 (Decimal(precision=9, scale=2))",
        "int64 field_id=7 d2 (Decimal(precision=18, scale=2))",
        "fixed_len_byte_array(9) field_id=8 d3 (Decimal(precision=20, scale=2))",
        "fixed_len_byte_array(3) field_id=11 f",
    ):
        assert line in text
    for name in ("l.element", "m.key", "m.value", "m.value.x"):
        assert f"field_id={schema.find_field(name).field_id} {name.split('.')[-1]}" in text
    stored = file.metadata.metadata
    assert decode_schema(json.loads(stored[b"iceberg.schema"])) == schema
    assert b"ARROW:schema" not in stored
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.metadata.row_group(0).column(0).has_offset_index


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "lz4_raw", "brotli", "uncompressed"])
def test_every_codec_can_be_chosen(codec: str) -> None:
    plan = plan_for(parse_schema("id long"), **{"write.parquet.compression-codec": codec})
    files, store = written(plan, [numbers(100)])
    file = file_at(store, files["file_path"][0].as_py())
    assert file.metadata.row_group(0).column(0).compression == codec.removesuffix("_raw").upper()
    assert file.read()["id"].to_pylist() == list(range(100))


def test_statistics_are_those_of_all_batches() -> None:
    schema = parse_schema("x double, t string")
    batches = [
        pa.record_batch({"x": [math.nan, 1.0], "t": ["b", None]}),
        pa.record_batch({"t": pa.array([None, "a"]), "x": [None, math.nan]}),
    ]
    files, _ = written(plan_for(schema, **{"write.parquet.row-group-size-bytes": "1"}), batches)
    (file,) = files.to_pylist()
    assert file["value_counts"] == [(1, 4), (2, 4)]
    assert sorted(file["null_value_counts"]) == [(1, 1), (2, 2)]
    assert file["nan_value_counts"] == [(1, 2)]
    assert dict(file["lower_bounds"])[2] == b"a"
    assert dict(file["upper_bounds"])[2] == b"b"
    assert (file["content"], file["file_format"], file["record_count"]) == (0, "PARQUET", 4)


def test_a_plan_travels() -> None:
    plan = plan_for(SCHEMA, ["bucket(3, c2)"])
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_a_plan_takes_the_settings_of_the_table() -> None:
    plan = plan_for(
        parse_schema("a long, b string"),
        **{
            "write.target-file-size-bytes": "7",
            "write.parquet.row-group-size-bytes": "5",
            "write.parquet.compression-codec": "gzip",
            "write.metadata.metrics.column.b": "none",
        },
    )
    assert (plan.target_file_size_bytes, plan.parquet.row_group_bytes, plan.parquet.codec) == (7, 5, "gzip")
    assert not plan.modes[2].counts
    assert plan.layout.folder == f"{LOCATION}/data"


def test_columns_may_come_in_any_order_and_width() -> None:
    schema = parse_schema("id long, t string")
    batch = pa.record_batch({"t": pa.array(["a"]).dictionary_encode(), "id": pa.array([1], pa.int8())})
    files, store = written(plan_for(schema), [batch])
    data = file_at(store, files["file_path"][0].as_py()).read()
    assert rows_from(data, schema) == [{1: 1, 2: "a"}]
    assert array_of([1], LongType()).type == arrow_schema(schema).field("id").type


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_values_too_long_for_a_footer_still_have_bounds(kind: str) -> None:
    table = connect("memory:").create_table(
        "t.long", f"v {kind}, s struct<v {kind}>", properties={"write.parquet.row-group-size-bytes": "20000"}
    )
    values = ["b" * 5000, "a", "c" * 9000, None, "zz"]
    rows = [{"v": v if v is None or kind == "string" else v.encode()} for v in values]
    table.append(pa.Table.from_pylist([r | {"s": r} for r in rows], schema=arrow_schema(table.schema)))
    (entry,) = table.scan().files().to_pylist()
    assert entry["record_count"] == 5
    assert table.scan(where=_compare("v", ">", "zzz", kind)).files().num_rows == 0
    assert table.scan(where=_compare("s.v", "<", "A", kind)).files().num_rows == 0
    assert table.scan(where=_compare("v", "=", "c" * 16, kind)).files().num_rows == 1


def _compare(column: str, sign: str, text: str, kind: str) -> str:
    return f"{column} {sign} '{text}'" if kind == "string" else f"{column} {sign} X'{text.encode().hex()}'"


@pytest.mark.parametrize("kind", ["random", "repeated", "harder"])
@pytest.mark.parametrize("batch_rows", [1000, 200_000])
def test_files_are_closed_at_the_target_size(kind: str, batch_rows: int) -> None:
    rng, target, total = np.random.default_rng(1), 200_000, 200_000
    bits = {"random": np.full(total, 62), "repeated": np.full(total, 6), "harder": np.linspace(1, 62, total)}[kind]
    values = rng.integers(0, 2 ** bits.astype(np.int64))
    batches = pa.record_batch({"id": values, "other": values[::-1]}), range(0, total, batch_rows)
    plan = plan_for(parse_schema("id long, other long"), **{"write.target-file-size-bytes": str(target)})
    files, _ = written(plan, (batches[0].slice(start, batch_rows) for start in batches[1]))
    sizes = files["file_size_in_bytes"].to_pylist()
    assert sum(files["record_count"].to_pylist()) == total
    assert len(sizes) > 1
    assert all(0.75 * target <= size <= 1.25 * target for size in sizes[:-1])
    assert sizes[-1] <= 1.25 * target


def test_a_write_has_the_settings_of_its_table_whatever_was_written_before(lake: Lake) -> None:
    table = lake.create_table("a.t", "id long, name string")
    plans = [plan_write(table.metadata, "w1"), plan_write(table.metadata, "w2")]
    assert [plan.write_id for plan in plans] == ["w1", "w2"]
    assert plans[0].parquet is plans[1].parquet
    table.set_properties({"write.target-file-size-bytes": "12345"})
    assert plan_write(table.metadata, "w3").target_file_size_bytes == 12345
    with table.evolve() as change:
        change.add_column("more", "long")
    assert list(plan_write(table.metadata, "w4").schema.column_names) == ["id", "name", "more"]
    options = {"write.target-file-size-bytes": "77777"}
    assert plan_write(table.metadata, "w5", options=options).target_file_size_bytes == 77777
    assert plan_write(table.metadata, "w6").target_file_size_bytes == 12345
