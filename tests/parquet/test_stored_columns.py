"""What a data file stores is known from its name and from its footer, and the two agree."""

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from tests.effort import effort
from tests.schema_cases import PRIMITIVES, schemas

from icefield.lake import Lake
from icefield.parquet.nan_columns import parquet_path
from icefield.parquet.read.stored_columns import (
    find_stored_columns,
    fingerprint_of,
    fingerprints_in,
    footer_columns,
    stored_columns,
)
from icefield.parquet.write.options import ColumnChoice, open_writer, parquet_options
from icefield.storage.memory import MemoryStore
from icefield.types.datatypes import NestedField, TimestampNsType, TimestamptzNsType, UnknownType
from icefield.types.metadata_columns import LINEAGE, with_columns
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

LOCATION = "memory://lake/t"
KINDS = (*PRIMITIVES, TimestampNsType(), TimestamptzNsType())


@effort(30)
@given(schemas(kinds=KINDS))
def test_a_footer_tells_what_the_name_stands_for(schema: Schema) -> None:
    store, footers = MemoryStore(), list[pq.FileMetaData]()
    with store.open_new(LOCATION) as sink:
        paths = [parquet_path(leaf) for leaf in schema.leaves]
        writer = open_writer(sink, schema, parquet_options(schema, {}), ColumnChoice(paths, paths), footers)
        writer.write_table(pa.Table.from_batches([], writer.schema))
        writer.close()
    assert footer_columns(footers[0]) == stored_columns(schema)


@effort(30)
@given(schemas(kinds=KINDS), schemas(kinds=KINDS))
def test_different_columns_have_different_fingerprints(one: Schema, other: Schema) -> None:
    same = stored_columns(one) == stored_columns(other)
    assert (fingerprint_of(stored_columns(one)) == fingerprint_of(stored_columns(other))) == same


def test_a_fingerprint_tells_ids_names_and_types_apart() -> None:
    strings = ["a long, b int", "a int, b long", "b long, a int", "a long, b int, c int", "a struct<x: int>, b int"]
    strings += ["a struct<y: int>, b int", "a list<int>, b int", "a list<long>, b int", "A long, b int"]
    assert len({fingerprint_of(stored_columns(parse_schema(text))) for text in strings}) == len(strings)


def test_columns_that_files_do_not_hold_and_lineage_make_no_difference() -> None:
    schema = parse_schema("a long, b int")
    more = Schema((*schema.fields, NestedField(3, "x", UnknownType())))
    assert stored_columns(with_columns(more, LINEAGE)) == stored_columns(schema)


def test_the_order_of_columns_makes_no_difference() -> None:
    schema = parse_schema("a long, b int")
    moved = Schema(schema.fields[::-1])
    assert fingerprint_of(stored_columns(schema)) == fingerprint_of(stored_columns(moved))


def test_the_name_of_a_new_file_ends_in_its_fingerprint(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long, s struct<x: int>")
    table.append(pa.table({"id": [1]}))
    with table.evolve() as change:
        change.rename_column("id", "key")
    table.append(pa.table({"key": [2]}))
    paths = table.scan().files()["file_path"]
    found = fingerprints_in(paths)
    assert set(found.to_pylist()) == {fingerprint_of(stored_columns(schema)) for schema in table.metadata.schemas}
    known = find_stored_columns([table.schema], set(found.to_pylist()))
    assert known == {fingerprint_of(stored_columns(table.schema)): stored_columns(table.schema)}


def test_other_names_have_no_fingerprint() -> None:
    others = ["x.parquet", "x-s012345.parquet", "x-s0123456789ab", "x-0123456789ab.parquet", "s0123456789ab.parquet"]
    names = pa.chunked_array([pa.array([*others, "x-s0123456789ab.parquet"])])
    assert fingerprints_in(names).to_pylist() == [None] * len(others) + ["0123456789ab"]
    assert fingerprints_in(pa.chunked_array([], pa.string())).to_pylist() == []
