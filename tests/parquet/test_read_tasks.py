"""What a file's rows are beyond its own columns: deletes, defaults, constants, ids by name, lineage."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.codec.json.name_mapping import NameMapping, decode_name_mapping
from icefield.codec.puffin.deletion_vector import encode_deletion_vector
from icefield.errors import CorruptFile, Unsupported
from icefield.expr.bind.bind import bind
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.task import DeleteFile, DeleteType, FileTask
from icefield.storage.memory import MemoryStore
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import EMPTY_STRUCT, NestedField, StructType
from icefield.types.metadata_columns import DELETED_FILE, DELETED_POSITION, with_metadata_columns
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

AT, DELETES = "memory://lake/t/data/f.parquet", "memory://lake/t/data/d.parquet"
SCHEMA = parse_schema("id long, s string")
TASK = FileTask(AT, 10, 3, 0, first_row_id=100)
Rows = list[dict[str, Any]]


def put(store: MemoryStore, rows: Rows, schema: pa.Schema, location: str = AT, **options: Any) -> None:
    with store.open_new(location) as sink:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, store_schema=False, **options)


def ten_rows(row_group_size: int = 4) -> MemoryStore:
    store = MemoryStore()
    rows = [{"id": i, "s": f"s{i}" if i % 3 else None} for i in range(10)]
    put(store, rows, arrow_schema(SCHEMA), row_group_size=row_group_size)
    return store


def read(
    store: MemoryStore,
    task: FileTask,
    select: Sequence[str] | None = None,
    where: str | None = None,
    *,
    schema: Schema = SCHEMA,
    history: Sequence[Schema] = (),
    mapping: NameMapping | None = None,
) -> Rows:
    readable = with_metadata_columns(schema)
    names = list(select) if select is not None else [f.name for f in schema.fields]
    reader = TableFiles(tuple(history or [schema]), mapping).reader(store)
    batches = list(reader.read(task, readable, names, bind(where, readable)))
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()]


def ids(rows: Rows) -> list[int]:
    return [row["id"] for row in rows]


# Deletes.


def position_deletes(store: MemoryStore, pairs: Sequence[tuple[str, int]], schema: pa.Schema | None = None) -> FileTask:
    rows = [{"file_path": path, "pos": at} for path, at in pairs]
    put(store, rows, schema or arrow_schema(Schema((DELETED_FILE, DELETED_POSITION))), DELETES)
    return replace(TASK, deletes=(DeleteFile(DeleteType.POSITIONS, DELETES),))


def vector(store: MemoryStore, positions: Sequence[int], *, claimed: int | None = None) -> FileTask:
    blob = encode_deletion_vector(np.array(positions, np.int64))
    store.put_new("memory://lake/t/data/v.puffin", b"head" + blob + b"tail")
    cardinality = len(set(positions)) if claimed is None else claimed
    found = DeleteFile(DeleteType.VECTOR, "memory://lake/t/data/v.puffin", (), 4, len(blob), cardinality)
    return replace(TASK, deletes=(found,))


def test_position_deletes_of_this_file_apply_and_those_of_others_do_not() -> None:
    store = ten_rows()
    task = position_deletes(store, [(AT, 0), (AT, 5), (AT, 5), ("memory://lake/t/data/other.parquet", 1)])
    assert ids(read(store, task)) == [1, 2, 3, 4, 6, 7, 8, 9]


def test_position_delete_files_without_ids_are_read_by_name() -> None:
    store = ten_rows()
    task = position_deletes(store, [(AT, 9)], pa.schema([("file_path", pa.string()), ("pos", pa.int64())]))
    assert ids(read(store, task)) == list(range(9))


@effort(60)
@given(st.sets(st.integers(0, 12)), st.integers(1, 10), st.sampled_from([None, "id >= 4", "id = 9", "s IS NULL"]))
def test_vectors_apply_by_the_position_in_the_whole_file(gone: set[int], group: int, where: str | None) -> None:
    store = ten_rows(group)
    kept = [row for row in read(ten_rows(group), TASK, where=where) if row["id"] not in gone]
    assert read(store, vector(store, sorted(gone)), where=where) == kept


def test_a_vector_that_holds_another_number_of_positions_is_refused() -> None:
    store = ten_rows()
    with pytest.raises(CorruptFile, match="cardinality"):
        read(store, vector(store, [1, 2], claimed=3))


def test_a_damaged_delete_file_is_named() -> None:
    store = ten_rows()
    store.put_new(DELETES, b"PAR1 is not enough")
    task = replace(TASK, deletes=(DeleteFile(DeleteType.POSITIONS, DELETES),))
    with pytest.raises(CorruptFile, match=r"d\.parquet"):
        read(store, task)


def equality_deletes(store: MemoryStore, rows: Rows, schema: Schema, field_ids: Sequence[int]) -> FileTask:
    put(store, rows, arrow_schema(schema), DELETES)
    return replace(TASK, deletes=(DeleteFile(DeleteType.EQUALITY, DELETES, tuple(field_ids)),))


def test_equality_deletes_match_all_their_columns_and_null_is_a_value() -> None:
    store = ten_rows()
    task = equality_deletes(store, [{"id": 0, "s": None}, {"id": 3, "s": "s3"}, {"id": 4, "s": "s4"}], SCHEMA, [1, 2])
    assert ids(read(store, task)) == [1, 2, 3, 5, 6, 7, 8, 9]
    store = ten_rows()
    assert ids(read(store, equality_deletes(store, [{"s": None}], SCHEMA.select(["s"]), [2]))) == [1, 2, 4, 5, 7, 8]


def test_key_columns_need_not_be_selected() -> None:
    store = ten_rows()
    task = equality_deletes(store, [{"s": "s4"}], SCHEMA.select(["s"]), [2])
    assert ids(read(store, task, ["id"], "id > 2")) == [3, 5, 6, 7, 8, 9]


def test_keys_of_a_column_that_was_dropped_since_still_delete() -> None:
    store = ten_rows()
    task = equality_deletes(store, [{"s": "s4"}], SCHEMA.select(["s"]), [2])
    now = Schema((SCHEMA.fields[0], NestedField(9, "s", SCHEMA.fields[0].type)))
    assert ids(read(store, task, ["id"], schema=now, history=[now, SCHEMA])) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_keys_of_a_narrower_type_match_the_widened_column() -> None:
    store = ten_rows()
    narrow = parse_schema("id int")
    assert ids(read(store, equality_deletes(store, [{"id": 4}], narrow, [1]))) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_keys_that_no_version_of_the_table_had_are_refused() -> None:
    store = ten_rows()
    with pytest.raises(Unsupported, match=r"\[77\]"):
        read(store, equality_deletes(store, [{"id": 4}], parse_schema("id long"), [77]))


# Columns that the file does not have.


def with_new(*fields: NestedField) -> Schema:
    return Schema((*SCHEMA.fields, *fields))


def test_a_missing_column_has_its_initial_default_and_filters_see_it() -> None:
    new = NestedField(7, "n", SCHEMA.fields[0].type, required=True, initial_default=42, write_default=43)
    rows = read(ten_rows(), TASK, where="n = 42 AND id < 2", schema=with_new(new))
    assert rows == [{"id": 0, "s": None, "n": 42}, {"id": 1, "s": "s1", "n": 42}]
    assert read(ten_rows(), TASK, where="n <> 42", schema=with_new(new)) == []


def test_defaults_inside_structs_follow_the_table_of_the_spec() -> None:
    old = parse_schema("p struct<x int>")
    store = MemoryStore()
    put(store, [{"p": {"x": 3}}, {"p": None}], arrow_schema(old))
    version, x = old.fields[0], old.by_id[2]
    fields = (replace(x, initial_default=0), NestedField(3, "y", x.type, initial_default=0))
    grown = replace(version, type=StructType(fields))
    assert read(store, TASK, schema=Schema((grown,))) == [{"p": {"x": 3, "y": 0}}, {"p": None}]
    other = ten_rows()
    moved = tuple(replace(f, field_id=f.field_id + 50) for f in fields)
    nowhere = replace(grown, field_id=50, type=StructType(moved))
    assert read(other, TASK, ["p"], "id = 1", schema=with_new(nowhere)) == [{"p": None}]
    present = replace(nowhere, initial_default=EMPTY_STRUCT)
    assert read(other, TASK, ["p"], "id = 1", schema=with_new(present)) == [{"p": {"x": 0, "y": 0}}]


def test_a_missing_required_column_without_default_is_a_damaged_file() -> None:
    new = NestedField(7, "n", SCHEMA.fields[0].type, required=True)
    with pytest.raises(CorruptFile, match="the required column 'n' is missing"):
        read(ten_rows(), TASK, schema=with_new(new))


def test_a_missing_column_has_the_value_of_its_identity_partition_before_its_default() -> None:
    new = NestedField(7, "n", SCHEMA.fields[0].type, initial_default=42)
    task = replace(TASK, constants={7: 5, 1: 99})
    assert read(ten_rows(), task, where="id = 2", schema=with_new(new)) == [{"id": 2, "s": "s2", "n": 5}]
    assert read(ten_rows(), replace(TASK, constants={7: None}), ["n"], "id = 2", schema=with_new(new)) == [{"n": None}]


# Files without ids.

NO_IDS = pa.schema([("key", pa.int64()), ("S", pa.string()), ("extra", pa.int32())])
MAPPING = decode_name_mapping('[{"field-id": 1, "names": ["id", "key"]}, {"field-id": 2, "names": ["S"]}]')


def nameless() -> MemoryStore:
    store = MemoryStore()
    put(store, [{"key": 1, "S": "a", "extra": 1}, {"key": 2, "S": None, "extra": 2}], NO_IDS)
    return store


def test_a_name_mapping_gives_ids_to_files_without() -> None:
    assert read(nameless(), TASK, mapping=MAPPING) == [{"id": 1, "s": "a"}, {"id": 2, "s": None}]
    assert read(nameless(), TASK, where="id > 1", mapping=MAPPING) == [{"id": 2, "s": None}]
    with pytest.raises(Unsupported, match="name-mapping"):
        read(nameless(), TASK)


def test_ids_in_the_file_win_over_the_mapping() -> None:
    swapped = decode_name_mapping('[{"field-id": 2, "names": ["id"]}, {"field-id": 1, "names": ["s"]}]')
    assert read(ten_rows(), TASK, where="id = 1", mapping=swapped) == [{"id": 1, "s": "s1"}]


def test_nested_columns_are_mapped_at_every_depth() -> None:
    schema = parse_schema("l list<struct<a int>>, m map<string, struct<b int>>")
    store = MemoryStore()
    plain = pa.schema(
        [("l", pa.list_(pa.struct([("x", pa.int32())]))), ("m", pa.map_(pa.string(), pa.struct([("y", pa.int32())])))]
    )
    put(store, [{"l": [{"x": 1}], "m": [("k", {"y": 2})]}], plain)
    text = """[{"field-id": 1, "names": ["l"], "fields": [{"field-id": 3, "names": ["element"], "fields":
        [{"field-id": 4, "names": ["x"]}]}]},
      {"field-id": 2, "names": ["m"], "fields": [{"field-id": 5, "names": ["key"]}, {"field-id": 6, "names": ["value"],
        "fields": [{"field-id": 7, "names": ["y"]}]}]}]"""
    assert schema.name_of(4) == "l.element.a"
    assert schema.name_of(7) == "m.value.b"
    rows = read(store, TASK, schema=schema, mapping=decode_name_mapping(text))
    assert rows == [{"l": [{"a": 1}], "m": [("k", {"b": 2})]}]


# Metadata columns.


def test_lineage_is_inherited_by_position() -> None:
    rows = read(ten_rows(), TASK, ["id", "_pos", "_row_id", "_last_updated_sequence_number"], "id >= 8")
    assert rows == [{"id": i, "_pos": i, "_row_id": 100 + i, "_last_updated_sequence_number": 3} for i in (8, 9)]


def test_lineage_that_was_written_down_wins() -> None:
    store = MemoryStore()
    lineage = with_metadata_columns(SCHEMA).select(["id", "_row_id", "_last_updated_sequence_number"])
    stored: Rows = [
        {"id": 1, "_row_id": 7, "_last_updated_sequence_number": 2},
        {"id": 2, "_row_id": 8, "_last_updated_sequence_number": None},
        {"id": 3, "_row_id": None, "_last_updated_sequence_number": None},
    ]
    put(store, stored, arrow_schema(lineage))
    rows = read(store, TASK, ["_row_id", "_last_updated_sequence_number"], "_row_id <> 0")
    assert [tuple(row.values()) for row in rows] == [(7, 2), (8, 3), (102, 3)]
    assert [tuple(r.values()) for r in read(store, TASK, ["id"], "_row_id = 102")] == [(3,)]


def test_a_file_from_before_lineage_has_none() -> None:
    rows = read(ten_rows(), replace(TASK, first_row_id=None), ["_row_id", "_last_updated_sequence_number"], "id = 1")
    assert rows == [{"_row_id": None, "_last_updated_sequence_number": None}]


def test_where_a_row_lies_can_be_asked_for() -> None:
    rows = read(ten_rows(), replace(TASK, spec_id=4), ["_file", "_spec_id"], "_pos = 6")
    assert rows == [{"_file": AT, "_spec_id": 4}]
