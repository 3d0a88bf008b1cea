"""New insides for nested arrays: same offsets, same nulls, whatever slice the array is."""

import pyarrow as pa
import pytest

from icefield.types.arrow import arrow_type
from icefield.types.arrow_nested import list_around, map_around, struct_around, without_unused
from icefield.types.datatypes import ListType, MapType, NestedField, StructType
from icefield.types.text import parse_schema

LISTS = pa.array([[1, 2], [3], None, [], [4, 5, 6]], pa.list_(pa.int32()))
MAPS = pa.array([[("a", 1)], [("b", 2), ("c", 3)], None, [], [("d", 4)]], pa.map_(pa.string(), pa.int32()))
STRUCTS = pa.array([{"x": 1}, None, {"x": None}, {"x": 4}], pa.struct([("x", pa.int32())]))


def type_of(text: str) -> ListType | MapType | StructType:
    (column,) = parse_schema(f"c {text}").fields
    assert isinstance(column.type, ListType | MapType | StructType)
    return column.type


SLICES = [(0, 5), (1, 4), (1, 2), (2, 1), (3, 1), (4, 1), (5, 0)]


@pytest.mark.parametrize("array", [LISTS, MAPS])
@pytest.mark.parametrize(("start", "length"), SLICES)
def test_what_is_cut_off_is_not_in_the_children(array: pa.Array, start: int, length: int) -> None:
    cut = array.slice(start, length)
    compact = without_unused(cut)
    compact.validate(full=True)
    assert compact.to_pylist() == cut.to_pylist()
    assert len(compact.values) == sum(len(v) for v in cut.to_pylist() if v)


def test_a_whole_array_is_not_copied() -> None:
    assert without_unused(LISTS) is LISTS
    assert without_unused(MAPS) is MAPS


def test_an_array_of_no_rows_needs_no_offsets() -> None:
    bare = pa.Array.from_buffers(LISTS.type, 0, [None, pa.py_buffer(b"")], children=[pa.array([], pa.int32())])
    assert without_unused(bare).to_pylist() == []


@pytest.mark.parametrize(("start", "length"), SLICES)
def test_a_list_gets_new_values(start: int, length: int) -> None:
    kind = type_of("list<string>")
    assert isinstance(kind, ListType)
    cut = LISTS.slice(start, length)
    made = list_around(cut, kind, cut.values.cast(pa.string()))
    made.validate(full=True)
    assert made.type.equals(arrow_type(kind), check_metadata=True)
    assert made.to_pylist() == [None if v is None else [str(i) for i in v] for v in cut.to_pylist()]


@pytest.mark.parametrize(("start", "length"), SLICES)
def test_a_map_gets_new_keys_and_items(start: int, length: int) -> None:
    kind = type_of("map<binary, long>")
    assert isinstance(kind, MapType)
    cut = MAPS.slice(start, length)
    made = map_around(cut, kind, cut.keys.cast(pa.binary()), cut.items.cast(pa.int64()))
    made.validate(full=True)
    assert made.type.equals(arrow_type(kind), check_metadata=True)
    assert made.to_pylist() == [None if v is None else [(k.encode(), i) for k, i in v] for v in cut.to_pylist()]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_struct_gets_new_columns_and_keeps_its_nulls(start: int) -> None:
    cut = STRUCTS.slice(start)
    fields: tuple[NestedField, ...] = parse_schema("x long, y string").fields
    made = struct_around(cut, fields, [cut.flatten()[0].cast(pa.int64()), pa.nulls(len(cut), pa.string())])
    made.validate(full=True)
    assert made.type.equals(arrow_type(StructType(fields)), check_metadata=True)
    assert made.to_pylist() == [None if v is None else {**v, "y": None} for v in cut.to_pylist()]
