"""Faults that random histories found, each in as few steps as it takes."""

import uuid

import pyarrow as pa
import pytest

from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.types.datatypes import IntegerType, NestedField, StructType


def test_a_struct_with_a_required_field_may_be_left_out_or_null(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long, s struct<x: int not null, y: uuid>")
    table.append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2], "s": pa.nulls(1)}))
    assert table.scan(where="s.x is null").count() == 2


def test_a_filter_may_leave_no_row_where_uuids_stand_inside_other_types(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long, m map<string, uuid>")
    kind = pa.map_(pa.string(), pa.uuid())
    storage = pa.array([uuid.UUID(int=1).bytes], pa.binary(16))
    items = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 1], pa.int32()), pa.array(["a"]), items, type=kind)
    table.append(pa.table({"id": [1, 3], "m": maps}))
    assert table.scan(where="id = 2").to_arrow().read_all().num_rows == 0


def test_rows_are_replaced_by_a_filter_on_a_column_of_unknown_type(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long, u unknown", format_version=3)
    table.append(pa.table({"id": [1, 2]}))
    table.overwrite(pa.table({"id": [3]}), where="u is not null or id = 1", check_rows=False)
    assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [2, 3]


def test_a_struct_cannot_default_to_its_fields_defaults_if_a_required_one_has_none(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long, s struct<x: int not null>", format_version=3)
    table.append(pa.table({"id": [1]}))
    with pytest.raises(InvalidInput, match="'x' is required"), table.evolve() as change:
        change.set_default("s", {})
    with pytest.raises(InvalidInput, match="'x' is required"), table.evolve() as change:
        change.add_column("t", StructType((NestedField(1, "x", IntegerType(), required=True),)), default={})
    assert table.count() == 1


def test_the_source_of_a_field_that_version_1_keeps_as_void_stays(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long, day date", partition_by=["day"], format_version=1)
    with table.evolve() as change:
        change.drop_partition_field("day")
    with pytest.raises(InvalidInput, match="cannot drop the source"), table.evolve() as change:
        change.drop_column("day")
    table.append(pa.table({"id": [1]}))
    assert table.count() == 1
